"""Publish tables of counts or sums: suppress or round cells, and calculate suppressed ones back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, typed_path

if TYPE_CHECKING:
    from sfumato.tables.plan import ProtectedTables
    from sfumato.tables.summary_file import PublishedStatistics


@click.group("tables")
def command() -> None:
    """Tables with margins: cell suppression, controlled rounding, and the interval attack on suppressed tables."""


def unmet_option(function: Any) -> Any:
    """``--unmet`` of commands that refuse to write figures whose verdict fails."""
    return click.option("--unmet", is_flag=True, help="Write the figures even if the verdict is not `holds`.")(function)


@command.command("protect")
@click.argument("plan", type=typed_path)
@click.option("--out", type=typed_path, required=True, help="Folder for tables.csv and tables.json.")
@unmet_option
@force_option
@json_option
def protect(plan: Path, out: Path, unmet: bool, force: bool, as_json: bool) -> int:
    """Tabulate the data of a plan and protect all cells; see docs/tables.md.

    Exit code 1 if a suppressed cell is not protected; nothing is written then, unless --unmet is given.
    """
    from sfumato.tables.plan import TablePlan

    return _publish(TablePlan.load(plan).run, out, "tables", promise=False, unmet=unmet, force=force, as_json=as_json)


@command.command("attack")
@click.argument("published", nargs=-1, required=True, type=typed_path)
@click.option("--sums", is_flag=True, help="Values are sums of amounts; by default they are counts.")
@click.option("--zeros-hidden", is_flag=True, help="Empty cells are suppressed too: a blank may be 0.")
@json_option
def attack(published: tuple[Path, ...], sums: bool, zeros_hidden: bool, as_json: bool) -> int:
    """Calculate the interval of every suppressed cell from published tables, all files together.

    A file has one line per cell: a column per dimension (empty for the total), and `value`, empty where suppressed.
    Counts are whole numbers, and a blank is at least 1, because zeros are published. The exit code is 1 if a suppressed
    cell can be calculated exactly.
    """
    from sfumato.data import read
    from sfumato.tables.interval_audit import combine, interval_attack, published_table

    tables = [published_table(read(file).frame, counts=not sums, zeros_hidden=zeros_hidden) for file in published]
    found = interval_attack(combine(tables))
    disclosed = sum(one.disclosed for one in found)
    if as_json:
        cells = [
            {"cell": dict(one.key), "low": one.low, "high": one.high if one.high < float("inf") else None,
             "disclosed": one.disclosed} for one in found
        ]  # fmt: skip
        emit_json({"suppressed": len(found), "disclosed": disclosed, "cells": cells})
    else:
        for one in found:
            place = ", ".join(f"{name} = {value}" for name, value in one.key) or "total"
            click.echo(f"{place}: {one.low:g} to {one.high:g}{'  disclosed' if one.disclosed else ''}")
        click.echo(f"{disclosed} of {len(found)} suppressed cells can be calculated.")
    return 1 if disclosed else 0


@command.command("topdown")
@click.argument("plan", type=typed_path)
@click.option("--out", type=typed_path, required=True, help="Folder for the tables and tables.json.")
@force_option
@json_option
def topdown_tables(plan: Path, out: Path, force: bool, as_json: bool) -> int:
    """Publish tables of a hierarchy of areas with differential privacy (TopDown), and charge a ledger.

    PLAN lists areas, columns, tables, budget and constraints; see docs/tables.md. Everything that can be refused is
    refused before the ledger is charged.
    """
    from sfumato.release.public_folder import paid, public_folder
    from sfumato.tables.topdown_file import TopDownFile

    loaded = TopDownFile.load(plan)
    with public_folder(out, promise=True, force=force, marker="tables.json") as folder:
        done = loaded.run()
        for name, table in done.tables.items():
            folder.table(f"{name}.csv", paid(table))
        if done.microdata is not None:
            folder.table("microdata.csv", paid(done.microdata))
        folder.json("tables.json", {key: paid(value) for key, value in done.account.items()})
    account = {"tables": str(out), **done.account}
    if as_json:
        emit_json(account)
        return 0
    click.echo(f"{len(done.tables)} tables in {out}: {_loss_in_words(done.account['guarantee'])}.")
    if done.account["relaxed"] or done.account["unsolved"]:
        note(f"{done.account['relaxed']} areas were relaxed, {done.account['unsolved']} parts not solved.")
    return 0


@command.command("summarize")
@click.argument("plan", type=typed_path)
@click.option("--out", type=typed_path, required=True, help="Folder for statistics.csv and statistics.json.")
@unmet_option
@force_option
@json_option
def summarize(plan: Path, out: Path, unmet: bool, force: bool, as_json: bool) -> int:
    """Publish means, variances, totals and regression coefficients, with a threshold or differential privacy.

    Exit code 1 if figures without a guarantee determine the values of people or of groups below the threshold; nothing
    is written then, unless --unmet is given.
    """
    from sfumato.tables.summary_file import SummaryFile

    loaded = SummaryFile.load(plan)
    promise = loaded.budget is not None
    return _publish(loaded.run, out, "statistics", promise=promise, unmet=unmet, force=force, as_json=as_json)


def _publish(
    run: Callable[[], ProtectedTables | PublishedStatistics], out: Path, name: str, *, promise: bool, unmet: bool,
    force: bool, as_json: bool,
) -> int:  # fmt: skip
    """Write NAME.csv and NAME.json, unless the verdict fails. The folder is prepared before a ledger is charged."""
    from sfumato.errors import Unmet
    from sfumato.release.public_folder import Leaving, Why, public_folder

    with public_folder(out, promise=promise, force=force, marker=f"{name}.json") as folder:
        done = run()
        account = {name: str(out), **done.account}
        if not done.holds and not unmet:
            raise Unmet(
                f"Nothing is written: {done.account['verdict']['reason']}.",
                fix="Change the plan, or write the figures nevertheless with --unmet.",
                document=account,
            )
        why = Why.PAID if promise else Why.MEASURED
        folder.table(f"{name}.csv", Leaving(done.frame, why))
        folder.json(f"{name}.json", {key: Leaving(value, why) for key, value in done.account.items()})
    if as_json:
        emit_json(account)
    else:
        for key, value in account.items():
            shown = value["state"] if key == "verdict" else _loss_in_words(value) if key == "guarantee" else value
            click.echo(f"{key}: {shown}")
    return 0 if done.holds else 1


def _loss_in_words(guarantee: Mapping[str, Any]) -> str:
    """The privacy loss of a release; says so if no ledger was charged."""
    from sfumato.dp.receipt import UNKEPT_COST

    if not guarantee["charged"]:
        note(f"{UNKEPT_COST[:1].upper()}{UNKEPT_COST[1:]}.")
    return (
        f"ρ = {guarantee['rho']:g}, which is ε = {guarantee['epsilon']:.2f} at δ = {guarantee['delta']:g}, for one row"
    )
