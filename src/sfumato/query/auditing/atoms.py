"""Atoms: groups of people who are in exactly the same answered queries and are therefore exchangeable.

Auditors work on atoms instead of single people. Atom 0 contains everybody who is in no query yet. Each query splits
some atoms in two; this takes time proportional to the size of the query, not of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter

__all__ = ["AnswerConstraint", "AtomSplit", "Atoms", "Ints"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class AnswerConstraint:
    """One answer as the adversary sees it: a count per group of values, over a known set of people."""

    counts: Ints
    """Per group, how often it was returned, counterfeits included."""
    groups: Ints
    """Per value, the group it was returned as; every value its own group in a plain answer."""
    slack: bool
    """Whether some of the returned values may be counterfeits, so that counts are upper bounds only."""

    @property
    def fine(self) -> bool:
        """Whether every value is its own group."""
        return bool(np.array_equal(self.groups, np.arange(len(self.counts))))

    @classmethod
    def plain(cls, counts: Ints, fakes: Sequence[int] = ()) -> AnswerConstraint:
        """An answer with exact values, plus counterfeit values."""
        total = counts + np.bincount(np.asarray(fakes, np.int64), minlength=len(counts))
        return cls(counts=total, groups=np.arange(len(counts)), slack=len(fakes) > 0)

    @classmethod
    def grouped(cls, counts: Ints, groups: Sequence[int]) -> AnswerConstraint:
        """An answer that reveals only the group of each value."""
        mapping = np.asarray(groups, np.int64)
        return cls(counts=np.bincount(mapping, weights=counts).astype(np.int64), groups=mapping, slack=False)


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
        rows = np.unique(selection.astype(np.int64)) if selection.size else np.empty(0, np.int64)
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

    def commit(self, split: AtomSplit) -> None:
        """Apply a split."""
        target = np.arange(self.atoms, dtype=np.int32)
        for old, new in split.moved.items():
            target[old] = new
        self._atom[split.people] = target[self._atom[split.people]]
        self.truth, self.member = split.truth, split.member
