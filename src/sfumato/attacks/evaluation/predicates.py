"""Evaluation of predicates on a table: which of them isolate exactly one row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Predicate
from sfumato.attacks.normalize import canonical
from sfumato.attacks.value_coverage import Coverage, coverage
from sfumato.errors import BadParameter
from sfumato.release import Release

Bools = npt.NDArray[np.bool_]


def isolated(predicates: Sequence[Predicate], frame: pl.DataFrame, release: Release) -> Bools:
    """For each predicate whether exactly one row of ``frame`` satisfies it.

    A coarse value is equal to every value that it may represent, by its notation or the published hierarchy.
    """
    compared: dict[str, tuple[Coverage, dict[str | None, int]]] = {}
    isolating = []
    for predicate in predicates:
        satisfied = np.ones(frame.height, dtype=np.bool_)
        for column, operator, value in predicate.conditions:
            if operator == "=":
                if column not in compared:
                    compared[column] = _read(column, predicates, frame, release)
                read, codes = compared[column]
                code = codes[_text(value)]
                covered = np.zeros(len(read.values), dtype=np.bool_)
                covered[read.members[read.starts[code] : read.stops[code]]] = True
                satisfied &= covered[read.known]
            elif operator in ("<=", ">="):
                level = frame[column]
                if level.dtype.is_numeric() != isinstance(value, int | float):
                    level = level.cast(pl.Float64, strict=False)
                side = level <= value if operator == "<=" else level >= value
                satisfied &= side.fill_null(False).to_numpy()
            else:
                raise BadParameter(f"The operator of a condition is =, <= or >=, not {operator!r}.", sign=operator)
        isolating.append(int(satisfied.sum()) == 1)
    return np.array(isolating, dtype=np.bool_)


def _text(value: object) -> str | None:
    """A value of a condition in canonical spelling."""
    return value if isinstance(value, str) else canonical(pl.Series([value])).to_list()[0]


def _read(
    column: str, predicates: Iterable[Predicate], frame: pl.DataFrame, release: Release
) -> tuple[Coverage, dict[str | None, int]]:
    """What the released values of a column and those that predicates name cover, and the number of each."""
    named = dict.fromkeys(
        _text(value) for each in predicates for name, sign, value in each.conditions if (name, sign) == (column, "=")
    )
    released = release.table.column(column).unique()
    if not named.keys() <= set(canonical(released).to_list()):
        released = pl.concat([canonical(released), pl.Series(list(named), dtype=pl.String)])
    declared = release.manifest.get("columns", {}).get(column, {}).get("hierarchy")
    read = coverage(frame[column], released, declared)
    return read, {label: code for code, label in enumerate(read.text.to_list())}


def shuffled(release: Release, names: tuple[str, ...], draw: np.random.Generator) -> Release:
    """The release with each of these columns shuffled independently."""
    frame = release.table.frame
    columns = [frame[name].gather(draw.permutation(frame.height)) for name in names]
    return Release(table=release.table.with_frame(frame.with_columns(columns)), manifest=release.manifest)
