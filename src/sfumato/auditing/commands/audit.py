"""Audit a query log for answers that disclose sensitive values."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import chosen, emit_json, json_option, note, progress, typed_path

if TYPE_CHECKING:
    from sfumato.auditing.auditor import Auditor
    from sfumato.auditing.past_answers import PastAnswers
    from sfumato.dataset import Domain

PERSON = "operator"


@click.command("audit")
@click.argument("log", type=click.Path(allow_dash=True, path_type=Path))
@click.option(
    "--data", default=None, help="Table that the log queries: a file or a database URL. The recipe's data if left out."
)
@click.option(
    "--recipe", type=typed_path, default=None,
    help="Recipe or data set document: sensitive columns, domains, and rules under `answering: {policy: audit}`.",
)  # fmt: skip
@click.option("--secret", "secrets", multiple=True, help="A sensitive column, if there is no recipe. May be repeated.")
@click.option(
    "--domain", "domains", multiple=True, metavar="COLUMN:LOW..HIGH/STEP|COLUMN:V1,V2",
    help="Possible values of a sensitive column, which SUM, AVG, MAX and MIN of it need: wage:0..5000/0.01, or a list.",
)  # fmt: skip
@click.option(
    "--k", type=click.IntRange(min=2), default=None,
    help="Smallest number of possible values that each person must keep. Required unless --recipe declares it.",
)  # fmt: skip
@click.option(
    "--counterfeits", type=click.IntRange(min=0), default=None,
    help="Largest number of false values added to an answer instead of refusing it.  [default: 0]",
)  # fmt: skip
@click.option("--simulatable", is_flag=True, help="Decide without the true answer, so that refusals disclose nothing.")
@click.option(
    "--allow", type=click.FloatRange(0, 1, max_open=True), default=None,
    help="Simulatable: largest share of possible answers that may violate k. 0, the default: every one is checked.",
)  # fmt: skip
@click.option(
    "--share", "shares", multiple=True, metavar="COLUMN:VALUE=SHARE",
    help="With --allow or --probable: public share of a value. Once for each value.",
)  # fmt: skip
@click.option(
    "--probable", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=None,
    help="Largest probability that a value of a person may have after all answers. Needs --share for each value.",
)  # fmt: skip
@click.option(
    "--known", multiple=True, metavar="COLUMN:CONDITION|FILE",
    help="People whose value the attacker knows already: a condition on other columns, disease:zip = 1301, or a CSV "
    "file with columns that identify people and their values.",
)  # fmt: skip
@click.option(
    "--offers", type=click.IntRange(0, 10), default=None,
    help="With a refusal, name at most this many other queries that would be answered.  [default: 0]",
)  # fmt: skip
@click.option(
    "--independent", multiple=True, metavar="COLUMN",
    help="A sensitive column that determines no other one. Once for each of them.",
)  # fmt: skip
@click.option(
    "--auditor", type=click.Choice(["exact", "delta2"]), default=None,
    help="Algorithm for lists of values: exact search, the default, or the polynomial delta-2 approximation, which "
    "refuses more.",
)  # fmt: skip
@click.option(
    "--effort", type=click.FloatRange(0, min_open=True), default=None,
    help="Solver time limit of one decision in deterministic seconds, after which it is refused.  [default: 30]",
)  # fmt: skip
@click.option(
    "--told", is_flag=True,
    help="The log was answered already: list who is exposed by its answers, and which answers show it.",
)  # fmt: skip
@click.option(
    "--values", "show_values", is_flag=True,
    help="With --told: also print everybody's possible values, by all answers and by delta-2 matchings. Confidential.",
)  # fmt: skip
@click.option(
    "--counterfeit", "counterfeits_of", multiple=True, metavar="QUERY:VALUE",
    help="With --told: show the delta-2 table also with this value added to the list of this query, such as 2:Flu.",
)  # fmt: skip
@click.option("--html", type=typed_path, default=None, help="With --told: write the pictures to this HTML file.")
@click.option("--ledger", type=typed_path, default=None, help="SQLite file that keeps the decisions across runs.")
@click.option("--dataset", default=None, help="Name of the table in the ledger. The file's name if left out.")
@json_option
def command(
    log: Path,
    data: str | None,
    recipe: Path | None,
    secrets: tuple[str, ...],
    domains: tuple[str, ...],
    shares: tuple[str, ...],
    known: tuple[str, ...],
    independent: tuple[str, ...],
    told: bool,
    show_values: bool,
    counterfeits_of: tuple[str, ...],
    html: Path | None,
    ledger: Path | None,
    dataset: str | None,
    as_json: bool,
    **rules: Any,
) -> int:
    """Replay the queries of LOG (one SELECT per line, `-` for standard input) against a table, in order.

    Each query is answered, answered with counterfeits, or refused. The output also lists the rows that the exact answer
    would have exposed (row 1 is the first after the header), and the possible worlds after each answer: how many
    assignments of values to the people asked about agree with all answers so far. It is for the owner of the data only
    and shows no values, except with --values.
    The exit code is 1 if a query was refused.

    A query selects a sensitive column, SUM, AVG, MAX or MIN of one, or COUNT(*), with a WHERE clause. Sums and extremes
    are answered only where the possible numbers are declared, by --domain or in the recipe.
    """
    from sfumato.auditing.query_log import read_log
    from sfumato.auditing.report.replay import audited_table, replay_log
    from sfumato.errors import BadParameter

    rules = chosen({**rules, "independent": independent, "shares": _shares(shares), "known": _known(known)})
    table = audited_table(data, document=recipe, secrets=secrets, domains=_domains(domains), **rules)
    if told and ledger is not None:
        raise BadParameter("--told judges a log and decides nothing; leave out --ledger.")
    for option, given in (("html", html), ("values", show_values), ("counterfeit", counterfeits_of)):
        if given and not told:
            raise BadParameter(f"--{option} is for --told: it shows answers already given.")
    queries = list(read_log(_text(log)))
    if told:
        return _told(table.auditor, queries, as_json, html, show_values, _counterfeits(counterfeits_of))
    replay = replay_log(queries, table, ledger=ledger, dataset=dataset, progress=progress(quiet=as_json))
    if as_json:
        emit_json(replay.to_dict())
    else:
        _print(replay.decisions)
        note(f"{len(queries)} queries, {replay.refused} refused. This list is for the owner of the data only.")
    return 1 if replay.refused else 0


def _told(
    auditor: Auditor, queries: list[str], as_json: bool, html: Path | None, show_values: bool,
    counterfeits: Mapping[int, Sequence[str]],
) -> int:  # fmt: skip
    """Print what answers already given give away; exit code 1 if somebody is exposed or a query is not audited."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from sfumato.auditing.past_answers import past_answers

    columns, left_out = past_answers(auditor, queries, counterfeits=counterfeits)
    limit = auditor.rules.probable
    exposed = any(
        column.exposed or (limit is not None and (column.probability is None or column.probability > limit + 1e-9))
        for column in columns
    )
    if html is not None:
        from sfumato.auditing.report.audit_page import audit_html
        from sfumato.data.atomic import write_secret

        write_secret(html, audit_html(columns, left_out))
    if as_json:
        shown = [column.to_dict() | (_values(column) if show_values else {}) for column in columns]
        emit_json({"columns": shown, "not_audited": left_out, "exposed": exposed})
        return int(exposed or bool(left_out))
    console = Console()
    for column in columns:
        table = Table(title=f"{escape(column.column)}: {_counted(len(column.queries), 'answer', 'answers')}", box=None)
        table.add_column("possible values left", justify="right")
        table.add_column("people", justify="right")
        for values, people in sorted(column.kept.items()):
            table.add_row(f"{column.k} or more" if values == 0 else str(values), f"{people:,}")
        console.print(table)
        if column.worlds is not None:
            console.print(f"Possible worlds (assignments of values to the people asked about): {column.worlds}.")
        if column.graph is not None and column.graph.error:
            merged = int(column.graph.merged.sum())
            console.print(
                f"Of {merged:,} pairs of person and value that each answer alone leaves (merged graph), "
                f"{column.graph.error:,} are in no assignment."
            )
        if show_values and column.graph is not None:
            head, rows = column.graph.table()
            values_left = Table(title=f"{escape(column.column)}: possible values (confidential)", box=None)
            for name in head:
                values_left.add_column(name)
            for row in rows:
                values_left.add_row(*map(escape, row))
            console.print(values_left)
        if limit is not None:
            likely = "not computed: the effort ran out" if column.probability is None else f"{column.probability:.3g}"
            console.print(f"Largest probability of a value: {likely} (allowed: {limit:g}).")
        if column.worst is None:
            console.print(f"Everybody keeps {column.k} values or more.")
            continue
        exposed_people = _counted(len(column.exposed), "person keeps", "people keep")
        answers = _counted(len(column.proof), "answer", "answers")
        console.print(
            f"[red]{exposed_people} fewer than {column.k} values.[/red] Row {column.worst + 1} follows from {answers}:"
        )
        for number in column.proof:
            console.print(f"  {number + 1}. {escape(column.queries[number])}")
    for text in left_out:
        note(f"Not audited: {text}")
    return int(exposed or bool(left_out))


