"""A column that splits people into disjoint parts: nobody is in two of its declared values, however a value is written.

That holds if every value is declared in the exact type in which the column is read, and no comparison of an engine or
a file format could take two of them for one: not `1` and `1.0`, not `east` and `East`, not `east` and `east` with a
blank at its end.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.dataset.column import Column, Kind
from sfumato.dataset.domain import ValuesDomain

_TYPES: Mapping[Kind, type[int | str]] = {Kind.INTEGER: int, Kind.CATEGORY: str}
_LONGEST = 200
"""Characters of a declared text. Engines cut texts that are very long, so that two of them could become one."""


@dataclass(frozen=True, kw_only=True)
class PartColumn:
    """A declared column whose values are parts of a data set.

    >>> floor = PartColumn.of("floor", Column(kind="integer", domain={"values": [1, 2]}))
    >>> [floor.holds(value) for value in (1, 3, 1.0, True, "1")]
    [True, False, False, False, False]
    """

    name: str
    kind: Kind
    values: tuple[int | str, ...]
    """The parts, each an exact value of the kind."""

    @classmethod
    def of(cls, name: str, column: Column) -> PartColumn:
        """ValueError, in words that follow the name of the column, where two parts could have a person in common."""
        written = None if column.kind is None else _TYPES.get(column.kind)
        if (
            column.kind is None
            or written is None
            or not isinstance(column.domain, ValuesDomain)
            or column.missing_codes
        ):
            raise ValueError(
                "is not a column of kind category or integer with declared `values`, and without missing codes"
            )
        values = tuple(value for value in column.domain.values if type(value) is written)
        if any(value is not None and type(value) is not written for value in column.domain.values):
            what = "a whole number, without a decimal point" if written is int else "a text, in quotation marks"
            raise ValueError(f"splits people into parts, so each of its `values` must be {what}")
        if any(isinstance(value, int) and not -(1 << 63) <= value < 1 << 63 for value in values):
            raise ValueError("splits people into parts, so its `values` must be whole numbers of 64 bits")
        if any(isinstance(value, str) and (value != value.strip() or len(value) > _LONGEST) for value in values):
            raise ValueError(
                f"splits people into parts, so its `values` must have no blanks at their ends and at most {_LONGEST} "
                "characters"
            )
        if len({_widest(value) for value in values}) < len(values):
            raise ValueError("splits people into parts, so its `values` must differ in more than capitals and spelling")
        return cls(name=name, kind=column.kind, values=values)

    def holds(self, value: object) -> bool:
        """Whether a value is one of the parts, in the exact type of the column."""
        return type(value) is _TYPES[self.kind] and value in self.values


def _widest(value: int | str) -> int | str:
    """What all values that any comparison takes for this one have in common."""
    if isinstance(value, int):
        return value
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold())
