"""``sfumato.init``: draft the document of a data set from its files, for the owner to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sfumato.data import replacing
from sfumato.data.format import format_for
from sfumato.data.preview import Preview, preview
from sfumato.data.source import Source, lines_above
from sfumato.dataset.document import sql_name
from sfumato.errors import BadParameter, SfumatoError, UnknownFormat
from sfumato.profiling import Proposal, propose, to_yaml
from sfumato.profiling.dataset_text import ProfiledTable, dataset_text
from sfumato.profiling.recipe_text import for_preset
from sfumato.profiling.table_plan_text import table_plan_text
from sfumato.progress import AUTO, Progress
from sfumato.recipe import Recipe
from sfumato.recipe.decide import decide
from sfumato.recipe.presets import preset_text
from sfumato.studies import MethodComparison, compare_methods
from sfumato.studies.rehearsal import Rehearsal, rehearse


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A drafted document, and what was found about its tables."""

    text: str
    """The document as YAML, with the reason for each line as a comment."""
    tables: Mapping[str, Proposal]
    """What is proposed for the columns of each table."""
    read: int
    """Rows that were read of the first table."""
    rows: int
    """Rows that the first table has."""
    comparison: MethodComparison | None = None
    """The masking methods that were compared on a sample."""
    not_compared: str = ""
    """Why methods were not compared, if they should have been."""
    rehearsal: Rehearsal | None = None
    """Whether the limit of the preset can be met."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Tables whose names of columns stand below lines of titles, with the number of these lines."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the document, whole or not at all."""
        with replacing(path, force=force) as temporary:
            temporary.write_text(self.text, encoding="utf-8")

    def to_dict(self) -> dict[str, object]:
        """The document that ``sfumato init --json`` prints, without the place of the file."""
        if len(self.tables) > 1:
            return {"tables": {name: proposal.to_dict() for name, proposal in self.tables.items()}}
        [proposal] = self.tables.values()
        return {
            **proposal.to_dict(),
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "rehearsal": None if self.rehearsal is None else self.rehearsal.to_dict(),
        }

    def __str__(self) -> str:
        return self.text


def init(
    sources: str | Path | Sequence[str | Path],
    *,
    folder: str | Path | None = ".",
    k: int | None = None,
    preset: str | None = None,
    unit: str | None = None,
    size: int = 4,
    rows: int = 1_000_000,
    compare: bool = True,
    table_plan: bool = False,
    rest: str | None = None,
    by: str | None = None,
    progress: Progress = AUTO,
) -> Draft:
    """Draft the document of a data set: its tables, keys and links, and the columns with kind, role and hierarchy.

    The draft is for review. Columns that are not recognized are ``undecided``, which ``protect`` refuses:
    :func:`sfumato.decide` decides them.

    Parameters
    ----------
    sources
        A file or database URL, several of them, or a folder of tables.
    folder
        Where the document will stand; the files in it are named relative to it. None: as they are given.
    k
        One table: the smallest size of an equivalence class or, with ``table_plan``, the smallest number of
        contributors of a published cell. There is no default: without it ``k`` is left blank.
    preset
        One table: the name of a preset to start from instead.
    unit
        Whose privacy: ``row``, the column that identifies a person or, of several tables, the table of people.
    size
        Largest number of columns in a combination that is checked for unique rows.
    rows
        Largest number of rows to read of a table.
    compare
        With ``k``: whether masking methods are compared on a sample, and the one that loses least is proposed.
    table_plan
        One table: whether to draft a plan of tables, with rows and columns from those with few values.
    rest, by
        One table: the role of all columns that are not recognized, and who decides so.
    """
    tables = _tables_of([sources] if isinstance(sources, str | Path) else sources)
    beside = None if folder is None else Path(folder)
    if not tables:
        raise BadParameter("There is no table to describe.", fix="Name a file, several files or a folder of tables.")
    if (rest is None) != (by is None):
        raise BadParameter("`rest` and `by` go together: which role, and who decides.")
    if k is not None and preset is not None:
        raise BadParameter("A preset sets k itself.", fix="Use `k` or `preset`, not both.")
    if table_plan and preset is not None:
        raise BadParameter("A preset is for microdata, and not for a plan of tables.", fix="Leave the preset out.")
    if len(tables) == 1:
        start = None if preset is None else preset_text(preset)
        above = lines_above(tables[0])
        sample = preview(tables[0], most=rows, **above)
        source = Source.found(tables[0], beside=beside)
        if table_plan:
            draft = _table_plan(sample, source, unit, k, progress)
        else:
            draft = _one_table(sample, source, unit, size, k, start, compare, progress)
        if above:
            draft = replace(draft, skipped={sql_name(tables[0]): above["skip"]})
        return draft if rest is None or by is None else _decided(draft, rest, by)
    if (k, preset, rest) != (None, None, None) or table_plan:
        raise BadParameter(
            "`k`, `preset`, `rest` and a plan of tables are for one table.",
            fix="A plan names the data set and says what leaves; `decide` decides the columns of a table.",
        )
    several = isinstance(sources, str | Path) or len(sources) == 1
    name = sql_name((Path(_first(sources)) if several else (beside or Path()).absolute()).absolute().name)
    return _several_tables(name, tables, beside, unit, rows, progress)


