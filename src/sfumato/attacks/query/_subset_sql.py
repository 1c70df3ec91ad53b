"""Sets of people as SQL conditions: what an analyst writes to ask about a chosen set.

People are named by columns that the attacker knows. If these are one column of whole numbers, random halves are written
as modular arithmetic, ``(id * 48271 + 11) % 1000003 < 500002``, which is short for any number of people; a set that
differs from such a half in a few people names these. Other sets list their people.

Reference: Cohen, Nissim (2020), Linear program reconstruction in practice, doi:10.29012/jpc.711
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.sql_quoting import quoted_name
from sfumato.errors import NotApplicable
from sfumato.query.dbapi import literal_text
from sfumato.query.policy.subsets import Bits, pack, unpack

_PRIME = 1_000_003
_KEPT = 256
"""Random halves that are remembered to describe sets near them."""
_NEAR = 4
"""A set that differs from a remembered half in at most this many people is described by the difference."""
_ARITHMETIC, _LISTED = 1000, 120
"""Most people attacked together, by arithmetic on a number and by lists of conditions."""


class PeopleConditions:
    """Conditions for sets of the people whom the known columns identify.

    ``rows`` are the rows of these people, in the order in which sets number them. If there are too many for one attack,
    a range of a numeric key or a random part of the people is chosen.
    """

    def __init__(self, frame: pl.DataFrame, known: tuple[str, ...], rng: np.random.Generator, most: int) -> None:
        columns = _key(frame, known)
        numbered = frame.select(columns).with_row_index("sfumato row")
        single = numbered.filter(~pl.struct(columns).is_duplicated()).sort(columns)
        if single.height < 2:
            raise NotApplicable(
                "Nobody can be singled out: no combination of the known columns belongs to one person only.",
                fix="Name more columns that the attacker knows.",
            )
        dtype = frame.schema[columns[0]]
        self._numeric = len(columns) == 1 and dtype.is_integer() and not frame[columns[0]].null_count()
        if self._numeric:
            self._numeric = bool(frame[columns[0]].is_between(0, 2**40).all())
        cap = min(most, _ARITHMETIC if self._numeric else _LISTED)
        self.number: str | None = columns[0] if len(columns) == 1 and dtype.is_numeric() else None
        """The column of numbers that identifies people, if it is one."""
        self._name = quoted_name(columns[0])
        self._within = ""
        if self._numeric:
            if single.height > cap:
                first = int(rng.integers(single.height - cap + 1))
                single = single[first : first + cap]
            keys = single[columns[0]].to_numpy().astype(np.int64)
            others = frame[columns[0]].is_between(int(keys[0]), int(keys[-1])).sum() - len(keys)
            self._numeric = others == 0  # a person inside the range whom the key does not identify would be counted
            if self._numeric and len(keys) < frame.height:
                self._within = f"{self._name} BETWEEN {keys[0]} AND {keys[-1]}"
            self._keys = keys
        elif single.height > cap:
            single = single[np.sort(rng.choice(single.height, cap, replace=False))]
        self.rows: npt.NDArray[np.int64] = single["sfumato row"].to_numpy().astype(np.int64)
        self.people = single.height
        self._persons = [_person(dict(zip(columns, row, strict=True))) for row in single.select(columns).iter_rows()]
        self._one = (self._name, [literal_text(row[0]) for row in single.select(columns).iter_rows()])
        self._listed = len(columns) == 1
        self._everybody = self.people == frame.height
        self._negated = not any(frame[name].null_count() for name in columns)
        """Whether a condition may be negated: a comparison with a gap is neither true nor false."""
        self._halves: list[tuple[bytes, str]] = []
        self._half_bits = np.empty((0, -(-self.people // 8)), np.uint8)

    def person(self, number: int) -> str:
        """A condition that holds for one person."""
        return self._persons[number]

    def random_halves(self, count: int, rng: np.random.Generator) -> Bits:
        """Random sets with about half of the people, such that :meth:`of` has a short condition for each."""
        if not self._numeric:
            return pack(rng.random((count, self.people)) < 0.5)
        masks = np.empty((count, self.people), np.bool_)
        texts = []
        for place in range(count):
            a, b = int(rng.integers(_PRIME // 10, _PRIME - _PRIME // 10)), int(rng.integers(_PRIME))
            masks[place] = (self._keys % _PRIME * a + b) % _PRIME < _PRIME // 2
            texts.append(f"({self._name} % {_PRIME} * {a} + {b}) % {_PRIME} < {_PRIME // 2}")
        bits = pack(masks)
        self._halves = [*self._halves, *((row.tobytes(), text) for row, text in zip(bits, texts, strict=True))]
        self._half_bits = np.concatenate([self._half_bits, bits])
        return bits

    def forget(self, keep: int = _KEPT) -> None:
        """Forget all but the last halves."""
        self._halves, self._half_bits = self._halves[-keep:], self._half_bits[-keep:]

    def of(self, subset: Bits) -> str:
        """A condition for a set of people; empty for everybody in the table."""
        near = self._near(subset)
        if near is not None:
            return near
        inside = unpack(subset[None, :], self.people)[0]
        if self._everybody and inside.all():
            return ""
        if self._everybody and self._negated and inside.mean() > 0.5:
            return self._outside(np.flatnonzero(~inside))
        if inside.all() and self._within:
            return self._within
        if self._within and inside.mean() > 0.5:
            return f"{self._within} AND {self._outside(np.flatnonzero(~inside))}"
        return self._inside(np.flatnonzero(inside))

    def _near(self, subset: Bits) -> str | None:
        """The condition of a remembered half or of its complement, corrected for a few people."""
        if not len(self._half_bits):
            return None
        apart = np.bitwise_count(self._half_bits ^ subset).sum(axis=1, dtype=np.int64)
        for distance, negated in ((apart, False), (self.people - apart, True)):
            best = int(np.argmin(distance))
            if distance[best] > _NEAR:
                continue
            bits, text = self._halves[best]
            text = f"NOT ({text})" if negated else text
            half = unpack(np.frombuffer(bits, np.uint8)[None, :], self.people)[0] ^ negated
            inside = unpack(subset[None, :], self.people)[0]
            if (inside & ~half).any():
                text = f"({text} OR {self._inside(np.flatnonzero(inside & ~half))})"
            if (half & ~inside).any():
                text = f"{text} AND {self._outside(np.flatnonzero(half & ~inside))}"
            return f"{self._within} AND {text}" if self._within else text
        return None

    def _inside(self, people: Iterable[int]) -> str:
        chosen = list(people)
        name, values = self._one
        if not chosen:
            return f"{name} IS NULL AND {name} IS NOT NULL"
        if len(chosen) == 1:
            return self._persons[chosen[0]]
        if self._listed and "NULL" not in values:
            return f"{name} IN ({', '.join(values[i] for i in chosen)})"
        return _any([self._persons[i] for i in chosen])

    def _outside(self, people: Iterable[int]) -> str:
        return f"NOT ({self._inside(people)})"


def _key(frame: pl.DataFrame, known: tuple[str, ...]) -> list[str]:
    """One column that identifies everybody, a column of whole numbers if there is one; otherwise all known columns."""
    alone = [name for name in known if frame[name].n_unique() == frame.height]
    return [min(alone, key=lambda name: not frame.schema[name].is_integer())] if alone else list(known)


def _any(conditions: list[str]) -> str:
    """Conditions joined by OR as a balanced tree, so that many of them are not nested too deeply."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return f"({_any(conditions[:half])} OR {_any(conditions[half:])})"


def _person(values: dict[str, object]) -> str:
    return "(" + " AND ".join(
        f"{quoted_name(name)} IS NULL" if value is None else f"{quoted_name(name)} = {literal_text(value)}"
        for name, value in values.items()
    ) + ")"  # fmt: skip
