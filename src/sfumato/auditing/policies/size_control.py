"""Refuse queries about too few people, or about nearly all; and, if wanted, queries that overlap too much."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.auditing.set_policy import SetPolicy
from sfumato.query.policy.base import ExactResponder, Responder
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng


class SizeControl(SetPolicy):
    """Queries about fewer than ``smallest`` people, or about all but fewer than that, are refused; others are exact.

    Size alone protects nobody: a ``tracker`` pads the query and subtracts the padding. With ``overlap`` no two
    answered queries may share more people than that, which takes at least 1 + (smallest - 1) / overlap queries to
    get around, and answers very few queries altogether. In SQL the people are those whom columns that are not sensitive
    select: ``COUNT(*)`` with a condition on a sensitive column counts among them.
    """

    main = "smallest"
    limits_sets = True
    examples = ({"smallest": 5}, {"smallest": 5, "overlap": 2})
    promise = (
        "Queries about fewer than {smallest} people, or about all but fewer than {smallest}, are "
        "refused; others are exact."
    )
    broken_by = ("tracker",)
    reference = "Denning, Denning, Schwartz (1979), The tracker, doi:10.1145/320064.320069; Dobkin, Jones, Lipton (1979), doi:10.1145/320064.320068"  # noqa: E501

    smallest: Annotated[int, Field(ge=1)]
    """Fewest people a query may be about, and may leave out."""
    overlap: Annotated[int, Field(ge=0)] | None = None
    """Most people that two answered queries may share; no limit when left out."""

    def table_problem(self) -> str:
        if self.overlap is None:
            return ""
        return "overlap needs a memory of all queries, which this policy does not keep; use audit"

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self.smallest, self.overlap)


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], smallest: int, overlap: int | None) -> None:
        super().__init__(values)
        self._smallest, self._overlap = smallest, overlap
        self._answered = np.empty((0, -(-len(values) // 8)), np.uint8)

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        size = np.bitwise_count(queries).sum(axis=1, dtype=np.int64)
        refused = (size < self._smallest) | (size > self.people - self._smallest)
        if self._overlap is not None:
            for place in np.flatnonzero(~refused):
                query = queries[place]
                shared = np.bitwise_count(self._answered & query).sum(axis=1, dtype=np.int64)
                same = (self._answered == query).all(axis=1)
                refused[place] = bool((shared[~same] > self._overlap).any())
                if not refused[place] and not same.any():
                    self._answered = np.vstack([self._answered, query])
        return np.where(refused, np.nan, super().ask_all(queries))
