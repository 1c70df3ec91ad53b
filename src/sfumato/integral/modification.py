"""Modifications of a data set: deletions, insertions and amendments of records, counted by cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from math import factorial, perm, prod

from sfumato.integral.encoding import Codes, Encoding

NOWHERE = -1
"""Stands for the cell of a record that is not in the data: before an insertion, after a deletion."""

Step = tuple[int, int]
"""One record moves from a cell to a cell."""


class ChangeKind(StrEnum):
    """What may happen to one record."""

    DELETION = "deletion"
    INSERTION = "insertion"
    AMENDMENT = "amendment"


@dataclass(frozen=True, kw_only=True)
class Modification:
    """A modification μ of a data set: how many records move from which cell to which.

    >>> Modification.of([(3, NOWHERE), (3, NOWHERE), (NOWHERE, 1)]).steps
    (((-1, 1), 1), ((3, -1), 2))
    """

    steps: tuple[tuple[Step, int], ...]

    @classmethod
    def of(cls, steps: list[Step]) -> Modification:
        return cls(steps=tuple(sorted(Counter(steps).items())))

    @property
    def size(self) -> int:
        """Number of records that change."""
        return sum(count for _, count in self.steps)

    def taken(self) -> dict[int, int]:
        """How many records each cell loses."""
        lost: Counter[int] = Counter()
        for (source, _), count in self.steps:
            if source != NOWHERE:
                lost[source] += count
        return dict(lost)

    def given(self) -> dict[int, int]:
        """How many records each cell gains."""
        gained: Counter[int] = Counter()
        for (_, target), count in self.steps:
            if target != NOWHERE:
                gained[target] += count
        return dict(gained)

    def applies(self, available: Codes) -> bool:
        """Whether there are enough records, and no step undoes another: no cell both loses and gains a record."""
        taken = self.taken()
        enough = all(count <= available[cell] for cell, count in taken.items())
        return enough and not taken.keys() & self.given().keys()

    def ways(self, available: Codes) -> int:
        """The number of choices of people that this modification stands for.

        >>> import numpy as np
        >>> Modification.of([(0, NOWHERE), (0, NOWHERE)]).ways(np.array([5]))
        10
        """
        orders = prod(perm(int(available[cell]), count) for cell, count in self.taken().items())
        return orders // prod(factorial(count) for (source, _), count in self.steps if source != NOWHERE)

    def contains(self, other: Modification) -> bool:
        """Whether ``other`` is part of this modification (the order of the lattice)."""
        own = dict(self.steps)
        return all(own.get(step, 0) >= count for step, count in other.steps)

    def text(self, cells: Codes, encoding: Encoding) -> str:
        """The modification in words. It names the codes of people's records: confidential."""

        def record(cell: int) -> str:
            pairs = zip(encoding.columns, cells[cell], strict=True)
            return "(" + ", ".join(column.text(int(code)) for column, code in pairs) + ")"

        def step(source: int, target: int, count: int) -> str:
            if target == NOWHERE:
                return f"delete {count} of {record(source)}"
            if source == NOWHERE:
                return f"insert {count} of {record(target)}"
            return f"amend {count} of {record(source)} to {record(target)}"

        return "; ".join(step(source, target, count) for (source, target), count in self.steps)

    def submodifications(self) -> set[Modification]:
        """All proper parts that change at least one record."""
        flat = [step for step, count in self.steps for _ in range(count)]
        return {Modification.of(list(part)) for size in range(1, len(flat)) for part in combinations(flat, size)}
