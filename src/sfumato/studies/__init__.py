"""Studies: many candidate releases of one table, attacked and measured, compared by risk and utility."""

from sfumato.studies.frontier import Point, Study
from sfumato.studies.method_comparison import MethodComparison, MethodTrial, compare_methods
from sfumato.studies.plan import Candidate, StudyPlan
from sfumato.studies.run import run_study

__all__ = [
    "Candidate",
    "MethodComparison",
    "MethodTrial",
    "Point",
    "Study",
    "StudyPlan",
    "compare_methods",
    "run_study",
]
