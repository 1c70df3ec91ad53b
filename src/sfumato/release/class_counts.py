"""Counts of a release's equivalence classes, and the result of a privacy condition over them.

These are the only types that the independent checks of privacy models work on. They hold plain Python integers and
share no code with the masking search: :mod:`sfumato.evaluation.counts` fills them by SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Counts = Mapping[str | None, int]
Shares = Mapping[str | None, float]


class CannotCheck(Exception):
    """An independent check lacks something it needs; the message becomes the reason of "not checked"."""


class RowQueries(Protocol):
    """Counts over all released rows, for models that are not about equivalence classes; filled by SQL."""

    @property
    def total(self) -> int:
        """Number of rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the released columns."""

    def combinations(self, columns: Sequence[str]) -> Mapping[tuple[str | None, ...], int]:
        """Number of rows with each combination of the values of some columns, as text."""

    def having(self, values: Mapping[str, object]) -> int:
        """Number of rows with all these values; 0 if a column is not released."""

    def correlation(self, one: str, other: str) -> float | None:
        """Pearson's correlation of two columns; None if it is not defined."""


@dataclass(frozen=True, kw_only=True)
class ReleaseCounts:
    """The equivalence classes of a release and the frequencies of sensitive values inside them."""

    keys: tuple[tuple[str | None, ...], ...]
    """Quasi-identifier values of each class."""
    sizes: tuple[int, ...]
    """Rows that match each class. Larger than :attr:`own_rows` where empty cells match every value."""
    own_rows: tuple[int, ...]
    """Rows that show exactly the values of each class."""
    inside: Mapping[str, tuple[Counts, ...]] = field(default_factory=dict)
    """By sensitive column: for each class, the frequency of each value."""
    overall: Mapping[str, Counts] = field(default_factory=dict)
    """By sensitive column: the frequency of each value in the reference table."""
    order: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """By sensitive column: its values in ascending order."""
    paths: Mapping[str, Mapping[str | None, tuple[str | None, ...]]] = field(default_factory=dict)
    """By sensitive column with a hierarchy: for each value, its labels up to the root."""
    population: tuple[int, ...] | None = None
    """People of the population who match each class."""
    unmatched_population: bool = False
    """Whether some person of the population matches no class."""
    suppressed_rows: int = 0
    """Rows that show nothing, which were taken for suppressed and belong to no class."""
    rows: RowQueries | None = None
    """Counts over all rows."""

    def people(self) -> tuple[int, ...]:
        """People of the population per class; without a population table the check is not possible."""
        if self.population is None:
            raise CannotCheck("It needs the population table; name it with --population.")
        return self.population

    def sensitive(self, parameters: Mapping[str, object]) -> str:
        """The sensitive column of a model: its ``column`` parameter, or the only sensitive column."""
        name = parameters.get("column")
        if name is None and len(self.inside) == 1:
            return next(iter(self.inside))
        if name is None or name not in self.inside:
            raise CannotCheck("Its sensitive column is not in the release.")
        return str(name)


@dataclass(frozen=True, kw_only=True)
class ConditionResult:
    """A privacy condition evaluated on every equivalence class."""

    worst: float | None
    """The worst value over all classes; None if no class has one."""
    wanted: float
    """The value that the condition requires."""
    passes: Sequence[bool]
    """For each class, whether it satisfies the condition."""
    table_holds: bool = True
    """Whether the condition on all classes together holds, such as a limit on an average."""
    failing: int | None = None
    """For a condition on all rows instead of classes: the number of rows that fail."""
    reason: str = ""
    """For such a condition: why it fails."""


def without_missing(counts: Counts) -> Counts:
    """The counts without those of the missing value, which is no value.

    >>> without_missing({"flu": 3, None: 1})
    {'flu': 3}
    """
    return {value: count for value, count in counts.items() if value is not None}


def shares(counts: Counts) -> dict[str | None, float]:
    """Relative frequencies.

    >>> shares({"flu": 3, "cold": 1})
    {'flu': 0.75, 'cold': 0.25}
    """
    total = sum(counts.values())
    return {value: count / total for value, count in counts.items()}