def _values(column: PastAnswers) -> dict[str, object]:
    if column.graph is None:
        return {}
    head, rows = column.graph.table()
    return {"values": [dict(zip(head, row, strict=True)) for row in rows]}


def _counterfeits(given: tuple[str, ...]) -> dict[int, list[str]]:
    from sfumato.errors import BadParameter

    added: dict[int, list[str]] = {}
    for entry in given:
        number, colon, value = entry.partition(":")
        if not colon or not number.isdecimal():
            raise BadParameter("--counterfeit is QUERY:VALUE, such as 2:Flu.")
        added.setdefault(int(number), []).append(value)
    return added


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _domains(given: tuple[str, ...]) -> dict[str, Domain]:
    from pydantic import ValidationError

    from sfumato.dataset import RangeDomain, ValuesDomain
    from sfumato.errors import BadParameter

    domains: dict[str, Domain] = {}
    for entry in given:
        column, _, said = entry.partition(":")
        ends, _, step = said.partition("/")
        low, dots, high = ends.partition("..")
        listed = [value.strip() for value in said.split(",")]
        try:
            if dots:
                domains[column] = RangeDomain(low=float(low), high=float(high), step=float(step) if step else None)
            else:
                domains[column] = ValuesDomain(values=tuple(_number(value) for value in listed))
        except (ValueError, ValidationError):
            raise BadParameter(
                "--domain is COLUMN:LOW..HIGH, COLUMN:LOW..HIGH/STEP or COLUMN:V1,V2, such as wage:0..5000/0.01."
            ) from None
        if not column or not all(listed):
            raise BadParameter("--domain is COLUMN:LOW..HIGH/STEP or COLUMN:V1,V2, such as wage:0..5000/0.01.")
    return domains


