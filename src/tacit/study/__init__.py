"""Risk against utility: many candidate releases of one table, attacked, measured, and put on one map."""

from tacit.study.frontier import Point, Study
from tacit.study.plan import Candidate, Plan
from tacit.study.running import run_study
from tacit.verbal import make_callable

make_callable(__name__)

__all__ = ["Candidate", "Plan", "Point", "Study", "run_study"]
