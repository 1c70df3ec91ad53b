"""Base class of privacy models. A model is one class in one file of ``masking/models``.

A model is a condition on equivalence classes. :meth:`PrivacyModel.bind` binds it to a table and returns a
:class:`ModelRule`, which evaluates any partition of that table: a full-domain generalization, a Mondrian partition, a
clustering.

Every model states its condition twice. ``bind`` is the vectorized form that the search uses.
``PrivacyModel.independent_check`` is a textbook formula over plain counts that ``sfumato check`` uses. The two share no
code: a contract test follows the names that each uses and fails if they meet. A mistake in one form is therefore found
by the other unless it is made twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Mask
from sfumato.dataset import Data
from sfumato.errors import NotApplicable, UnknownPart
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.params import Part
from sfumato.registry import registry
from sfumato.release import Verdict
from sfumato.release.class_counts import CannotCheck, ConditionResult, ReleaseCounts

Counts = npt.NDArray[np.int64]


class Monotonicity(IntEnum):
    """Monotonicity under generalization: what merging does to a class that passes. A search prunes by it.

    - ``NONE``: unknown.
    - ``PASSING``: merging two passing classes gives a passing class. Without suppression, every table coarser than one
      that holds also holds.
    - ``ANY``: merging a passing class with any class gives a passing class. The number of rows to suppress then never
      grows in coarser tables, so a search may prune with suppression too.
    """

    NONE = 0
    PASSING = 1
    ANY = 2


class ModelRule(ABC):
    """A model bound to one table. All methods are vectorized over equivalence classes."""

    name: str
    """Name of the model, for messages."""
    columns: tuple[str, ...] = ()
    """Tracked columns whose histograms the rule needs."""
    monotonicity: Monotonicity = Monotonicity.NONE
    """Monotonicity under generalization."""
    monotone_under_suppression: bool = True
    """Monotonicity under suppression: suppressing a whole class never makes another class fail."""
    min_class_size: int = 1
    """Minimum class size: smaller classes fail. A search tests it before it builds histograms."""
    sizes_only: bool = False
    """Whether the minimum class size ``min_class_size`` is the whole rule."""
    about_absent: bool = False
    """Whether the rule also applies to classes of the population without rows in the table."""
    wanted: float = 0.0
    """The required value."""
    smaller_is_better: bool = True
    """Whether values must be at most ``wanted`` (a distance) or at least ``wanted`` (a size)."""

    @abstractmethod
    def values(self, groups: ClassGroups) -> Floats:
        """The value of the model for each class: a size, a number of distinct values, a distance, ..."""

    def passes(self, groups: ClassGroups) -> Mask:
        """Which classes meet the condition."""
        values = self.values(groups)
        # a small tolerance, because a quotient such as 0.2 is not exact in binary
        slack = 1e-9 * max(1.0, abs(self.wanted))
        return values <= self.wanted + slack if self.smaller_is_better else values >= self.wanted - slack

    def min_suppressed_rows(self, groups: ClassGroups, passed: Mask) -> Counts:
        """For each class, the minimum number of its rows that every finer table must suppress; 0 if it passed.

        The rows that a finer table keeps of a class are a union of passing classes. If unions of passing classes pass,
        a failing class loses at least one row. Models override this with tighter bounds.
        """
        match self.monotonicity:
            case Monotonicity.ANY:
                return np.where(passed, 0, groups.sizes)
            case Monotonicity.PASSING:
                return np.where(passed, 0, 1)
            case Monotonicity.NONE:
                return np.zeros(len(groups), dtype=np.int64)

    def table_holds(self, groups: ClassGroups) -> bool:
        """A condition on all passing classes together, such as an average."""
        return True

    about_table: bool = False
    """Whether :meth:`table_holds` is a condition. If it fails, a search suppresses the smallest classes first."""

    def worst(self, groups: ClassGroups) -> float:
        """The worst value over all classes."""
        values = self.values(groups)
        if not len(values):
            return float("nan")
        return float(values.max() if self.smaller_is_better else values.min())

    def worst_of(self, values: Sequence[float]) -> float:
        """The worst of several blocks of classes, ignoring NaN."""
        known = [value for value in values if not np.isnan(value)]
        if not known:
            return float("nan")
        return max(known) if self.smaller_is_better else min(known)


class SensitiveRule(ModelRule):
    """A rule on the values of one sensitive column. A missing value is no value."""

    def __init__(self, name: str, column: str, present: Mask) -> None:
        self.name, self.columns, self.present = name, (column,), present

    def counts(self, groups: ClassGroups) -> Counts:
        """Rows of each class by value, without the missing value."""
        return np.asarray(groups.histograms[self.columns[0]] * self.present)


class PrivacyModel(Part):
    """A condition on a table: it holds, fails, or could not be checked.

    The class variables are what reports, advice and checks have to know about a model. The defaults claim nothing.
    """

    promise: ClassVar[str] = ""
    """The guarantee in words, for reports. ``{known}`` is replaced by the quasi-identifiers, ``{worst}`` by the worst
    value over all classes. If empty, reports quote the first sentence of the docstring."""

    protects: ClassVar[frozenset[Literal["identity", "attribute", "membership", "result"]]] = frozenset()
    """The kinds of disclosure that the model limits; none for a rule about the form of values."""

    estimate: ClassVar[bool] = False
    """Whether the verdict rests on a statistical estimate, so that "holds" is likely but not guaranteed."""

    stronger: ClassVar[Mapping[str, Literal["more", "less"]]] = {}
    """Parameters that protect more when raised ("more") or lowered ("less"). Reports suggest these changes when an
    attack exceeds its limit."""

    size_parameter: ClassVar[str | None] = None
    """The parameter that is the minimum number of rows of an equivalence class, for models that require one."""

    on_classes: ClassVar[bool] = True
    """Whether the condition is one on equivalence classes. A model that is not overrides :meth:`check`; searches for
    equivalence classes leave it to the steps that know it."""

    unpublished: ClassVar[frozenset[str]] = frozenset()
    """Parameters that would disclose what the model protects; no release names them."""

    def public(self) -> dict[str, Any]:
        return {name: value for name, value in super().public().items() if name not in self.unpublished}

    def for_columns(self, sensitive: Sequence[str]) -> tuple[PrivacyModel, ...]:
        """The model for each sensitive column at the time of the run, if it is about one column and names none."""
        if "column" not in type(self).model_fields or getattr(self, "column", None) is not None:
            return (self,)
        if not sensitive and self.protects != {"attribute"}:
            return (self,)  # it promises more than the values of sensitive columns
        return tuple(self.model_copy(update={"column": name}) for name in sensitive)

    @property
    def fewest_people(self) -> int:
        """The number of people that every equivalence class needs at least; 0 if there is no such number.

        Each of the rows that a class needs, and each of the different values, must be another person's.
        """
        numbers = [getattr(self, name, None) for name in ("k", "l", "p")]
        return max((int(number) for number in numbers if number is not None), default=0)

    @abstractmethod
    def bind(self, table: EquivalenceClasses) -> ModelRule:
        """Bind the model to a table. A condition that the table can never meet is refused, with the closest feasible
        value."""

    @staticmethod
    def independent_check(parameters: Mapping[str, object], counts: ReleaseCounts) -> ConditionResult:
        """Evaluate the condition again, by a plain formula over counts that shares no code with :meth:`bind`.

        ``parameters`` are the published parameters of the manifest, unvalidated. Raise
        :class:`~sfumato.release.class_counts.CannotCheck` with the reason if something needed is absent.
        """
        raise CannotCheck("No independent check of it exists.")

    def population_frame(self, data: Data) -> Any:
        """The population's frame for models that need one. Default: None."""
        return None

    def check(self, data: Data, *, original: Data | None = None) -> Verdict:
        """Evaluate the model on a table over its quasi-identifier columns.

        Models that compare with the distribution of the whole table use ``original`` if it is given, else ``data``.
        Rows with ``*`` in every quasi-identifier are suppressed and belong to no class. The meaning of empty cells is
        declared by the column (:attr:`sfumato.dataset.Column.missing`).
        """
        from sfumato.masking.evaluate import evaluate_model

        return evaluate_model(self, data, original=original)


