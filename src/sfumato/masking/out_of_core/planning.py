"""From a decision on the compressed table to what each column of the source becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.masking.base import Step
from sfumato.masking.equivalence_classes import EquivalenceClasses, number_rows
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.methods.pseudonymize import Pseudonymize
from sfumato.masking.out_of_core.counts import CodedColumn
from sfumato.masking.out_of_core.sqlgen import ReleasePlan

__all__ = ["Identifiers", "laid_out"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Identifiers:
    """What becomes of the columns that name people."""

    removed: frozenset[str]
    replaced: Mapping[str, Pseudonymize]
    told: tuple[tuple[Step, tuple[str, ...]], ...]
    """Each step with the columns it took."""


def laid_out(
    columns: Sequence[str],
    coded: Sequence[CodedColumn],
    general: Generalize,
    table: EquivalenceClasses,
    levels: Sequence[int],
    whole: Mask,
    partly: Mask,
    identifiers: Identifiers,
    *,
    order: str,
) -> tuple[ReleasePlan, dict[str, pl.DataFrame]]:
    """The plan of the statement, and the small tables it joins."""
    number = {name: i for i, name in enumerate(columns)}
    quasi = [number[name] for name in table.columns]
    kept = [i for i, name in enumerate(columns) if name not in identifiers.removed]
    drop = general.suppressed == "remove"
    occurs = table.sizes > 0
    whole, partly = whole & occurs, partly & occurs
    starred = quasi if whole.any() and not drop else []
    in_part = [number[name] for name in general.only or ()] if partly.any() else []
    constants: dict[int, str] = {}
    maps: dict[int, bool] = {}
    tables: dict[str, pl.DataFrame] = {}
    keys: list[pl.Series] = []
    failed = _one_of_each(table, levels, whole | partly)
    for position, (column, level) in enumerate(zip(coded, levels, strict=True)):
        i = column.number
        as_text = level > 0 or i in starred or i in in_part
        values, hierarchy = column.values, column.hierarchy
        labels = hierarchy.decode(hierarchy.encode(values), level) if level else values
        labels = labels.cast(pl.String) if as_text else labels
        if level and hierarchy.levels[level].size == 1 and not labels.null_count():
            constants[i] = str(labels[0])
        elif as_text:
            tables[f"map_{i}"] = pl.DataFrame({"value": values, "label": labels})
            maps[i] = bool((values.is_null() & labels.is_not_null()).any())
        # the label that a failing class shows, by way of any value with the same number
        place = np.zeros(column.width, dtype=np.intp)
        place[column.codes] = np.arange(len(column.codes))
        keys.append(labels.gather(place[table.codes[failed, position]]).alias(f"k{i}"))
    plan = ReleasePlan(
        columns=columns,
        kept=kept,
        constants=constants,
        maps=maps,
        quasi=quasi if len(failed) else (),
        fate=len(failed) > 0,
        starred=starred,
        partly=in_part,
        drop=drop,
        pseudonyms={
            number[name]: (step.scope or name, step.length)
            for name, step in identifiers.replaced.items()
            if name not in identifiers.removed
        },
        shuffled=order == "shuffled",
    )
    if len(failed):
        fate = pl.DataFrame(keys).with_columns(pl.Series("fate", np.where(whole[failed], 1, 2).astype(np.int32)))
        tables["fate"] = fate
    return plan, tables


def _one_of_each(table: EquivalenceClasses, levels: Sequence[int], chosen: Mask) -> npt.NDArray[np.intp]:
    """One combination for each class at ``levels`` that holds a chosen one."""
    inside = np.flatnonzero(chosen)
    if not len(inside):
        return inside
    hierarchies = [hierarchy.levels[level] for hierarchy, level in zip(table.hierarchies, levels, strict=True)]
    shown = [level.codes[table.codes[inside, i]] for i, level in enumerate(hierarchies)]
    number, count = number_rows(shown, [level.size for level in hierarchies])
    first = np.zeros(count, dtype=np.intp)
    first[number] = inside
    return first
