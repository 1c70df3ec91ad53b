"""Blocking: only people and rows that agree in a key are compared, so that large files need not be compared pairwise.

A key is a column's value, its first characters, or its sound (Soundex), so that a misspelt name can stay in its block.
Who differs in the key cannot be found; that is the price.

Reference of Soundex: Knuth, D. E. (1998). The Art of Computer Programming 3: Sorting and Searching, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import View
from sfumato.attacks.normalize import canonical, folded
from sfumato.data.row_codes import number_rows, value_codes

__all__ = ["Blocks", "Rule", "blocks", "keys", "soundex"]

Ints = npt.NDArray[np.int64]

Rule = Literal["exact", "sound"] | Annotated[int, Field(ge=1)]
"""Equal values, equal sound, or so many equal first characters."""


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Release rows sorted by block, and for each person where her block begins and ends among them."""

    order: Ints
    first: Ints
    last: Ints
    person: Ints
    """Per person, the number of her block."""
    row: Ints
    """Per release row, the number of its block."""

    @property
    def pairs(self) -> int:
        return int((self.last - self.first).sum())


_SOUNDS = {
    letter: digit for digit, letters in enumerate(("bfpv", "cgjkqsxz", "dt", "l", "mn", "r"), 1) for letter in letters
}


def soundex(text: str) -> str:
    """The Soundex code of a name; letters that are not English are skipped.

    >>> soundex("Robert"), soundex("Rupert"), soundex("Ashcraft"), soundex("Tymczak")
    ('R163', 'R163', 'A261', 'T522')
    """
    letters = [letter for letter in text.lower() if "a" <= letter <= "z"]
    if not letters:
        return ""
    code, last = letters[0].upper(), _SOUNDS.get(letters[0])
    for letter in letters[1:]:
        sound = _SOUNDS.get(letter)
        if sound is not None and sound != last:
            code += str(sound)
        if letter not in "hw":
            last = sound
    return code[:4].ljust(4, "0")


def keys(series: pl.Series, rule: Rule) -> pl.Series:
    """The key of each value; a missing value has the key of other missing ones."""
    match rule:
        case "exact":
            return canonical(series).fill_null("")
        case "sound":
            plain = folded(canonical(series)).fill_null("")
            distinct = plain.unique()
            sounds = pl.Series([soundex(text) for text in distinct.to_list()], dtype=pl.String)
            return plain.replace_strict(distinct, sounds, return_dtype=pl.String)
        case int(length):
            return folded(canonical(series)).fill_null("").str.head(length)


def blocks(view: View, rules: Mapping[str, Rule]) -> Blocks:
    """Who is compared with which rows."""
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
