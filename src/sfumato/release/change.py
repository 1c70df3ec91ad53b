"""The outcome of a masking step: the new table, its row map, and what is public or private about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.data.table import Table
from sfumato.release.verdict import Verdict
from sfumato.wording import counted

Rows = npt.NDArray[np.int64]


class Lineage:
    """The secret row map: for each row of the release, the row of the original it came from (-1: none).

    It is never part of a release: it reverses all protection of identity.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: Rows) -> None:
        self.rows = np.array(rows, dtype=np.int64)
        self.rows.setflags(write=False)

    @classmethod
    def identity(cls, count: int) -> Lineage:
        return cls(np.arange(count, dtype=np.int64))

    def then(self, rows: Rows | None) -> Lineage:
        """Compose with one more step, whose output row i came from its input row ``rows[i]``."""
        if rows is None:
            return self
        known = rows >= 0  # a synthetic row has no original, also where there are no input rows at all
        origin = np.full(len(rows), -1, dtype=np.int64)
        origin[known] = self.rows[rows[known]]
        return Lineage(origin)

    def release_row(self, original_rows: int) -> Rows:
        """The inverse: for each row of the original its row in the release, or -1 if it is not in it."""
        inverse = np.full(original_rows, -1, dtype=np.int64)
        known = self.rows >= 0
        inverse[self.rows[known]] = np.flatnonzero(known)
        return inverse

    def __repr__(self) -> str:
        return f"<Lineage of {counted(len(self.rows), 'row')}>"


@dataclass(frozen=True, kw_only=True)
class Change:
    """The outcome of one step."""

    table: Table
    rows: Rows | None = None
    """Output row i came from input row rows[i]; -1 for a synthetic row; None if rows are unchanged."""
    public: Mapping[str, Any] = field(default_factory=dict)
    """Public outcome, published with the parameters: the chosen levels, for example."""
    private: Mapping[str, object] = field(default_factory=dict)
    """Private outcome, for the data owner only: the number of suppressed records, for example."""
    touched: frozenset[str] = frozenset()
    """Identifier columns that this step made safe to release, such as pseudonyms."""
    verdicts: tuple[Verdict, ...] = ()
    """What the step itself guarantees about its table and everything made from it."""
