"""Descriptions of people, tried on a table: does exactly one person fit?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Predicate
from sfumato.attacks.candidate_rows import Comparison, compare
from sfumato.attacks.normalize import canonical
from sfumato.data.table import Table
from sfumato.errors import BadParameter
from sfumato.release import Release

__all__ = ["isolated", "shuffled"]

Bools = npt.NDArray[np.bool_]


def isolated(predicates: Iterable[Predicate], frame: pl.DataFrame, released: Table) -> Bools:
    """For each description whether exactly one row of ``frame`` fits it. Coarse values fit what they may stand for."""
    compared: dict[str, tuple[Comparison, dict[str | None, int]]] = {}
    found = []
    for predicate in predicates:
        fits = np.ones(frame.height, dtype=np.bool_)
        for column, sign, value in predicate.conditions:
            if sign == "=":
                if column not in compared:
                    comparison = compare(frame[column], released.column(column))
                    labels = canonical(comparison.labels).to_list()
                    compared[column] = comparison, {label: code for code, label in enumerate(labels)}
                comparison, codes = compared[column]
                code = codes[canonical(pl.Series([value])).to_list()[0]]
                owner = np.repeat(np.arange(len(comparison.values)), np.diff(comparison.starts))
                held = np.zeros(len(comparison.values), dtype=np.bool_)
                held[owner[comparison.fits == code]] = True
                fits &= held[comparison.known]
            elif sign in ("<=", ">="):
                level = frame[column]
                if level.dtype.is_numeric() != isinstance(value, int | float):
                    level = level.cast(pl.Float64, strict=False)
                side = level <= value if sign == "<=" else level >= value
                fits &= side.fill_null(False).to_numpy()
            else:
                raise BadParameter(f"A condition has the sign =, <= or >=, not {sign!r}.", sign=sign)
        found.append(int(fits.sum()) == 1)
    return np.array(found, dtype=np.bool_)


def shuffled(release: Release, names: tuple[str, ...], draw: np.random.Generator) -> Release:
    """The release with these columns put in random order, each for itself."""
    frame = release.table.frame
    columns = [frame[name].gather(draw.permutation(frame.height)) for name in names]
    return Release(table=release.table.with_frame(frame.with_columns(columns)), manifest=release.manifest)
