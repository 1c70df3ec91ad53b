"""Atoms: groups of people who are in exactly the same answered queries and are therefore exchangeable.

Auditors work on atoms instead of single people. Atom 0 contains everybody who is in no query yet. Each query splits
some atoms in two; this takes time proportional to the size of the query, not of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.errors import BadParameter

Flags = npt.NDArray[np.bool_]


class Sense(Enum):
    """How the true numbers relate to the numbers of an answer."""

    EQUAL = "="
    AT_MOST = "<="
    AT_LEAST = ">="


@dataclass(frozen=True, kw_only=True)
class AnswerConstraint:
    """One answer as the adversary sees it: linear facts about how many people of a known set have each value.

    With n[v] people of the set having value v, row r states that the sum of ``weights[r, v] * n[v]`` is equal to (at
    most, at least) ``totals[r]``. A list of values is one row per value; a count one row with 0 and 1; a sum one row
    with the numbers themselves; a maximum the two facts that nobody has more and that somebody has it.
    """

    weights: Ints
    """Rows by values, none negative."""
    totals: Ints
    senses: tuple[Sense, ...]

    @property
    def fine(self) -> bool:
        """Whether the answer is a list of values, each returned as itself."""
        rows, values = self.weights.shape
        return rows == values and bool(np.array_equal(self.weights, np.eye(values, dtype=np.int64)))

    @property
    def slack(self) -> bool:
        """Whether some of the returned values may be counterfeits, so that counts are upper bounds only."""
        return Sense.AT_MOST in self.senses

    @property
    def facts(self) -> Iterator[tuple[Ints, int, Sense]]:
        """Weights, total and sense of each row."""
        return zip(self.weights, self.totals.tolist(), self.senses, strict=True)

    def without(self, counts: Ints) -> AnswerConstraint:
        """The same answer about the other people, where ``counts`` people have values that the adversary knows."""
        return replace(self, totals=self.totals - self.weights @ counts)

    @classmethod
    def plain(cls, counts: Ints, fakes: Sequence[int] = ()) -> AnswerConstraint:
        """A list of values, plus counterfeit values."""
        total = counts + np.bincount(np.asarray(fakes, np.int64), minlength=len(counts))
        sense = Sense.AT_MOST if len(fakes) else Sense.EQUAL
        return cls(weights=np.eye(len(counts), dtype=np.int64), totals=total, senses=(sense,) * len(counts))

    @classmethod
    def grouped(cls, counts: Ints, groups: Sequence[int]) -> AnswerConstraint:
        """An answer that reveals only the group of each value."""
        mapping = np.asarray(groups, np.int64)
        weights = (mapping[None, :] == np.unique(mapping)[:, None]).astype(np.int64)
        return cls(weights=weights, totals=weights @ counts, senses=(Sense.EQUAL,) * len(weights))

    @classmethod
    def total(cls, counts: Ints, numbers: Ints) -> AnswerConstraint:
        """The sum of the numbers that the values stand for. Numbers are shifted to start at 0: sizes are known."""
        weights = (numbers - numbers.min())[None, :]
        return cls(weights=weights, totals=weights @ counts, senses=(Sense.EQUAL,))

    @classmethod
    def extreme(cls, counts: Ints, numbers: Ints, *, largest: bool) -> AnswerConstraint:
        """The largest or smallest of the numbers that the values stand for."""
        held = numbers[counts > 0]
        best = held.max() if largest else held.min()
        beyond = numbers > best if largest else numbers < best
        weights = np.stack([beyond, numbers == best]).astype(np.int64)
        return cls(weights=weights, totals=np.array([0, 1]), senses=(Sense.EQUAL, Sense.AT_LEAST))


@dataclass(frozen=True, kw_only=True)
class AtomSplit:
    """The partition into atoms after one more query."""

    people: Ints
    truth: Ints
    """Atoms by values: how many people of the atom truly have the value."""
    member: Flags
    """Queries by atoms; the new query is the last row."""
    parent: Ints
    """Per atom, the atom it was split from."""
    moved: dict[int, int]
    """Per split atom, the new atom with its people inside the query."""


class Atoms:
    """The people of a table, their secret values as codes, and the atoms of the answered queries."""

    def __init__(self, secrets: npt.ArrayLike, values: int) -> None:
        codes = np.asarray(secrets)
        if codes.ndim != 1 or codes.size == 0 or codes.dtype.kind not in "iu":
            raise BadParameter("secret values must be one whole-number code per person.")
        if values < 1 or codes.min() < 0 or codes.max() >= values:
            raise BadParameter(f"codes of secret values lie between 0 and {values - 1}.")
        self.values = values
        self._secrets = codes.astype(np.int32, copy=False)
        self._atom = np.zeros(codes.size, np.int32)
        self.truth: Ints = np.bincount(codes, minlength=values).astype(np.int64)[None, :]
        self.member: Flags = np.zeros((0, 1), np.bool_)

    @property
    def people(self) -> int:
        return int(self._atom.size)

    @property
    def atoms(self) -> int:
        return len(self.truth)

    def persons(self, atom: int) -> Ints:
        """Row numbers of the people in an atom."""
        return np.flatnonzero(self._atom == atom)

    def select(self, people: npt.ArrayLike) -> Ints:
        """Distinct row numbers from row numbers or a mask. Rows outside the table raise an error."""
        selection = np.asarray(people)
        if selection.dtype == np.bool_:
            if selection.shape != self._atom.shape:
                raise BadParameter(f"a mask has one entry for each of the {self.people} people.")
            return np.flatnonzero(selection)
        rows = selection.astype(np.int64, copy=False) if selection.size else np.empty(0, np.int64)
        if (np.diff(rows) <= 0).any():  # the engine gives them in order
            rows = np.sort(np.unique(rows))
        if rows.size and (rows[0] < 0 or rows[-1] >= self.people):
            raise BadParameter(f"people are rows 0 to {self.people - 1}.")
        return rows

    def count(self, people: Ints) -> Ints:
        """The true multiset of secret values of these people."""
        return np.bincount(self._secrets[people], minlength=self.values).astype(np.int64)

    def split(self, people: Ints) -> AtomSplit:
        """The partition after a query about these people. The state does not change."""
        atoms, wide = self.atoms, self.values
        key = self._atom[people].astype(np.int64) * wide + self._secrets[people]
        inside = np.bincount(key, minlength=atoms * wide).reshape(atoms, wide).astype(np.int64)
        size, part = self.truth.sum(axis=1), inside.sum(axis=1)
        # Atom 0 stays the atom of people in no query, even when it is empty.
        broken = np.flatnonzero((part > 0) & ((part < size) | (np.arange(atoms) == 0)))
        whole = (part > 0) & (part == size)
        whole[0] = False
        truth = np.concatenate([self.truth, inside[broken]])
        truth[broken] -= inside[broken]
        old = np.concatenate([self.member, self.member[:, broken]], axis=1)
        new = np.concatenate([whole, np.ones(len(broken), np.bool_)])
        moved = {int(atom): atoms + place for place, atom in enumerate(broken)}
        parent = np.concatenate([np.arange(atoms), broken])
        return AtomSplit(people=people, truth=truth, member=np.vstack([old, new]), parent=parent, moved=moved)

    def after(self, split: AtomSplit) -> npt.NDArray[np.int32]:
        """The atom of each person after a split. The state does not change."""
        atoms = self._atom.copy()
        self._move(atoms, split)
        return atoms

    def persons_after(self, split: AtomSplit, atoms: Ints) -> Ints:
        """Row numbers of the people in these atoms after a split."""
        return np.flatnonzero(np.isin(self.after(split), atoms)) if len(atoms) else np.empty(0, np.int64)

    def commit(self, split: AtomSplit) -> None:
        """Apply a split."""
        self._move(self._atom, split)
        self.truth, self.member = split.truth, split.member

    def _move(self, atoms: npt.NDArray[np.int32], split: AtomSplit) -> None:
        target = np.arange(self.atoms, dtype=np.int32)
        for old, new in split.moved.items():
            target[old] = new
        atoms[split.people] = target[atoms[split.people]]
