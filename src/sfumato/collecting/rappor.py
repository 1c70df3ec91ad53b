"""RAPPOR: Bloom filters with a permanent and an instantaneous randomized response.

The permanent response is drawn once per value and kept; every report randomizes it again. An observer of all reports of
a person learns at most the permanent response.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from sfumato.arrays import Floats
from sfumato.collecting.random_source import ONE, OS_ENTROPY, RandomSource, below, chosen
from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import Chance
from sfumato.dp.rational_bounds import ln_up
from sfumato.errors import BadParameter
from sfumato.params import Part

Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class PermanentResponse:
    """What a device keeps for one word: its cohort and its permanently randomized Bloom filters."""

    cohorts: npt.NDArray[np.int64]
    bits: Bits


class Rappor(Part):
    """Estimate how often words occur, from reports whose total loss over time is bounded.

    ``loss_of_one_report`` and ``loss_of_all_reports`` are the two guarantees of the paper: one report, and infinitely
    many reports of the same word. Per bit of the permanent response with f = 1/2 the ratio is 3, hence ln 3 for a
    yes-or-no bit; two words differ in up to 2 h bits, hence 2 h ln 3 for words hashed by h functions.

    >>> rappor = Rappor(bits=16, hashes=1, cohorts=1, f="1/2", p="1/2", q="3/4", salt="poll")
    >>> round(float(rappor.loss_of_all_reports().size), 6), round(float(rappor.loss_of_one_report().size), 6)
    (2.197225, 0.537143)
    """

    examples = ({"bits": 32, "hashes": 2, "cohorts": 8, "f": "1/2", "p": "1/2", "q": "3/4", "salt": "poll"},)
    reference = "Erlingsson, Pihur, Korolova (2014), doi:10.1145/2660267.2660348"

    bits: Annotated[int, Field(ge=2, le=4096)]
    """Length of the Bloom filter."""
    hashes: Annotated[int, Field(ge=1, le=16)]
    """Bits that one word sets."""
    cohorts: Annotated[int, Field(ge=1, le=4096)]
    """Groups of devices with other hash functions, so that words that collide in one differ in another."""
    f: Chance
    """Probability that a permanent bit is a coin flip instead of the true bit."""
    p: Chance
    """Probability of sending 1 for a permanent 0."""
    q: Chance
    """Probability of sending 1 for a permanent 1."""
    salt: str
    """Public text that the hash functions are derived from."""

    @model_validator(mode="after")
    def _rates(self) -> Self:
        if self.f <= 0:
            raise ValueError("`f` must be above 0: permanent bits must be randomized")
        if not self.q > self.p:
            raise ValueError("`q` must be above `p`")
        return self

    def _chance(self, share: Fraction) -> int:
        return round(share * ONE)

    def _flip(self) -> Fraction:
        """Exact probability that a permanent bit differs from the true one, as drawn."""
        return Fraction(self._chance(self.f / 2), ONE)

    def loss_of_all_reports(self) -> PrivacyLoss:
        """Loss of any number of reports of one word: 2 h ln((1 - f/2) / (f/2)). Another word spends it again."""
        flip = self._flip()
        return pure(2 * self.hashes * ln_up(max((1 - flip) / flip, Fraction(1))))

    def loss_of_one_report(self) -> PrivacyLoss:
        """Loss of a single report, h ln(q*(1 - p*) / (p*(1 - q*))), with both responses taken together."""
        one, zero = self.report_chances()
        return pure(self.hashes * ln_up(one * (1 - zero) / (zero * (1 - one))))

    def report_chances(self) -> tuple[Fraction, Fraction]:
        """Probabilities q* and p* that a bit is sent as 1 if its true value is 1, and if it is 0."""
        flip = self._flip()
        p, q = Fraction(self._chance(self.p), ONE), Fraction(self._chance(self.q), ONE)
        return (1 - flip) * q + flip * p, (1 - flip) * p + flip * q

    def positions(self, word: str, cohort: int) -> npt.NDArray[np.int64]:
        """The bits that a word sets in a cohort."""
        text = f"{self.salt}\x1f{cohort}\x1f{word}".encode()
        drawn = np.frombuffer(hashlib.shake_256(text).digest(4 * self.hashes), dtype="<u4")
        return drawn.astype(np.int64) % self.bits

    def permanent(self, words: list[str], *, source: RandomSource = OS_ENTROPY) -> PermanentResponse:
        """Draw a cohort and the permanent response of each person's word. A device does this once and keeps it."""
        cohorts = below(self.cohorts, len(words), source)
        true = np.zeros((len(words), self.bits), dtype=np.bool_)
        known: dict[tuple[str, int], npt.NDArray[np.int64]] = {}
        for row, key in enumerate(zip(words, cohorts.tolist(), strict=True)):
            if key not in known:
                known[key] = self.positions(*key)
            true[row, known[key]] = True
        flipped = chosen(self._chance(self.f / 2), true.size, source).reshape(true.shape)
        return PermanentResponse(cohorts=cohorts, bits=true ^ flipped)

    def report(self, kept: PermanentResponse, *, source: RandomSource = OS_ENTROPY) -> Bits:
        """One report of each person: the permanent bits randomized once more."""
        size, shape = kept.bits.size, kept.bits.shape
        ones = chosen(self._chance(self.q), size, source).reshape(shape)
        zeros = chosen(self._chance(self.p), size, source).reshape(shape)
        return np.where(kept.bits, ones, zeros)

    def estimate(
        self, cohorts: npt.ArrayLike, reports: Bits, candidates: list[str], *, significance: float = 0.05
    ) -> list[DecodedWord]:
        """How many people have each candidate word, for the words that are significant (Bonferroni)."""
        groups = np.asarray(cohorts)
        if reports.ndim != 2 or reports.shape[1] != self.bits or len(groups) != len(reports):
            raise BadParameter(f"A report needs a cohort and {self.bits} bits.")
        if len(set(candidates)) != len(candidates) or not candidates:
            raise BadParameter("`candidates` must be different words, at least one.")
        one, zero = (float(chance) for chance in self.report_chances())
        sizes = np.bincount(groups, minlength=self.cohorts)[: self.cohorts]
        seen = np.zeros((self.cohorts, self.bits))
        np.add.at(seen, groups, reports)
        counts = (seen - sizes[:, None] * zero) / (one - zero)
        sets = np.zeros((self.cohorts, self.bits, len(candidates)))
        for column, word in enumerate(candidates):
            for cohort in range(self.cohorts):
                sets[cohort, self.positions(word, cohort), column] = 1.0
        shares = sizes / max(1, sizes.sum())
        design = (sets * shares[:, None, None]).reshape(-1, len(candidates))
        variance = np.repeat(sizes * max(one * (1 - one), zero * (1 - zero)) / (one - zero) ** 2, self.bits)
        return decode(design, counts.ravel(), np.maximum(variance, 1e-12), candidates, significance)


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
