"""GROUP BY over private keys among several parties: only keys whose noisy count reaches a limit become known.

Each party has a list of keys with whole numbers. The lists are shared (:mod:`.shared_computation`), sorted by a hash of
the key and added up where neighbours have the same key. Every party adds its share of the noise to every row, the noisy
count is compared with the limit in shares, rows that do not reach it are multiplied by 0, and all are shuffled before
the analyst opens them. The result is that of the central mechanism (:mod:`sfumato.dp.mechanisms.thresholded_laplace`)
over the keys of all parties.

Two things besides cost a part of the loss. The length of a party's list is public, so that it is filled up with a noisy
number of rows that never reach the limit. And two keys may have the same hash, with a probability that counts as delta.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.dp.noise_shares import laplace_shares
from sfumato.dp.noise_sums import laplace_radius
from sfumato.dp.rational_bounds import exp_bracket
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace, round_scale_up
from sfumato.engines.engine import Running
from sfumato.errors import PartyFailed, QueryRefused
from sfumato.parties.prime_field import (
    Elements,
    add,
    from_signed,
    subtract,
    to_signed,
    uniform,
    weighted_sum,
)
from sfumato.parties.selections import in_units
from sfumato.parties.shared_computation import SharedComputation, recombined
from sfumato.query.execute.executor import NoisyTable, exact_totals_by_key, shared_measurements, split_parts
from sfumato.query.execute.key_text import key_from_json, key_to_json
from sfumato.query.plan.noise import NoisePlan
from sfumato.secret import SecretValue

LONGEST_KEY = 63
"""Bytes of a key as JSON; longer ones are left out."""
MOST_KEYS = 1 << 16
"""Rows of all lists together."""
_HASH = 60
COLLISION = Fraction(MOST_KEYS, 1 << _HASH)
"""Probability, at most, that a given key has the hash of another one."""
_WORD = 7
_WORDS = LONGEST_KEY // _WORD
_FAR = -(1 << 55)
"""Count of a row that fills up a list."""
_LARGEST = 1 << 52
"""Numbers of one party and key are clipped to this: no sum leaves the range of comparisons."""

Key = tuple[Any, ...]
Prepared = tuple[Elements, npt.NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Padding:
    """Noisy number of rows that fill up a list: (epsilon, delta) for its length, which one unit changes by ``keys``."""

    scale: Fraction
    radius: int

    @classmethod
    def for_budget(cls, epsilon: Fraction, delta: Fraction, *, keys: int) -> Padding:
        scale = round_scale_up(keys / epsilon)
        # Cutting the noise off at the radius changes each of two distributions by that probability.
        return cls(scale=scale, radius=ceil(laplace_radius(scale, Fraction(1), delta / (1 + exp_bracket(epsilon)[1]))))

    def draw(self) -> int:
        return min(max(self.radius + int(discrete_laplace(self.scale, 1)[0]), 0), 2 * self.radius)


@dataclass(frozen=True, kw_only=True)
class PrivateKeys:
    """What all parties compute, from public facts."""

    scales: tuple[Fraction, ...]
    """Scale of the noise of each number of a key, in steps."""
    counted: range
    """The numbers whose noisy sum is compared."""
    limit: int
    """The smallest that is reported."""
    fitting: Fraction | None
    """Scale of the noise of the two numbers of units that limits fit and cut; None where they are not measured."""
    padding: Padding

    @property
    def notes(self) -> tuple[str, ...]:
        """What the analyst should know about the answer."""
        return (f"Keys of more than {LONGEST_KEY} bytes as JSON are left out.",)

    def exact(self, plan: NoisePlan, engine: Running, receipt: Receipt) -> SecretValue[Any]:
        """What :meth:`prepared` takes."""
        return exact_totals_by_key(plan, engine, receipt)

    def prepared(self, exact: tuple[Mapping[Key, Sequence[int]], Sequence[int]], *, salt: bytes) -> Prepared:
        """One party's own list and numbers: all that takes a time that depends on its data."""
        totals, fitting = exact
        return self._rows(totals, salt), np.asarray(fitting, np.int64)

    def run(self, computation: SharedComputation, prepared: Prepared, *, noise_shares: int) -> bytes:
        """One party's side: from what it prepared to its shares of the result, for the analyst."""
        own, fitting = prepared
        lengths = [int(n[0]) for n in computation.exchange_arrays(
            [np.array([len(own)], np.uint64)] * computation.parties, [(1,)] * computation.parties
        ) if n is not None]  # fmt: skip
        if sum(lengths) > MOST_KEYS:
            raise QueryRefused(
                f"There are more than {MOST_KEYS:,} private keys in all parties together.",
                fix="Group by fewer columns, or declare the column's values.",
            )
        width = own.shape[1]
        lists = computation.inputs(own, [(length, width) for length in lengths])
        rows = computation.sort_lists(np.concatenate(lists), lengths)
        chosen = computation.shuffled(self._chosen(computation, rows, noise_shares))
        extra = np.zeros(0, np.uint64)
        if self.fitting is not None:
            drawn = laplace_shares(self.fitting, noise_shares, 2)
            extra = computation.total(from_signed(fitting + drawn))
        return np.concatenate([extra, chosen.ravel()]).astype("<u8").tobytes()

    def opened(self, shares: Sequence[bytes]) -> tuple[dict[Key, list[int]], list[int]]:
        """The analyst's side: the reported keys with their noisy numbers, and the noisy units that limits fit."""
        values, extra = recombined(shares), 0 if self.fitting is None else 2
        width = 1 + _WORDS + len(self.scales)
        if len(values) < extra or (len(values) - extra) % width:
            raise PartyFailed("The parties' shares of the result do not fit together.")
        rows = values[extra:].reshape(-1, width)
        found = {
            _key(row[1 : 1 + _WORDS]): to_signed(row[1 + _WORDS :]).tolist() for row in rows[rows[:, 0] == 1]
        }  # fmt: skip
        return found, to_signed(values[:extra]).tolist()

    def table(self, plan: NoisePlan, shares: Sequence[bytes]) -> NoisyTable:
        """The answer's numbers by the keys that were reported."""
        found, fitting = self.opened(shares)
        keys, place = tuple(sorted(found)), 0
        values: dict[int, tuple[float | int, ...]] = {}
        for measurement in shared_measurements(plan):
            if plan.is_fitting(measurement):
                values |= split_parts(measurement, tuple(fitting))
                continue
            own = [number for key in keys for number in found[key][place : place + measurement.parts]]
            values |= split_parts(measurement, in_units(own, measurement.mechanism))
            place += measurement.parts
        return NoisyTable(keys=keys, values=values)

    def _rows(self, totals: Mapping[Key, Sequence[int]], salt: bytes) -> Elements:
        """Hash, text and numbers of each key, and rows that fill up the list, sorted."""
        texts = {key: _text(key) for key in totals}
        named = [(text, totals[key]) for key, text in texts.items() if len(text) <= LONGEST_KEY]
        blank = self.padding.draw()
        rows = np.zeros((len(named) + blank, 1 + _WORDS + len(self.scales)), np.uint64)
        for row, (text, numbers) in zip(rows, named, strict=False):
            row[0] = int.from_bytes(hashlib.sha256(salt + text).digest()[:8], "big") >> (64 - _HASH)
            row[1 : 1 + _WORDS] = _words(text)
            row[1 + _WORDS :] = from_signed([max(-_LARGEST, min(_LARGEST, number)) for number in numbers])
        rows[len(named) :, 0] = uniform(blank) >> np.uint64(61 - _HASH)
        rows[len(named) :, 1 + _WORDS + self.counted.start] = from_signed(_FAR)
        return rows[np.argsort(rows[:, 0], kind="stable")]

    def _chosen(self, computation: SharedComputation, rows: Elements, noise_shares: int) -> Elements:
        """Sorted rows, of which those of the same key are added up and those that do not reach the limit are zero."""
        hashes, texts, own = rows[:, 0], rows[:, 1 : 1 + _WORDS], rows[:, 1 + _WORDS :]
        same = np.zeros_like(hashes)  # whether a row has the key of the row before it
        if len(rows) > 1:
            same[1:] = computation.zero(subtract(hashes[1:], hashes[:-1]))
        total, wide = own, np.repeat(same[:, None], own.shape[1], axis=1)
        for _ in range(computation.parties - 1):  # a key is in each list once
            before = np.concatenate([np.zeros_like(total[:1]), total[:-1]])[: len(total)]
            total = add(own, computation.product(wide, before))
        last = subtract(np.ones_like(same), np.concatenate([same[1:], np.zeros_like(same[:1])])[: len(same)])
        noise = [laplace_shares(scale, noise_shares, len(rows)) for scale in self.scales]
        noisy = add(total, computation.total(from_signed(np.stack(noise, axis=1))))
        count = weighted_sum([1] * len(self.counted), [noisy[:, place] for place in self.counted])
        below = computation.negative(subtract(count, np.full_like(count, from_signed(self.limit))))
        reported = computation.product(last, subtract(np.ones_like(below), below))
        kept = np.concatenate([texts, noisy], axis=1)
        shown = computation.product(np.repeat(reported[:, None], kept.shape[1], axis=1), kept)
        return np.concatenate([reported[:, None], shown], axis=1)


def _text(key: Key) -> bytes:
    return json.dumps(key_to_json(key), ensure_ascii=False, separators=(",", ":")).encode()


def _words(text: bytes) -> list[int]:
    filled = text.ljust(LONGEST_KEY, b" ")
    return [int.from_bytes(filled[start : start + _WORD], "big") for start in range(0, LONGEST_KEY, _WORD)]


def _key(words: Elements) -> Key:
    try:
        text = b"".join(int(word).to_bytes(_WORD, "big") for word in words)
        return key_from_json(json.loads(text))
    except (OverflowError, ValueError, TypeError):
        raise PartyFailed("A party sent a key that is none.") from None
