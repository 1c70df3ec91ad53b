"""Full-domain generalization of a stored table: search on the counted classes, apply by SQL joins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Mask
from sfumato.data.row_codes import number_rows
from sfumato.data.sql_quoting import quoted_text
from sfumato.dataset import ROOT
from sfumato.engines.stored_table import StoredTable
from sfumato.masking.base import Context, StoredChange
from sfumato.masking.equivalence_classes import EquivalenceClasses
from sfumato.masking.methods.generalize import Generalize, refuse_unsearchable
from sfumato.masking.metric import metric_of
from sfumato.masking.population import shared_population
from sfumato.masking.stored_classes import (
    CodedColumn,
    coded_column,
    count_classes,
    raise_levels,
    tracked_columns,
    with_population,
)


def generalize_stored(step: Generalize, table: StoredTable, context: Context) -> StoredChange:
    """Levels, suppressed classes and values are the same as in memory.

    With more than ``table.combinations`` distinct combinations, the columns with most values start at a coarser level;
    the outcome names these levels (``raised``) and does not claim to be optimal.
    """
    quasi = table.empty.quasi
    track = tracked_columns(context.class_models, table.empty.sensitive, metric_of(step.metric).target)
    coded = [coded_column(table, name, level=step.lowest.get(name, 0)) for name in quasi]
    refuse_unsearchable(table.schema, quasi, [c.name for c in coded if c.values.null_count()], context)
    coded, raised = raise_levels(table, coded, step.highest)
    classes = count_classes(table, coded, [coded_column(table, name) for name in track])
    population = shared_population(context.class_models, classes.combinations(table.schema, most=1))
    classes = with_population(classes, table.schema, population)
    chosen = step.model_copy(update={"lowest": {**step.lowest, **raised}})
    space, best, public, private = chosen.decide(classes, context)
    if raised:
        public |= {"optimal": False, "raised": raised}
    whole, partly = step.fates(space, best)
    suppressed = int(classes.sizes[whole].sum())
    masked = _generalized(table, step, coded, classes, best.levels, whole, partly)
    return StoredChange(table=masked, public=public, private={**private, "suppressed_whole": suppressed})


def _generalized(
    table: StoredTable,
    step: Generalize,
    coded: Sequence[CodedColumn],
    classes: EquivalenceClasses,
    levels: Sequence[int],
    whole: Mask,
    partly: Mask,
) -> StoredTable:
    """The table with labels in place of values, and without or with ``*`` in the classes that are suppressed."""
    drop = step.suppressed == "remove"
    occurs = classes.sizes > 0
    whole, partly = whole & occurs, partly & occurs
    starred = set(classes.columns) if whole.any() and not drop else set()
    in_part = set(step.only or ()) if partly.any() else set()
    failed = _one_of_each(classes, levels, whole | partly)
    expressions: dict[str, str] = {}
    joins: list[str] = []
    keys: list[pl.Series] = []
    for position, (column, level) in enumerate(zip(coded, levels, strict=True)):
        values, hierarchy, cell = column.values, column.hierarchy, table.cells[column.name]
        as_text = level > 0 or column.name in starred or column.name in in_part
        labels = hierarchy.decode(hierarchy.encode(values, of_rows=False), level) if level else values
        labels = labels.cast(pl.String) if as_text else labels
        if level and hierarchy.levels[level].size == 1 and not labels.null_count():
            expressions[column.name] = quoted_text(str(labels[0]))
        elif as_text:
            name = table.put("map", pl.DataFrame({"value": values, "label": labels}))
            same = "IS NOT DISTINCT FROM" if (values.is_null() & labels.is_not_null()).any() else "="
            joins.append(f"LEFT JOIN {name} AS m_{cell} ON t.{cell} {same} m_{cell}.value")
            expressions[column.name] = f"m_{cell}.label"
        # the label that a failing class shows, by way of any value with the same code
        place = np.zeros(column.width, dtype=np.intp)
        place[column.codes] = np.arange(len(column.codes))
        keys.append(labels.gather(place[classes.codes[failed, position]]).alias(f"k_{cell}"))
    labelled = table.with_expressions(expressions, joins=" ".join(joins))
    if not len(failed):
        return labelled
    fate = pl.DataFrame(keys).with_columns(pl.Series("fate", np.where(whole[failed], 1, 2).astype(np.int32)))
    cells = {column.name: table.cells[column.name] for column in coded}
    on = " AND ".join(f"t.{cell} IS NOT DISTINCT FROM f.k_{cell}" for cell in cells.values())
    stars: dict[str, str] = {}
    for name, cell in cells.items():
        fates = [*(["1"] if name in starred else []), *(["2"] if name in in_part else [])]
        if fates:
            stars[name] = f"CASE WHEN f.fate IN ({', '.join(fates)}) THEN '{ROOT}' ELSE t.{cell} END"
    return labelled.with_expressions(
        stars,
        joins=f"LEFT JOIN {table.put('fate', fate)} AS f ON {on}",
        where="WHERE f.fate IS NULL OR f.fate <> 1" if drop else "",
    )


def _one_of_each(table: EquivalenceClasses, levels: Sequence[int], chosen: Mask) -> npt.NDArray[np.intp]:
    """One combination for each class at ``levels`` that holds a chosen one."""
    inside = np.flatnonzero(chosen)
    if not len(inside):
        return inside
    chosen_levels = [h.levels[level] for h, level in zip(table.hierarchies, levels, strict=True)]
    labels = [level.codes[table.codes[inside, i]] for i, level in enumerate(chosen_levels)]
    number, count = number_rows(labels, [level.size for level in chosen_levels])
    first = np.zeros(count, dtype=np.intp)
    first[number] = inside
    return first
