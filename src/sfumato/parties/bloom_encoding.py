"""Bloom-filter encodings of names, for linkage of records without clear names (Schnell, Bachteler and Reiher 2009).

The q-grams of a name are hashed into a bit array; similar names have similar arrays, so that typing errors are
tolerated. The keyed encoding is the practice of health registers. It hides names from somebody without statistics only:
every q-gram sets the same bits in every record, which :mod:`~sfumato.parties.encoding_attacks` exploits.

The hardened encoding salts each record with another attribute (year of birth, for example), so that the same q-gram has
other bits in other groups, and flips bits at random (BLIP, Alaggan, Gambs and Kermarrec 2012). Both cost linkage
quality: a wrong salt breaks a link, and flips blur the similarity.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.dp.sampler import bernoulli
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational

Bits = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
_BLOCK = 1 << 24
"""Similarities in memory at once."""


def qgrams(name: str, q: int = 2) -> tuple[str, ...]:
    """The different q-grams of a name, with its two ends marked.

    >>> qgrams("Anna")
    ('_a', 'a_', 'an', 'na', 'nn')
    """
    padded = f"{'_' * (q - 1)}{name.lower()}{'_' * (q - 1)}"
    return tuple(sorted({padded[i : i + q] for i in range(len(padded) - q + 1)}))


@dataclass(frozen=True, kw_only=True)
class BloomEncoder:
    """Encodes names as bit arrays."""

    key: bytes
    """Secret of the parties that link; who has it can encode any name and compare."""
    bits: int = 1000
    hashes: int = 15
    """Bits that each q-gram sets."""
    q: int = 2
    flip: Number = 0
    """Probability with which each bit is flipped, below 1/2; 0 for the classic encoding."""

    def __post_init__(self) -> None:
        if not self.key:
            raise BadParameter("an encoding needs a secret key.", fix="Without one anybody can encode all names.")
        if (
            self.bits < 8
            or not 1 <= self.hashes <= self.bits
            or self.q < 1
            or not 0 <= rational(self.flip) < Fraction(1, 2)
        ):
            raise BadParameter("an encoding needs at least 8 bits, 1 hash, q-grams of length 1, and flips below 1/2.")

    def epsilon_per_bit(self) -> float | None:
        """Loss of one bit by the flips, ln((1 - p) / p), None without flips; a q-gram sets ``hashes`` bits."""
        p = float(rational(self.flip))
        return float(np.log((1 - p) / p)) if p else None

    def encode(self, names: Sequence[str], salts: Sequence[str] | None = None) -> Bits:
        """One row of bits per name. With ``salts``, one text per name that changes the places of all its q-grams."""
        if salts is not None and len(salts) != len(names):
            raise BadParameter("there must be one salt per name.")
        places: dict[tuple[str, str], npt.NDArray[np.int64]] = {}
        made = np.zeros((len(names), self.bits), dtype=np.bool_)
        for row, name in enumerate(names):
            salt = "" if salts is None else salts[row]
            for gram in qgrams(name, self.q):
                found = places.get((salt, gram))
                if found is None:
                    found = places[salt, gram] = self._places(salt, gram)
                made[row, found] = True
        if rational(self.flip):
            made ^= bernoulli(rational(self.flip), made.size).reshape(made.shape)
        return made

    def _places(self, salt: str, gram: str) -> npt.NDArray[np.int64]:
        """Double hashing: h1 + i·h2 modulo the number of bits."""
        digest = hmac.new(self.key, f"{salt}\x1f{gram}".encode(), hashlib.sha256).digest()
        first, second = (int.from_bytes(digest[i : i + 8], "big") for i in (0, 8))
        return np.array([(first + i * second) % self.bits for i in range(self.hashes)], dtype=np.int64)


def dice(one: Bits, other: Bits) -> Floats:
    """Dice similarity of all pairs: 2·common / (bits of one + bits of the other)."""
    common = one.astype(np.float32) @ other.astype(np.float32).T
    sizes = one.sum(axis=1, dtype=np.float32)[:, None] + other.sum(axis=1, dtype=np.float32)[None, :]
    found: Floats = 2 * common / np.maximum(sizes, 1)
    return found


@dataclass(frozen=True, kw_only=True)
class Links:
    """Linked pairs and, against the truth, their precision and recall."""

    threshold: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def best_links(similarity: Floats, truth: Sequence[int]) -> Links:
    """Link each row to its most similar column, above the threshold that gives the best F1.

    ``truth`` is the column of each row, -1 for none. The best threshold needs the truth, so this is what the encoding
    allows at most.
    """
    right = np.asarray(truth)
    nearest, score = similarity.argmax(axis=1), similarity.max(axis=1)
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(nearest[order] == right[order])
    taken, present = np.arange(1, len(order) + 1), max(int((right >= 0).sum()), 1)
    best = int(np.argmax(2 * hits / (taken + present)))
    return Links(
        threshold=float(score[order][best]),
        precision=float(hits[best] / taken[best]),
        recall=float(hits[best] / present),
    )


def mutual_links(one: Bits, other: Bits, *, threshold: float) -> list[tuple[int, int, float]]:
    """Pairs of rows that are most similar to each other, with a Dice similarity of at least ``threshold``.

    Each row is in one pair at most. Similarities are computed for a block of rows at a time.
    """
    if not 0 < threshold <= 1:
        raise BadParameter("the threshold of a similarity is above 0 and at most 1.")
    if not len(one) or not len(other):
        return []
    block = max(1, _BLOCK // len(other))
    partner, score = np.empty(len(one), np.int64), np.empty(len(one), np.float32)
    back, best = np.zeros(len(other), np.int64), np.full(len(other), -1, np.float32)
    for start in range(0, len(one), block):
        similar = dice(one[start : start + block], other)
        partner[start : start + block], score[start : start + block] = similar.argmax(axis=1), similar.max(axis=1)
        nearest, top = similar.argmax(axis=0), similar.max(axis=0)
        back, best = np.where(top > best, nearest + start, back), np.maximum(top, best)
    return [
        (row, int(partner[row]), float(score[row]))
        for row in np.flatnonzero((score >= threshold) & (back[partner] == np.arange(len(one)))).tolist()
    ]
