"""What a question costs and how exact its answer will be, in words and numbers, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.answer.measurement import Cells, Count, Distinct, Measurement, Share, Sum
from tacit.answer.output import Linear
from tacit.answer.strategy import Draw, Strategy
from tacit.dp.combined import combined_error
from tacit.dp.mechanisms.thresholded_laplace import ThresholdedLaplace

__all__ = ["Explanation", "Noise", "explain"]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise on one measured number."""

    what: str
    mechanism: str
    error: float
    """Bound on the noise of one number at 95 %, in its own unit; for a quantile in rows of rank."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The strategy, told."""

    cost: str
    groups: int | None
    """How many groups the answer will have; None where keys are private and chosen."""
    bounding: str
    noises: tuple[Noise, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"Costs {self.cost}.", self.bounding]
        lines += [f"{noise.what}: {noise.mechanism} noise, ±{noise.error:.4g} (95 %)." for noise in self.noises]
        return "\n".join([*lines, *self.notes])

    def to_plain(self) -> dict[str, Any]:
        noises = [{"what": n.what, "mechanism": n.mechanism, "error": n.error} for n in self.noises]
        return {"cost": self.cost, "groups": self.groups, "bounding": self.bounding, "noise": noises,
                "notes": list(self.notes)}  # fmt: skip


def _what(measurement: Measurement) -> str:
    match measurement:
        case Count(once=True):
            return "Number of units"
        case Count():
            return "Number of rows"
        case Sum():
            return "Sum"
        case Distinct():
            return "Number of different values"
        case Cells(rank=rank):
            return f"Quantile {float(rank):g} (error in rows of rank)"
        case _:
            raise AssertionError("no words for this measurement")


def _needed(naming: Draw) -> float:
    """The count with which a key is named 95 times out of 100."""
    mechanism = naming.mechanism
    assert isinstance(mechanism, ThresholdedLaplace)
    return float(mechanism.limit) + combined_error([(1, mechanism)] * naming.parts, confidence="0.9")


def explain(strategy: Strategy) -> Explanation:
    """Tell the strategy."""
    r, g = strategy.rows, strategy.groups
    match strategy.bounding:
        case "row":
            bounding = "Each row is a unit of its own."
        case "clip":
            bounding = (
                f"Each unit counts in all its groups, scaled down to what {r} row(s) in each of {g} group(s) would "
                "weigh (L2 norm)."
            )
        case _:
            bounding = f"Each unit counts with at most {r} row(s) in each of at most {g} group(s), chosen at random."
    noises = []
    for number in strategy.shown():
        if isinstance(number, Linear):
            what, draw = number.what, strategy.of(number.terms[0][0])
        else:
            what, draw = _what(strategy.question.measurements[number]), strategy.of(number)
        name = draw.mechanism.part_name()
        noises.append(Noise(what=what, mechanism=name, error=strategy.error(number, "0.95")))
    if strategy.selection is not None:
        error, name = strategy.selection.error("0.95"), strategy.selection.mechanism.part_name()
        noises.append(Noise(what="Units a key needs to be named", mechanism=name, error=error))
    if strategy.naming is not None:
        error, name = _needed(strategy.naming), strategy.naming.mechanism.part_name()
        noises.append(Noise(what="Count a key needs to be named", mechanism=name, error=error))
    notes = ["Intervals tell the noise; contributions beyond the bounds are cut and not in them."]
    if not strategy.question.public_keys:
        notes.append("Keys are private: only keys that enough units share are named.")
    if any(isinstance(m, Share) for m in strategy.question.measurements):
        notes.append("Counts, sums and means of the same rows come from the same noisy numbers, and agree.")
    if any(isinstance(m, Cells) for m in strategy.question.measurements):
        notes.append("Quantiles have no interval: how far the value moves per row depends on the data.")
    return Explanation(
        cost=str(strategy.cost), groups=strategy.question.groups, bounding=bounding,
        noises=tuple(dict.fromkeys(noises)),
        notes=tuple(notes),
    )  # fmt: skip
