"""Cell suppression: remove as few single values of rare rows as possible."""

from __future__ import annotations

import os
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.arrays import Mask
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter, NotApplicable
from sfumato.masking.base import Context, Step
from sfumato.masking.equivalence_classes import EquivalenceClasses, compress
from sfumato.masking.evaluate import wildcard_groups
from sfumato.masking.search.cell_suppression import cheapest_cells
from sfumato.masking.search.hierarchy_arrays import hierarchy_arrays, lowest_groups, with_spares
from sfumato.masking.search.local_recoding.clustering import cluster_units
from sfumato.masking.search.merge_clusters import merge_until
from sfumato.masking.search.partition_check import Conditions
from sfumato.release import Change


class SuppressCells(Step):
    """Empty as few cells as possible in rows that are too rare; all other values are unchanged.

    The protection depends on the meaning of an empty cell, which the recipe declares per column (``missing``):

    - ``wildcard``: an empty cell matches every value (as in sdcMicro). A row is safe if at least k rows agree with its
      remaining values. The cheapest set of cells is found exactly for each row. **Weaker than k-anonymity**: an
      attacker who knows the suppressed value may still find that only one row matches.
    - ``category`` or ``suppressed``: an empty cell matches only empty cells, so every equivalence class has at least k
      rows. More cells are lost; they are chosen by clustering, a heuristic.

    Preserves types, order and all other values. Cells are not missing at random, so statistics of the remaining values
    are biased towards common values.
    """

    report_phrase = "emptied in records that are too rare"
    truthful = True
    simulable = False
    coarsens = True
    out_of_core = True
    examples = ({}, {"importance": {"age": 3.0}})
    reference = (
        "Templ, Kowarik, Meindl (2015), Statistical disclosure control for micro-data using the R package sdcMicro, "
        "doi:10.18637/jss.v067.i04; Aggarwal et al. (2005), Anonymizing tables, doi:10.1007/978-3-540-30570-5_17"
    )

    importance: dict[str, Annotated[float, Field(gt=0, le=1e9)]] = {}
    """Cost of an emptied cell, by column. Default: 1. Expensive columns are spared."""

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        return ((self, (*data.quasi, *data.sensitive)),)

    def apply(self, data: Data, context: Context) -> Change:
        unknown = [name for name in self.importance if name not in data.quasi]
        if unknown:
            raise BadParameter(
                f"suppress-cells: `{unknown[0]}` has an importance but is not a quasi-identifier.",
                fix=f"Quasi-identifiers: {', '.join(data.quasi)}.",
            )
        meanings = {data.schema.column(name).missing == "wildcard" for name in data.quasi}
        if len(meanings) > 1:
            raise NotApplicable(
                "suppress-cells: empty cells are wildcards in some quasi-identifiers and not in others.",
                fix="Declare the same `missing` for all of them.",
            )
        plain = _without_hierarchies(data)
        table = compress(plain)
        costs = np.array([float(self.importance.get(name, 1.0)) for name in table.columns])
        if meanings == {True}:
            out, optimal = self._wildcards(plain, table, costs, context)
        else:
            table, out = self._alike(plain, table, costs, context)
            optimal = False
        assert table.of_row is not None
        emptied = out[table.of_row]
        columns = [
            pl.select(
                pl.when(pl.Series(~emptied[:, i])).then(data.table.column(name)).otherwise(None).alias(name)
            ).to_series()
            for i, name in enumerate(table.columns)
        ]
        cells = emptied.sum(axis=0)
        return Change(
            table=data.table.with_frame(data.table.frame.with_columns(columns)),
            public={"columns": list(table.columns)},
            private={
                "cells": int(cells.sum()),
                "cells_by_column": dict(zip(table.columns, cells.tolist(), strict=True)),
                "rows_touched": int(emptied.any(axis=1).sum()),
                "score": float(cells @ costs),
                "optimal": optimal,
            },
        )

    def _wildcards(self, data: Data, table: EquivalenceClasses, costs: Any, context: Context) -> tuple[Mask, bool]:
        conditions = Conditions(table, context.class_models, method=self.part_name())
        if not conditions.sizes_only:
            raise NotApplicable(
                "suppress-cells supports only k-anonymity if empty cells are wildcards.",
                fix="Declare `missing: category` for the quasi-identifiers, or use `local-recode` or `generalize`.",
            )
        empty = np.zeros(table.codes.shape, dtype=np.bool_)
        for i, hierarchy in enumerate(table.hierarchies):
            if hierarchy.leaves.null_count():
                empty[:, i] = table.codes[:, i] == int(hierarchy.leaves.is_null().arg_true()[0])
        return cheapest_cells(
            table.codes,
            [len(hierarchy.leaves) for hierarchy in table.hierarchies],
            table.sizes,
            empty=empty,
            at_risk=wildcard_groups(table, data, columns=()).sizes < conditions.least,
            costs=costs,
            k=conditions.least,
            progress=context.progress,
        )

    def _alike(
        self, data: Data, table: EquivalenceClasses, costs: Any, context: Context
    ) -> tuple[EquivalenceClasses, Mask]:
        conditions = Conditions(table, context.class_models, method=self.part_name())
        table, home = with_spares(table, data, conditions.least)
        conditions = Conditions(table, context.class_models, method=self.part_name())
        # an emptied cell has its column's loss; other cells have none
        cells = [(np.zeros(len(hierarchy.leaves)), np.ones(1)) for hierarchy in table.hierarchies]
        trees = hierarchy_arrays(table, cells, costs)
        threads = min(os.cpu_count() or 1, 4)
        cluster, count = cluster_units(trees, conditions.least, home=home, threads=threads, progress=context.progress)
        cluster, count = merge_until(conditions, trees, cluster, count)
        return table, lowest_groups(trees, cluster, count)[cluster] > 0


def _without_hierarchies(data: Data) -> Data:
    """The table with two-level hierarchies: the value, or suppressed."""
    columns = dict(data.schema.columns)
    for name in data.quasi:
        columns[name] = Column(role=Role.QUASI, kind=columns[name].kind, missing=columns[name].missing)
    return Data(table=data.table, schema=Schema(columns=columns, unit=data.schema.unit))
