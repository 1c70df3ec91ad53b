"""Checks of a release: one list of verdicts for every engine, for ``protect``, ``check``, ``study`` and graphs.

A check is one class in one file of ``evaluation/checks``. It says whether it applies, what it needs, and gives its
verdict on a :class:`Subject`. :func:`run_checks` runs all of them. Where the subject lacks what a check needs, the
verdict is "not checked" with its reason, so that no release holds because something was skipped.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.data.table import Table
from sfumato.dataset import Data, Role, Schema
from sfumato.dataset.rows import Rows
from sfumato.errors import NotApplicable
from sfumato.masking.base import method_of
from sfumato.masking.model import PrivacyModel
from sfumato.params import Part
from sfumato.registry import registry
from sfumato.release import Lineage, Release, State, Verdict
from sfumato.release.class_counts import CannotCheck
from sfumato.rng import Rng

SEVERAL_ROWS = "people with several rows"
"""The name of the verdict that says whether what is judged for rows holds for people."""


class Need(StrEnum):
    """What a check needs beside the release and its manifest."""

    ORIGINAL = "the original: name it with --original"
    LINEAGE = "the row map, which lies in the private folder beside the release"


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A release with everything that is known about it. Its rows lie in memory or in an engine."""

    release: Rows
    original: Rows | None = None
    schema: Schema
    """Roles of all columns of the original, and the privacy unit."""
    models: Sequence[PrivacyModel] = ()
    model_verdicts: Sequence[Verdict] = ()
    """One verdict per model, by the code that suits the place of the rows."""
    step_verdicts: Sequence[Verdict] | None = None
    """What steps guarantee, if that was judged when they ran; it includes what released rows do not tell, such as
    differential privacy. None: it is counted again in the released rows."""
    steps: Sequence[Mapping[str, Any]] = ()
    """The published steps."""
    order: str = "shuffled"
    lineage: Lineage | None = None
    earlier: Sequence[Release] = ()
    """Earlier releases about the same people."""
    foreign: bool = False
    """Whether nothing is known of how it was made, so that a column nobody declared is undecided. Of our own releases
    such columns are refused before the run, or made by a step, such as the items of baskets."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The released columns."""
        return self.release.columns

    @cached_property
    def pair(self) -> tuple[Data, Table, Lineage | None]:
        """Original, release and row map with all columns and rows; refused beyond the memory limit."""
        assert self.original is not None
        return paired_rows(self.original, self.release, self.schema, self.lineage, most=None)

    @property
    def has(self) -> frozenset[Need]:
        """What is at hand beside the release."""
        found = {Need.ORIGINAL: self.original, Need.LINEAGE: self.lineage}
        return frozenset(need for need, value in found.items() if value is not None)

    def require(self, needs: Collection[Need]) -> None:
        """Raise :class:`CannotCheck` if something of this is not at hand."""
        missing = [need for need in Need if need in needs and need not in self.has]
        if missing:
            raise CannotCheck(f"It needs {' and '.join(missing)}.")

    @property
    def quasi(self) -> tuple[str, ...]:
        """The released quasi-identifiers."""
        return tuple(name for name in self.schema.names(Role.QUASI) if name in self.columns)

    @cached_property
    def synthetic(self) -> bool:
        """Whether no released row came from a person: by the row map, or else by the published steps."""
        if self.lineage is None:
            return any(method_of(step).synthetic for step in self.steps)
        return len(self.lineage.rows) > 0 and not (self.lineage.rows >= 0).any()

    @cached_property
    def people(self) -> pl.Series:
        """The person of each released row as a number, null for a row of nobody. Needs the original and the row map.

        A row without a person is a person of its own.
        """
        return self._people(lambda rows: 1 + np.arange(rows))

    @cached_property
    def least_people(self) -> pl.Series:
        """As :attr:`people`, but all rows without a person count as one: they may be the rows of one person."""
        return self._people(lambda rows: np.ones(rows, dtype=np.int64))

    def _people(self, unknown: Callable[[int], Ints]) -> pl.Series:
        unit = self.schema.unit
        assert unit is not None
        assert self.lineage is not None
        assert self.original is not None
        if unit not in self.original.columns:
            raise CannotCheck(f"The original has no column `{unit}`, which says whose row it is.")
        people = self.original.load([unit]).to_series()
        codes = people.cast(pl.String) if people.dtype in (pl.Categorical, pl.Enum) else people
        number = codes.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
        own = np.where(number == 0, len(number) + unknown(len(number)), number)
        origin = self.lineage.rows
        known = pl.Series("person", own[np.maximum(origin, 0)])
        return known.set(pl.Series(origin < 0), None) if (origin < 0).any() else known

    @property
    def released_people(self) -> pl.Series | None:
        """The person of each released row, null for a row of nobody; None if that is not known."""
        if self.schema.unit is None or Need.ORIGINAL not in self.has or self.lineage is None:
            return None
        try:
            return self.people
        except (CannotCheck, NotApplicable):
            return None


