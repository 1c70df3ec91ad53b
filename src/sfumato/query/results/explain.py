"""EXPLAIN: the cost of a query and its expected error, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, assert_never

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.query.plan.aggregates import BernsteinSum, BinCounts, Count, ValueCounts
from sfumato.query.plan.first_rows import MOST_JOINED_ROWS, FirstRows
from sfumato.query.plan.fitting import can_be_cut
from sfumato.query.plan.noise import NoisePlan, grid_of
from sfumato.query.plan.outputs import LinearCombination
from sfumato.query.plan.query import DEFAULT_CONFIDENCE
from sfumato.query.plan.relational import walk
from sfumato.query.plan.row_steps import Compute, chosen_by_noise
from sfumato.wording import counted


def digits(value: float, most: int) -> str:
    """Format a number with ``most`` significant digits, and large numbers without an exponent.

    >>> digits(13012.4, 4), digits(0.012345, 4), digits(1.5e20, 4)
    ('13,012', '0.01235', '1.5e+20')
    """
    return f"{value:,.0f}" if 10**most <= abs(value) < 1e15 else f"{value:,.{most}g}"


def percentage(confidence: Fraction) -> str:
    """A confidence as text.

    >>> percentage(Fraction(19, 20)), percentage(Fraction(999, 1000))
    ('95 %', '99.9 %')
    """
    return f"{float(100 * confidence):.9g} %"


@dataclass(frozen=True, kw_only=True)
class NoiseSummary:
    """The noise on one measured number."""

    what: str
    mechanism: str
    error: float
    """Bound on the noise of one number at the confidence, in its own unit; for a quantile in rows of rank. Where an
    error is asked for, rounding is part of it; else it depends on the number of rows, which is not known before the
    answer."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """How a query is answered. Fields about noise are empty for policies without differential privacy."""

    policy: str = "differential-privacy"
    cost: str = ""
    replaced: str = ""
    """The largest cost where one unit is replaced by another; empty where none follows."""
    groups: int | None = None
    """Number of groups in the answer; None where keys are private."""
    bounding: str = ""
    """How the contributions of one unit are bounded."""
    noises: tuple[NoiseSummary, ...] = ()
    confidence: Fraction = DEFAULT_CONFIDENCE
    """Probability with which the errors and the intervals hold."""
    needed: float | None = None
    """With private keys: the count (or number of units) at which a key is reported with probability 0.95."""
    notes: tuple[str, ...]

    @property
    def differential_privacy(self) -> bool:
        """Whether the answer is differentially private."""
        return bool(self.cost)

    def __str__(self) -> str:
        lines = [f"Costs {self.cost}.", self.bounding] if self.differential_privacy else ["Costs no budget."]
        level = percentage(self.confidence)
        lines += [
            f"{noise.what}: {noise.mechanism} noise, ±{digits(noise.error, 4)} ({level})." for noise in self.noises
        ]
        replaced = [f"Where one unit is replaced by another: at most {self.replaced}."] if self.replaced else []
        return "\n".join([*lines, *self.notes, *replaced])

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON."""
        if not self.differential_privacy:
            notes = [*str(self).split("\n", 1)[:1], *self.notes]
            return {"policy": self.policy, "differential_privacy": False, "notes": notes}
        noises = [{"what": n.what, "mechanism": n.mechanism, "error": n.error} for n in self.noises]
        return {"cost": self.cost, "replaced": self.replaced, "groups": self.groups, "bounding": self.bounding,
                "noise": noises, "confidence": float(self.confidence), "needed": self.needed,
                "notes": list(self.notes)}  # fmt: skip


def _needed(plan: NoisePlan) -> tuple[float, str]:
    """The count at which a private key is reported with probability 0.95, as a number and as text."""
    measurement = plan.threshold_selection or plan.partition_selection
    count = None if measurement is None else measurement.mechanism.key_threshold("0.95")
    assert count is not None
    return count, f"of {count:,.0f} units" if plan.threshold_selection is None else f"with a count of {ceil(count):,}"


def _replaced(cost: PrivacyLoss) -> str:
    """Group privacy of two: a unit that is replaced is removed, and another added."""
    return "" if cost.measure is PrivacyMeasure.RHO and cost.delta else str(cost.for_group(2))