def _first(sources: str | Path | Sequence[str | Path]) -> str | Path:
    return sources if isinstance(sources, str | Path) else sources[0]


def _tables_of(sources: Sequence[str | Path]) -> list[str]:
    """The tables that were named. A folder stands for its tables, unless it is one of texts."""
    found = []
    for source in map(str, sources):
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


def _one_table(
    sample: Preview, source: Source, unit: str | None, size: int, k: int | None, start: str | None, compare: bool,
    progress: Progress,
) -> Draft:  # fmt: skip
    if unit not in (None, "row"):
        sample.table.require([unit])
    proposal = for_preset(propose(sample.table, whole=sample.rows, progress=progress, max_size=size), start)
    comparison, not_compared = None, ""
    if compare and k is not None:
        with progress.task("Comparing methods", None):
            try:
                comparison = compare_methods(Recipe.parse(proposal.recipe(k=k)), sample.table, k=k)
            except SfumatoError as refusal:  # the comparison never stops a draft
                not_compared = str(refusal)
    rehearsal = None
    if start is not None:
        with progress.task("Rehearsing the preset", None):
            rehearsal = rehearse(to_yaml(proposal, None, unit=unit, preset=start), sample.table)
    found = comparison or rehearsal
    best = None if comparison is None else comparison.best
    text = to_yaml(
        proposal, source, unit=unit, k=k if rehearsal is None else rehearsal.k, preset=start,
        step=None if best is None else best.step, reasons=() if found is None else found.lines(),
    )  # fmt: skip
    return Draft(
        text=text, tables={sql_name(source.location): proposal}, read=sample.table.rows, rows=sample.rows,
        comparison=comparison, not_compared=not_compared, rehearsal=rehearsal,
    )  # fmt: skip


def _table_plan(sample: Preview, source: Source, unit: str | None, k: int | None, progress: Progress) -> Draft:
    if unit not in (None, "row"):
        sample.table.require([unit])
    proposal = propose(sample.table, whole=sample.rows, progress=progress, max_size=1)
    text = table_plan_text(proposal, sample.table.frame, source, unit=unit, threshold=k)
    tables = {sql_name(source.location): proposal}
    return Draft(text=text, tables=tables, read=sample.table.rows, rows=sample.rows)


def _decided(draft: Draft, rest: str, by: str) -> Draft:
    return Draft(**{**vars(draft), "text": decide(draft.text, rest=rest, by=by)})


def _several_tables(
    name: str, sources: Sequence[str], folder: Path | None, person: str | None, rows: int, progress: Progress
) -> Draft:
    samples: dict[str, Preview] = {}
    skipped: dict[str, int] = {}
    tables: dict[str, ProfiledTable] = {}
    for source in sources:
        above = lines_above(source)
        sample = preview(source, most=rows, **above)
        if above:
            skipped[sql_name(source)] = above["skip"]
        proposal = propose(sample.table, whole=sample.rows, progress=progress, max_size=1)
        samples[sql_name(source)] = sample
        tables[sql_name(source)] = ProfiledTable(
            source=Source.found(source, beside=folder), frame=sample.table.frame, proposal=proposal
        )
    if len(tables) < len(sources):
        raise BadParameter("Two tables have the same name in SQL.", fix="Rename a file.")
    first = next(iter(samples.values()))
    return Draft(
        text=dataset_text(name, tables, person=person), read=first.table.rows, rows=first.rows,
        tables={table: profiled.proposal for table, profiled in tables.items()}, skipped=skipped,
    )  # fmt: skip
