"""Exact, vectorized samplers of discrete Laplace, discrete Gaussian and rounded normal noise.

Every decision compares a uniform real number, of which 53 bits are drawn first, with a probability such as exp(-x). A
floating-point interval around the probability nearly always decides. If the drawn bits lie inside the interval, more
bits are drawn and the probability is bounded by exact rationals until the two differ. The output therefore has exactly
the stated distribution: floats affect the speed, never the result. The run time depends on the random bits and the
parameters, not on the data.

The rejection samplers are those of Canonne, Kamath and Steinke (2020), doi:10.48550/arXiv.2004.00010.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.dp.os_random import below, below_big, bits, words
from sfumato.dp.rational_bounds import exp_bracket, ln_bracket
from sfumato.errors import BadParameter

Flags = npt.NDArray[np.bool_]

_MARGIN = 2.0**-36
"""Relative half width of the interval around a probability computed in floats. The error of NumPy's exp and log is
below 2**-50, that of their arguments below 2**-40."""
_PRECISION = 53
_FULL = 2.0**_PRECISION


def _prefixes(count: int) -> Floats:
    return (words(count) >> np.uint64(64 - _PRECISION)).astype(np.float64)


def _reveal(prefix: int, known: int) -> tuple[int, int]:
    """Draw 64 more bits of a uniform number whose first ``known`` bits are ``prefix``."""
    return (prefix << 64) | int(words(1)[0]), known + 64


def bernoulli(chance: Fraction, count: int) -> Flags:
    """Independent Bernoulli variables with exactly this rational probability."""
    if not 0 <= chance <= 1:
        raise BadParameter("a probability lies in 0 .. 1.")
    if chance.denominator <= 1 << 62:
        flags: Flags = below(chance.denominator, count) < chance.numerator
        return flags
    return np.array([below_big(chance.denominator) < chance.numerator for _ in range(count)], dtype=np.bool_)


Rate = Fraction | Callable[[], tuple[Fraction, Fraction]]
"""A rational, or a function whose calls return ever closer lower and upper bounds of a number."""


def bernoulli_exp(rates: Floats, exact: Callable[[int], Rate]) -> Flags:
    """One Bernoulli variable with probability exp(-x) for each rate x >= 0.

    ``rates`` are floats whose exp(-x) has a relative error below the margin. ``exact(i)`` returns the exact i-th rate
    and is called only where the float cannot decide.
    """
    prefix = _prefixes(len(rates))
    with np.errstate(under="ignore"):
        chance = np.exp(-rates) * _FULL
    yes = prefix + 1.0 <= chance * (1.0 - _MARGIN)
    # 2**-10 keeps "no" from being decided at prefix 0: exp(-x) may have underflowed to 0 or lost its precision, and the
    # margin is relative. Where it does, x > 700 and the chance is below 2**-900: prefixes above 0 are decided rightly.
    no = prefix >= chance * (1.0 + _MARGIN) + 2.0**-10
    for i in np.flatnonzero(~(yes | no)):
        yes[i] = _below_exp(int(prefix[i]), exact(int(i)))
    return yes


def _below_exp(prefix: int, rate: Rate) -> bool:
    known = _PRECISION
    while True:
        prefix, known = _reveal(prefix, known)
        least, most = rate() if callable(rate) else (rate, rate)
        if Fraction(prefix + 1, 1 << known) <= exp_bracket(-most, digits=20 + known // 3)[0]:
            return True
        if Fraction(prefix, 1 << known) >= exp_bracket(-least, digits=20 + known // 3)[1]:
            return False


def _whole_exponentials(count: int) -> Ints:
    """floor(E) for standard exponential E: the number of successes before the first failure at probability 1/e."""
    prefix = _prefixes(count)
    with np.errstate(divide="ignore"):
        low = np.floor(-np.log((prefix + 1.0) / _FULL) * (1.0 - _MARGIN))
        high = np.floor(-np.log(prefix / _FULL) * (1.0 + _MARGIN))
    unsure = np.flatnonzero(low != high)
    for i in unsure:
        low[i] = _whole_exponential(int(prefix[i]))
    return low.astype(np.int64)


def _whole_exponential(prefix: int) -> int:
    known = _PRECISION
    while True:
        prefix, known = _reveal(prefix, known)
        if prefix == 0:
            continue
        digits = 20 + known // 3
        low = -ln_bracket(Fraction(prefix + 1, 1 << known), digits)[1]
        high = -ln_bracket(Fraction(prefix, 1 << known), digits)[0]
        if low // 1 == high // 1:
            return max(0, int(low // 1))


LARGEST_VARIANCE = 1 << 100
SMALLEST_NORMAL = Fraction(1, 4)
_LARGEST = 1 << 54
_FINEST = 1 << 20
_BATCH = 1 << 20


def round_scale_up(scale: Fraction) -> Fraction:
    """The scale itself, or the next larger one whose numerator and denominator fit machine integers.

    Rounding up adds noise, never removes it, so a loss computed for ``scale`` still holds.
    """
    if scale.numerator <= _LARGEST and scale.denominator <= _FINEST:
        return scale
    rounded = Fraction(-((-scale.numerator * _FINEST) // scale.denominator), _FINEST)
    if rounded.numerator > _LARGEST:
        rounded = Fraction(-(-scale.numerator // scale.denominator))
    if rounded.numerator > _LARGEST:
        raise BadParameter(
            "the noise would be larger than 2**54 grid steps.", fix="Use a larger epsilon or a coarser grid."
        )
    return rounded


def _draw_until(count: int, draw_batch: Callable[[int], Ints]) -> Ints:
    """``count`` draws, from batches of about as many as are missing, or of a million to keep memory small."""
    parts = [np.empty(0, dtype=np.int64)]
    missing = count
    while missing > 0:
        parts.append(draw_batch(min(missing, _BATCH))[:missing])
        missing -= len(parts[-1])
    return np.concatenate(parts)


def _geometric_batches(scale: Fraction) -> Callable[[int], Ints]:
    """Draws batches of about as many geometric variables as asked for."""
    if scale <= 0:
        raise BadParameter("a scale must be above 0.")
    scale = round_scale_up(scale)
    top, bottom = scale.numerator, scale.denominator

    def draw_batch(missing: int) -> Ints:
        # A candidate is accepted with probability 1 - 1/e = 0.632 or more (mean of exp(-u) over 0 <= u < 1): 1.75 times
        # as many, and 32, are at least 4.5 standard deviations more than are missing. This affects speed only.
        unit = below(top, missing + missing * 3 // 4 + 32)
        if top > 1:
            unit = unit[bernoulli_exp(unit / top, lambda i, u=unit: Fraction(int(u[i]), top))]  # type: ignore[misc]
        whole = _whole_exponentials(len(unit))
        if len(whole) and int(whole.max()) > 400:
            raise OverflowError("an event of probability below e**-400 happened")
        size: Ints = unit + top * whole
        return size // bottom if bottom > 1 else size

    return draw_batch


def geometric(scale: Fraction, count: int) -> Ints:
    """Geometric variables: integers k >= 0 with probability proportional to exp(-k / scale)."""
    return _draw_until(count, _geometric_batches(scale))


def discrete_laplace(scale: Fraction, count: int) -> Ints:
    """Discrete Laplace noise: integers y with probability proportional to exp(-abs(y) / scale)."""
    draw_sizes = _geometric_batches(scale)

    def draw_batch(missing: int) -> Ints:
        size = draw_sizes(missing)
        negative = bits(len(size))
        kept: Ints = np.where(negative, -size, size)[~(negative & (size == 0))]
        return kept

    return _draw_until(count, draw_batch)


def discrete_gaussian(variance: Fraction, count: int) -> Ints:
    """Discrete Gaussian noise: integers y with probability proportional to exp(-y**2 / (2 * variance))."""
    if variance <= 0:
        raise BadParameter("a variance must be above 0.")
    if variance > LARGEST_VARIANCE:
        raise BadParameter("the noise would be larger than 2**50 grid steps.", fix="Use a coarser grid.")
    step, centre = _proposal(variance)
    near, spread = float(centre), float(2 * variance)

    def draw_batch(missing: int) -> Ints:
        drawn = discrete_laplace(step, missing + missing * 2 // 3 + 32)
        distance = np.abs(drawn) - near
        rates = distance * distance / spread
        return drawn[bernoulli_exp(rates, lambda i: (abs(int(drawn[i])) - centre) ** 2 / (2 * variance))]

    return _draw_until(count, draw_batch)


def _proposal(variance: Fraction) -> tuple[Fraction, Fraction]:
    """Scale of the Laplace proposals for rejection sampling of normal noise, and the distance accepted most often."""
    step = Fraction(isqrt(variance.numerator // variance.denominator) + 1)
    return step, variance / step


def rounded_normal(variance: Fraction, count: int) -> Ints:
    """Normal noise of that variance, rounded to the nearest integer.

    An integer k, proposed with probability proportional to exp(-abs(k) / step), and a uniform v in -1/2 .. 1/2 form a
    number k ± v, which is accepted with probability exp(-((abs(k) + v - c)² + c·(1 + 2v)) / (2·variance)), where c =
    variance / step. The density of accepted numbers is proportional to exp(-(abs(k) + v)² / (2·variance)), and k is the
    rounded number. As many bits of v are drawn as the decision needs.
    """
    if variance < SMALLEST_NORMAL:
        raise BadParameter("the noise would be smaller than half a grid step.", fix="Use a finer grid.")
    if variance > LARGEST_VARIANCE:
        raise BadParameter("the noise would be larger than 2**50 grid steps.", fix="Use a coarser grid.")
    step, centre = _proposal(variance)
    near, spread = float(centre), float(2 * variance)

    def draw_batch(missing: int) -> Ints:
        drawn = discrete_laplace(step, 2 * missing + 32)
        within = _prefixes(len(drawn))
        v = within / _FULL - 0.5
        distance = np.abs(drawn) + v - near
        rates = (distance * distance + near * (1 + 2 * v)) / spread
        return drawn[bernoulli_exp(rates, lambda i: _normal_rate(abs(int(drawn[i])), int(within[i]), centre, variance))]

    return _draw_until(count, draw_batch)


def _normal_rate(k: int, prefix: int, centre: Fraction, variance: Fraction) -> Callable[[], tuple[Fraction, Fraction]]:
    """The rate of a number ``k`` + v, given the first bits of v + 1/2; every call draws more bits."""
    known = _PRECISION

    def rate(v: Fraction) -> Fraction:
        return ((k + v - centre) ** 2 + centre * (1 + 2 * v)) / (2 * variance)

    def more() -> tuple[Fraction, Fraction]:
        nonlocal prefix, known
        prefix, known = _reveal(prefix, known)
        ends = [Fraction(prefix + i, 1 << known) - Fraction(1, 2) for i in (0, 1)]
        rates = [rate(v) for v in ends]
        if k == 0 and ends[0] <= 0 <= ends[1]:  # the rate has its minimum at v = 0
            rates.append(rate(Fraction(0)))
        return min(rates), max(rates)

    return more


def exponential_race(distances: Ints, rate: Fraction, sizes: Ints | None = None) -> int:
    """Exact sampling of index i with probability proportional to sizes[i] * exp(-rate * distances[i]).

    An exponential race: candidate i arrives at E_i * exp(rate * distances[i]) / sizes[i] for standard exponential E_i,
    and the first arrival is the sample. Logarithms of arrival times are bounded in floats; candidates whose order is
    undecided are refined exactly. Unlike rejection sampling, the work does not depend on the distances.
    """
    distances = np.asarray(distances)
    sizes = np.ones(len(distances), dtype=np.int64) if sizes is None else np.asarray(sizes)
    if not len(distances) or len(sizes) != len(distances) or sizes.min() < 0 or sizes.max() == 0:
        raise BadParameter("a choice needs at least one candidate.")
    distances = distances - distances[sizes > 0].min()
    prefix = _prefixes(len(distances))
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = distances.astype(np.float64) * float(rate) - np.log(sizes.astype(np.float64))
        slack = 2.0**-30 + 2.0**-45 * np.abs(offset)
        early = np.log(-np.log1p(-prefix / _FULL)) + offset - slack
        late = np.log(-np.log1p(-(prefix + 1.0) / _FULL)) + offset + slack
    late[prefix + 1.0 >= _FULL] = np.inf
    early[sizes == 0] = late[sizes == 0] = np.inf
    contenders = np.flatnonzero((early <= late.min()) & (sizes > 0))
    if len(contenders) == 1:
        return int(contenders[0])
    return _refine_race([(int(i), int(prefix[i]), int(distances[i]) * rate, int(sizes[i])) for i in contenders])


def _refine_race(runners: list[tuple[int, int, Fraction, int]]) -> int:
    known = _PRECISION
    while True:
        revealed = [(i, _reveal(prefix, known)[0], rate, size) for i, prefix, rate, size in runners]
        known += 64
        digits = 20 + known // 3
        spans: list[tuple[Fraction, Fraction | None]] = []
        for _, prefix, rate, size in revealed:
            slow = Fraction(1 << known) - prefix
            start = -ln_bracket(slow / (1 << known), digits)[1]
            end = -ln_bracket((slow - 1) / (1 << known), digits)[0] if slow > 1 else None
            low, high = exp_bracket(rate, digits)
            spans.append((max(Fraction(0), start) * low / size, None if end is None else end * high / size))
        best = min((end for _, end in spans if end is not None), default=None)
        runners = [runner for runner, (start, _) in zip(revealed, spans, strict=True) if best is None or start <= best]
        if len(runners) == 1:
            return runners[0][0]
