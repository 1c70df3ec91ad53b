"""Blocking: only people and rows that agree in a key are compared, so that large files need no pairwise comparison.

A key is the value of a column, its first characters, or its Soundex code, so that a misspelt name can stay in its
block. A person who differs from their row in the key cannot be found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import View
from sfumato.attacks.normalize import canonical, folded
from sfumato.data.row_codes import number_rows, value_codes

Ints = npt.NDArray[np.int64]

_SOUNDS = {
    letter: str(digit)
    for digit, letters in enumerate(("bfpv", "cgjkqsxz", "dt", "l", "mn", "r"), start=1)
    for letter in letters
}
"""Consonants that sound alike; vowels have no digit."""
Rule = Literal["exact", "sound"] | Annotated[int, Field(ge=1)]
"""Equal values, equal Soundex codes, or this many equal leading characters."""


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Release rows sorted by block, and for each person where their block starts and ends among them."""

    order: Ints
    first: Ints
    last: Ints
    person: Ints
    """The block number of each person."""
    row: Ints
    """The block number of each release row."""

    @property
    def pairs(self) -> int:
        """The number of pairs of person and row in the same block."""
        return int((self.last - self.first).sum())


def keys(series: pl.Series, rule: Rule) -> pl.Series:
    """The blocking key of each value; all missing values share one key."""
    match rule:
        case "exact":
            return canonical(series).fill_null("")
        case "sound":
            plain = folded(canonical(series)).fill_null("")
            distinct = plain.unique()
            letters = distinct.str.replace_all(r"[^a-z]", "")
            codes = pl.Series([soundex(text) for text in letters.to_list()], dtype=pl.String)
            return plain.replace_strict(distinct, codes, return_dtype=pl.String)
        case int(length):
            return folded(canonical(series)).fill_null("").str.head(length)


def soundex(letters: str) -> str:
    """The American Soundex code of lower case letters: the first one, and three digits for the consonants that follow.

    Neighbours of one class count once; `h` and `w` do not part neighbours, vowels do.

    >>> soundex("ashcraft"), soundex("pfister"), soundex("")
    ('A261', 'P236', '')
    """
    if not letters:
        return ""
    heard = letters[0] + letters[1:].translate({ord("h"): None, ord("w"): None})
    digits = [_SOUNDS.get(letter, "") for letter in heard]
    code = "".join(digit for before, digit in pairwise(digits) if digit != before)
    return f"{letters[0].upper()}{code[:3]:0<3}"


def blocks(view: View, rules: Mapping[str, Rule]) -> Blocks:
    """The rows that each target is compared with; all rows without rules."""
    people, rows = view.targets.height, view.release.table.rows
    if not rules:
        return Blocks(
            order=np.arange(rows, dtype=np.int64),
            first=np.zeros(people, dtype=np.int64),
            last=np.full(people, rows, dtype=np.int64),
            person=np.zeros(people, dtype=np.int64),
            row=np.zeros(rows, dtype=np.int64),
        )
    codes = []
    for name, rule in rules.items():
        both = pl.concat([keys(view.targets.get_column(name), rule), keys(view.release.table.column(name), rule)])
        codes.append(value_codes(both)[0])
    label, _ = number_rows(codes)
    known, released = label[:people], label[people:]
    order = np.argsort(released, kind="stable").astype(np.int64)
    edges = np.searchsorted(released[order], np.arange(int(label.max()) + 2))
    first, last = edges[known].astype(np.int64), edges[known + 1].astype(np.int64)
    return Blocks(order=order, first=first, last=last, person=known, row=released)
