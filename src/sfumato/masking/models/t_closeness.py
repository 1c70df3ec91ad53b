"""t-closeness: the distribution of a sensitive column in every class is close to that of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import ConfigDict, Field

from sfumato.arrays import Array, Floats, Ints, Mask
from sfumato.errors import BadParameter
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses, TrackedColumn
from sfumato.masking.model import (
    Counts,
    ModelRule,
    Monotonicity,
    PrivacyModel,
    SensitiveRule,
    sensitive_column,
    whole_rows,
)
from sfumato.masking.models._earth_movers_distance import half_distance, hierarchical_groups, ordered_image
from sfumato.masking.models._transport_check import ordered_transport, total_variation, tree_transport
from sfumato.release.class_counts import CannotCheck, ConditionResult, ReleaseCounts, shares, without_missing


class TCloseness(PrivacyModel):
    """In every equivalence class, the distribution of a sensitive column is within earth mover's distance ``t`` of the
    reference.

    - ``equal``: all values are equally far apart.
    - ``ordered``: values are ordered at equal steps: numbers and dates by size, text as listed in its hierarchy or else
      alphabetically.
    - ``hierarchical``: the distance of two values is the level at which the column's hierarchy joins them, over its
      height.

    A missing value is no value: rows without one are in neither distribution, and the distance of a class with missing
    values alone is 1.

    The reference is the distribution of the whole table before suppression, unless one is given. The distance is
    convex, so the model is monotone under generalization without suppression only.
    """

    examples = (
        {"t": 0.5},
        {"t": 0.5, "distance": "ordered"},
        {"t": 0.5, "distance": "hierarchical"},
        {"t": 0.7, "reference": "uniform"},
    )
    reference: ClassVar[str] = "Li, Li and Venkatasubramanian (2007), doi:10.1109/ICDE.2007.367856"
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)
    promise = "no group of records alike in {known} differs from the whole by more than {worst} in its sensitive values"
    protects = frozenset({"attribute"})
    stronger = {"t": "less"}

    t: Annotated[float, Field(ge=0, le=1)]
    """Largest allowed distance."""
    column: str | None = None
    """The sensitive column. Default: each of the columns that are sensitive when the recipe is run."""
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    """Ground distance between values."""
    against: Annotated[
        Literal["table", "uniform"] | dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
        Field(alias="reference"),
    ] = "table"
    """Reference distribution: the whole table, uniform over its values, or shares by value."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        column = sensitive_column(self.part_name(), table, self.column)
        tracked = table.track(column)
        return _Distance(self.part_name(), column, tracked, self._reference(tracked), self.distance, self.t)

    def _reference(self, tracked: TrackedColumn) -> Floats:
        totals = (tracked.totals * tracked.present).astype(np.float64)
        if self.against == "table":
            weights = totals
        elif self.against == "uniform":
            weights = (totals > 0).astype(np.float64)
        else:
            assert isinstance(self.against, dict)
            names = tracked.hierarchy.leaves.cast(pl.String).to_list()
            unknown = [value for value in self.against if value not in names]
            if unknown:
                raise BadParameter(
                    f"t-closeness: {len(unknown)} of the values of `reference` do not occur in the column.",
                    fix="Spell the values as in the column.",
                )
            weights = np.array([0.0 if name is None else self.against.get(name, 0.0) for name in names])
        if not weights.sum() > 0:
            raise BadParameter("t-closeness: the reference distribution is empty.", fix="Choose a column with values.")
        return np.asarray(weights / weights.sum())

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        column = counts.sensitive(parameters)
        overall, against = without_missing(counts.overall[column]), parameters.get("reference", "table")
        if against == "table":
            target = shares(overall)
        elif against == "uniform":
            target = shares(dict.fromkeys(overall, 1))
        else:
            target = {value: share / sum(against.values()) for value, share in against.items() if share}
        here = [shares(without_missing(histogram)) for histogram in counts.inside[column]]
        match parameters.get("distance", "equal"):
            case "equal":
                distances = [total_variation(own, target) for own in here]
            case "ordered":
                order = [value for value in counts.order[column] if value in target or value in overall]
                distances = [ordered_transport(own, target, order) for own in here]
            case "hierarchical":
                if column not in counts.paths:
                    raise CannotCheck("The hierarchy of its column is not known.")
                distances = [tree_transport(own, target, counts.paths[column]) for own in here]
            case _:
                raise CannotCheck("Its distance is not known.")
        distances = [distance if own else 1.0 for own, distance in zip(here, distances, strict=True)]
        passes = [distance <= parameters["t"] + 1e-9 for distance in distances]
        return ConditionResult(worst=max(distances), wanted=parameters["t"], passes=passes)


class _Distance(SensitiveRule):
    monotonicity = Monotonicity.PASSING

    def __init__(
        self, name: str, column: str, tracked: TrackedColumn, reference: Floats, distance: str, t: float
    ) -> None:
        super().__init__(name, column, tracked.present)
        self.wanted = t
        self._groups: tuple[Ints, Ints, int] | None = None
        occurs = ((tracked.totals > 0) | (reference > 0)) & tracked.present
        # values of the hierarchy that do not occur are left out of the order, because they would stretch it
        self._ordered = np.flatnonzero(occurs)[_order(tracked, occurs)] if distance == "ordered" else None
        if self._ordered is not None:
            self._target = ordered_image(reference[self._ordered])
            return
        every = np.arange(len(reference) + 1)
        leaves, starts = (every[:-1], every) if distance == "equal" else hierarchical_groups(tracked.hierarchy)
        height = 1 if distance == "equal" else max(tracked.hierarchy.height, 1)
        self._groups = leaves, starts, height
        self._target = np.add.reduceat(reference[leaves], starts[:-1]) / height

    def values(self, groups: ClassGroups) -> Floats:
        counts = self.counts(groups)
        return np.where(counts.any(axis=1), self._distances(counts), 1.0)

    def _distances(self, counts: Counts) -> Floats:
        if self._groups is None:
            shares = counts[:, self._ordered] / np.maximum(counts.sum(axis=1, keepdims=True), 1)
            return half_distance(ordered_image(shares), self._target)
        from sfumato.masking.models._kept_rows import distances_by_groups

        return np.asarray(distances_by_groups(counts, *self._groups, self._target))

    def min_suppressed_rows(self, groups: ClassGroups, passed: Mask) -> Counts:
        # what a finer table keeps of a class is a union of passing classes, so it passes too
        from sfumato.masking.models._kept_rows import images_by_groups, most_rows_within

        failing = np.flatnonzero(~passed)
        counts = self.counts(groups)
        rows = counts.sum(axis=1)
        if self._groups is None:
            image = ordered_image(counts[failing][:, self._ordered].astype(np.float64))
        else:
            image = images_by_groups(counts, failing, *self._groups)
        due = rows.astype(np.float64)
        due[failing] -= most_rows_within(image, self._target, self.wanted + 2e-9, rows[failing])
        return whole_rows(due, passed, groups.sizes)


def _order(tracked: TrackedColumn, occurs: Array) -> Array:
    """Order of the values: numbers and dates by size, text as the hierarchy lists it (else alphabetically)."""
    leaves = tracked.hierarchy.leaves.filter(pl.Series(occurs))
    return np.arange(len(leaves)) if leaves.dtype == pl.String else leaves.arg_sort().to_numpy()
