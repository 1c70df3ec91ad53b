"""Local recoding by clustering: each cluster of rows is generalized as little as necessary; no row is suppressed."""

from __future__ import annotations

import os
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.dataset import Data
from sfumato.errors import NotApplicable
from sfumato.masking.base import Context, Step
from sfumato.masking.equivalence_classes import compress
from sfumato.masking.metric import ClassTotals, MetricName, metric_of
from sfumato.masking.search.hierarchy_arrays import (
    HierarchyArrays,
    as_plain_text,
    cell_losses,
    hierarchy_arrays,
    labels_of,
    lowest_groups,
    with_spares,
)
from sfumato.masking.search.local_recoding.clustering import cluster_units
from sfumato.masking.search.merge_clusters import merge_until
from sfumato.masking.search.partition_check import Conditions, columns_with_gaps, refuse_overlap
from sfumato.release import Change


class LocalRecode(Step):
    """Cluster similar rows so that the models hold, and generalize each cluster to its lowest common groups.

    Keeps every row and more detail than full-domain generalization, because the same value may be generalized in one
    row and not in another. A column therefore mixes labels of several levels, and analyses must use the hierarchy to
    count values. Truthful: values are coarsened, never altered. Protects only as far as the models do: rows of a
    cluster are similar and may share a sensitive value unless a model forbids it.

    The clustering is a heuristic: the problem is NP-hard, and no bound on the distance to the optimum is given.
    """

    report_phrase = "generalized within groups of similar records"
    truthful = True
    simulable = False
    coarsens = True
    tight_labels = True
    minimal_labels = True
    out_of_core = True
    examples = ({}, {"metric": "loss", "weights": {"age": 2.0}})
    reference = (
        "Byun, Kamra, Bertino, Li (2007), Efficient k-anonymization using clustering techniques, "
        "doi:10.1007/978-3-540-71703-4_18; Xu et al. (2006), Utility-based anonymization using local recoding, "
        "doi:10.1145/1150402.1150504"
    )

    metric: MetricName = "loss"
    """Loss metric to minimize. It must have cell losses: `loss`, `ncp`, `precision` or `entropy`."""
    weights: dict[str, Annotated[float, Field(ge=0, le=1e9)]] = {}
    """Weight of each column. Default: 1."""
    block: Annotated[int, Field(ge=50)] = 3000
    """Number of distinct rows per block of the neighbour search. Larger is slower and rarely better."""
    passes: Annotated[int, Field(ge=0)] = 3
    """Number of local-search passes that dissolve clusters or move rows."""

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        return ((self, (*data.quasi, *data.sensitive)),)

    def apply(self, data: Data, context: Context) -> Change:
        refuse_overlap(data.schema, columns_with_gaps(data), self.part_name())
        metric = metric_of(self.metric)
        table = compress(data)
        conditions = Conditions(table, context.class_models, method=self.part_name())
        table, home = with_spares(table, data, conditions.least)
        conditions = Conditions(table, context.class_models, method=self.part_name())
        losses = metric.bind(table, self.weights)
        varies = any(len(hierarchy.leaves) > 1 for hierarchy in table.hierarchies)
        if varies and all(not level.any() for column in losses.cells for level in column):
            raise NotApplicable(
                f"The metric `{metric.part_name()}` has no cell losses, so it cannot guide local recoding.",
                fix="Use `loss`, `ncp`, `precision` or `entropy`.",
            )
        trees = hierarchy_arrays(table, losses.cells, losses.weights)
        cluster, count = cluster_units(
            trees,
            conditions.least,
            home=home,
            block=self.block,
            passes=self.passes,
            threads=min(os.cpu_count() or 1, 4),
            progress=context.progress,
        )
        cluster, count = merge_until(conditions, trees, cluster, count)
        levels = lowest_groups(trees, cluster, count)[cluster]
        sums = (_unweighted(trees, levels, losses.weights) * table.sizes[:, None]).sum(axis=0)
        shape = ClassTotals(rows=table.rows, suppressed=0, classes=count, term=0.0)
        assert table.of_row is not None
        columns = [
            labels_of(hierarchy, table.codes[:, i], levels[:, i]).gather(table.of_row).alias(hierarchy.column)
            for i, hierarchy in enumerate(table.hierarchies)
        ]
        return Change(
            table=data.table.with_frame(data.table.frame.with_columns(columns)),
            public={"columns": list(table.columns)},
            private={
                "suppressed": 0,
                "classes": count,
                "metric": self.metric,
                "score": metric.score(sums, losses, shape),
                "granularity": _granularity(data, table.columns, columns),
                "optimal": False,
            },
        )


def _unweighted(trees: HierarchyArrays, levels: npt.NDArray[np.int16], weights: npt.NDArray[np.float64]) -> Any:
    """Cell losses without the columns' weights, which the metric applies itself."""
    return cell_losses(trees, levels) / np.where(weights > 0, weights, 1.0)


def _granularity(data: Data, names: tuple[str, ...], shown: list[pl.Series]) -> float:
    """1 minus the mean loss per cell: the share of detail that is kept."""
    total = 0.0
    for name, series in zip(names, shown, strict=True):
        hierarchy = data.bound_hierarchy(name)
        size = len(hierarchy.leaves)
        if size < 2:
            continue
        cover: dict[str | None, int] = {}
        for level in hierarchy.levels:
            for label, leaves in zip(as_plain_text(level.labels).to_list(), level.leaves_under.tolist(), strict=True):
                cover[label] = max(cover.get(label, 0), leaves)
        counts = as_plain_text(series).alias("label").value_counts()
        covered = np.array([cover[label] for label in counts["label"].to_list()], dtype=np.float64)
        total += float(((covered - 1) / (size - 1) * counts["count"].to_numpy()).sum()) / data.rows
    return 1 - total / len(names)