def paired_rows(
    original: Rows, release: Rows, schema: Schema, lineage: Lineage | None, *, most: int | None
) -> tuple[Data, Table, Lineage | None]:
    """Original, release and row map with all columns; with a row map, of more than ``most`` rows a random part."""
    rows, origin = None, None
    if most is not None and lineage is not None:
        known = np.flatnonzero(lineage.rows >= 0)
        if len(known) > most:
            rows = np.sort(Rng(0).generator.choice(known, most, replace=False))
            origin, lineage = lineage.rows[rows], Lineage.identity(len(rows))
    before, after = original.load(original.columns, origin), release.load(release.columns, rows)
    alike = [_as(column, before.schema.get(column.name)) for column in after]
    return Data(table=Table(frame=before), schema=schema), Table(frame=pl.DataFrame(alike)), lineage


def _as(column: pl.Series, dtype: pl.DataType | None) -> pl.Series:
    """The column in the type of the original if all its values have it: a file may not tell types."""
    if dtype is None or column.dtype == dtype:
        return column
    try:
        return column.cast(dtype)
    except pl.exceptions.PolarsError:
        return column


class Check(Part):
    """One condition on a release that has a verdict wherever the release is judged."""

    needs: ClassVar[frozenset[Need]] = frozenset()
    turn: ClassVar[int] = 1
    """Position in the list of verdicts: checks of the recipe's own requirements come first."""

    @classmethod
    @abstractmethod
    def verdict_name(cls) -> str:
        """The name of the verdict."""

    @abstractmethod
    def applies(self, subject: Subject) -> bool:
        """Whether the condition is about such a release. Decided by what is published, never by values of rows."""

    @abstractmethod
    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        """The verdicts; empty if a condition holds that the recipe does not name.

        :class:`CannotCheck` makes the verdict "not checked".
        """


def run_checks(subject: Subject) -> tuple[Verdict, ...]:
    """The verdicts of every registered check that applies, in one order everywhere."""
    kinds = [kind for kind in registry("check") if issubclass(kind, Check)]
    checks = [kind.build() for kind in sorted(kinds, key=lambda kind: (kind.turn, kind.part_name()))]
    return tuple(verdict for check in checks for verdict in verdicts_of(check, subject))


def verdicts_of(check: Check, subject: Subject) -> tuple[Verdict, ...]:
    """The verdicts of one check; none if it does not apply. What needs more than the release is marked as exact."""
    found = _verdicts(check, subject) if check.applies(subject) else ()
    return tuple(replace(verdict, exact=bool(check.needs)) for verdict in found)


def _verdicts(check: Check, subject: Subject) -> tuple[Verdict, ...]:
    try:
        subject.require(check.needs)
        return check.judge(subject)
    except (CannotCheck, NotApplicable) as cause:
        reason = str(cause)
    except MemoryError:
        reason = "Memory ran out."
    return (Verdict(model=check.verdict_name(), state=State.NOT_CHECKED, reason=reason),)


def judged_for_people(verdicts: Sequence[Verdict]) -> bool:
    """Whether what is judged for rows holds for people, as far as these verdicts say."""
    return all(verdict.holds for verdict in verdicts if verdict.model == SEVERAL_ROWS)
