"""Set, show and verify privacy budgets."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import NUMBER, emit_json, force_option, json_option, note, typed_path

PERSON = "steward"


@click.group("ledger")
def command() -> None:
    """Privacy budgets: set, show, verify, export. LEDGER is a SQLite file or a postgresql:// address."""


def _is_file(ledger: str) -> bool:
    return "://" not in ledger


def existing_ledger(ledger: str) -> str:
    """Require an existing ledger. Only `cap` creates one."""
    from sfumato.data.read_write import require_file

    if _is_file(ledger):
        require_file(Path(ledger))
    return ledger


@command.command("cap")
@click.argument("ledger")
@click.option(
    "--dataset", default="", help="Data set that the budget is for. With --analyst: that analyst's budget for it."
)
@click.option("--analyst", default="", help="Analyst that the budget is for. Without --dataset: over all data sets.")
@click.option("--epsilon", type=NUMBER, default=None, help="Budget as epsilon.")
@click.option("--rho", type=NUMBER, default=None, help="Budget as rho (zero-concentrated differential privacy).")
@click.option("--delta", type=NUMBER, default="0", show_default=True, help="Budget for the sum of all deltas.")
@click.option("--by", default="owner", show_default=True, help="Name recorded as the one who set the budget.")
@json_option
def cap(
    ledger: str, dataset: str, analyst: str, epsilon: str | None, rho: str | None, delta: str, by: str, as_json: bool
) -> None:
    """Set a budget. Data sets without a budget cannot be queried. Earlier spending still counts."""
    from sfumato.dp.loss import approximate, concentrated
    from sfumato.ledger.ledger import Ledger

    if (epsilon is None) == (rho is None):
        raise click.UsageError("Use either --epsilon or --rho.")
    loss = concentrated(rho, delta) if rho is not None else approximate(epsilon or 0, delta)
    if not (dataset or analyst):
        raise click.UsageError("Use --dataset, --analyst, or both.")
    if _is_file(ledger) and not Path(ledger).exists():
        note(f"New ledger: {ledger}")
    entry = Ledger.open(ledger).set_cap(loss, dataset=dataset, analyst=analyst, by=by)
    if as_json:
        emit_json(entry.to_dict())
    else:
        click.echo(f"Entry {entry.number}: {dataset or 'all data sets'}, {analyst or 'all analysts'}: budget {loss}.")


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
    click.echo(f"\nWhat left:\n{overview}" if overview.register else "\nNothing left so far.")


@command.command("verify")
@click.argument("ledger")
@click.option("--last", default=None, help="A hash printed by an earlier `verify`, which must still be in the chain.")
@json_option
def verify(ledger: str, last: str | None, as_json: bool) -> None:
    """Verify the hash chain and every total, and print the last hash."""
    from sfumato.ledger.ledger import Ledger

    last_hash = Ledger.open(existing_ledger(ledger)).verify(last=last)
    if as_json:
        emit_json({"verified": True, "last": last_hash})
    else:
        click.echo(last_hash)
        note("The hash chain is valid. Keep this hash elsewhere: `verify --last HASH` then detects removed entries.")


@command.command("export")
@click.argument("ledger")
@click.option("--out", type=typed_path, default=None, help="File to write; standard output if left out.")
@click.option("--queries", is_flag=True, help="Include the text of each query. It may tell what analysts look for.")
@force_option
def export(ledger: str, out: Path | None, queries: bool, force: bool) -> None:
    """Export all entries as JSON lines. Queries appear as fingerprints unless --queries is given."""
    import json

    from sfumato.ledger.ledger import Ledger

    accounting = Ledger.open(existing_ledger(ledger))
    texts = accounting.queries() if queries else {}
    documents = (
        entry.to_dict() | ({"text": texts[entry.number]} if entry.number in texts else {})
        for entry in accounting.entries()
    )
    lines = map(json.dumps, documents)
    if out is None:
        for line in lines:
            click.echo(line)
        return
    from sfumato.data import replacing

    with replacing(out, force=force) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
