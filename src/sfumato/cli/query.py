"""Answer an SQL query with differential privacy."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sfumato.cli._console import NUMBER, emit_json, force_option, json_option, note, typed_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from sfumato.api.connect import RemoteSession
    from sfumato.query import Answer, Session

PERSON = "analyst"


@click.command("query")
@click.argument("dataset", type=typed_path)
@click.argument("sql")
@click.option(
    "--epsilon",
    type=NUMBER,
    default=None,
    help="Privacy loss of the answer. Smaller is more private and less accurate.",
)
@click.option(
    "--delta",
    type=NUMBER,
    default="0",
    show_default=True,
    help="Required for Gaussian noise and for private group keys.",
)
@click.option(
    "--rho",
    type=NUMBER,
    default=None,
    help="Privacy loss as rho (zero-concentrated differential privacy) instead of epsilon.",
)
@click.option(
    "--share",
    type=NUMBER,
    default=None,
    help="Privacy loss as a share of the budget, such as 1/100, instead of epsilon.",
)
@click.option(
    "--rows", type=click.IntRange(min=1), default=None, help="Contribution bound: rows of one unit per group."
)
@click.option("--groups", type=click.IntRange(min=1), default=None, help="Contribution bound: groups of one unit.")
@click.option(
    "--bounding", type=click.Choice(["sample", "clip"]), default=None, help="How contribution bounds are enforced."
)
@click.option(
    "--fit",
    type=NUMBER,
    default=None,
    help="Share of the privacy loss that measures how many people the contribution bounds cut. 1/20 if left out.",
)
@click.option("--analyst", default=None, help="Analyst whose budget is charged. The user name if left out.")
@click.option("--explain", is_flag=True, help="Show the cost and the expected error; spend nothing.")
@click.option(
    "--response-interval",
    type=click.FloatRange(min=0),
    default=None,
    help="Quantize the response time to multiples of this many seconds.",
)
@click.option(
    "--engine", default=None, help="duckdb, postgres or spark. Chosen by the location of the data if left out."
)
@click.option(
    "--server",
    default=None,
    help="Address of a query server. DATASET is then its name there, and SFUMATO_TOKEN holds the token.",
)
@click.option(
    "--parties",
    "identity",
    type=typed_path,
    default=None,
    help="Ask several parties. DATASET is then their parties file; this is the analyst's certificate (NAME.crt, with "
    "NAME.key and authority.crt beside it).",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=None,
    help="With --parties: ask again without a party that stopped. Each attempt is charged in full.",
)
@click.option(
    "--certificate",
    type=typed_path,
    default=None,
    help="Write the certificate of the answer to this file, for `sfumato verify`. It is public.",
)
@force_option
@json_option
def command(
    dataset: Path,
    sql: str,
    explain: bool,
    as_json: bool,
    certificate: Path | None,
    force: bool,
    server: str | None,
    identity: Path | None,
    attempts: int | None,
    **options: Any,
) -> None:
    """Answer the query SQL on a data set; `-` reads the query from standard input.

    DATASET is its document, which `sfumato init FILE` writes for the owner to complete.

    EXPLAIN before the query (or --explain) shows the cost and the expected error and spends nothing.
    SHOW TABLES and DESCRIBE table list the declared tables and columns and cost nothing.
    ERROR 50 CONFIDENCE 95% after the query derives the cost from the error. A repeated query is free.

    If DATASET names another `policy` than differential privacy, that policy answers or refuses (exit code 1).
    It has no budget, so --epsilon, --delta and --rho are refused.
    """
    from sfumato.dataset.document import Dataset
    from sfumato.query.open_session import open_session

    if certificate is not None and certificate.exists() and not force:
        raise click.UsageError(f"{certificate} exists; --force replaces it.")  # before anything is charged
    text = sys.stdin.read() if sql == "-" else sql
    stripped = text.lstrip()
    if stripped[:8].upper() == "EXPLAIN ":
        explain, text = True, stripped[8:]
    if certificate is not None and explain:
        raise click.UsageError("--certificate needs an answer; EXPLAIN gives none.")
    output: dict[str, Any] = {"explain": explain, "as_json": as_json, "certificate": certificate}
    if identity is not None:
        given = {"attempts": attempts} if attempts and not explain else {}
        _show(_parties(dataset, identity, options), text, {**options, **given}, **output)
        return
    if attempts is not None:
        raise click.UsageError("--attempts belongs to --parties.")
    if server is not None:
        _show(_remote(server, str(dataset), options), text, options, **output)
        return
    loaded = Dataset.load(dataset)
    analyst = options.pop("analyst") or getpass.getuser()
    session = open_session(
        loaded,
        analyst=analyst,
        engine=options.pop("engine"),
        response_interval=options.pop("response_interval"),
    )
    _show(session, text, options, **output, sign=session.signed)


def _parties(parties: Path, identity: Path, options: dict[str, Any]) -> Any:
    """The parties of a parties file, asked in the name of a certificate."""
    context = click.get_current_context()
    if options["fit"] is None:
        del options["fit"]
    for name in [name for name in options if name not in ("epsilon", "delta", "rows", "groups", "fit")]:
        del options[name]
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(
                f"--{name} is not used with --parties: use --epsilon, --delta, --rows, --groups and --fit."
            )
    if options["epsilon"] is None:
        raise click.UsageError("Give --epsilon.")
    from sfumato.registry import family_module

    return family_module("parties.coordinator").Coordinator.of_file(parties, identity=identity)


def _remote(server: str, dataset: str, options: dict[str, object]) -> RemoteSession:
    """The data set on a server. It knows the analyst by the token, and chooses engine and interval itself."""
    from sfumato.api.connect import connect

    for name in ("analyst", "engine", "response_interval"):
        if options.pop(name) is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} is decided by the server.")
    return connect(server, dataset=dataset)


def _show(
    session: Session | RemoteSession | Any,
    text: str,
    options: dict[str, Any],
    *,
    explain: bool,
    as_json: bool,
    certificate: Path | None,
    sign: Callable[[Answer], Answer] | None = None,
) -> None:
    if explain:
        explanation = session.explain(text, **options)
        if as_json:
            emit_json({"explanation": explanation.to_dict()})
        else:
            click.echo(str(explanation))
        return
    answer = session.ask(text, **options)
    if sign is not None and (as_json or certificate is not None):
        answer = sign(answer)
    if certificate is not None:
        _write_certificate(answer, certificate)
    if as_json:
        emit_json(answer.to_dict())
    elif answer.loss is None and len(answer.columns) == 1:
        _print_values(answer)
    else:
        _print_table(answer)


def _write_certificate(answer: Answer, path: Path) -> None:
    import json

    from sfumato.data import replacing

    if answer.certificate is None:
        note("This answer has no certificate, so no file was written.")
        return
    with replacing(path, force=True) as temporary:
        temporary.write_text(json.dumps(answer.certificate, indent=1) + "\n", encoding="utf-8")


def _print_table(answer: Answer) -> None:
    """Print noisy values with their intervals, the cost and the remaining budget."""
    from rich.console import Console
    from rich.table import Table

    from sfumato.query.results.answer import cell_text

    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(answer.columns):
        table.add_column(name, justify="right" if any(row[i].low is not None for row in answer.rows) else "left")
    for row in answer.rows:
        table.add_row(*(cell_text(cell) for cell in row))
    Console(highlight=False, markup=False).print(table)
    for line in answer.remarks if answer.cost else ():
        note(line)
    note(str(answer.explanation).split("\n", 1)[1])


def _print_values(answer: Answer) -> None:
    """Print the answer of a policy without differential privacy: a single column, one value per line."""
    click.echo(answer.columns[0])
    for value in answer.values:
        text = f"{value:,.12g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
        click.echo("none" if value is None else text)
    for line in answer.notes:
        note(line)
