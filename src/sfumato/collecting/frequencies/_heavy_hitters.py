"""Heavy hitters: frequent words of an unknown vocabulary, found by extending frequent prefixes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from sfumato.arrays import Array, Ints
from sfumato.collecting.estimates import score_interval, two_sided
from sfumato.collecting.frequencies.optimized_local_hashing import OptimizedLocalHashing
from sfumato.collecting.frequency_protocol import Reports
from sfumato.collecting.local_protocol import BATCH, Epsilon
from sfumato.collecting.random_source import OS_ENTROPY, RandomSource, below
from sfumato.dp.loss import PrivacyLoss
from sfumato.errors import BadParameter
from sfumato.params import Part


@dataclass(frozen=True, kw_only=True)
class FrequentWord:
    """A frequent word and the estimated number of people who have it."""

    word: str
    count: float
    low: float
    high: float


class HeavyHitters(Part):
    """Each person reports a prefix of their word; the collector extends the frequent prefixes letter by letter.

    Every person draws one level and reports the prefix of that length (all of the word at the last level) by local
    hashing with the whole of epsilon. A word is found if each of its prefixes is significant in its group.
    """

    examples = ({"epsilon": 4, "alphabet": "abc", "length": 3, "most": 20},)
    reference = "Wang, Li, Jha (2021), doi:10.1109/TDSC.2019.2927695"

    epsilon: Epsilon
    """Privacy loss of one report."""
    alphabet: str
    """Letters of words; other letters count as the end of the word."""
    length: Annotated[int, Field(ge=1, le=64)]
    """Letters that are kept of a word."""
    most: Annotated[int, Field(ge=1, le=10_000)]
    """Largest number of prefixes that are extended at each level."""
    step: Annotated[int, Field(ge=1, le=8)] = 1
    """Letters by which a prefix grows from level to level."""

    @field_validator("alphabet")
    @classmethod
    def _different_letters(cls, alphabet: str) -> str:
        if not alphabet or len(set(alphabet)) != len(alphabet):
            raise ValueError("must have at least one letter, each once")
        return alphabet

    @cached_property
    def _protocol(self) -> OptimizedLocalHashing:
        return OptimizedLocalHashing(epsilon=self.epsilon, values=2)

    @property
    def levels(self) -> int:
        return -(-self.length // self.step)

    def loss(self) -> PrivacyLoss:
        """Each person sends one report about one prefix."""
        return self._protocol.loss()

    def kept(self, word: str) -> str:
        """The part of a word that takes part: letters of the alphabet up to the first other one, cut to length."""
        end = next((i for i, letter in enumerate(word) if letter not in self.alphabet), len(word))
        return word[: min(end, self.length)]

    @staticmethod
    def _keys(prefixes: list[str]) -> npt.NDArray[np.uint64]:
        digests = [hashlib.blake2b(prefix.encode(), digest_size=4).digest() for prefix in prefixes]
        return np.frombuffer(b"".join(digests), dtype="<u4").astype(np.uint64)

    def randomize(self, words: list[str], *, source: RandomSource = OS_ENTROPY) -> tuple[Ints, Reports]:
        """Level and report of each person."""
        levels = below(self.levels, len(words), source)
        prefixes = [self.kept(word)[: (level + 1) * self.step] for word, level in zip(words, levels, strict=True)]
        keys = self._keys(prefixes)
        parts = [self._protocol.randomize_keys(keys[i : i + BATCH], source) for i in range(0, len(keys), BATCH)]
        return levels, np.concatenate(parts) if parts else np.zeros((0, self._protocol.width), np.uint8)

    def find(self, levels: Ints, reports: Reports, *, confidence: float = 0.95) -> list[FrequentWord]:
        """Frequent words, the most frequent first; intervals of all words found hold together."""
        if len(levels) != len(reports):
            raise BadParameter("Each report needs its level.")
        frontier: list[str] = [""]
        estimates: Array = np.zeros(1)
        p, q = (float(chance) for chance in self._protocol.probabilities())
        low: Array = estimates
        high: Array = estimates
        for level in range(self.levels):
            candidates = self._extended(frontier, level)
            own = reports[levels == level]
            if not candidates or len(own) == 0:
                return []
            support = np.zeros(len(candidates), dtype=np.int64)
            keys = self._keys(candidates)
            for start in range(0, len(own), BATCH):
                support += self._protocol.count_keys(own[start : start + BATCH], keys)
            scale = len(reports) / len(own)
            z = two_sided(confidence, len(candidates))
            counts = (support - len(own) * q) / (p - q)
            low, high = score_interval(support.astype(float), len(own), p, q, 0.0, z)
            significant = np.flatnonzero(counts > z * (len(own) * q * (1 - q)) ** 0.5 / (p - q))
            order = significant[np.argsort(-counts[significant])][: self.most]
            frontier, estimates = [candidates[i] for i in order], counts[order] * scale
            # The group is a random sample of all people: its own share varies, too.
            spread = two_sided(confidence, max(1, len(order))) * np.sqrt(np.maximum(counts[order], 0.0)) * scale
            low, high = low[order] * scale - spread, high[order] * scale + spread
        return [
            FrequentWord(word=word, count=float(count), low=float(max(0.0, least)), high=float(top))
            for word, count, least, top in zip(frontier, estimates, low, high, strict=True)
        ]

    def _extended(self, frontier: list[str], level: int) -> list[str]:
        """Candidates of a level: complete shorter words, and prefixes with up to ``step`` more letters."""
        candidates: dict[str, None] = {}
        for prefix in frontier:
            ends = [""]
            candidates.setdefault(prefix)
            if len(prefix) == level * self.step:
                for _ in range(min(self.step, self.length - len(prefix))):
                    ends = [end + letter for end in ends for letter in self.alphabet]
                    candidates.update(dict.fromkeys(prefix + end for end in ends))
        return list(candidates)