def explain(plan: NoisePlan, *, part: tuple[str, object] | None = None) -> Explanation:
    """Explain a noise plan; ``part`` is the column and the value of the part of the data set that it reads."""
    rows, groups = counted(plan.rows, "row"), counted(plan.groups, "group")
    match plan.bounding:
        case "row":
            bounding = "Each row is a unit of its own."
        case "clip":
            bounding = (
                f"Each unit counts in all its groups, scaled down to what {rows} in each of {groups} would "
                "weigh (L2 norm)."
            )
        case "sample":
            bounding = f"Each unit counts with at most {rows} in each of at most {groups}, chosen at random."
        case _:
            assert_never(plan.bounding)
    noises = []
    for number in plan.reported():
        if isinstance(number, LinearCombination):
            what, measurement = number.what, plan.of(number.terms[0][0])
        else:
            what, measurement = plan.query.aggregates[number].title, plan.of(number)
        name = measurement.mechanism.part_name()
        error = plan.error(number, plan.query.confidence) + (
            plan.rounding(number) if plan.query.target is not None else 0.0
        )
        noises.append(NoiseSummary(what=what, mechanism=name, error=error))
    needed = None
    notes = ["Intervals cover the noise, not contributions beyond the bounds, which are cut."]
    if part is not None:
        notes.append(f"Reads the part `{part[0]}` = {part[1]} alone: budgets are charged for their largest part.")
    fitting = plan.fitting
    if fitting is not None:
        notes = [
            "Intervals cover the noise, not contributions beyond the limits, which are cut. How many people are cut is "
            f"measured, too (±{digits(fitting.error('0.95'), 3)}); there are intervals only where it is shown to be "
            "below 1 % and nobody is seen to be cut."
        ]
    elif can_be_cut(plan.query, plan.groups):
        notes = ["There are no intervals: it is not measured how many people the limits cut (`fit` is 0)."]
    if plan.top_keys is not None:
        number = plan.query.groups or 1000
        step = float(grid_of(plan.query.aggregates[0], "sample"))
        far = digits(step * plan.top_keys.error(confidence="0.95", candidates=number), 3)
        what = "rows" if isinstance(plan.query.aggregates[0], Count) else "in its sum"
        notes.append(
            f"The exponential mechanism selects {counted(plan.top_keys.count, 'group')}, one after the other: a group "
            f"that is left out has up to {far} {what} {'less' if plan.top_keys.smallest else 'more'} than one that is "
            f"shown (95 %, {number:,} groups)."
        )
        if plan.top_keys.limit is not None:
            near = digits(step * plan.top_keys.limit, 6)
            notes.append(f"Group keys are private: the answer ends where counts or sums are near {near}.")
    elif plan.partition_selection is not None or plan.threshold_selection is not None:
        needed, words = _needed(plan)
        notes.append(
            f"Group keys are private: a key {words} is reported with probability 0.95; smaller ones may be withheld."
        )
    if any(isinstance(m, BernsteinSum) for m in plan.query.aggregates):
        notes.append("Counts, sums and means of the same rows are computed from the same noisy numbers and agree.")
    quantiles = [(i, m) for i, m in enumerate(plan.query.aggregates) if isinstance(m, BinCounts)]
    if any(0 < m.rank < 1 for _, m in quantiles):
        notes.append("Quantiles have no interval, because it would depend on the data.")
    beyond = [plan.error(i, "0.95") for i, m in quantiles if m.rank in (0, 1)]
    if beyond:
        notes.append(
            f"MIN and MAX are quantiles just inside the data: up to {digits(max(beyond), 3)} rows lie beyond the "
            "answer, and a group with fewer rows has no useful answer. The interval ends at the declared bound."
        )
    if any(isinstance(m, ValueCounts) for m in plan.query.aggregates):
        notes.append("MODE is always one of the publicly known values, even where there are no rows.")
    if any(isinstance(node, FirstRows) for node in walk(plan.query.rows)):
        notes.append(f"At most {MOST_JOINED_ROWS} rows of one person are combined from each joined private table.")
    if chosen_by_noise(plan.query.steps):
        notes.append(
            "Rows are chosen by noisy values: their intervals are wider, so that those of all groups hold at once "
            "(Bonferroni)."
        )
    if any(isinstance(step, Compute) for step in plan.query.steps):
        notes.append("Window functions have no interval: the noise of many rows is in each.")
    return Explanation(
        cost=str(plan.cost), replaced=_replaced(plan.cost), groups=plan.query.groups, bounding=bounding,
        noises=tuple(dict.fromkeys(noises)),
        needed=needed, confidence=plan.query.confidence,
        notes=tuple(notes),
    )  # fmt: skip