class UnknownModel(PrivacyModel):
    """A published model that is not installed. It is taken to protect nothing."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        raise NotApplicable("This privacy model is not installed.")


def model_of(name: str) -> type[PrivacyModel]:
    """The privacy model of that name, or :class:`UnknownModel` if it is not installed.

    >>> model_of("k-anonymity").size_parameter, sorted(model_of("of-another-package").protects)
    ('k', [])
    """
    try:
        model = registry("model").get(name)
    except (UnknownPart, ImportError):
        return UnknownModel
    return model if issubclass(model, PrivacyModel) else UnknownModel


def models_of_run(models: Sequence[PrivacyModel], sensitive: Sequence[str]) -> tuple[PrivacyModel, ...]:
    """The models of a run: one that names no column is repeated for all columns that are sensitive now.

    A role that was decided after the model was written counts: a recipe never covers fewer columns than it says.
    """
    return tuple(one for model in models for one in model.for_columns(sensitive))


def about_released(models: Sequence[PrivacyModel], released: Collection[str]) -> tuple[PrivacyModel, ...]:
    """The models without those about values of a column that was not released, of which nothing is left to judge."""

    def released_column(model: PrivacyModel) -> bool:
        column = getattr(model, "column", None)
        return column is None or column in released or model.protects != {"attribute"}

    return tuple(model for model in models if released_column(model))


def whole_rows(least: Floats, passed: Mask, sizes: Counts) -> Counts:
    """Round a lower bound of rows up, to between 1 and the class size where the class failed; 0 where it passed."""
    rows = np.ceil(np.minimum(least, sizes) - 1e-6).astype(np.int64)
    return np.where(passed, 0, np.clip(rows, 1, np.maximum(sizes, 1)))


def sensitive_column(model: str, table: EquivalenceClasses, column: str | None) -> str:
    """The sensitive column of a model: the one named, or the only one."""
    if column is not None:
        table.track(column)
        return column
    names: Mapping[str, object] = table.tracked
    if len(names) != 1:
        raise NotApplicable(
            f"{model} needs one sensitive column; the table has {len(names)}.",
            fix="Name it with `column`." if names else "Give a column the role `sensitive`.",
            model=model,
        )
    return next(iter(names))
