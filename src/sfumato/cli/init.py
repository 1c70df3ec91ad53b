"""Profile a file and write a recipe: roles, kinds and hierarchies of its columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, progress, typed_path
from sfumato.wording import counted

if TYPE_CHECKING:
    from sfumato.data import Table
    from sfumato.profiling import Proposal
    from sfumato.progress import Progress
    from sfumato.studies import MethodComparison
    from sfumato.studies.rehearsal import Rehearsal

PERSON = "steward"


@click.command("init")
@click.argument("sources", metavar="DATA", nargs=-1)
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
@click.option(
    "--unit",
    default=None,
    help="Whose privacy: `row` if each row is a different person, or the column that identifies a person.",
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
@click.option(
    "--rest", type=click.Choice(["identifier", "quasi", "sensitive", "drop"]), default=None,
    help="Role of all columns that are not recognized. Needs --by.",
)  # fmt: skip
@click.option("--by", default=None, help="Who decides by --rest. Published with the release.")
@click.option("--details", is_flag=True, help="Print every reason, combination of columns and method.")
@force_option
@json_option
def command(
    sources: tuple[str, ...],
    edges: tuple[str, ...],
    out: Path,
    k: int | None,
    preset: str | None,
    unit: str | None,
    size: int,
    rows: int,
    compare: bool,
    rest: str | None,
    by: str | None,
    details: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Profile DATA (a file or a database URL) and write a commented recipe for it.

    Several files, URLs or a folder of tables become one data set document with proposed keys and links.

    The recipe is a proposal for review: each column has a role with its reason. Columns that are not recognized are
    `undecided`, and `sfumato protect` refuses them: see `sfumato decide`. Without --k or --preset, `k` has no value
    yet, and `sfumato protect` refuses the recipe until you fill it in. --rest decides them at once:
    sfumato init people.csv --k 5 --rest quasi --by "A. Steward".

    With --edges the recipe is for a graph.
    """
    if (rest is None) != (by is None):
        raise click.UsageError("--rest and --by go together: which role, and who decides.")
    if edges:
        _write_graph_recipe(sources[0] if sources else None, edges, out, k=k, force=force, as_json=as_json)
        return
    if not sources:
        raise click.UsageError("Name a data file, or the edge tables of a graph with --edges.")
    several = _tables_of(sources)
    if len(several) > 1:
        if k is not None or preset is not None or rest is not None:
            raise click.UsageError(
                "--k, --preset and --rest are for one table: a plan names the data set and says what leaves."
            )
        _init_dataset(several, sources, out, person=unit, rows=rows, force=force, as_json=as_json)
        return
    [data] = several
    from urllib.parse import urlsplit

    from sfumato.data import preview, replacing
    from sfumato.data.source import Source
    from sfumato.errors import OutputExists
    from sfumato.profiling import propose, to_yaml
    from sfumato.profiling.recipe_text import for_preset
    from sfumato.recipe.decide import decide
    from sfumato.recipe.presets import preset_text
    from sfumato.studies.rehearsal import rehearse

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
    if unit not in (None, "row"):
        sample.table.require([unit])
    listener = progress(quiet=as_json)
    proposal = for_preset(propose(sample.table, whole=sample.rows, progress=listener, max_size=size), start)
    compared = _compare(proposal, sample.table, k, listener) if compare and k is not None else None
    best = compared.best if compared is not None else None
    source = Source.found(data, beside=None if printed else out.parent)
    rehearsed = None
    if start is not None:
        with listener.task("Rehearsing the preset", None):
            rehearsed = rehearse(to_yaml(proposal, None, unit=unit, preset=start), sample.table)
    about = compared if compared is not None else rehearsed
    text = to_yaml(
        proposal,
        source,
        unit=unit,
        k=rehearsed.k if rehearsed is not None else k,
        preset=start,
        step=best.step if best is not None else None,
        reasons=about.lines() if about is not None else (),
    )
    if rest is not None and by is not None:
        text = decide(text, rest=rest, by=by)
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
                "rehearsal": rehearsed.to_dict() if rehearsed is not None else None,
            }
        )
    elif not printed:
        from rich.console import Console

        from sfumato.cli._proposal import show_proposal

        show_proposal(proposal, compared, Console(), details=details)
        _note_written(proposal, out, decided=rest is not None)
        if rehearsed is not None:
            _note_rehearsal(rehearsed, out)
        if "://" in data and urlsplit(data).password:
            note("It contains the database password. Remove it, and use PGPASSWORD or ~/.pgpass instead.")
        _note_queries(data, out, unit)
        if k is None and preset is None:
            note("`k` has no value yet: fill it in, or run this command again with --k.")


