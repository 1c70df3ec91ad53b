"""Smallest query set: base of policies that refuse queries about too few people."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.auditing.set_policy import SetPolicy
from sfumato.query.policy.subsets import Bits


class SmallestSetPolicy(SetPolicy):
    """A policy that answers about ``smallest`` people or more."""

    limits_sets: ClassVar[bool] = True

    smallest: Annotated[int, Field(ge=1)] | None = None
    """Fewest people a query may be about. Required in a metadata file."""

    def table_problem(self) -> str:
        return "" if self.smallest else "set `smallest`, the fewest people a query may be about"

    def large_enough(self, queries: Bits) -> npt.NDArray[np.bool_]:
        """Which subsets have enough people."""
        size = np.bitwise_count(queries).sum(axis=-1, dtype=np.int64)
        return np.asarray(size >= (self.smallest or 0))
