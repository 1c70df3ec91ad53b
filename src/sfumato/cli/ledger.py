"""Set, show and verify privacy budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from sfumato.cli._console import NUMBER, CommandGroup, emit_json, force_option, json_option, note, typed_path

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger

PERSON = "steward"


@click.group("ledger", cls=CommandGroup)
def command() -> None:
    """Privacy budgets: set, show, verify, export, key. LEDGER is a SQLite file, a postgresql:// address, or a data set
    document that names one."""


@command.command("cap")
@click.argument("ledger")
@click.option(
    "--dataset", default="", help="Data set that the budget is for. With --analyst: that analyst's budget for it."
)
@click.option("--analyst", default="", help="Analyst that the budget is for. Without --dataset: over all data sets.")
@click.option("--epsilon", type=NUMBER, default=None, help="Budget as epsilon.")
@click.option("--rho", type=NUMBER, default=None, help="Budget as rho (zero-concentrated differential privacy).")
@click.option("--delta", type=NUMBER, default="0", show_default=True, help="Budget for the sum of all deltas.")
@click.option("--unit", default=None, help="Privacy unit that gets a budget of its own, such as `edge`.")
@click.option(
    "--composition", type=click.Choice(["all", "sums", "gaussian", "rho"]), default="all", show_default=True,
    help="Account that keeps a budget with a delta. `all` share delta; one alone has all of it.",
)  # fmt: skip
@click.option(
    "--reserve-delta", type=NUMBER, default="0", show_default=True,
    help="Part of delta for costs that have one, such as private keys, under `gaussian` and `rho`.",
)  # fmt: skip
@click.option(
    "--neighbours", type=click.Choice(["add-or-remove", "replace"]), default="add-or-remove", show_default=True,
    help="Tables that the budget compares: with and without one person, or with one person replaced by another. With "
    "`replace`, answers are charged up to half of the budget, which is the same guarantee.",
)  # fmt: skip
@click.option("--by", default="owner", show_default=True, help="Name recorded as the one who set the budget.")
@click.option("--why", default="", help="Reason, for the ledger.")
@json_option
def cap(
    ledger: str, dataset: str, analyst: str, epsilon: str | None, rho: str | None, delta: str, unit: str | None,
    composition: str, reserve_delta: str, neighbours: Literal["add-or-remove", "replace"], by: str, why: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Set a budget. Data sets without a budget cannot be queried. Earlier spending still counts.

    LEDGER may be a data set document: its data set gets the budget, in the ledger that it names.
    """
    from sfumato.api.ledger import set_budget

    if (epsilon is None) == (rho is None):
        raise click.UsageError("Use either --epsilon or --rho.")
    document = Path(ledger).suffix.lower() in (".yaml", ".yml")
    if not (document or dataset or analyst):
        raise click.UsageError("Use --dataset, --analyst, or both.")
    if not document and "://" not in ledger and not Path(ledger).exists():
        note(f"New ledger: {ledger}")
    entry = set_budget(
        ledger, epsilon=epsilon, delta=delta, rho=rho, dataset=dataset, analyst=analyst, unit=unit,
        composition=composition, reserve_delta=reserve_delta, neighbours=neighbours, by=by, why=why,
    )  # fmt: skip
    if as_json:
        emit_json(entry.to_dict())
    else:
        whose = f"{entry.dataset or 'all data sets'}, {entry.analyst or 'all analysts'}"
        same = ", which is the stated one where one person is replaced by another" if neighbours == "replace" else ""
        click.echo(f"Entry {entry.number}: {whose}: budget {entry.cost()}{same}.")


@command.command("show")
@click.argument("ledger")
@json_option
def show(ledger: str, as_json: bool) -> None:
    """List what left about the people of LEDGER or of a data set document, and what is left of every budget.

    Releases, tables, models and surveys are listed one by one, answers by analyst. A run that was charged and whose
    result was never written is listed as "charged, nothing registered".
    """
    from sfumato.api.ledger import ledger_overview

    overview = ledger_overview(ledger)
    if as_json:
        emit_json(overview.to_dict())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("data set", "analyst", "unit", "cap", "spent", "left", box=None, pad_edge=False)
    for account in overview.accounts:
        held = account.balance
        left = "" if held.left is None else str(held.left)
        table.add_row(account.dataset or "(all)", account.analyst or "(all)", account.unit or "",
                      str(held.cap or "none set"), str(held.spent), left)  # fmt: skip
    Console(highlight=False).print(table)
    for line in (line for account in overview.accounts for line in account.notes):
        click.echo(line)
    click.echo(f"\nWhat left:\n{overview}" if overview.register else "\nNothing left so far.")


