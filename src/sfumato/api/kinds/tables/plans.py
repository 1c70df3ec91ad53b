"""Run a plan of tables: cell suppression and rounding, TopDown, or summary statistics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sfumato.api.figures import FiguresProtection, measure_figures, original_required
from sfumato.api.kind import plain_plan
from sfumato.api.results import MeasureResults
from sfumato.data.yaml_documents import yaml_text
from sfumato.dataset.plan import plan_text
from sfumato.errors import BadParameter
from sfumato.progress import SILENT, Progress
from sfumato.tables.plan import TablePlan
from sfumato.tables.plan_file import PlanFile
from sfumato.tables.summary_file import SummaryFile
from sfumato.tables.topdown_file import TopDownFile

PLANS: Mapping[str, type[PlanFile]] = {"areas": TopDownFile, "statistics": SummaryFile}
"""The key that tells a plan from one of classical tables."""


def protect_tables(
    plan: PlanFile | str | Path | Mapping[str, object], *, unmet: bool = False, progress: Progress = SILENT
) -> FiguresProtection:
    """Publish the tables of a plan, and charge its ledger if it has a budget.

    Everything that can be refused is refused before the charge.
    """
    loaded = load_plan(plan)
    text = yaml_text(loaded.public()) if isinstance(plan, PlanFile) else plan_text(plan)
    done = loaded.run(progress)
    return FiguresProtection.of(
        done.tables, done.facts, done.verdicts, guarantee=done.guarantee, plan=text, unmet=unmet,
        named_account=loaded.register, exact=loaded.exact,
        judge_published=loaded.judge_published if isinstance(loaded, TablePlan) else None, cross_tabs=done.cross_tabs,
    )  # fmt: skip


def measure_tables(
    release: str | Path,
    *,
    original: FiguresProtection | PlanFile | str | Path | Mapping[str, object] | None = None,
    progress: Progress = SILENT,
) -> MeasureResults:
    """Compare published tables with the exact ones. ``original`` is the plan, which names the data."""
    if original is None:
        raise original_required("the tables")
    exact = original.exact if isinstance(original, FiguresProtection) else load_plan(original).exact
    assert exact is not None
    return measure_figures(Path(release), exact)


def load_plan(plan: PlanFile | str | Path | Mapping[str, object]) -> PlanFile:
    """The plan of tables in a file, in text or in plain data."""
    if isinstance(plan, PlanFile):
        return plan
    keys = plain_plan(plan) or {}
    if "published" in keys:
        raise BadParameter("The plan names tables that are published already.", fix="`sfumato attack` takes it.")
    return next((cls for key, cls in PLANS.items() if key in keys), TablePlan).parse(plan)
