"""l-diversity: every equivalence class has at least l well-represented sensitive values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import ConfigDict, Field, model_validator

from sfumato.arrays import Floats, Mask
from sfumato.errors import BadParameter
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses, TrackedColumn
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel, SensitiveRule, sensitive_column
from sfumato.release.class_counts import ConditionResult, Counts, ReleaseCounts, shares, without_missing


class LDiversity(PrivacyModel):
    """Every equivalence class has at least ``l`` well-represented values of a sensitive column.

    - ``distinct``: at least ``l`` different values.
    - ``entropy``: the entropy of the values is at least log(l), so no value dominates.
    - ``recursive`` (c, l): with frequencies in descending order, the first is less than ``c`` times the sum from the
      l-th on.

    Values named in ``healthy`` are not secret: a class that has no other values passes, and the recursive kind compares
    only the most frequent *secret* value with the rest (positive disclosure-recursive diversity).

    A missing value is no value: rows without one are left out, and a class with missing values alone has none. Whoever
    is known to have a value has one of the others.

    Semantic similarity of the values is not considered (see t-closeness). The distinct kind is monotone under
    generalization with and without suppression, the others without suppression only.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"kind": {"const": "recursive"}}, "required": ["kind"]},
            "then": {"required": ["c"]},
            "else": {"properties": {"c": {"type": "null"}}},
        }
    )

    examples = (
        {"l": 2},
        {"l": 1.5, "kind": "entropy"},
        {"l": 2, "kind": "recursive", "c": 3.0},
    )
    reference: ClassVar[str] = "Machanavajjhala et al. (2007), doi:10.1145/1217299.1217302"
    promise = "every group of records alike in {known} holds at least {worst} well-represented sensitive values"
    protects = frozenset({"attribute"})
    stronger = {"l": "more", "c": "less"}

    l: Annotated[float, Field(ge=1, allow_inf_nan=False)]  # noqa: E741
    """Minimum number of values. A whole number, except for the entropy kind."""
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    """What "well represented" means."""
    c: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The constant of the recursive kind."""
    column: str | None = None
    """The sensitive column. Default: each of the columns that are sensitive when the recipe is run."""
    healthy: tuple[str, ...] = ()
    """Values of the column that are not secret, such as "none" for a diagnosis."""

    @model_validator(mode="after")
    def _fits(self) -> LDiversity:
        if (self.kind == "recursive") != (self.c is not None):
            raise ValueError("c is required for kind: recursive and not allowed otherwise")
        if self.kind != "entropy" and not float(self.l).is_integer():
            raise ValueError("l must be a whole number unless kind is entropy")
        return self

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        column = sensitive_column(self.part_name(), table, self.column)
        tracked = table.track(column)
        secret = secret_values(tracked, self.healthy, self.part_name())
        present = tracked.present
        match self.kind:
            case "distinct":
                return _Distinct(self.part_name(), column, present, secret, int(self.l))
            case "entropy":
                return _Entropy(self.part_name(), column, present, secret, float(self.l))
            case "recursive":
                assert self.c is not None
                return _Recursive(self.part_name(), column, present, secret, int(self.l), self.c)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        kind, not_secret = parameters.get("kind", "distinct"), set(parameters.get("healthy", ()))
        values: list[float] = []
        passes: list[bool] = []
        for rows in counts.inside[counts.sensitive(parameters)]:
            histogram = without_missing(rows)
            if not_secret and all(value in not_secret for value in histogram):
                passes.append(True)
                continue
            if kind == "distinct":
                values.append(len(histogram))
                passes.append(values[-1] >= parameters["l"])
            elif kind == "entropy":
                entropy = -sum(share * math.log(share) for share in shares(histogram).values())
                values.append(math.exp(entropy) if histogram else 0.0)
                passes.append(values[-1] >= parameters["l"] - 1e-9 * max(1.0, parameters["l"]))
            else:
                ratio = _recursive_ratio(histogram, not_secret, int(parameters["l"])) if histogram else math.inf
                values.append(ratio)
                passes.append(values[-1] < parameters["c"])
        recursive = kind == "recursive"
        return ConditionResult(
            worst=(max(values) if recursive else min(values)) if values else None,
            wanted=parameters["c" if recursive else "l"],
            passes=passes,
        )


def secret_values(column: TrackedColumn, healthy: tuple[str, ...], model: str) -> Mask | None:
    """Mask of the secret values; None if all are secret. A value of ``healthy`` that the column lacks is refused."""
    if not healthy:
        return None
    names = column.hierarchy.leaves.cast(pl.String).to_list()
    unknown = sum(value not in names for value in healthy)
    if unknown:
        raise BadParameter(
            f"{model}: {unknown} of the {len(healthy)} values named in `healthy` do not occur in the column.",
            fix="Spell the values as in the column.",
        )
    return np.array([name not in healthy for name in names])


class _OnSecrets(SensitiveRule):
    """A rule on the values of one column; a class without secret values passes."""

    monotonicity = Monotonicity.PASSING
    smaller_is_better = False

    def __init__(self, name: str, column: str, present: Mask, secret: Mask | None) -> None:
        super().__init__(name, column, present)
        self.secret = secret

    def harmless(self, groups: ClassGroups) -> Mask:
        """Classes in which no secret value occurs."""
        if self.secret is None:
            return np.zeros(len(groups), dtype=np.bool_)
        return np.asarray(self.counts(groups)[:, self.secret].sum(axis=1) == 0)

    def passes(self, groups: ClassGroups) -> Mask:
        return super().passes(groups) | self.harmless(groups)

    def worst(self, groups: ClassGroups) -> float:
        return super().worst(groups.take(~self.harmless(groups)))


class _Distinct(_OnSecrets):
    def __init__(self, name: str, column: str, present: Mask, secret: Mask | None, l: int) -> None:  # noqa: E741
        super().__init__(name, column, present, secret)
        self.wanted = float(l)
        if secret is None:
            self.monotonicity, self.min_class_size = Monotonicity.ANY, l

    def values(self, groups: ClassGroups) -> Floats:
        return np.asarray((self.counts(groups) > 0).sum(axis=1), dtype=np.float64)


class _Entropy(_OnSecrets):
    def __init__(self, name: str, column: str, present: Mask, secret: Mask | None, l: float) -> None:  # noqa: E741
        super().__init__(name, column, present, secret)
        self.wanted = l
        if secret is not None:
            # a class of one healthy value passes, but merging it can lower another class's entropy below the limit
            self.monotonicity = Monotonicity.NONE

    def values(self, groups: ClassGroups) -> Floats:
        counts = self.counts(groups)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
        return np.asarray(np.exp(-(shares * logs).sum(axis=1)) * (counts.sum(axis=1) > 0))


class _Recursive(_OnSecrets):
    smaller_is_better = True

    def __init__(self, name: str, column: str, present: Mask, secret: Mask | None, l: int, c: float) -> None:  # noqa: E741
        super().__init__(name, column, present, secret)
        self.l, self.wanted = l, c
        if secret is not None:
            self.monotonicity = Monotonicity.NONE

    def values(self, groups: ClassGroups) -> Floats:
        """Frequency of the most frequent secret over the sum from the l-th frequency on; must be below c."""
        counts = self.counts(groups)
        order = np.argsort(-counts, axis=1, kind="stable")
        ranked = np.take_along_axis(counts, order, axis=1)
        first = np.argmax(np.ones_like(order) if self.secret is None else self.secret[order], axis=1)
        top = np.take_along_axis(ranked, first[:, None], axis=1)[:, 0]
        tail = ranked[:, self.l - 1 :].sum(axis=1)
        # a secret inside the tail is compared with the tail that starts one place earlier, without itself
        late = first >= self.l - 1
        if self.l >= 2:
            tail = np.where(late, ranked[:, self.l - 2 :].sum(axis=1) - top, tail)
        return np.asarray(np.divide(top, tail, out=np.full(len(counts), np.inf), where=tail > 0))

    def passes(self, groups: ClassGroups) -> Mask:
        return (self.values(groups) < self.wanted) | self.harmless(groups)


def _recursive_ratio(histogram: Counts, not_secret: set[str], l: int) -> float:  # noqa: E741
    """Frequency of the most frequent secret over the sum of the frequencies from the l-th on, for the check."""
    ranked = sorted(histogram.items(), key=lambda item: -item[1])
    place = next(i for i, (value, _) in enumerate(ranked) if value not in not_secret)
    frequencies = [count for _, count in ranked]
    first = frequencies[place]
    rest = sum(frequencies[l - 1 :]) if place < l - 1 or l == 1 else sum(frequencies[l - 2 :]) - first
    return first / rest if rest else math.inf
