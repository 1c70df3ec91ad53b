"""Attack and check published tables: the interval of every suppressed cell, and what is exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sfumato.api.figures import FiguresProtection, check_guarantee
from sfumato.api.kind import plain_plan
from sfumato.api.kinds.tables.plans import load_plan
from sfumato.api.results import AttackResults, CheckResults
from sfumato.data import read
from sfumato.data.yaml_documents import YamlDocument, load_document, validated
from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.params import Location
from sfumato.progress import SILENT, Progress
from sfumato.release import State, Verdict
from sfumato.release.folder import load_manifest
from sfumato.tables.interval_audit import CellInterval, combine, interval_attack, published_table
from sfumato.tables.plan import TablePlan
from sfumato.tables.plan_file import STRICT, PlanFile

if TYPE_CHECKING:
    from rich.console import Console


class PublishedFiles(DocumentedModel):
    """Tables that somebody published, to be attacked together."""

    model_config = STRICT

    sfumato: Literal[1] = 1
    """Version of the document's language."""
    published: tuple[Location, ...] = Field(min_length=1)
    """Files with one line per cell: a column per dimension (empty for the total), and ``value``, empty where
    suppressed."""
    values: Literal["counts", "sums"] = "counts"
    """Whether values are counts, which are whole numbers, or sums of amounts."""
    zeros_hidden: bool = False
    """Whether empty cells are suppressed too: a blank may be 0."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CellIntervals(AttackResults):
    """The interval of every suppressed cell: all that a reader can calculate."""

    cells: tuple[CellInterval, ...]

    @property
    def disclosed(self) -> int:
        """The number of suppressed cells that can be calculated exactly."""
        return sum(cell.disclosed for cell in self.cells)

    @property
    def met(self) -> bool:
        """Whether no suppressed cell can be calculated exactly."""
        return self.disclosed == 0

    def to_dict(self) -> dict[str, object]:
        cells = [
            {"cell": dict(one.key), "low": one.low, "high": one.high if one.high < float("inf") else None,
             "disclosed": one.disclosed} for one in self.cells
        ]  # fmt: skip
        return {"suppressed": len(self.cells), "disclosed": self.disclosed, "cells": cells}

    def __repr__(self) -> str:
        return f"<CellIntervals: {self.disclosed} of {len(self.cells)} suppressed cells can be calculated>"

    def show(self, console: Console | None = None) -> None:
        from sfumato.reports.terminal import output_console

        out = output_console(console)
        for one in self.cells:
            named = ", ".join(f"{name} = {value}" for name, value in one.key) or "total"
            out.out(f"{named}: {one.low:g} to {one.high:g}{'  disclosed' if one.disclosed else ''}", highlight=False)
        out.out(f"{self.disclosed} of {len(self.cells)} suppressed cells can be calculated.", highlight=False)


def attack_tables(release: str | Path | Mapping[str, object], *, progress: Progress = SILENT) -> CellIntervals:
    """Calculate the interval of every suppressed cell from published tables, all files together.

    ``release`` is the folder of a release by cell suppression, or a plan that lists ``published`` files. Counts are
    whole numbers, and a blank is at least 1, because zeros are published.
    """
    if isinstance(release, str | Path) and Path(release).is_dir():
        return CellIntervals(outcomes=(), cells=_intervals(Path(release), load_manifest(Path(release))))
    if "published" not in (plain_plan(release) or {}):
        raise BadParameter(
            "The plan lists no `published` files.", fix="Run `sfumato protect` first, then attack its folder."
        )
    if isinstance(release, str | Path):
        plan = load_document(PublishedFiles, release, kind="table plan", fix="Write one as docs/tables.md shows.")
    else:
        plan = validated(PublishedFiles, YamlDocument(value=dict(release), source="plan"))
    files = list(plan.published)
    found = _attack(files, counts=plan.values == "counts", zeros_hidden=plan.zeros_hidden)
    return CellIntervals(outcomes=(), cells=found)


def check_tables(
    release: str | Path, *, original: FiguresProtection | PlanFile | str | Path | Mapping[str, object] | None = None
) -> CheckResults:
    """Check a release of tables.

    Suppressed cells are attacked: no exact value may follow from the others. With ``original``, the plan that names the
    data, every interval must reach as far as the rules of the plan ask; without it that is not checked. Rounded cells
    must be multiples of the base. Differential privacy is a property of the mechanism, which no released figure shows:
    it is not checked.
    """
    folder = Path(release)
    manifest = load_manifest(folder)
    method = str(manifest.get("method", "threshold"))
    if "guarantee" in manifest:
        return check_guarantee(release)
    if method == "cell-suppression":
        return CheckResults(verdicts=(_suppression(folder, manifest, original),))
    if method == "controlled-rounding":
        values = read(folder / "tables.csv").frame["value"]
        failing = int((values % manifest["base"] != 0).sum())
        state = State.FAILS if failing else State.HOLDS
        return CheckResults(verdicts=(Verdict(model=method, state=state, worst=failing, wanted=0, failing=failing),))
    reason = "what statistics without a guarantee disclose depends on the original"
    return CheckResults(verdicts=(Verdict(model=method, state=State.NOT_CHECKED, reason=reason),))


def _suppression(
    folder: Path,
    manifest: Mapping[str, object],
    original: FiguresProtection | PlanFile | str | Path | Mapping[str, object] | None,
) -> Verdict:
    failing = sum(cell.disclosed for cell in _intervals(folder, manifest))
    if failing:
        reason = "suppressed cells can be calculated from published ones"
        return Verdict(
            model="cell-suppression", state=State.FAILS, worst=failing, wanted=0, failing=failing, reason=reason
        )
    if original is None:
        reason = (
            "no suppressed cell can be calculated; whether the intervals are wide enough needs the original: name its "
            "plan with --original"
        )
        return Verdict(model="cell-suppression", state=State.NOT_CHECKED, reason=reason)
    plan = original if isinstance(original, FiguresProtection) else load_plan(original)
    if not isinstance(plan, FiguresProtection | TablePlan) or plan.judge_published is None:
        raise BadParameter("The plan has no tables with suppressed cells.", fix="Name the plan that made the release.")
    return plan.judge_published(
        published_table(read(folder / "tables.csv").frame, counts=manifest.get("values") == "counts")
    )


def _intervals(folder: Path, manifest: Mapping[str, object]) -> tuple[CellInterval, ...]:
    if manifest.get("method") != "cell-suppression":
        raise BadParameter(
            "The interval attack is for tables with suppressed cells, and this release has none.",
            fix="Tables with differential privacy or controlled rounding have no suppressed cells.",
        )
    return _attack([folder / "tables.csv"], counts=manifest.get("values") == "counts")


def _attack(files: Sequence[str | Path], *, counts: bool, zeros_hidden: bool = False) -> tuple[CellInterval, ...]:
    tables = [published_table(read(file).frame, counts=counts, zeros_hidden=zeros_hidden) for file in files]
    return interval_attack(combine(tables))
