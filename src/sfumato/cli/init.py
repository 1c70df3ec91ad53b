"""Profile a file and write a recipe: roles, kinds and hierarchies of its columns."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, progress, typed_path
from sfumato.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from sfumato.data import Table
    from sfumato.profiling import Combination, Proposal
    from sfumato.progress import Progress
    from sfumato.studies import MethodComparison

PERSON = "steward"


@click.command("init")
@click.argument("data", required=False)
@click.option("--edges", multiple=True, help="Edge table of a graph; may be repeated. DATA is then the node table.")
@click.option(
    "--out",
    type=typed_path,
    default=Path("sfumato.yaml"),
    show_default=True,
    help="Recipe file to write; `-` prints it.",
)
@click.option(
    "--k",
    type=click.IntRange(min=2),
    default=None,
    help="Smallest size of an equivalence class (k-anonymity). There is no default.",
)
@click.option("--preset", default=None, help="Start from a preset: research-file, public-use-file, ema-0070, ...")
@click.option("--query", "for_query", is_flag=True, help="Write the metadata for `sfumato query` instead of a recipe.")
@click.option(
    "--unit",
    default=None,
    help="For --query: `row` if each row is a different person, or the column that identifies a person.",
)
@click.option(
    "--size",
    type=click.IntRange(1, 4),
    default=4,
    show_default=True,
    help="Largest number of columns in a combination that is checked for unique rows.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1000),
    default=1_000_000,
    show_default=True,
    help="Largest number of rows to read: the first rows, and rows spread over the rest.",
)
@click.option(
    "--compare/--no-compare", default=True, show_default=True,
    help="With --k: compare masking methods on a sample and propose the one that loses least.",
)  # fmt: skip
@force_option
@json_option
def command(
    data: str | None,
    edges: tuple[str, ...],
    out: Path,
    k: int | None,
    preset: str | None,
    for_query: bool,
    unit: str | None,
    size: int,
    rows: int,
    compare: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Profile DATA (a file or a database URL) and write a commented recipe for it.

    The recipe is a proposal for review: each column has a role with its reason. Columns that are not recognized are
    `undecided`, and `sfumato protect` refuses them: see `sfumato decide`. Without --k or --preset, `k` has no value
    yet, and `sfumato protect` refuses the recipe until you fill it in.

    With --edges the recipe is for a graph.
    """
    if edges:
        _write_graph_recipe(data, edges, out, k=k, force=force, as_json=as_json)
        return
    if data is None:
        raise click.UsageError("Name a data file, or the edge tables of a graph with --edges.")
    from urllib.parse import urlsplit

    from sfumato.data import preview, replacing
    from sfumato.errors import OutputExists
    from sfumato.profiling import propose, to_yaml
    from sfumato.profiling.recipe_text import for_preset
    from sfumato.recipe.presets import preset_text

    if unit is not None and not for_query:
        raise click.UsageError("--unit needs --query.")
    if k is not None and preset is not None:
        raise click.UsageError("A preset sets k itself: use --k or --preset, not both.")
    start = preset_text(preset) if preset is not None else None
    printed = str(out) == "-"
    if not printed and out.exists() and not force:
        raise OutputExists(
            f"{out} exists already.", fix="Choose another file with --out, or overwrite it with --force."
        )
    sample = preview(data, most=rows)
    if sample.partial:
        note(
            f"Reading {sample.table.rows:,} of {counted(sample.rows, 'row')}: "
            "the first rows, and rows spread over the rest."
        )
    if for_query:
        _write_metadata(sample.table, data, out, unit=unit, force=force, as_json=as_json)
        return
    listener = progress(quiet=as_json)
    proposal = for_preset(propose(sample.table, whole=sample.rows, progress=listener, max_size=size), start)
    compared = _compare(proposal, sample.table, k, listener) if compare and k is not None else None
    best = compared.best if compared is not None else None
    text = to_yaml(
        proposal, _from_recipe(data, out), k=k, preset=start, step=best.step if best is not None else None,
        reasons=compared.lines() if compared is not None else (),
    )  # fmt: skip
    if printed:
        click.echo(text, nl=False)
    else:
        with replacing(out, force=force) as temporary:
            temporary.write_text(text, encoding="utf-8")
    if as_json and not printed:
        emit_json(
            {
                "recipe": str(out),
                **proposal.to_dict(),
                "comparison": compared.to_dict() if compared is not None else None,
            }
        )
    elif not printed:
        from rich.console import Console

        _show(proposal, Console())
        if compared is not None:
            _show_methods(compared, Console())
        note(f"\nWritten: {out}. Review it, then: sfumato protect {_quoted(str(out))}")
        _note_undecided(proposal, out)
        if "://" in data and urlsplit(data).password:
            note("It contains the database password. Remove it, and use PGPASSWORD or ~/.pgpass instead.")
        if k is None and preset is None:
            note("`k` has no value yet: fill it in, or run this command again with --k.")


