"""Protect, check, attack and measure trails of people over several sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import polars as pl
from pydantic import ConfigDict, Field

from sfumato.api.figures import FiguresProtection
from sfumato.api.results import AttackResults, CheckResults, MeasureResults
from sfumato.data import read
from sfumato.data.source import Source
from sfumato.dataset.column import Role
from sfumato.dataset.plan import DatasetPlan, plan_text
from sfumato.errors import BadParameter, TooFewRows
from sfumato.field_docs import DocumentedModel
from sfumato.measures import MeasureResult
from sfumato.progress import SILENT, Progress
from sfumato.registry import family_module
from sfumato.release import State, Verdict
from sfumato.release.folder import load_manifest
from sfumato.rng import Rng
from sfumato.wording import did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

_VISITS = "visits"


class TrailRules(DocumentedModel):
    """How many must share a trail, and who attacks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    site: str = "site"
    """Column with the site of a visit."""
    k: Annotated[int, Field(ge=2)]
    """Rows that must share a trail."""
    identified: Source | None = None
    """For attacks: the list with names, one line per visit."""
    person: str = "name"
    """Column of ``identified`` that names people."""
    incomplete: bool = False
    """For attacks: whether the samples may lack visits that ``identified`` has."""


class TrailsPlan(DatasetPlan):
    """Visits to release. The data set has one line per visit, and its person column says whose visit it is."""

    release_kind: ClassVar[str] = "trails"

    trails: TrailRules
    """How many must share a trail, and who attacks."""

    @property
    def row(self) -> str:
        """The column that tells whose visit it is."""
        if self.people.unit is None:
            raise BadParameter("Trails need the column that says whose visit a row is.", fix="Declare `unit: sample`.")
        return self.people.unit

    @property
    def visits(self) -> pl.DataFrame:
        """The columns that may leave, and whose visit a row is. What is not declared does not leave."""
        people, row, site = self.people, self.row, self.trails.site
        hidden = (Role.IDENTIFIER, Role.DROP)
        leaving = [name for name, column in people.columns.items() if column.role not in hidden and name != row]
        for name in (site, *leaving):
            people.column(name)
        named = [row, *leaving]
        frame = people.stored()
        for name in named:
            if name not in frame.columns:
                raise BadParameter(f"The file has no column `{name}`.", fix=did_you_mean(name, frame.columns))
        return frame.select(named)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TrailsProtection(FiguresProtection):
    """The visits that remain, which may be published."""

    release_kind: ClassVar[str] = "trails"
    loaded: TrailsPlan | None = None
    """The plan, which names the identified list."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TrailLinks(AttackResults):
    """Samples that are linked to one person by their trails."""

    links: pl.DataFrame
    """One line per link: the person and the sample. Confidential."""
    counts: Mapping[str, int]

    @property
    def met(self) -> bool:
        """Whether no sample is linked."""
        return self.links.is_empty()

    def to_dict(self) -> dict[str, object]:
        return dict(self.counts)

    def show(self, console: Console | None = None) -> None:
        from sfumato.reports.terminal import output_console

        linked, samples, people = (self.counts[name] for name in ("linked", "samples", "people"))
        output_console(console).out(
            f"{linked:,} of {samples:,} samples are linked to one of {people:,} people.", highlight=False
        )


def protect_trails(
    plan: str | Path | Mapping[str, object], *, unmet: bool = False, progress: Progress = SILENT
) -> TrailsProtection:
    """Leave out visits so that at least k rows share every trail that remains, and replace ids by random numbers.

    Other columns are unchanged.
    """
    loaded = TrailsPlan.parse(plan)
    asked, row, given = loaded.trails, loaded.row, loaded.visits
    visits, table = _trails(given, row, asked.site)
    kept = family_module("parties.trails").suppress_visits(table.visits, k=asked.k)
    rows = {name: index for index, name in enumerate(table.rows)}
    sites = {name: index for index, name in enumerate(table.sites)}
    stays = [bool(kept.visits[rows[one], sites[at]]) for one, at in zip(visits["row"], visits["site"], strict=True)]
    if not any(stays):
        raise TooFewRows(f"No {asked.k} rows share a site; nothing would remain.", fix="Use a smaller k.")
    frame = given.drop_nulls([row, asked.site]).filter(pl.Series(stays, dtype=pl.Boolean))
    frame = _renumbered(frame, row)
    counts = {
        "samples": len(rows), "visits": int(table.visits.sum()), "suppressed": kept.suppressed,
        "samples_lost": kept.rows_lost,
    }  # fmt: skip
    facts = {"k": asked.k, "row": row, "site": asked.site}
    verdict = _verdict(frame, row, asked.site, asked.k)
    done = TrailsProtection.of(
        {_VISITS: frame},
        facts,
        (verdict,),
        guarantee=None,
        plan=plan_text(plan),
        unmet=unmet,
        named_account=loaded.register,
        owner=counts,
    )
    assert isinstance(done, TrailsProtection)
    return replace(done, loaded=loaded)


def check_trails(release: str | Path | Mapping[str, object]) -> CheckResults:
    """Whether at least k rows share every trail of a release, or of the data of a plan."""
    frame, row, site, k = _released(release)
    return CheckResults(verdicts=(_verdict(frame, row, site, k),))


def measure_trails(release: str | Path | Mapping[str, object], *, progress: Progress = SILENT) -> MeasureResults:
    """The shares of rows with a trail of their own, and with one that fewer than k rows have."""
    frame, row, site, k = _released(release)
    visits = _trails(frame, row, site)[1].visits
    rare_trails = family_module("parties.trails").rare_trails
    found = {"unique trails": rare_trails(visits, k=2), f"trails of fewer than {k}": rare_trails(visits, k=k)}
    return MeasureResults(results=tuple(MeasureResult(measure=name, value=value) for name, value in found.items()))


def attack_trails(
    release: str | Path | Mapping[str, object],
    *,
    original: TrailsProtection | str | Path | None = None,
    progress: Progress = SILENT,
) -> TrailLinks:
    """Link people of the plan's ``identified`` list with its samples, or with those of a release, by their trails.

    For a release folder, ``original`` is the plan; a release may lack visits.
    """
    folder = isinstance(release, str | Path) and Path(release).is_dir()
    if folder and original is None:
        raise BadParameter(
            "`original` is required: the plan that names the identified list.",
            fix="Pass it as `original`.",
            option="original",
        )
    if isinstance(original, TrailsProtection):
        assert original.loaded is not None  # set by `protect`
        plan = original.loaded
    else:
        plan = TrailsPlan.parse(original if folder and original is not None else release)
    asked, row = plan.trails, plan.row
    if asked.identified is None:
        raise BadParameter("The plan names no `identified` list.", fix="Add `identified: people.csv`.")
    named, _ = _trails(asked.identified.read().frame, asked.person, asked.site)
    samples, _ = _trails(_released(release)[0], row, asked.site)
    sites = [*named["site"], *samples["site"]]
    trails = family_module("parties.trails")
    one, other = (trails.TrailTable.of(list(f["row"]), list(f["site"]), all_sites=sites) for f in (named, samples))
    pairs = trails.match_trails(one.visits, other.visits, complete=not (folder or asked.incomplete)).pairs
    columns = {asked.person: [one.rows[i] for i, _ in pairs], row: [other.rows[j] for _, j in pairs]}
    counts = {"people": len(one.rows), "samples": len(other.rows), "sites": len(one.sites), "linked": len(pairs)}
    links = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return TrailLinks(outcomes=(), links=links, counts=counts)


def _released(release: str | Path | Mapping[str, object]) -> tuple[pl.DataFrame, str, str, int]:
    """The visits of a release folder, or of the data of a plan, with the columns and k."""
    if isinstance(release, str | Path) and Path(release).is_dir():
        manifest = load_manifest(Path(release))
        visits = read(Path(release) / f"{_VISITS}.csv").frame
        return visits, manifest["row"], manifest["site"], manifest["k"]
    plan = TrailsPlan.parse(release)
    return plan.visits, plan.row, plan.trails.site, plan.trails.k


def _verdict(frame: pl.DataFrame, row: str, site: str, k: int) -> Verdict:
    rare = family_module("parties.trails").rare_trails(_trails(frame, row, site)[1].visits, k=k)
    state = State.FAILS if rare else State.HOLDS
    return Verdict(model="shared-trails", state=state, worst=rare, wanted=0)


def _renumbered(frame: pl.DataFrame, row: str) -> pl.DataFrame:
    """Visits with random numbers instead of the ids of those who made them, in the order of these numbers."""
    people = frame.get_column(row).unique()
    number = Rng().generator.permutation(len(people)) + 1
    numbered = frame.with_columns(pl.col(row).replace_strict(people, pl.Series(number), return_dtype=pl.Int64))
    return numbered[Rng().generator.permutation(frame.height)].sort(row, maintain_order=True)


def _trails(frame: pl.DataFrame, row: str, site: str) -> tuple[pl.DataFrame, Any]:
    if row == site:
        raise BadParameter("the column of sites and the column of rows must differ.")
    for name in (row, site):
        if name not in frame.columns:
            raise BadParameter(f"The file has no column `{name}`.", fix="Name it with `row`, `person` or `site`.")
    visits = frame.select(row=pl.col(row).cast(pl.String), site=pl.col(site).cast(pl.String)).drop_nulls()
    return visits, family_module("parties.trails").TrailTable.of(list(visits["row"]), list(visits["site"]))
