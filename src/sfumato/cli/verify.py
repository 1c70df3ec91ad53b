"""Verify the certificate of an answer or a release, or the installation itself."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, json_option, note, typed_path

PERSON = "analyst"


@click.command("verify")
@click.argument("certificate", type=typed_path, required=False)
@click.option(
    "--ledger",
    default=None,
    help="The ledger that was charged: a SQLite file, a postgresql:// address, or a data set document. Without it the "
    "place in the hash chain is not checked.",
)
@click.option("--key", default=None, help="The public key that must have signed, as `sfumato ledger key` prints it.")
@click.option("--self", "installation", is_flag=True, help="Check this installation instead, in about a minute.")
@json_option
def command(certificate: Path | None, ledger: str | None, key: str | None, installation: bool, as_json: bool) -> int:
    """Verify CERTIFICATE, which `sfumato query --certificate FILE` wrote, or what holds one: the JSON of an answer, the
    folder of a release with a guarantee, or a model.

    Every bound and every loss is derived again by the numbered rules of the documentation (docs/proof.md), with code
    that imports nothing else of sfumato. Exit code 1 if the certificate does not prove what it states.

    With --self, this installation is checked by itself, with real entropy and no data but its own: mechanisms, the
    distribution of their noise, an attacker's audit, answers, neighbours and certificates. Exit code 1 if a check
    fails.
    """
    if installation:
        if certificate is not None or ledger is not None or key is not None:
            raise click.UsageError("--self checks the installation: leave out CERTIFICATE, --ledger and --key.")
        return _verify_installation(as_json)
    if certificate is None:
        raise click.UsageError("Name the CERTIFICATE, or use --self to check the installation.")
    from sfumato.api.verify import verify

    found = verify(certificate, ledger=ledger, key=key)
    if as_json:
        emit_json(found.to_dict())
    elif found.holds:
        click.echo(f"The certificate holds: {found.nodes} nodes by the rules {', '.join(found.rules)}.")
        note(f"It proves {found.proved}.")
        if found.beside == "holds":
            note("All that stands beside it is what left, by the fingerprint in the ledger.")
        elif found.beside != "nothing":
            note("What stands beside it in the file or folder (numbers, tables, texts) is not checked.")
        note(f"Place in the hash chain of the ledger: {found.ledger}.")
        unsigned = f"It is not signed. Nothing confirms {', '.join(found.not_covered)}."
        note(f"Signed by {found.signed_by}." if found.signed_by else unsigned)
    else:
        click.echo(f"Refused at {found.node}: {found.reason}.")
    return 0 if found.holds else 1


def _verify_installation(as_json: bool) -> int:
    from sfumato.testing.installation import check_installation

    found = check_installation()
    if as_json:
        emit_json(found.to_dict())
    else:
        click.echo(f"sfumato {found.version}, Python {found.python}, {found.machine}, {found.at}\n")
        for part in found.parts:
            click.echo(f"{'holds' if part.holds else 'FAILS'}  {part.name}: {part.what}")
            click.echo(f"       {part.found} ({part.seconds:g} s)")
        failed = sum(not part.holds for part in found.parts)
        click.echo(f"\n{failed} of {len(found.parts)} checks fail." if failed else "\nAll checks hold.")
    return 0 if found.holds else 1
