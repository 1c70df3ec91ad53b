"""Protect, check, attack and measure trails of people over several sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import polars as pl
from pydantic import ConfigDict, Field, ValidationError

from sfumato.api.figures import FiguresProtection, plan_text
from sfumato.api.results import AttackResults, CheckResults, MeasureResults
from sfumato.data import read
from sfumato.data.yaml_documents import parse_yaml
from sfumato.errors import BadParameter, InvalidRecipe, TooFewRows
from sfumato.field_docs import DocumentedModel
from sfumato.measures import MeasureResult
from sfumato.params import plain_message
from sfumato.progress import SILENT, Progress
from sfumato.registry import family_module
from sfumato.release import State, Verdict
from sfumato.release.folder import load_manifest

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["TrailLinks", "TrailsPlan", "attack_trails", "check_trails", "measure_trails", "protect_trails"]

_VISITS = "visits"


class TrailsPlan(DocumentedModel):
    """Whose visits are released, and how many must share a trail."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    """The samples: one line per visit, a file relative to the plan."""
    row: str = "sample"
    """Column that tells whose visit it is."""
    site: str = "site"
    """Column with the site of a visit."""
    k: Annotated[int, Field(ge=2)]
    """Rows that must share a trail."""
    identified: str | None = None
    """For attacks: the list with names, one line per visit."""
    person: str = "name"
    """Column of ``identified`` that names people."""
    incomplete: bool = False
    """For attacks: whether the samples may lack visits that ``identified`` has."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TrailsProtection(FiguresProtection):
    """The visits that remain, which may be published."""

    release_kind: ClassVar[str] = "trails"


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

    def to_dict(self) -> dict[str, Any]:
        return dict(self.counts)

    def show(self, console: Console | None = None) -> None:
        from sfumato.reports.terminal import output_console

        linked, samples, people = (self.counts[name] for name in ("linked", "samples", "people"))
        output_console(console).out(
            f"{linked:,} of {samples:,} samples are linked to one of {people:,} people.", highlight=False
        )


def protect_trails(
    plan: str | Path | Mapping[str, Any], *, unmet: bool = False, progress: Progress = SILENT
) -> TrailsProtection:
    """Leave out visits so that at least k rows share every trail that remains. Other columns are unchanged."""
    asked, base = _plan(plan)
    source = _place(asked.data, base)
    visits, table = _trails(read(source).frame, asked.row, asked.site)
    kept = family_module("parties.trails").suppress_visits(table.visits, k=asked.k)
    rows = {name: index for index, name in enumerate(table.rows)}
    sites = {name: index for index, name in enumerate(table.sites)}
    stays = [bool(kept.visits[rows[one], sites[at]]) for one, at in zip(visits["row"], visits["site"], strict=True)]
    if not any(stays):
        raise TooFewRows(f"No {asked.k} rows share a site; nothing would remain.", fix="Use a smaller k.")
    frame = read(source).frame.drop_nulls([asked.row, asked.site]).filter(pl.Series(stays, dtype=pl.Boolean))
    counts = {
        "samples": len(rows), "visits": int(table.visits.sum()), "suppressed": kept.suppressed,
        "samples_lost": kept.rows_lost,
    }  # fmt: skip
    facts = {"k": asked.k, "row": asked.row, "site": asked.site}
    verdict = _verdict(frame, asked.row, asked.site, asked.k)
    done = TrailsProtection.of(
        {_VISITS: frame}, facts, (verdict,), guarantee=None, plan=plan_text(plan), unmet=unmet, owner=counts
    )
    assert isinstance(done, TrailsProtection)
    return done


def check_trails(release: str | Path | Mapping[str, Any]) -> CheckResults:
    """Whether at least k rows share every trail of a release, or of the data of a plan."""
    frame, row, site, k = _released(release)
    return CheckResults(verdicts=(_verdict(frame, row, site, k),))


