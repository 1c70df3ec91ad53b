"""Exact noise per CPU second: ours, OpenDP's integer samplers, and NumPy's floats for scale (which are not private).

python benchmarks/noise.py [--record]          # the test extra installs OpenDP
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from record import Figures

from sfumato.dp.sampler import discrete_gaussian, discrete_laplace, rounded_normal


def rate(draw: Callable[[int], object], count: int) -> float:
    """Samples per CPU second, best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        draw(count)
        best = min(best, time.process_time() - start)
    return count / best


def theirs(kind: str, scale: float) -> Callable[[int], object] | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "laplace":
        noise = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    else:
        noise = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    return lambda count: noise([0] * count)


def main() -> None:
    rng = np.random.default_rng(1)
    rows: list[tuple[str, float, Callable[[int], object], Callable[[int], object] | None]] = []
    for scale in (2.0, 1000.0, 1e9):
        square = Fraction(scale) ** 2
        rows.append(
            ("discrete Laplace", scale, lambda n, s=scale: discrete_laplace(Fraction(s), n), theirs("laplace", scale))
        )
        rows.append(
            ("discrete Gaussian", scale, lambda n, v=square: discrete_gaussian(v, n), theirs("gaussian", scale))
        )
        rows.append(("rounded normal", scale, lambda n, v=square: rounded_normal(v, n), None))
    forms = {"noise": "", "scale": "g", "ours": ",.0f", "theirs": ",.0f", "ratio": ".1f"}
    titles = {"ours": "sfumato, samples per CPU second", "theirs": "OpenDP"}
    figures = Figures("noise", "rates", forms, titles)
    for name, scale, ours, other in rows:
        mine = rate(ours, 1_000_000)
        peer = rate(other, 20_000) if other is not None else None
        figures.add(noise=name, scale=scale, ours=mine, theirs=peer, ratio=mine / peer if peer else None)
    floats = rate(lambda n: rng.laplace(0.0, 1.0, n), 1_000_000)
    figures.add(noise="NumPy `laplace()` (floats, not private)", scale=1, ours=floats)


if __name__ == "__main__":
    main()
