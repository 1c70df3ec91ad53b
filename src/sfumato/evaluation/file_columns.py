"""Attackers who know any released columns, for a file of any size: counted by GROUP BY instead of in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, prod

from sfumato.attacks import AnyColumns, Arm, Discloses, Outcome
from sfumato.evaluation.class_queries import ClassCounter

__all__ = ["file_columns"]

_NEARLY_ALL = 0.9
_COUNTED = 12
"""Sets of each size that are counted exactly: those with most combinations of values by an approximate count."""

_WIDEST = 40
"""Columns with most values, of which pairs and triples are formed."""


def file_columns(counter: ClassCounter, names: Sequence[str], truth: str) -> tuple[Outcome, ...]:
    """The expected success of the attacker who knows up to three of these columns, and of the one who knows all.

    The values of the columns must be true. Rows that show ``*`` in all columns of a set are suppressed, and nobody
    looks for a person there. Pairs and triples are ordered by the product of approximate distinct counts; the first
    dozen of each are counted.
    """
    width = dict(zip(names, counter.distinct(names), strict=True))
    telling = [name for name in names if width[name] > 1]
    if not counter.table.rows or not telling:
        return ()
    people = counter.table.rows if counter.people is None else counter.found(telling)[1]
    widest = sorted(telling, key=lambda name: -width[name])[:_WIDEST]
    best: tuple[float, tuple[str, ...]] = (0.0, ())
    searched = []
    for size in range(1, min(3, len(telling)) + 1):
        ordered = sorted(combinations(widest, size), key=lambda chosen: -prod(width[name] for name in chosen))
        counted = [(counter.found(chosen)[0], chosen) for chosen in ordered[:_COUNTED]]
        best = max(best, *counted, key=lambda pair: pair[0])
        searched.append(f"{len(counted)} of {comb(len(telling), size):,} sets of {size}")
        if best[0] >= _NEARLY_ALL * people:
            break
    everything = (counter.found(telling)[0], tuple(telling))
    return (
        _outcome(AnyColumns(), best, people, truth, "; ".join(searched)),
        _outcome(AnyColumns(most="all"), everything, people, truth, f"all {len(telling)} columns together"),
    )


def _outcome(
    attack: AnyColumns, found: tuple[float, tuple[str, ...]], people: int, truth: str, searched: str
) -> Outcome:
    return Outcome(
        attack=attack.part_name(),
        discloses=Discloses.IDENTITY,
        main=Arm(hits=found[0], trials=people),
        baseline=Arm(hits=1, trials=people),
        computed=True,
        claims=people,
        knows=found[1],
        any_columns=True,
        setting=attack.setting,
        detail={"searched": searched},
        truth=truth,
        threat=attack.summary(),
    )
