"""Query attacks through SQL: the attacker sends texts to a session and sees answers and refusals, nothing else.

The secret of each person is one bit. For a column of numbers the bit is whether the number is above a threshold, and
answers are sums of the column; for other columns it is whether the person has a given value, and answers are counts
with a condition on the column.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.query._subset_sql import PeopleConditions
from sfumato.data.sql_quoting import quoted_name
from sfumato.errors import AnswerDenied, AnswerFailed, NotApplicable, OverBudget, QueryRefused
from sfumato.query.dbapi import literal_text
from sfumato.query.policy.base import SubsetResponder
from sfumato.query.policy.subsets import Bits


@dataclass(frozen=True, kw_only=True)
class SecretBit:
    """What the attacker wants to know about each person."""

    column: str
    sums: bool
    """Whether answers are sums of the column; otherwise counts of the people whose bit is 1."""
    value: Any = None
    """For columns without numbers: the bit is whether the person has this value."""
    threshold: float | None = None
    """For numbers: the bit is whether the number is larger than this."""
    low: float = 0.0
    high: float = 1.0
    """Range of the numbers."""

    def bits(self, series: pl.Series) -> npt.NDArray[np.int8]:
        """The true bits."""
        held = series == self.value if self.threshold is None else series > self.threshold
        return held.fill_null(value=False).to_numpy().astype(np.int8)

    @property
    def condition(self) -> str:
        """The bit as an SQL condition."""
        name = quoted_name(self.column)
        return (
            f"{name} = {literal_text(self.value)}"
            if self.threshold is None
            else f"{name} > {literal_text(self.threshold)}"
        )

    @property
    def number(self) -> str:
        """The number whose sums are asked, as an SQL expression."""
        return quoted_name(self.column) if self.sums else f"CASE WHEN {self.condition} THEN 1 ELSE 0 END"

    def scaled(self, total: float, people: int) -> float:
        """A sum over people, such that each person counts between 0 and 1, and above 0.5 iff the bit is 1."""
        if not self.sums or self.threshold is None:
            return total
        reach = 2 * max(self.high - self.threshold, self.threshold - self.low)
        return (total - people * self.threshold) / reach + people / 2


def secret_bit(
    series: pl.Series, *, low: float | None = None, high: float | None = None, sums: bool = True
) -> SecretBit:
    """The bit that is hard to guess without answers: above the median, or the most frequent value.

    ``low`` and ``high`` are the declared bounds; the observed ones if left out. ``sums`` False asks counts only.
    """
    column = series.name
    if series.drop_nulls().n_unique() < 2:
        raise NotApplicable(f"`{column}` has one value only, so there is nothing to learn.")
    if series.dtype.is_numeric():
        values = series.drop_nulls().unique().sort().to_numpy().astype(np.float64)
        shares = np.searchsorted(np.sort(series.drop_nulls().to_numpy()), values[:-1], side="right") / series.count()
        cut = int(np.argmin(np.abs(shares - 0.5)))
        return SecretBit(
            column=column, sums=sums and not series.null_count(), threshold=float((values[cut] + values[cut + 1]) / 2),
            low=float(values[0]) if low is None else low, high=float(values[-1]) if high is None else high,
        )  # fmt: skip
    counted = series.drop_nulls().value_counts().sort(["count", column], descending=[True, False])
    return SecretBit(column=column, sums=False, value=counted[column][0])


class SqlResponder(SubsetResponder):
    """Asks a session about sets of people in SQL.

    A refusal is None: by the text, by the policy, or because the budget is spent. After ``seconds`` nothing is asked
    any more.
    """

    def __init__(
        self, ask: Callable[[str], Any], *, table: str, people: PeopleConditions, secret: SecretBit,
        seconds: float | None = None, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        super().__init__(people.people)
        self._ask, self._clock = ask, clock
        self.table, self.conditions, self.secret = quoted_name(table), people, secret
        self._until = math.inf if seconds is None else clock() + seconds
        self.stopped = False
        """Whether the time was up before everything was asked."""
        self.spent = False
        """Whether the budget is spent; then only earlier texts are asked again."""
        self._texts: set[str] = set()
        self.asked = self.refused = 0
        self.texts_refused = 0
        """Queries that were refused because of their text."""

    def ask(self, query: Bits) -> float | None:
        condition = self.conditions.of(query)
        if self.secret.sums:
            answer = self.ask_sql(self.select(f"SUM({self.secret.number})", condition))
        else:
            holds = self.secret.condition
            answer = self.ask_sql(self.select("COUNT(*)", f"{holds} AND ({condition})" if condition else holds))
        return None if answer is None else self.secret.scaled(answer, int(np.bitwise_count(query).sum()))

    def random_subsets(self, count: int, rng: np.random.Generator) -> Bits:
        self.conditions.forget()
        return self.conditions.random_halves(count, rng)

    def select(self, aggregate: str, condition: str = "") -> str:
        """The text of a query."""
        return f"SELECT {aggregate} FROM {self.table}" + (f" WHERE {condition}" if condition else "")

    def ask_sql(self, text: str) -> float | None:
        """The number that the session answers to a text; None for a refusal."""
        answer = self._answer(text)
        self.asked += 1
        self.refused += answer is None
        return answer

    def _answer(self, text: str) -> float | None:
        if self.stopped or self._clock() >= self._until:
            self.stopped = True
            return None
        if self.spent and text not in self._texts:
            return None
        try:
            value = self._ask(text).value
        except OverBudget:
            self.spent = True
            return None
        except QueryRefused:
            self.texts_refused += 1
            return None
        except (AnswerDenied, AnswerFailed):
            return None
        self._texts.add(text)
        return None if value is None or isinstance(value, str) else float(value)