def measure_trails(release: str | Path | Mapping[str, Any], *, progress: Progress = SILENT) -> MeasureResults:
    """The shares of rows with a trail of their own, and with one that fewer than k rows have."""
    frame, row, site, k = _released(release)
    visits = _trails(frame, row, site)[1].visits
    rare_trails = family_module("parties.trails").rare_trails
    found = {"unique trails": rare_trails(visits, k=2), f"trails of fewer than {k}": rare_trails(visits, k=k)}
    return MeasureResults(results=tuple(MeasureResult(measure=name, value=value) for name, value in found.items()))


def attack_trails(
    release: str | Path | Mapping[str, Any], *, original: str | Path | None = None, progress: Progress = SILENT
) -> TrailLinks:
    """Link people of the plan's ``identified`` list with its samples, or with those of a release, by their trails.

    For a release folder, ``original`` is the plan; a release may lack visits.
    """
    folder = isinstance(release, str | Path) and Path(release).is_dir()
    if folder and original is None:
        raise BadParameter("`original` is required: the plan that names the identified list.", fix="--original PLAN")
    asked, base = _plan(original if folder and original is not None else release)
    if asked.identified is None:
        raise BadParameter("The plan names no `identified` list.", fix="Add `identified: people.csv`.")
    named, _ = _trails(read(_place(asked.identified, base)).frame, asked.person, asked.site)
    samples, _ = _trails(_released(release)[0], asked.row, asked.site)
    sites = [*named["site"], *samples["site"]]
    trails = family_module("parties.trails")
    one, other = (trails.TrailTable.of(list(f["row"]), list(f["site"]), all_sites=sites) for f in (named, samples))
    pairs = trails.match_trails(one.visits, other.visits, complete=not (folder or asked.incomplete)).pairs
    columns = {asked.person: [one.rows[i] for i, _ in pairs], asked.row: [other.rows[j] for _, j in pairs]}
    counts = {"people": len(one.rows), "samples": len(other.rows), "sites": len(one.sites), "linked": len(pairs)}
    links = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return TrailLinks(outcomes=(), links=links, counts=counts)


def _plan(plan: str | Path | Mapping[str, Any]) -> tuple[TrailsPlan, Path]:
    inline = isinstance(plan, Mapping) or "\n" in str(plan)
    document = parse_yaml(plan_text(plan), source="plan" if inline else str(plan))
    try:
        asked = TrailsPlan.model_validate(document.value["trails"])
    except ValidationError as failure:
        problems = [
            document.problem(["trails", *error["loc"]], plain_message(error, TrailsPlan)) for error in failure.errors()
        ]
        raise InvalidRecipe(problems, source=document.source) from None
    return asked, Path() if inline else Path(str(plan)).parent


def _released(release: str | Path | Mapping[str, Any]) -> tuple[pl.DataFrame, str, str, int]:
    """The visits of a release folder, or of the data of a plan, with the columns and k."""
    if isinstance(release, str | Path) and Path(release).is_dir():
        manifest = load_manifest(Path(release))
        visits = read(Path(release) / f"{_VISITS}.csv").frame
        return visits, manifest["row"], manifest["site"], manifest["k"]
    asked, base = _plan(release)
    return read(_place(asked.data, base)).frame, asked.row, asked.site, asked.k


def _verdict(frame: pl.DataFrame, row: str, site: str, k: int) -> Verdict:
    rare = family_module("parties.trails").rare_trails(_trails(frame, row, site)[1].visits, k=k)
    state = State.FAILS if rare else State.HOLDS
    return Verdict(model="shared-trails", state=state, worst=rare, wanted=0)


def _trails(frame: pl.DataFrame, row: str, site: str) -> tuple[pl.DataFrame, Any]:
    if row == site:
        raise BadParameter("the column of sites and the column of rows must differ.")
    for name in (row, site):
        if name not in frame.columns:
            raise BadParameter(f"The file has no column `{name}`.", fix="Name it with `row`, `person` or `site`.")
    visits = frame.select(row=pl.col(row).cast(pl.String), site=pl.col(site).cast(pl.String)).drop_nulls()
    return visits, family_module("parties.trails").TrailTable.of(list(visits["row"]), list(visits["site"]))


def _place(name: str, base: Path) -> str:
    return name if "://" in name else str(base / name)
