"""Decode counts of Bloom filter bits into counts of candidate words: non-negative LASSO, then least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["DecodedWord", "decode"]

Floats = npt.NDArray[np.float64]
_ROUNDS = 2000


@dataclass(frozen=True, kw_only=True)
class DecodedWord:
    """A word that occurs significantly often."""

    word: str
    count: float
    low: float
    high: float
    p_value: float


def decode(
    design: Floats, counts: Floats, variance: Floats, candidates: list[str], significance: float
) -> list[DecodedWord]:
    """Words with a significant count, the most frequent first; intervals hold for all candidates together."""
    from scipy.stats import norm

    weight = 1 / np.sqrt(variance)
    a, b = design * weight[:, None], counts * weight
    # A word without people has a correlation with the noise below this with high probability.
    penalty = float(norm.isf(significance / len(candidates))) * np.sqrt((a**2).sum(axis=0)).max()
    kept = np.flatnonzero(_lasso(a, b, penalty) > 0)
    if len(kept) == 0:
        return []
    chosen = a[:, kept]
    inverse = np.linalg.pinv(chosen.T @ chosen)
    fitted = inverse @ (chosen.T @ b)
    # Bits of words that are not candidates are noise, too: the residual tells how much.
    freedom = max(1, len(b) - len(kept))
    scale = max(1.0, float(((b - chosen @ fitted) ** 2).sum()) / freedom)
    error = np.sqrt(np.maximum(np.diag(inverse), 0.0) * scale)
    z = float(norm.isf(significance / (2 * len(candidates))))
    words = [
        DecodedWord(
            word=candidates[index],
            count=float(count),
            low=float(max(0.0, count - z * spread)),
            high=float(count + z * spread),
            p_value=float(norm.sf(count / spread)) if spread > 0 else 1.0,
        )
        for index, count, spread in zip(kept, fitted, error, strict=True)
    ]
    return sorted(
        (word for word in words if word.p_value < significance / len(candidates)), key=lambda w: w.count, reverse=True
    )


def _lasso(a: Floats, b: Floats, penalty: float) -> Floats:
    """Minimize ||a x - b||^2 / 2 + penalty sum(x) over x >= 0 by coordinate descent."""
    gram, target = a.T @ a, a.T @ b - penalty
    x = np.zeros(a.shape[1])
    diagonal = np.maximum(np.diag(gram), 1e-300)
    for _ in range(_ROUNDS):
        largest = 0.0
        for j in range(len(x)):
            new = max(0.0, x[j] + (target[j] - gram[j] @ x) / diagonal[j])
            largest, x[j] = max(largest, abs(new - x[j]) * np.sqrt(diagonal[j])), new
        if largest < 1e-6:
            break
    return x