def _number(text: str) -> int | float | str:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def _shares(given: tuple[str, ...]) -> dict[str, dict[str, float]]:
    from sfumato.errors import BadParameter

    shares: dict[str, dict[str, float]] = {}
    for entry in given:
        column, colon, rest = entry.partition(":")
        value, equals, share = rest.rpartition("=")
        try:
            shares.setdefault(column, {})[value] = float(share)
        except ValueError:
            equals = ""
        if not colon or not equals:
            raise BadParameter("--share is COLUMN:VALUE=SHARE, such as disease:Flu=0.2.")
    return shares


def _known(given: tuple[str, ...]) -> dict[str, str] | Path:
    from sfumato.errors import BadParameter

    if len(given) == 1 and (":" not in given[0] or Path(given[0]).is_file()):
        return Path(given[0])
    parts = [entry.partition(":") for entry in given]
    if any(not colon or not condition.strip() for _, colon, condition in parts):
        raise BadParameter("--known is one file, or COLUMN:CONDITION, such as disease:zip = 1301.")
    return {column: condition for column, _, condition in parts}


def _text(log: Path) -> str:
    from sfumato.data.yaml_documents import read_text_file

    return sys.stdin.read() if str(log) == "-" else read_text_file(log, kind="log", fix="Check the path.")


def _print(decisions: Sequence[Mapping[str, object]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("", "query", "decision", "possible worlds", "exposed rows"):
        table.add_column(column)
    colours = {"answered": "green", "counterfeits": "yellow", "refused": "red"}
    for number, decision in enumerate(decisions, start=1):
        verdict, rows = str(decision["decision"]), decision["exposed"]
        count, worlds = decision["counterfeits"], decision["worlds"]
        outcome = f"answered with {count} counterfeit{'s' if count != 1 else ''}" if count else verdict
        assert isinstance(rows, list)
        exposed = ", ".join(map(str, rows[:12])) + (f" and {len(rows) - 12} more" if len(rows) > 12 else "")
        reason = f"\n[dim]{escape(str(decision['reason']))}[/dim]" if verdict == "refused" else ""
        named = decision.get("offers", ())
        assert isinstance(named, list | tuple)
        reason += "".join(f"\n[dim]would be answered: {escape(text)}[/dim]" for text in named)
        table.add_row(
            str(number), escape(str(decision["question"])), f"[{colours[verdict]}]{outcome}[/]{reason}",
            str(worlds["text"]) if isinstance(worlds, Mapping) else "", exposed,
        )  # fmt: skip
    Console().print(table)