def _compare(proposal: Proposal, table: Table, k: int, listener: Progress) -> MethodComparison | None:
    """Compare methods on the proposed quasi-identifiers. The comparison never stops `init`."""
    from sfumato.errors import SfumatoError
    from sfumato.recipe import Recipe
    from sfumato.studies import compare_methods

    with listener.task("Comparing methods", None):
        try:
            return compare_methods(Recipe.parse(proposal.recipe(k=k)), table, k=k)
        except SfumatoError as refusal:
            note(f"Methods were not compared: {refusal}")
            return None


def _show_methods(compared: MethodComparison, console: Console) -> None:
    """Print what each method loses, the proposed one first."""
    from rich.table import Table
    from rich.text import Text

    part = f"a sample of {compared.rows} rows" if compared.rows < compared.whole else "all rows"
    methods = Table(
        title=f"\nMethods compared on {part} at k = {compared.k} (0 is best)", title_justify="left", box=None,
        header_style="bold", pad_edge=False,
    )  # fmt: skip
    for heading in ("method", "change of pairs of columns", "of single columns", ""):
        methods.add_column(heading, justify="right" if heading.count("columns") else "left", overflow="fold")
    for trial in compared.trials:
        losses = [f"{trial.losses[name]:.3f}" if trial.losses else "" for name in ("pairs", "marginals")]
        methods.add_row(trial.method, *losses, "proposed" if trial is compared.best else Text(trial.reason))
    console.print(methods)


def _note_undecided(proposal: Proposal, out: Path) -> None:
    """Say which columns nobody has decided, and the command that decides them."""
    from sfumato.dataset import Role

    names = proposal.of_role(Role.UNDECIDED)
    if not names:
        return
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    what = "1 column is undecided" if len(names) == 1 else f"{len(names)} columns are undecided"
    note(f"{what}: {shown}. `sfumato protect` refuses until you decide, for example:")
    first = _quoted(f"{names[0]}=quasi")
    note(f"  sfumato decide {_quoted(str(out))} {first} --rest drop --by YOUR-NAME")


def _write_metadata(table: Table, data: str, out: Path, *, unit: str | None, force: bool, as_json: bool) -> None:
    """Write the metadata of a table for `sfumato query`. The owner adds bounds and possible values."""
    from sfumato.data import replacing
    from sfumato.query.metadata import propose as propose_metadata

    location, name = _table_location(data, out)
    text = propose_metadata(table, data=location, dataset=name, unit=unit)
    if str(out) == "-":
        click.echo(text, nl=False)
        return
    with replacing(out, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if as_json:
        emit_json({"metadata": str(out)})
        return
    ledger = out.parent / f"{name}-ledger.db"
    if unit is None:
        note(f"Written: {out}. `unit` is required: fill it in, or run this command again with --unit.")
    else:
        note(f"Written: {out}.")
    note("Declare the possible values (`domain`) of columns that are summed or grouped by. Then:")
    note(f"  sfumato ledger cap {_quoted(str(ledger))} --dataset {name} --epsilon ...      # set the budget once")
    question = f"'SELECT COUNT(*) FROM {name}'"
    note(f"  sfumato query {_quoted(str(out))} {question} --epsilon ...      # --explain is free")


def _table_location(data: str, out: Path) -> tuple[str, str]:
    """Location of the table in the metadata, and its name in SQL. Refuses formats that the engines cannot query."""
    from sfumato.data.url import file_and_options, is_url, parse_url
    from sfumato.engines.choice import is_address, without_password
    from sfumato.errors import NotThatFormat, UnknownFormat

    if is_address(data):
        table = parse_url(data).table
        if table is None:
            raise UnknownFormat("Metadata need a table, not a query.", fix="Name the table: ...?table=NAME.")
        return f"{without_password(data)}#{table}", _name(table.rpartition(".")[2])
    path, options = file_and_options(data)
    if is_url(data) or options or not _read_by_engines(Path(path)):
        copy = f"{Path(path).stem}.parquet"
        raise NotThatFormat(
            "`sfumato query` reads Parquet files, plain CSV files (UTF-8, commas, decimal points) and PostgreSQL; "
            f"{Path(path).name} is none of these.",
            fix=f"Convert it: python -c \"import sfumato; sfumato.write(sfumato.read('{data}'), '{copy}')\"",
        )
    return _from_recipe(data, out), _name(Path(path).stem)


def _read_by_engines(path: Path) -> bool:
    """Whether the query engines read this file: Parquet, or plain CSV or TSV."""
    from sfumato.data.formats.csv import MISSING
    from sfumato.data.text_files import decode, sniff

    delimiter = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower())
    if delimiter is None:
        return path.suffix.lower() == ".parquet"
    with path.open("rb") as file:
        head = file.read(1 << 20)
    whole = head[: head.rfind(b"\n") + 1 or len(head)]
    if decode(whole) != "utf-8":
        return False
    dialect = sniff(whole, delimiter=None, header=None, missing=MISSING, name=path.name)
    return dialect.header and (dialect.delimiter == delimiter or len(dialect.names) == 1)


