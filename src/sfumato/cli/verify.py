"""Verify the certificate of a private answer."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, json_option, note, typed_path

PERSON = "analyst"


@click.command("verify")
@click.argument("certificate", type=typed_path)
@click.option(
    "--ledger",
    default=None,
    help="The ledger that was charged: a SQLite file, a postgresql:// address, or a data set document. Without it the "
    "place in the hash chain is not checked.",
)
@json_option
def command(certificate: Path, ledger: str | None, as_json: bool) -> int:
    """Verify CERTIFICATE, which `sfumato query --certificate FILE` wrote, or the JSON of an answer.

    Every bound and every loss is derived again by the numbered rules of the documentation (docs/proof.md), with code
    that imports nothing else of sfumato. Exit code 1 if the certificate does not prove what it states.
    """
    from sfumato.api.verify import verify

    found = verify(certificate, ledger=ledger)
    if as_json:
        emit_json(found.to_dict())
    elif found.holds:
        click.echo(f"The certificate holds: {found.nodes} nodes by the rules {', '.join(found.rules)}.")
        note(f"Place in the hash chain of the ledger: {found.ledger}.")
    else:
        click.echo(f"Refused at {found.node}: {found.reason}.")
    return 0 if found.holds else 1