@command.command("verify")
@click.argument("ledger")
@click.option("--last", default=None, help="A hash printed by an earlier `verify`, which must still be in the chain.")
@json_option
def verify(ledger: str, last: str | None, as_json: bool) -> None:
    """Verify the hash chain and every total, and print the last hash."""
    from sfumato.api.ledger import open_ledger

    last_hash = open_ledger(ledger)[0].verify(last=last)
    if as_json:
        emit_json({"verified": True, "last": last_hash})
    else:
        click.echo(last_hash)
        note("The hash chain is valid. Keep this hash elsewhere: `verify --last HASH` then detects removed entries.")


@command.command("key")
@click.argument("ledger")
def key(ledger: str) -> None:
    """Print the public key of the certificates that LEDGER signs, for `sfumato verify --key`."""
    from sfumato.api.ledger import open_ledger
    from sfumato.proof.signature import public_key

    click.echo(public_key(open_ledger(ledger)[0].signing_key()).hex())


@command.command("export")
@click.argument("ledger")
@click.option("--out", type=typed_path, default=None, help="File to write; standard output if left out.")
@click.option("--queries", is_flag=True, help="Include the text of each query. It may tell what analysts look for.")
@click.option("--events", is_flag=True, help="Instead, the charges of each data set as an event of dp_accounting.")
@click.option("--registry", is_flag=True, help="Instead, drafts for the Differential Privacy Deployments Registry.")
@click.option("--about", type=typed_path, default=None, help="With --registry: YAML of what only the owner knows.")
@force_option
def export(
    ledger: str, out: Path | None, queries: bool, events: bool, registry: bool, about: Path | None, force: bool
) -> None:
    """Export all entries as JSON lines. Queries appear as fingerprints unless --queries is given.

    With --events, one line for each data set and unit: all of its charges as one composed event of the library
    dp_accounting (the fields of `DpEvent.to_named_tuple`), for an accountant outside.
    """
    import json

    from sfumato.api.ledger import open_ledger
    from sfumato.ledger.dp_events import dp_events

    if queries + events + registry > 1:
        raise click.UsageError("Use one of --queries, --events and --registry.")
    if about is not None and not registry:
        raise click.UsageError("--about belongs to --registry.")
    accounting, dataset = open_ledger(ledger)
    texts = accounting.queries() if queries else {}
    if registry:
        lines = _registry_lines(accounting, about, dataset)
    elif events:
        lines = [json.dumps(stated) for stated in dp_events(accounting.entries())]
    else:
        lines = [
            json.dumps(entry.to_dict() | ({"text": texts[entry.number]} if entry.number in texts else {}))
            for entry in accounting.entries()
        ]
    if out is None:
        for line in lines:
            click.echo(line)
        return
    from sfumato.data import replacing

    with replacing(out, force=force) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _registry_lines(ledger: Ledger, about: Path | None, dataset: str | None) -> list[str]:
    """Drafts of entries as YAML documents; what the owner has yet to state is said on standard error."""
    from io import StringIO

    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    from sfumato.data.read_write import require_file
    from sfumato.errors import BadParameter
    from sfumato.ledger.registry_entry import registry_entries

    stated: object = {}
    if about is not None:
        require_file(about)
        try:
            stated = YAML(typ="safe").load(about.read_text(encoding="utf-8"))
        except YAMLError:
            raise BadParameter(f"{about} is not YAML.") from None
    if not isinstance(stated, dict):
        raise BadParameter("--about is a YAML mapping of fields.")
    lines = []
    for entry in registry_entries(ledger, stated, dataset=dataset):
        writer, text = YAML(), StringIO()
        writer.width, writer.explicit_start = 100, True
        writer.dump(dict(entry.fields), text)
        lines.append(text.getvalue().rstrip("\n"))
        if entry.missing:
            note(f"{entry.fields['deployment']['product']['name']}: state {', '.join(entry.missing)} in --about.")
    return lines
