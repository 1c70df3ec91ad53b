"""Profile a file and write a recipe: roles, kinds and hierarchies of its columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, progress, typed_path
from sfumato.wording import counted

if TYPE_CHECKING:
    from sfumato.api.init import Draft
    from sfumato.profiling import Proposal
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
    "--tables", "table_plan", is_flag=True,
    help="Write a plan of tables of counts or sums instead; --k is then the fewest contributors of a published cell.",
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
    table_plan: bool,
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
    from urllib.parse import urlsplit

    from sfumato.api.init import init
    from sfumato.errors import OutputExists
    from sfumato.recipe.presets import preset_text

    if table_plan and (edges or preset is not None):
        raise click.UsageError("--tables is for one table of people, without --edges and --preset.")
    if edges:
        _write_graph_recipe(sources[0] if sources else None, edges, out, k=k, force=force, as_json=as_json)
        return
    if not sources:
        raise click.UsageError("Name a data file, or the edge tables of a graph with --edges.")
    if (rest is None) != (by is None):
        raise click.UsageError("--rest and --by go together: which role, and who decides.")
    if k is not None and preset is not None:
        raise click.UsageError("A preset sets k itself: use --k or --preset, not both.")
    if preset is not None:
        preset_text(preset)  # a name that is no preset is refused before the place of the file
    printed = str(out) == "-"
    if not printed and out.exists() and not force:
        raise OutputExists(
            f"{out} exists already.", fix="Choose another file with --out, or overwrite it with --force."
        )
    draft = init(
        sources, folder=None if printed else out.parent, k=k, preset=preset, unit=unit, size=size, rows=rows,
        compare=compare, table_plan=table_plan, rest=rest, by=by, progress=progress(quiet=as_json),
    )  # fmt: skip
    if printed:
        click.echo(draft.text, nl=False)
        return
    draft.save(out, force=force)
    several = len(draft.tables) > 1
    if not as_json:
        for table, lines in draft.skipped.items():
            note(f"{table}: the names of the columns stand in line {lines + 1}, below a title; so `skip: {lines}`.")
    if as_json:
        what = "dataset" if several else "plan" if table_plan else "recipe"
        emit_json({what: str(out), **draft.to_dict()})
    elif several:
        note(f"Written: {out}, with {len(draft.tables)} tables. Confirm `person`, keys and links, decide the columns.")
        note(f"A plan names it (`dataset: {out.name}`) and says what leaves: models, steps, limits.")
    elif table_plan:
        note(f"\nWritten: {out}. Confirm `tables`, `unit` and the rule. Only columns of a table have to be decided.")
        [proposal] = draft.tables.values()
        missing = [*([] if unit or proposal.unit else ["`unit`"]), *([] if k else ["the number of the rule"])]
        if missing:
            note(f"Not there yet: {' and '.join(missing)}. `sfumato protect` refuses until then.")
        else:
            note(f"Then: sfumato protect {_quoted(str(out))}")
    else:
        unfilled = k is None and preset is None
        _show(draft, out, decided=rest is not None, details=details, unfilled=unfilled, unit=unit)
        if "://" in sources[0] and urlsplit(sources[0]).password:
            note("It contains the database password. Remove it, and use PGPASSWORD or ~/.pgpass instead.")
        if unfilled:
            note("`k` has no value yet: fill it in below `models`, or run this command again with --k and --force.")
        _note_queries(sources[0], out, unit)


def _show(draft: Draft, out: Path, *, decided: bool, details: bool, unfilled: bool, unit: str | None) -> None:
    """Print what is proposed for the columns of one table, and what comes next."""
    from rich.console import Console

    from sfumato.cli._proposal import show_proposal
    from sfumato.evaluation.ways_out import whose_rows

    [proposal] = draft.tables.values()
    if draft.read < draft.rows:
        note(f"Read {draft.read:,} of {counted(draft.rows, 'row')}: the first rows, and rows spread over the rest.")
    if draft.not_compared:
        note(f"Methods were not compared: {draft.not_compared}")
    show_proposal(proposal, draft.comparison, Console(), details=details)
    rehearsed = draft.rehearsal
    choose = rehearsed is not None and rehearsed.undecided
    whose = proposal.repeated if unit is None else None
    _note_written(proposal, out, decided=decided, later=choose or unfilled or whose is not None, choose=choose)
    if whose is not None:
        note(f"Several rows have the same `{whose}`. Say whose they are, then: sfumato protect " + _quoted(str(out)))
        for way in whose_rows(whose):
            note(f"  to {way.does}:\n    {way.command(str(out))}")
    if rehearsed is not None:
        _note_rehearsal(rehearsed, out)


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


def _note_written(proposal: Proposal, out: Path, *, decided: bool, later: bool, choose: bool) -> None:
    """Say what comes next: to decide the columns that nobody has decided, or to protect.

    ``later``: the lines that follow say what else has to be done. ``choose``: they decide the columns too.
    """
    from sfumato.dataset import Role

    names, place = () if decided else proposal.of_role(Role.UNDECIDED), _quoted(str(out))
    if not names:
        then = "." if later else f", then: sfumato protect {place}"
        note(f"\nWritten: {out}. Every column has a role. Review them{then}")
        return
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    what = "1 column is undecided" if len(names) == 1 else f"{len(names)} columns are undecided"
    if choose:
        note(f"\nWritten: {out}. {what}: {shown}.")
        return
    note(f"\nWritten: {out}. {what}: {shown}. `sfumato protect` refuses until you decide, for example:")
    rest = " --rest quasi" if len(names) > 1 else ""
    note(f"  sfumato decide {place} {_quoted(f'{names[0]}=quasi')}{rest} --by YOUR-NAME")


def _note_rehearsal(rehearsed: Rehearsal, out: Path) -> None:
    """Say whether the limit of the preset can be met, and what must give if not."""
    for line in filter(None, rehearsed.lines()):
        note(line)
    if rehearsed.undecided:
        rest = any(way.rest for way in rehearsed.ways)
        note(
            ("Each choice also masks the undecided columns as quasi-identifiers. " if rest else "")
            + "Choose one, then: sfumato protect "
            + _quoted(str(out))
        )
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
