"""How a question is answered at a given cost: which noise, which way to bound contributions, what error to expect.

Everything here follows from the question and the cost; no data is touched. Two ways of bounding are weighed:

* **sample**: of each unit, a few groups are kept (chosen by a keyed hash of unit and group), and within each group its
  part is clipped. Laplace noise then hides groups·reach in L1 norm; Gaussian noise hides sqrt(groups)·reach in L2.
* **clip**: all groups are kept, and each unit's whole vector over the groups is scaled down to the L2 norm
  sqrt(groups)·reach. Same Gaussian noise as sampling, and much less of the data is lost; it needs a delta.

The one with the smaller noise at 95 % is taken. Counts, sums and means of the same rows are measured together as
``shares``; what is measured by itself has an equal part of the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from tacit.answer.measurement import Cells, Count, Distinct, Measurement, Moments, Share, Sum
from tacit.answer.output import Linear, Ratio
from tacit.answer.question import Question
from tacit.answer.shares import arrange, divide, ranks_from
from tacit.dp.bounds import sqrt_up
from tacit.dp.combined import combined_error
from tacit.dp.loss import Loss, Measure, approximate, concentrated, pure, rho_for, sequential
from tacit.dp.mechanism import Mechanism
from tacit.dp.mechanisms.gaussian import Gaussian
from tacit.dp.mechanisms.laplace import Laplace
from tacit.dp.mechanisms.partition_selection import PartitionSelection
from tacit.dp.mechanisms.quantile import Quantile
from tacit.dp.mechanisms.quantiles import Quantiles
from tacit.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from tacit.errors import AnswerFailed, BadParameter, QueryRefused
from tacit.exact import Number, rational

__all__ = ["Draw", "Strategy", "choose", "grid_of", "recount", "refinement"]

_MOST = 1_000_000
"""Rows and groups of one unit that count, at most: its sums then surely fit the engine's integers."""
_FINE = 20
"""A unit's reach is kept in at least 2**19 steps before its vector is scaled down."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One use of a mechanism: on one measurement over all groups, on the shares of one, or on the choice of keys."""

    measurement: int | None
    """Which one, the first where there are several; None for the choice of keys."""
    mechanism: Mechanism
    sensitivity: Fraction
    """In the mechanism's own sense: L1 for Laplace, squared L2 for Gaussian, rows or keys of one unit otherwise."""
    loss: Loss
    """What this draw costs over all groups together."""
    parts: int = 1
    """How many measurements it is of: the shares of one number, whose distances count together."""

    @property
    def covers(self) -> range:
        """The measurements it is of."""
        return range(0) if self.measurement is None else range(self.measurement, self.measurement + self.parts)

    def error(self, confidence: Number) -> float:
        """Expected error bound of one number, in the answer's own unit (rows of rank for a quantile)."""
        return self.mechanism.error(confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """The plan of noise for a question."""

    question: Question
    bounding: str
    """"row" (each row is a unit), "sample" or "clip"."""
    rows: int
    groups: int
    draws: tuple[Draw, ...]
    parts: tuple[Loss, ...]
    """What is reserved, in parts that each cover some draws: pure ones, then Gaussian ones, then the choice of keys."""
    cost: Loss

    def of(self, measurement: int) -> Draw:
        return next(draw for draw in self.draws if measurement in draw.covers)

    def error(self, value: int | Linear, confidence: Number) -> float:
        """A bound on the noise of a measured number, or of a weighted sum of them."""
        if isinstance(value, Linear):
            parts = [(weight, self.of(index).mechanism) for index, weight in value.terms]
            return combined_error(parts, confidence=confidence)
        return self.of(value).error(confidence)

    def shown(self) -> tuple[int | Linear, ...]:
        """The measured numbers that the answer rests on, each once, in the order of the draws."""
        question = self.question
        outputs = [output for _, output in question.outputs] + [output for output, _ in question.order]
        leaves = [leaf for output in [*outputs, *([question.having] if question.having else [])]
                  for leaf in output.leaves()]  # fmt: skip
        numbers = [n for leaf in leaves for n in ((leaf.total, leaf.count) if isinstance(leaf, Ratio) else (leaf,))]
        places = {index: place for place, draw in enumerate(self.draws) for index in draw.covers}
        return tuple(
            sorted(dict.fromkeys(numbers), key=lambda n: places[n.terms[0][0] if isinstance(n, Linear) else n])
        )

    @property
    def naming(self) -> Draw | None:
        """The draw on whose noisy count it depends which private keys are named."""
        return next((draw for draw in self.draws if isinstance(draw.mechanism, ThresholdedLaplace)), None)

    @property
    def selection(self) -> Draw | None:
        return next((draw for draw in self.draws if draw.measurement is None), None)


def choose(
    question: Question,
    cost: Loss,
    *,
    rows: int | None = None,
    groups: int | None = None,
    bounding: str | None = None,
) -> Strategy:
    """The strategy with the smallest noise that keeps to ``cost``.

    ``rows`` and ``groups`` override the declared; ``bounding`` ("sample" or "clip") overrides the choice. The choice
    weighs the noise and, where the owner declared in how many groups a unit typically is, what either way would lose.
    """
    by_row = question.rows.by_row
    r = question.limits[0] if by_row or rows is None else rows
    g = question.limits[1] if by_row or groups is None else groups
    needs_rows = any(not (isinstance(m, Count) and m.once) for m in question.measurements)
    if not question.keys:
        g = 1
    if r is None and not needs_rows:
        r = 1
    if r is None or g is None:
        what = "rows" if r is None else "groups"
        raise QueryRefused(
            f"How many {what} of one unit count is not declared.", fix=f"Declare `{what}` in the metadata, or pass it."
        )
    for limit in (r, g):
        # A fraction would be rounded up where contributions are cut, and not where noise is sized.
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST:
            raise BadParameter(f"rows and groups are whole numbers from 1 to {_MOST:,}.")
    if question.groups is not None:
        g = min(g, question.groups)  # nobody is in more groups than there are
    if cost.size <= 0:
        raise BadParameter("a question needs an epsilon above 0.")
    selecting = not question.public_keys
    if selecting and cost.delta == 0:
        raise QueryRefused(
            "The keys of GROUP BY are not public, and naming private keys needs a delta above 0.",
            fix="Declare the column's values, join a public table that lists them, or ask with a delta such as 1e-6.",
        )
    if selecting and by_row and r > 1:
        raise QueryRefused("Private keys cannot be chosen from a UNION ALL of one table.", fix="Declare the values.")
    options = [_plan(question, cost, r, g, selecting, gaussian=False)]
    if _additive(question) and (cost.delta > 0 or cost.measure is Measure.RHO):
        noisy = _plan(question, cost, r, g, selecting, gaussian=True)
        if noisy.bounding != "clip" or all(_small(noisy, i) for i in _additive(noisy.question)):
            options.append(noisy)
    if selecting and cost.measure is Measure.EPSILON:
        options += _naming(options[0], _plan(question, cost, r, g, selecting, gaussian=False, by_count=True))
    if bounding is not None:
        options = [plan for plan in options if plan.bounding in (bounding, "row")]
        if not options:
            raise BadParameter(
                f"contributions cannot be bounded by `{bounding}` here.",
                fix="Use `sample`, or `clip` with a delta and public keys of more than one group.",
            )
    best = min(options, key=lambda plan: _noise(plan) / _kept(plan))
    recount(best)
    return best


def _naming(apart: Strategy, by_count: Strategy) -> list[Strategy]:
    """The plan that names keys by a count's own noise, unless choosing keys apart would name clearly smaller ones.

    Apart, units are counted, and by a count, rows: a unit is taken to have half as many as may count.
    """
    naming, selection = by_count.naming, apart.selection
    if naming is None or selection is None or not isinstance(naming.mechanism, ThresholdedLaplace):
        return []
    rows = (naming.mechanism.reach + 1) / 2
    return [by_count] if naming.mechanism.limit <= rows * rational(selection.error("0.5")) else []


def _additive(question: Question) -> list[int]:
    """Counts and sums; of a number's shares the first stands for all."""
    return [
        i for i, m in enumerate(question.measurements)
        if isinstance(m, Count | Sum | Moments) and not (isinstance(m, Share) and m.place)
    ]  # fmt: skip


def _noise(plan: Strategy) -> float:
    """The largest noise among the counts and sums of an answer, each in units of what a row can add."""
    errors = [plan.error(n, "0.95") / _unit(plan.question, n) for n in plan.shown()
              if isinstance(n, Linear) or isinstance(plan.question.measurements[n], Count | Sum)]  # fmt: skip
    return max(errors, default=0.0)


def grid_of(measurement: Measurement, bounding: str) -> Fraction:
    """Width of one whole step. Scaling a unit's vector down needs finer steps than counting, or it would all be cut."""
    base = measurement.grid if isinstance(measurement, Sum) else Fraction(1)
    return base / refinement(measurement) if bounding == "clip" else base


def refinement(measurement: Measurement) -> int:
    """How many finer steps each step is split into before a vector is scaled down."""
    return 1 << max(0, _FINE - measurement.reach(1).bit_length())


def _small(plan: Strategy, index: int) -> bool:
    """Whether sums of squares of a unit's steps surely fit the engine's integers."""
    measurement = plan.question.measurements[index]
    return plan.groups * (measurement.reach(plan.rows) * refinement(measurement)) ** 2 < 1 << 100


def _kept(plan: Strategy) -> float:
    """Share of a typical unit's contribution that survives bounding; 1 where nothing is declared."""
    typical = plan.question.limits[2]
    if typical is None or typical <= plan.groups or plan.bounding == "row":
        return 1.0
    return plan.groups / typical if plan.bounding == "sample" else (plan.groups / typical) ** 0.5


def _unit(question: Question, value: int | Linear) -> float:
    if isinstance(value, Linear):
        return float(value.unit)
    measurement = question.measurements[value]
    return float(measurement.reach(1) * measurement.grid) if isinstance(measurement, Sum) else 1.0


def _plan(
    question: Question, cost: Loss, rows: int, groups: int, selecting: bool, *, gaussian: bool, by_count: bool = False
) -> Strategy:  # fmt: skip
    bounding = "row" if question.rows.by_row else "clip" if gaussian and not selecting and groups > 1 else "sample"
    # Scaled down to a norm, a sum by itself keeps more of the data than one that shares its scaling with a count.
    question = arrange(question, sums=bounding != "clip", counted=by_count)
    additive = _additive(question)
    special = [
        i for i, m in enumerate(question.measurements)
        if isinstance(m, Distinct) or (isinstance(m, Cells) and ranks_from(question, i))
    ]  # fmt: skip
    host = min((i for i in additive if _rank(question.measurements[i]) < 3), default=None,
               key=lambda i: _rank(question.measurements[i])) if by_count else None  # fmt: skip
    selecting = selecting and host is None
    shares = len(additive) + len(special) + selecting
    in_rho = cost.measure is Measure.RHO
    each = cost.size / shares

    def epsilon(parts: int) -> Fraction:
        """Epsilon that pure mechanisms may use for that many shares together."""
        return each * parts if not in_rho else Fraction(int(sqrt_up(2 * each) * 10**12) - 1, 10**12) * parts

    draws: list[Draw] = []
    reserved: list[Loss] = []
    pure_parts = special if gaussian else [*additive, *special]
    for i in pure_parts:
        naming = cost.delta if i == host else None
        ranks = ranks_from(question, i) if isinstance(question.measurements[i], Cells) else ()
        draws.append(_pure_draw(question.measurements[i], i, epsilon(1), rows, groups, naming, ranks))
    if pure_parts:
        reserved.append(sequential(draw.loss.to(cost.measure) for draw in draws))
    key_delta = (cost.delta / 2 if gaussian and not in_rho else cost.delta) if selecting else Fraction(0)
    if gaussian:
        noise_delta = cost.delta - key_delta
        rho = each * len(additive) if in_rho else rho_for(each * len(additive), noise_delta)
        for i in additive:
            draws.append(_gaussian_draw(question.measurements[i], i, rho / len(additive), rows, groups, bounding))
        joint = approximate(each * len(additive), noise_delta)
        reserved.append(sequential(draw.loss for draw in draws[-len(additive) :]) if in_rho else joint)
    if selecting:
        mechanism = PartitionSelection(epsilon=epsilon(1) / groups, delta=key_delta / groups)
        draw = Draw(measurement=None, mechanism=mechanism, sensitivity=Fraction(groups), loss=mechanism.loss(groups))
        draws.append(draw)
        reserved.append(draw.loss)
    return Strategy(
        question=question, bounding=bounding, rows=rows, groups=groups, draws=tuple(draws), parts=tuple(reserved),
        cost=cost,
    )  # fmt: skip


def _rank(measurement: Measurement) -> int:
    """How well a measurement serves to name keys by: counts of all rows or units best, sums not at all."""
    if isinstance(measurement, Count):
        return 0 if measurement.condition == "TRUE" else 2
    return 1 if isinstance(measurement, Share) else 3


def _pure_draw(
    measurement: Measurement, index: int, epsilon: Fraction, rows: int, groups: int, naming: Fraction | None = None,
    ranks: tuple[Fraction, ...] = (),
) -> Draw:  # fmt: skip
    reach = measurement.reach(rows)
    if isinstance(measurement, Cells):
        span = measurement.low + (measurement.cells - 1) * measurement.grid
        place: dict[str, Fraction | int] = {
            "low": measurement.low,
            "high": span,
            "grid": measurement.grid,
            "sensitivity": reach,
        }
        mechanism: Mechanism = (
            Quantiles.for_epsilon(epsilon / groups, ranks=ranks, **place)
            if len(ranks) > 1
            else Quantile.for_epsilon(epsilon / groups, rank=measurement.rank, **place)
        )
        # One unit may lie in several groups, and each group is asked on its own.
        loss = mechanism.loss(reach).times(groups)
        return Draw(
            measurement=index, mechanism=mechanism, sensitivity=Fraction(reach), loss=loss, parts=max(1, len(ranks))
        )
    grid = grid_of(measurement, "sample")
    sensitivity = groups * reach * grid
    if naming is None:
        mechanism = Laplace.for_epsilon(epsilon, sensitivity=sensitivity, grid=grid)
    else:
        mechanism = ThresholdedLaplace.for_budget(
            epsilon, naming, sensitivity=sensitivity, reach=reach * grid, keys=groups, grid=grid,
            parts=_parts(measurement),
        )  # fmt: skip
    return Draw(
        measurement=index, mechanism=mechanism, sensitivity=sensitivity, loss=mechanism.loss(sensitivity),
        parts=_parts(measurement),
    )  # fmt: skip


def _parts(measurement: Measurement) -> int:
    return measurement.parts if isinstance(measurement, Share) else 1


def _gaussian_draw(measurement: Measurement, index: int, rho: Fraction, rows: int, groups: int, bounding: str) -> Draw:
    grid = grid_of(measurement, bounding)
    squared = groups * (measurement.reach(rows) * grid_of(measurement, "sample")) ** 2
    mechanism = Gaussian.for_rho(rho, squared=squared, grid=grid)
    return Draw(
        measurement=index, mechanism=mechanism, sensitivity=squared, loss=mechanism.loss_squared(squared),
        parts=_parts(measurement),
    )  # fmt: skip


# --- the second route ---------------------------------------------------------------------------------------------


def _worst(measurement: Measurement, rows: int) -> int:
    """How far a unit can move a group's number, found by trying extreme units on the rules the engine applies.

    The shares of a number move together: their distances are added up, and since none is negative the root of their
    squares is largest where one share has all.
    """

    def clip(value: int, low: int, high: int) -> int:
        return max(low, min(high, value))

    huge = 10**40
    match measurement:
        case Count(once=once):
            return max(abs(clip(n, 0, 1 if once else rows)) for n in (0, 1, huge))
        case Share(high=whole, degree=degree):
            width = isqrt(whole) if degree == 2 else whole
            steps = (0, 1, width // 3, width // 2, width - 1, width)
            return max(sum(rows * share for share in divide(width, degree, step)) for step in steps)
        case Sum(low=low, high=high):
            tries = [sum(clip(v, low, high) for v in [value] * rows) for value in (-huge, low, 0, high, huge)]
            return max(abs(total) for total in tries)
        case _:
            return len(range(huge)[:rows])


def recount(strategy: Strategy) -> None:
    """Compute every loss again from the bounds that the engine will enforce; refuse to answer if the routes differ.

    The first route multiplies declared sensitivities; this one tries extreme units against the clipping rules and asks
    the mechanisms for their loss, then adds up.
    """
    losses: dict[str, list[Loss]] = {"pure": [], "gaussian": [], "keys": []}
    for draw in strategy.draws:
        if draw.measurement is None:
            found, kind = draw.mechanism.loss(strategy.groups), "keys"
        else:
            measurement = strategy.question.measurements[draw.measurement]
            worst = _worst(measurement, strategy.rows)
            grid = measurement.grid if isinstance(measurement, Sum) else 1
            match draw.mechanism:
                case Gaussian() as noise:
                    change = sum((worst * grid) ** 2 for _ in range(strategy.groups))
                    found, kind = concentrated(change / (2 * noise.variance)), "gaussian"
                case ThresholdedLaplace() as noise:
                    if (noise.keys, noise.reach, noise.parts) != (strategy.groups, worst * grid, draw.parts):
                        raise AnswerFailed("The limit for naming keys is not that of this question.")
                    size = strategy.groups * worst * grid / noise.scale
                    found, kind = approximate(size, strategy.groups * noise.chance), "pure"
                case Laplace() as noise:
                    found, kind = pure(strategy.groups * worst * grid / noise.scale), "pure"
                case _:
                    found, kind = sequential([draw.mechanism.loss(worst)] * strategy.groups), "pure"
        if found != draw.loss:
            raise AnswerFailed("The two computations of the privacy loss disagree; nothing was asked of the data.")
        losses[kind].append(found)
    kept = [items for items in losses.values() if items]
    totals = [
        sequential(loss.to(part.measure) if loss.measure is Measure.EPSILON else loss for loss in items)
        for items, part in zip(kept, strategy.parts, strict=False)
    ]
    if len(totals) != len(strategy.parts) or any(
        not total <= part for total, part in zip(totals, strategy.parts, strict=True)
    ):
        raise AnswerFailed("The parts of the cost do not cover the noise; nothing was asked of the data.")
    if not sequential(strategy.parts) <= strategy.cost:
        raise AnswerFailed("The noise would cost more than was asked for; nothing was asked of the data.")
