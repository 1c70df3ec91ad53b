"""String similarity of names and addresses: Jaro–Winkler similarity of distinct values.

Case, accents and punctuation are ignored, and words may be in any order. Every pair of distinct values is compared
once, within blocks if there are any, so that the cost does not grow with the number of rows.

Reference: Winkler, W. E. (1990). String comparator metrics and enhanced decision rules in the Fellegi–Sunter model of
record linkage. Proceedings of the Section on Survey Research Methods, American Statistical Association.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.normalize import folded
from sfumato.attacks.record_linkage.probabilistic_linkage.blocking import Blocks
from sfumato.progress import SILENT, Progress

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Group = tuple[Ints, Ints]

CUTS = (0.92, 0.8)
"""Minimum similarities of values that are nearly equal (level 1) and similar (level 2)."""

_PIECE = 4_000_000
"""Number of pairs that are compared at a time."""
_MAX_PAIRS = 500_000_000
"""Maximum number of compared pairs (about ten seconds); beyond it, only values with the same first letter."""
_MAX_CATEGORIES = 100
"""A text column with more distinct values than this may contain names."""


def free_text(known: pl.Series, released: pl.Series) -> bool:
    """Whether a column looks like names or addresses: text with many distinct values, most of which contain words."""
    if known.dtype != pl.String or released.dtype != pl.String:
        return False
    distinct = known.drop_nulls().unique()
    return len(distinct) > _MAX_CATEGORIES and bool((distinct.str.contains(r"\p{L}{3}").sum() or 0) * 2 > len(distinct))


def sorted_words(text: pl.Series) -> pl.Series:
    """Folded text with its words in alphabetical order, so that "Doe, Jane" equals "Jane Doe"."""
    return text.str.split(" ").list.sort().list.join(" ")


def similar_pairs(
    values: pl.Series,
    labels: pl.Series,
    known: Ints,
    released: Ints,
    blocks: Blocks,
    progress: Progress = SILENT,
) -> tuple[Ints, Ints, Bytes]:
    """Similar pairs of a known and a released value with their level: 0 equal, 1 nearly equal, 2 similar.

    ``known`` and ``released`` are the value numbers of each person and of each row.
    """
    left, right = folded(values), folded(labels)
    parts = [_compared(left, right, _groups(left, right, known, released, blocks), progress)]
    if any(text.str.contains(" ").any() for text in (left, right)):
        words = sorted_words(left), sorted_words(right)
        parts.append(_compared(*words, _groups(*words, known, released, blocks), progress))
    pair = np.concatenate([part[0] for part in parts])
    level = np.concatenate([part[1] for part in parts])
    # The better level of the two word orders counts; a pair may come from several blocks.
    order = np.lexsort((level, pair))
    pair, level = pair[order], level[order]
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    return pair[first] // len(right), pair[first] % len(right), level[first]


def _groups(left: pl.Series, right: pl.Series, known: Ints, released: Ints, blocks: Blocks) -> list[Group]:
    """Groups of values that are compared: all, or those in a common block, or those with the same first letter."""
    nonempty = [(text.is_not_null() & (text != "")).fill_null(False).to_numpy() for text in (left, right)]
    groups = [(np.flatnonzero(nonempty[0]), np.flatnonzero(nonempty[1]))]
    by_block = _groups_by_block(known, released, nonempty, blocks)
    if _cost(by_block) < _cost(groups):
        groups = by_block
    if _cost(groups) > _MAX_PAIRS:
        letter = pl.concat([left, right]).str.head(1).fill_null("").rank("dense").to_numpy()
        first, second = letter[: len(left)], letter[len(left) :]
        groups = [(a[first[a] == one], b[second[b] == one]) for a, b in groups for one in np.unique(first[a])]
    return groups


def _groups_by_block(known: Ints, released: Ints, nonempty: list[npt.NDArray[np.bool_]], blocks: Blocks) -> list[Group]:
    """For each block the distinct values on both sides."""
    sides = []
    for value, block, usable in ((known, blocks.person, nonempty[0]), (released, blocks.row, nonempty[1])):
        size = len(usable)
        both = np.unique((block * size + value)[usable[value]])
        sides.append((both // size, both % size))
    shared = np.intersect1d(sides[0][0], sides[1][0])
    edges = [(np.searchsorted(place, shared, "left"), np.searchsorted(place, shared, "right")) for place, _ in sides]
    return [
        (sides[0][1][edges[0][0][number] : edges[0][1][number]], sides[1][1][edges[1][0][number] : edges[1][1][number]])
        for number in range(len(shared))
    ]


def _cost(groups: list[Group]) -> int:
    return sum(len(a) * len(b) for a, b in groups)


def _compared(left: pl.Series, right: pl.Series, groups: list[Group], progress: Progress) -> tuple[Ints, Bytes]:
    """Similar pairs (as one number each) and their levels."""
    texts = np.array(left.to_list(), dtype=object), np.array(right.to_list(), dtype=object)
    pairs: list[Ints] = [np.empty(0, dtype=np.int64)]
    levels: list[Bytes] = [np.empty(0, dtype=np.uint8)]
    with progress.task(f"comparing strings of {left.name}", sum(len(a) for a, _ in groups)) as tick:
        for a, b in groups:
            others = texts[1][b].tolist()
            step = max(1, _PIECE // max(1, len(b)))
            for start in range(0, len(a), step):
                some = a[start : start + step]
                value, label, level = _scored(texts[0][some].tolist(), others)
                pairs.append(some[value] * len(right) + b[label])
                levels.append(level)
                tick(len(some))
    return np.concatenate(pairs), np.concatenate(levels)


def _scored(values: list[str], labels: list[str]) -> tuple[Ints, Ints, Bytes]:
    """Positions of the similar pairs, and their levels."""
    from rapidfuzz.distance import JaroWinkler
    from rapidfuzz.process import cdist

    score = cdist(
        values,
        labels,
        scorer=JaroWinkler.normalized_similarity,
        score_cutoff=CUTS[-1],
        dtype=np.float32,
        workers=-1 if len(values) * len(labels) > 100_000 else 1,
    )
    value, label = np.nonzero(score)
    similarity = score[value, label]
    # In single precision a similarity of 0.92 may be 0.91999.
    level = np.where(similarity >= 1.0, 0, np.where(similarity >= CUTS[0] - 1e-6, 1, 2)).astype(np.uint8)
    return value, label, level
