"""What is asked: rows, group keys, aggregates and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato.engines.expressions import Expression
from sfumato.query.plan.aggregates import Aggregate, FittingUnits
from sfumato.query.plan.canonical import canonical_form
from sfumato.query.plan.outputs import Output
from sfumato.query.plan.relational import PlanNode
from sfumato.query.plan.row_steps import RowStep
from sfumato.query.plan.scalar import Scalar

ContributionLimits = tuple[int | None, int | None, int | None]

DEFAULT_CONFIDENCE = Fraction(19, 20)
"""Probability with which an interval holds, unless the query says CONFIDENCE."""


@dataclass(frozen=True, kw_only=True)
class ErrorTarget:
    """The largest acceptable error, requested behind the query: ``ERROR 50 CONFIDENCE 95%``."""

    size: Fraction
    relative: bool
    confidence: Fraction


@dataclass(frozen=True, kw_only=True)
class GroupKey:
    """One GROUP BY expression; ``values`` are its public values, None where the keys are private."""

    scalar: Scalar
    values: tuple[Any, ...] | None


@dataclass(frozen=True, kw_only=True)
class Query:
    """A parsed query. It depends only on the text of the query and on the public catalog, never on private data."""

    rows: PlanNode
    keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[tuple[str, Output], ...]
    steps: tuple[RowStep, ...]
    """What is done with the noisy rows before SELECT."""
    limits: ContributionLimits
    """(rows, groups, typical groups) of one unit as declared; where each row is a unit, copies of a row and 1."""
    target: ErrorTarget | None = None
    confidence: Fraction = DEFAULT_CONFIDENCE
    """Probability with which intervals and stated errors hold: that of the ERROR clause."""
    looks: int = 1
    """Number of answers of which the one that is shown is chosen by its noisy value."""
    assumed: tuple[Expression, ...] = ()
    """Conditions of rows whose number is clipped to bounds that only the declared limits imply."""
    possible: tuple[int, ...] | None = None
    """Numbers of the groups that can have rows, among all combinations of public keys; None: all."""

    @property
    def public_keys(self) -> bool:
        return all(key.values is not None for key in self.keys)

    @property
    def groups(self) -> int | None:
        """Number of groups in the answer; None where the keys are private."""
        return self.combinations if self.possible is None else len(self.possible)

    @property
    def combinations(self) -> int | None:
        """Number of combinations of the keys' values, also of those that cannot occur; None where keys are private."""
        count = 1
        for key in self.keys:
            if key.values is None:
                return None
            count *= len(key.values)
        return count

    @property
    def fitting(self) -> int | None:
        """Index of the aggregate that counts the units which the contribution limits fit and cut; None without one."""
        return next((i for i, m in enumerate(self.aggregates) if isinstance(m, FittingUnits)), None)

    @cached_property
    def fingerprint(self) -> tuple[str, tuple[int, ...]]:
        """Hash of what is measured, and the order of the keys in it.

        Queries with the same rows, keys in any order, and aggregates have the same fingerprint. Which groups are
        possible follows from rows and keys.
        """
        return canonical_form(self.rows, self.keys, (self.aggregates, self.limits, self.assumed))
