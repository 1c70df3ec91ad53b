"""Run a plan of tables: cell suppression and rounding, TopDown, or summary statistics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.api.figures import FiguresProtection, plan_text
from sfumato.data.yaml_documents import parse_yaml
from sfumato.errors import BadParameter
from sfumato.progress import SILENT, Progress
from sfumato.tables.plan import TablePlan
from sfumato.tables.plan_file import PlanFile
from sfumato.tables.summary_file import SummaryFile
from sfumato.tables.topdown_file import TopDownFile

__all__ = ["protect_tables"]

_PLANS: Mapping[str, type[PlanFile]] = {"areas": TopDownFile, "statistics": SummaryFile}
"""The key that tells a plan from one of classical tables."""


def protect_tables(
    plan: PlanFile | str | Path | Mapping[str, Any], *, unmet: bool = False, progress: Progress = SILENT
) -> FiguresProtection:
    """Publish the tables of a plan, and charge its ledger if it has a budget.

    Everything that can be refused is refused before the charge.
    """
    text = repr(plan) if isinstance(plan, PlanFile) else plan_text(plan)
    loaded = plan if isinstance(plan, PlanFile) else _loaded(plan, text)
    done = loaded.run(progress)
    return FiguresProtection.of(
        done.tables, done.facts, done.verdicts, guarantee=done.guarantee, plan=text, unmet=unmet
    )


def _loaded(plan: str | Path | Mapping[str, Any], text: str) -> PlanFile:
    inline = isinstance(plan, Mapping) or "\n" in str(plan)
    document = parse_yaml(text, source="plan" if inline else str(plan))
    if "published" in document.value:
        raise BadParameter("The plan names tables that are published already.", fix="`sfumato attack` takes it.")
    cls = next((cls for key, cls in _PLANS.items() if key in document.value), TablePlan)
    return cls.of(document).placed(Path() if inline else Path(str(plan)).parent)
