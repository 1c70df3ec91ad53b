"""Replay a log of questions and say which exact answers would give somebody away."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from sfumato.cli._console import emit_json, json_option, note, progress, typed_path


@click.command("audit")
@click.argument("log", type=click.Path(allow_dash=True, path_type=Path))
@click.option(
    "--data", default=None, help="The table asked about: a file or a database URL; the recipe's when left out."
)
@click.option("--recipe", type=typed_path, default=None, help="Recipe that says which columns are sensitive.")
@click.option(
    "--secret", "secrets", multiple=True, help="A sensitive column, where there is no recipe; may be repeated."
)
@click.option("--k", type=click.IntRange(min=2), required=True, help="Fewest possible values everyone must keep.")
@click.option(
    "--counterfeits", type=click.IntRange(min=0), default=0, show_default=True,
    help="Most false values added to an answer instead of refusing it.",
)  # fmt: skip
@click.option(
    "--simulatable", is_flag=True, help="Decide before looking at the answer, so that a refusal tells nothing."
)
@click.option(
    "--allow", type=click.FloatRange(0, 1, max_open=True), default=0.05, show_default=True,
    help="Simulatable: share of possible answers that may break the rule.",
)  # fmt: skip
@click.option(
    "--every-answer", is_flag=True,
    help="Simulatable: check every possible answer instead of a sample; refuse if any breaks the rule.",
)  # fmt: skip
@click.option(
    "--auditor", type=click.Choice(["exact", "delta2"]), default="exact", show_default=True,
    help="How lists of values are decided: exact search, or the polynomial delta-2 approximation, which refuses more.",
)  # fmt: skip
@click.option(
    "--effort", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True,
    help="Bound on the search of one decision, in the solver's own seconds; running out is a no.",
)  # fmt: skip
@click.option("--ledger", type=typed_path, default=None, help="Database that keeps the decisions, across runs.")
@json_option
def command(
    log: Path,
    data: str | None,
    recipe: Path | None,
    secrets: tuple[str, ...],
    k: int,
    counterfeits: int,
    simulatable: bool,
    allow: float,
    every_answer: bool,
    auditor: Literal["exact", "delta2"],
    effort: float,
    ledger: Path | None,
    as_json: bool,
) -> int:
    """Replay the questions of LOG (one SELECT per line, - for standard input) against a table, in order.

    For each: answered, answered with so many counterfeits, or refused, and the rows of the people whom the plain answer
    would have exposed (row 1 is the first after the header). The output is for the owner of the data only; it shows no
    values. Exit code 1 if a question was refused.

    A question is SELECT of a sensitive column, of SUM, AVG, MAX or MIN of one, or COUNT(*), with a WHERE.
    """
    from pydantic import ValidationError

    from sfumato.data import read
    from sfumato.errors import BadParameter, FileMissing
    from sfumato.params import plain_message
    from sfumato.query.auditing.audit_log import DurableAuditor
    from sfumato.query.auditing.auditor import Auditor
    from sfumato.query.auditing.query_log import read_log
    from sfumato.query.auditing.rules import AuditRules
    from sfumato.recipe import Recipe

    made = Recipe.load(recipe) if recipe is not None else None
    source = data or (made.source.location if made and made.source else None)
    if source is None:
        raise FileMissing("No data is named.", fix="Use --data, or a recipe with `data:`.")
    if made is not None and not secrets:
        secrets = tuple(name for name, column in made.schema.columns.items() if str(column.role) == "sensitive")
    if not secrets:
        raise BadParameter("no column is sensitive.", fix="Name one with --secret, or give it that role in the recipe.")
    table = read(source, **(made.source.options if made and made.source and data is None else {}))
    table.require(list(secrets))
    try:
        rules = AuditRules(
            k=k, counterfeits=counterfeits, simulatable=simulatable, allow=allow, every_answer=every_answer,
            auditor=auditor, effort=effort,
        )  # fmt: skip
    except ValidationError as failure:
        raise BadParameter("; ".join(plain_message(error) for error in failure.errors())) from None
    session: Auditor | DurableAuditor = Auditor(table.frame, secrets=secrets, rules=rules)
    if ledger is not None:
        from sfumato.dp.stores.sqlite import SqliteStore

        assert isinstance(session, Auditor)
        session = DurableAuditor(session, SqliteStore(ledger), dataset=str(source))
    questions = list(read_log(_text(log)))
    decisions = []
    with progress(quiet=as_json).task("auditing", len(questions)) as tick:
        for question in questions:
            decisions.append(session.ask(question).to_dict())
            tick(1)
    refused = sum(decision["decision"] == "refused" for decision in decisions)
    if as_json:
        emit_json({"k": k, "questions": len(decisions), "refused": refused, "decisions": decisions})
    else:
        _print(decisions)
        note(f"{len(decisions)} questions, {refused} refused. This list is for the owner of the data only.")
    return 1 if refused else 0


def _text(log: Path) -> str:
    from sfumato.data.yaml_documents import read_text_file

    return sys.stdin.read() if str(log) == "-" else read_text_file(log, kind="log", fix="Check the path.")


def _print(decisions: list[dict[str, object]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("", "question", "decision", "exposed rows"):
        table.add_column(column)
    colours = {"answered": "green", "counterfeits": "yellow", "refused": "red"}
    for number, decision in enumerate(decisions, start=1):
        verdict, rows = str(decision["decision"]), decision["exposed"]
        count = decision["counterfeits"]
        words = f"answered with {count} counterfeit{'s' if count != 1 else ''}" if count else verdict
        assert isinstance(rows, list)
        shown = ", ".join(map(str, rows[:12])) + (f" and {len(rows) - 12} more" if len(rows) > 12 else "")
        reason = f"\n[dim]{escape(str(decision['reason']))}[/dim]" if verdict == "refused" else ""
        table.add_row(str(number), escape(str(decision["question"])), f"[{colours[verdict]}]{words}[/]{reason}", shown)
    Console().print(table)
