"""Evaluate the models on partitions of a compressed table, for Mondrian and local recoding."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from sfumato.arrays import Ints, Mask
from sfumato.dataset import Data, Schema
from sfumato.errors import BadParameter, NotApplicable, Unmet
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import ModelRule, PrivacyModel


class Conditions:
    """The models of a recipe bound to one table, to evaluate partitions of it."""

    def __init__(self, table: EquivalenceClasses, models: Sequence[PrivacyModel], *, method: str) -> None:
        if not models:
            raise BadParameter(
                f"{method} needs a privacy model.",
                fix="Add one to the recipe, for example `models: [k-anonymity: 5]`.",
            )
        for model in models:
            if type(model).population_frame is not PrivacyModel.population_frame:
                raise NotApplicable(
                    f"{method} cannot meet {model.part_name()}: values it shows may overlap, so it is not certain "
                    "which people of the population belong to which class.",
                    fix="Use `generalize`, which gives each column one level.",
                    model=model.part_name(),
                )
        self.table = table
        self.rules: tuple[ModelRule, ...] = tuple(model.bind(table) for model in models)
        self.least = max(rule.min_class_size for rule in self.rules)
        """Minimum class size."""
        self._further = tuple(rule for rule in self.rules if not rule.sizes_only)
        self.sizes_only = not self._further
        self.columns = tuple(dict.fromkeys(name for rule in self._further for name in rule.columns))
        self._refuse_what_no_partition_meets()

    def _refuse_what_no_partition_meets(self) -> None:
        whole = np.zeros(len(self.table), dtype=np.int64)
        one = self.table.groups(whole, 1, columns=self.columns)
        for rule in self.rules:
            passed = one.sizes[0] >= rule.min_class_size and bool(rule.passes(one)[0]) and rule.table_holds(one)
            if not passed:
                reached = rule.worst(one)
                raise Unmet(
                    f"{rule.name} is not met even with all {self.table.rows} rows in one class: it reaches {reached:g} "
                    f"where {rule.wanted:g} is wanted.",
                    fix="Relax the model, or use another one.",
                    model=rule.name,
                    closest=reached,
                    wanted=rule.wanted,
                )

    def passes(self, groups: ClassGroups) -> Mask:
        """Which classes meet every model by themselves."""
        good = groups.sizes >= self.least
        for rule in self._further:
            good &= rule.passes(groups)
        return good

    def failing(self, of: Ints, count: int) -> Mask:
        """Which classes of a partition (class of each unit) fail, evaluated in blocks."""
        sizes = np.bincount(of, weights=self.table.sizes, minlength=count).astype(np.int64)
        bad = sizes < self.least
        if self.sizes_only:
            return bad
        todo = np.flatnonzero(~bad)
        step = self.table.blocks(len(todo), self.columns)
        for start in range(0, len(todo), step):
            chosen = np.zeros(count, dtype=np.bool_)
            chosen[todo[start : start + step]] = True
            groups = self.table.groups(of, count, columns=self.columns, chosen=chosen)
            bad[chosen] = ~self.passes(groups)
        return bad

    @property
    def about_table(self) -> bool:
        """Whether some model has a condition on all classes together."""
        return any(rule.about_table for rule in self.rules)

    def table_holds(self, sizes: Ints) -> bool:
        """Whether the conditions on all classes together hold for these sizes."""
        groups = ClassGroups(sizes=sizes)
        return all(rule.table_holds(groups) for rule in self.rules if rule.about_table)


def refuse_overlap(
    schema: Schema, gaps: Iterable[str], method: str, *, matching: Collection[str] = ("wildcard",)
) -> None:
    """Refuse columns with missing values that match every value: equivalence classes would overlap.

    ``gaps`` are the columns with missing values, ``matching`` the meanings of them that the method cannot handle.
    """
    for name in gaps:
        meaning = schema.column(name).missing
        if meaning in matching:
            raise NotApplicable(
                f"{method}: empty cells of `{name}` are declared `{meaning}`, so they match every value and rows "
                "cannot be put into classes that do not overlap.",
                fix="Declare `missing: category` for it, fill them first, or use `suppress-cells`.",
                column=name,
            )


def columns_with_gaps(data: Data) -> tuple[str, ...]:
    """Quasi-identifiers with missing values."""
    return tuple(name for name in data.quasi if data.table.column(name).null_count())