def _tables_of(sources: tuple[str, ...]) -> list[str]:
    """The tables that were named. A folder stands for its tables, unless it is one of texts."""
    from sfumato.data.format import format_for
    from sfumato.errors import UnknownFormat

    found = []
    for source in sources:
        if "://" in source or not Path(source).is_dir():
            found.append(source)
            continue
        inside = []
        for path in sorted(Path(source).iterdir()):
            try:
                format_for(path)
            except UnknownFormat:
                continue
            inside.append(path)
        texts = all(path.suffix.lower() == ".txt" for path in inside)
        found += [source] if texts else [str(path) for path in inside]
    return found


def _init_dataset(
    sources: list[str],
    named: tuple[str, ...],
    out: Path,
    *,
    person: str | None,
    rows: int,
    force: bool,
    as_json: bool,
) -> None:
    """Write the document of a data set of several tables."""
    from sfumato.data import preview, replacing
    from sfumato.data.source import Source
    from sfumato.dataset.document import sql_name
    from sfumato.profiling import propose
    from sfumato.profiling.dataset_text import ProfiledTable, dataset_text

    listener = progress(quiet=as_json)
    beside = None if str(out) == "-" else out.parent
    tables = {}
    for source in sources:
        sample = preview(source, most=rows)
        proposal = propose(sample.table, whole=sample.rows, progress=listener, max_size=1)
        table = ProfiledTable(source=Source.found(source, beside=beside), frame=sample.table.frame, proposal=proposal)
        tables[sql_name(source)] = table
    if len(tables) < len(sources):
        raise click.UsageError("Two tables have the same name in SQL. Rename a file.")
    folder = Path(named[0]) if len(named) == 1 else out.absolute().parent
    text = dataset_text(sql_name(folder.absolute().name), tables, person=person)
    if beside is None:
        click.echo(text, nl=False)
        return
    with replacing(out, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if as_json:
        emit_json({"dataset": str(out), "tables": {name: table.proposal.to_dict() for name, table in tables.items()}})
        return
    note(f"Written: {out}, with {len(tables)} tables. Confirm `person`, keys and links, and decide the columns.")
    note(f"A plan names it (`dataset: {out.name}`) and says what leaves: models, steps, limits.")


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


def _note_queries(data: str, out: Path, unit: str | None) -> None:
    """Say how to answer queries from the same document, if it says whose privacy is kept."""
    from sfumato.dataset.document import sql_name

    if unit is None or data == "-":
        return
    name = sql_name(data)
    note("To answer queries, declare a `domain` of columns that are summed or grouped by. Then:")
    ledger = _quoted(str(out.parent / f"{name}-ledger.db"))
    note(f"  sfumato ledger cap {ledger} --dataset {name} --epsilon ...      # set the budget once")
    question = f"'SELECT COUNT(*) FROM {name}'"
    note(f"  sfumato query {_quoted(str(out))} {question} --epsilon ...      # --explain is free")


def _note_written(proposal: Proposal, out: Path, *, decided: bool) -> None:
    """Say what comes next: to decide the columns that nobody has decided, or to protect."""
    from sfumato.dataset import Role

    names, place = () if decided else proposal.of_role(Role.UNDECIDED), _quoted(str(out))
    if not names:
        note(f"\nWritten: {out}. Every column has a role. Review them, then: sfumato protect {place}")
        return
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    what = "1 column is undecided" if len(names) == 1 else f"{len(names)} columns are undecided"
    note(f"\nWritten: {out}. {what}: {shown}. `sfumato protect` refuses until you decide, for example:")
    rest = " --rest quasi" if len(names) > 1 else ""
    note(f"  sfumato decide {place} {_quoted(f'{names[0]}=quasi')}{rest} --by YOUR-NAME")


def _note_rehearsal(rehearsed: Rehearsal, out: Path) -> None:
    """Say whether the limit of the preset can be met, and what must give if not."""
    for line in filter(None, rehearsed.lines()):
        note(line)
    if rehearsed.k is None and rehearsed.ways:
        note("Choose one before you protect:")
        for way in rehearsed.ways:
            note(f"  to {way.does}:\n    {way.command(str(out))}")


def _quoted(text: str) -> str:
    """Quote a path for the shell."""
    import shlex

    return shlex.quote(text)


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
