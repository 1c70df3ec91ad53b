"""Ask a question in SQL and get a private answer with error bars."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import NUMBER, emit_json, json_option, note, typed_path

if TYPE_CHECKING:
    from sfumato.query import Answer


@click.command("query")
@click.argument("metadata", type=typed_path)
@click.argument("sql")
@click.option(
    "--epsilon", type=NUMBER, default=None, help="What the answer may cost. Smaller is more private and less exact."
)
@click.option(
    "--delta", type=NUMBER, default="0", show_default=True, help="Needed for Gaussian noise and for private keys."
)
@click.option("--rho", type=NUMBER, default=None, help="The cost in zero-concentrated privacy instead of epsilon.")
@click.option("--rows", type=click.IntRange(min=1), default=None, help="Rows of one unit that count within a group.")
@click.option("--groups", type=click.IntRange(min=1), default=None, help="Groups in which one unit counts.")
@click.option("--bounding", type=click.Choice(["sample", "clip"]), default=None, help="How that is enforced.")
@click.option("--analyst", default=None, help="Whose budget is charged; the user's name when left out.")
@click.option("--explain", is_flag=True, help="Tell the cost and the expected error, and spend nothing.")
@click.option(
    "--pace", type=click.FloatRange(min=0), default=None, help="Answer at whole multiples of so many seconds."
)
@click.option("--engine", default=None, help="duckdb, postgres or spark; chosen by where the data is when left out.")
@json_option
def command(metadata: Path, sql: str, explain: bool, as_json: bool, **options: Any) -> None:
    """Ask SQL about the data set that METADATA describes; `-` reads the query from standard input.

    `sfumato init FILE --query` writes a first METADATA for its owner to complete.

    Write EXPLAIN in front of the query (or use --explain) to see the cost and the expected error before anything is
    spent, or ERROR 50 CONFIDENCE 95% behind it to let the error decide the cost. The same question again is free.

    Where METADATA names another `policy:` than differential privacy, that policy answers or says no (exit code 1).
    There is no budget then, and options of cost are refused.
    """
    from sfumato.errors import InvalidRecipe, NotThatFormat
    from sfumato.query.metadata import load

    text = sys.stdin.read() if sql == "-" else sql
    words = text.lstrip()
    if words[:8].upper() == "EXPLAIN ":
        explain, text = True, words[8:]
    try:
        loaded = load(metadata)
    except InvalidRecipe as refusal:
        if {"tables", "dataset", "ledger"} <= {problem.where for problem in refusal.problems}:
            raise NotThatFormat(
                f"{metadata} describes no data set that can be asked about.",
                fix="`sfumato init FILE --query` writes the metadata; a recipe is for `sfumato protect`.",
            ) from None
        raise
    analyst = options.pop("analyst") or getpass.getuser()
    session = loaded.session(
        base=metadata.parent, analyst=analyst, engine=options.pop("engine"), pace=options.pop("pace")
    )
    if explain:
        explanation = session.explain(text, **options)
        if as_json:
            emit_json({"explanation": explanation.to_dict()})
        else:
            click.echo(str(explanation))
        return
    answer = session.ask(text, **options)
    if as_json:
        emit_json(answer.to_dict())
    elif answer.loss is None:
        _print_values(answer)
    else:
        _print_table(answer)


def _print_table(answer: Answer) -> None:
    """Noisy numbers with their intervals, the cost and what is left."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(answer.columns):
        table.add_column(name, justify="right" if any(row[i].low is not None for row in answer.rows) else "left")
    for row in answer.rows:
        table.add_row(*(_cell(cell.value, cell.low, cell.high) for cell in row))
    Console(highlight=False, markup=False).print(table)
    left = "" if answer.remaining is None else f" Left: {answer.remaining}."
    note(("Answered before, so it is free." if answer.cached else f"Cost {answer.loss}.") + left)
    note(str(answer.explanation).split("\n", 1)[1])


def _print_values(answer: Answer) -> None:
    """The single column that a policy without differential privacy answers, one value a line."""
    click.echo(answer.columns[0])
    for value in answer.values:
        text = f"{value:,.12g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
        click.echo("none" if value is None else text)
    for line in answer.notes:
        note(line)


def _cell(value: Any, low: float | None, high: float | None) -> str:
    from sfumato.query.results.explain import digits

    if value is None:
        return "no answer"
    shown = digits(value, 6) if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
    return shown if low is None or high is None else f"{shown}  ({digits(low, 4)} to {digits(high, 4)})"
