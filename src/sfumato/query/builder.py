"""Queries without SQL: a small builder that writes the query for you and so compiles to the same plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

from sfumato.data.sql_quoting import quoted_name
from sfumato.errors import BadParameter

if TYPE_CHECKING:
    from sfumato.query.results.explain import Explanation
    from sfumato.query.session import Answer, QueryOptions, Session


@dataclass(frozen=True, kw_only=True)
class Builder:
    """A query under construction; every method gives a new one.

    >>> from sfumato.demos.private_hospital import flu
    >>> query = flu(people=100).table("patients").where("age >= 18").by("ward").count("n").mean("age")
    >>> print(query.sql)
    SELECT "ward", COUNT(*) AS "n", AVG("age") AS "mean_age" FROM "patients" WHERE (age >= 18) GROUP BY "ward"
    """

    session: Session
    source: str
    conditions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    items: tuple[tuple[str, str], ...] = ()

    def where(self, condition: str) -> Builder:
        """Only rows for which this SQL condition holds; several conditions all hold."""
        return replace(self, conditions=(*self.conditions, condition))

    def by(self, *columns: str) -> Builder:
        """One answer per combination of these columns' values."""
        return replace(self, keys=(*self.keys, *columns))

    def _with(self, expression: str, name: str) -> Builder:
        return replace(self, items=(*self.items, (expression, name)))

    def count(self, name: str = "count") -> Builder:
        return self._with("COUNT(*)", name)

    def count_distinct(self, column: str, name: str | None = None) -> Builder:
        return self._with(f"COUNT(DISTINCT {quoted_name(column)})", name or f"distinct_{column}")

    def sum(self, column: str, name: str | None = None) -> Builder:
        return self._with(f"SUM({quoted_name(column)})", name or f"sum_{column}")

    def mean(self, column: str, name: str | None = None) -> Builder:
        return self._with(f"AVG({quoted_name(column)})", name or f"mean_{column}")

    def variance(self, column: str, name: str | None = None) -> Builder:
        return self._with(f"VARIANCE({quoted_name(column)})", name or f"variance_{column}")

    def quantile(self, column: str, rank: float = 0.5, name: str | None = None) -> Builder:
        return self._with(f"QUANTILE_CONT({quoted_name(column)}, {rank})", name or f"quantile_{column}")

    @property
    def sql(self) -> str:
        """The query, as it will be read."""
        if not self.items:
            raise BadParameter("the query has no aggregate yet.", fix="Use .count(), .sum(column), .mean(column), ...")
        shown = [
            *map(quoted_name, self.keys),
            *(f"{expression} AS {quoted_name(name)}" for expression, name in self.items),
        ]
        text = f"SELECT {', '.join(shown)} FROM {quoted_name(self.source)}"
        if self.conditions:
            text += " WHERE " + " AND ".join(f"({condition})" for condition in self.conditions)
        return text + (f" GROUP BY {', '.join(map(quoted_name, self.keys))}" if self.keys else "")

    def explain(self, **options: Unpack[QueryOptions]) -> Explanation:
        """Cost and expected error, as :meth:`Session.explain`."""
        return self.session.explain(self.sql, **options)

    def ask(self, **options: Unpack[QueryOptions]) -> Answer:
        """The private answer, as :meth:`Session.ask`."""
        return self.session.ask(self.sql, **options)
