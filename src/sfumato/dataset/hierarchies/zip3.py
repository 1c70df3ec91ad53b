"""Hierarchy of ZIP codes as HIPAA Safe Harbor allows them."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import StringConstraints

from sfumato.dataset.hierarchy import ROOT, BoundHierarchy, Hierarchy

ThreeDigits = Annotated[str, StringConstraints(pattern=r"^\d{3}$")]

SMALL_AREAS = (
    *("036", "059", "063", "102", "203", "556", "692", "790", "821"),
    *("823", "830", "831", "878", "879", "884", "890", "893"),
)
"""Areas of 20,000 people or fewer in the Census of 2000: Department of Health and Human Services (2012), Guidance
regarding methods for de-identification of protected health information, section 3.2."""


class Zip3Hierarchy(Hierarchy):
    """The first three digits of a ZIP code, and ``000`` for areas of 20,000 people or fewer: 02141, then 021**.

    What is not a ZIP code of five or nine digits also becomes ``000**``.

    >>> bound = Zip3Hierarchy.build({}).bind("zip", pl.Series(["02141", "03601", "94105-1234", "n/a"]))
    >>> bound.rows()[:3]
    [['02141', '021**', '*'], ['03601', '000**', '*'], ['94105-1234', '941**', '*']]
    """

    main: ClassVar[str | None] = None
    examples = ({}, {"small": ["941"]})
    sample = ("02141", "02139", "94105", "03601")

    small: tuple[ThreeDigits, ...] = SMALL_AREAS
    """First three digits of the small areas. Default: the list that the Department of Health and Human Services made
    from the Census of 2000. The rule asks for current data."""

    def level_in_words(self, level: int) -> str:
        return "first three digits, 000 for small areas" if level == 1 else super().level_in_words(level)

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        leaves = values.unique().sort()
        text = leaves.cast(pl.String)
        if leaves.dtype.is_integer():
            text = text.str.zfill(5)
        area = text.str.extract(r"^(\d{3})\d{2}(?:-?\d{4})?$")
        known = area.is_not_null() & ~area.is_in(self.small)
        labels = pl.select(pl.when(known).then(area).otherwise(pl.lit("000")) + "**").to_series()
        return BoundHierarchy.from_labels(column, leaves, [labels, [ROOT] * len(leaves)])
