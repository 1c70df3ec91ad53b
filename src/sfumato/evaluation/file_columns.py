"""Attackers who know any released columns, for a file of any size: counted by GROUP BY instead of in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, prod
from pathlib import Path

from sfumato.attacks import AnyColumns, Arm, Discloses, Outcome
from sfumato.data import scan
from sfumato.data.sql_quoting import quoted_name

__all__ = ["file_columns"]

_NEARLY_ALL = 0.9
_COUNTED = 12
"""Sets of each size that are counted exactly: those with most combinations of values by an approximate count."""

_WIDEST = 40
"""Columns with most values, of which pairs and triples are formed."""


def file_columns(path: Path, names: Sequence[str], truth: str) -> tuple[Outcome, ...]:
    """The expected success of the attacker who knows up to three of these columns, and of the one who knows all.

    The values of the columns must be true. A set of columns finds one person per combination of values; rows that show
    ``*`` in all of them are suppressed, and nobody looks for a person there. Pairs and
    triples are ordered by the product of approximate distinct counts; the first dozen of each are counted.
    """
    source = scan(path)
    with source.connect() as connection:

        def row(statement: str) -> tuple[int, ...]:
            found = connection.execute(statement.replace("{source}", source.expression)).fetchone()
            assert found is not None
            return tuple(map(int, found))

        def classes(columns: Sequence[str]) -> int:
            quoted = [quoted_name(name) for name in columns]
            hidden = " AND ".join(f"CAST({name} AS VARCHAR) IS NOT DISTINCT FROM '*'" for name in quoted)
            return row(
                f"SELECT count(*) FROM (SELECT 1 FROM {{source}} WHERE NOT ({hidden}) GROUP BY {', '.join(quoted)})"
            )[0]

        distinct = ", ".join(f"approx_count_distinct({quoted_name(name)})" for name in names)
        rows, *sizes = row(f"SELECT count(*), {distinct} FROM {{source}}")
        width = dict(zip(names, sizes, strict=True))
        telling = [name for name in names if width[name] > 1]
        if not rows or not telling:
            return ()
        widest = sorted(telling, key=lambda name: -width[name])[:_WIDEST]
        best: tuple[int, tuple[str, ...]] = (0, ())
        searched = []
        for size in range(1, min(3, len(telling)) + 1):
            ordered = sorted(combinations(widest, size), key=lambda chosen: -prod(width[name] for name in chosen))
            counted = [(classes(chosen), chosen) for chosen in ordered[:_COUNTED]]
            best = max(best, *counted, key=lambda pair: pair[0])
            searched.append(f"{len(counted)} of {comb(len(telling), size):,} sets of {size}")
            if best[0] >= _NEARLY_ALL * rows:
                break
        everything = (classes(telling), tuple(telling))
    return (
        _outcome(AnyColumns(), best, rows, truth, "; ".join(searched)),
        _outcome(AnyColumns(most="all"), everything, rows, truth, f"all {len(telling)} columns together"),
    )


def _outcome(attack: AnyColumns, found: tuple[int, tuple[str, ...]], rows: int, truth: str, searched: str) -> Outcome:
    return Outcome(
        attack=attack.part_name(),
        discloses=Discloses.IDENTITY,
        main=Arm(hits=found[0], trials=rows),
        baseline=Arm(hits=1, trials=rows),
        computed=True,
        claims=rows,
        knows=found[1],
        any_columns=True,
        setting=attack.setting,
        detail={"searched": searched},
        truth=truth,
        threat=attack.summary(),
    )