def _name(text: str) -> str:
    """An SQL name that needs no quotes: letters, digits and underscores."""
    plain = re.sub(r"\W+", "_", text).strip("_").lower() or "data"
    return plain if plain[0].isalpha() else f"t_{plain}"


def _quoted(text: str) -> str:
    """Quote a path for the shell."""
    import shlex

    return shlex.quote(text)


def _from_recipe(data: str, out: Path) -> str:
    """The path of the data relative to the recipe's folder."""
    if "://" in data or data == "-" or str(out) == "-":
        return data
    return Path(os.path.relpath(data, out.parent)).as_posix()


def _show(proposal: Proposal, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    colors = {"identifier": "red", "quasi": "yellow", "sensitive": "magenta", "undecided": "bold cyan"}
    part = f", {proposal.rows} of them read" if proposal.rows < proposal.whole else ""
    columns = Table(
        title=f"{counted(proposal.whole, 'row')}{part}",
        title_justify="left",
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    for heading in ("column", "role", "kind", "reason"):
        columns.add_column(heading, no_wrap=heading in ("role", "kind"), overflow="fold")
    for column in proposal.columns:
        role = Text(column.role.value, style=colors.get(column.role.value, ""))
        columns.add_row(Text(column.name), role, column.kind.value, Text(column.reason))
    console.print(columns)
    _show_placeholders(proposal, console)
    if proposal.derived:
        console.print("\nColumns from which others can be computed", style="italic")
        for found in proposal.derived:
            console.print(Text(f"  {found}"))
    rows = Table(
        title="\nCombinations of columns that single people out",
        title_justify="left",
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    rows.add_column("unique rows", justify="right")
    rows.add_column("columns", overflow="fold")
    rows.add_column("", overflow="fold")
    for combination, remark in _combinations(proposal):
        rows.add_row(f"{combination.unique:.1%}", Text(" + ".join(combination.columns)), remark)
    if rows.row_count:
        console.print(rows)
    if proposal.singling is not None:
        console.print(_search_summary(proposal), style="dim")


def _show_placeholders(proposal: Proposal, console: Console) -> None:
    """Print the values that probably stand for missing values, and how the recipe treats them."""
    from rich.table import Table
    from rich.text import Text

    codes = Table(
        title="\nValues that probably stand for missing values", title_justify="left", box=None, header_style="bold",
        pad_edge=False,
    )  # fmt: skip
    for heading in ("column", "values", "rows", "in the recipe", "reason"):
        codes.add_column(heading, justify="right" if heading == "rows" else "left", overflow="fold")
    for column in proposal.columns:
        for placeholder in column.placeholders:
            treatment = "read as missing" if placeholder.sure else "a comment: review it"
            values = ", ".join(map(str, placeholder.codes))
            codes.add_row(Text(column.name), Text(values), str(placeholder.rows), treatment, Text(placeholder.reason))
    if codes.row_count:
        console.print(codes)


def _combinations(proposal: Proposal) -> list[tuple[Combination, str]]:
    combinations: list[tuple[Combination, str]] = []
    if proposal.register is not None:
        combinations.append((proposal.register, "known from voter lists and other registers"))
    if proposal.quasi is not None:
        combinations.append((proposal.quasi, "all proposed quasi-identifiers"))
    if proposal.singling is not None:
        combinations += [(combination, "minimal; singles out most rows") for combination in proposal.singling.minimal]
        if not proposal.singling.minimal:
            combinations += [
                (combination, f"most unique rows of {len(combination.columns)} columns")
                for combination in proposal.singling.others
            ]
    return combinations


def _search_summary(proposal: Proposal) -> str:
    singling = proposal.singling
    assert singling is not None
    text = f"Combinations of up to {singling.size} columns: {singling.examined} checked, {singling.ruled_out} ruled out"
    if singling.more:
        text += f", {singling.more} more single out at least {singling.threshold:.0%}"
    if singling.sampled:
        text += (
            f"; larger ones were screened on {singling.sampled} rows (±{singling.margin:.0%}); listed ones were counted"
        )
    return text + "."


def _write_graph_recipe(
    nodes: str | None, edges: tuple[str, ...], out: Path, *, k: int | None, force: bool, as_json: bool
) -> None:
    from sfumato.api.kinds.graph.propose import propose_graph
    from sfumato.data import replacing

    if k is None:
        raise click.UsageError("--k is required for a graph: the number of people who share a degree, at least.")
    proposal = propose_graph(edges, nodes=nodes, k=k, folder=out.parent)
    with replacing(out, force=force) as temporary:
        temporary.write_text(proposal.text, encoding="utf-8")
    if as_json:
        emit_json({"recipe": str(out), "nodes": proposal.nodes, "edges": proposal.edges, "unique": proposal.unique})
        return
    click.echo(f"{proposal.nodes:,} nodes, {proposal.edges:,} edges")
    for name, share in proposal.unique.items():
        click.echo(f"  unique by {name:<20} {share:>6.1%}")
    note(f"Written: {out}. Review it, then:  sfumato protect {out}")
