"""Base of private estimators: scikit-learn's interface, public domains, and a budget that is charged before a fit.

A fit checks parameters and the form of the input first, charges the ledger second, and computes last. An error
therefore costs nothing, and a fit that was charged is never refunded. Nothing is read from the rows without noise:
neither bounds, nor categories, nor classes, nor the number of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from sfumato.arrays import Array
from sfumato.dp.contribution_bounds import Enforced
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter, WrongKind
from sfumato.extras import missing_extra
from sfumato.learning.budget import FitAccount, charge_fit, squared_budget
from sfumato.learning.catalogue import name_of
from sfumato.learning.domain import FeatureDomain
from sfumato.learning.noisy_sums import NoisySums
from sfumato.wording import counted

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise missing_extra("learning", "scikit-learn", needed_by="sfumato.learning") from None
from sfumato.release.guarantee import Guarantee


class _FitState(BaseEstimator):  # type: ignore[misc]
    """What a fit uses and leaves beside the parameters: no field of the dataclasses below."""

    _least_rows: int = 1
    """Rows that a fit needs. scikit-learn refuses none; a plan learns from none, because a refusal would tell so."""
    categories: Any = None
    classes_: Array
    privacy_: Guarantee
    unit: str | None = None
    """Name of the privacy unit in the ledger: the column that identifies a person. None: ``row``, or ``person`` if one
    may have several rows."""
    _cut: Enforced | None = None
    """That a plan cut every person at ``max_rows`` rows."""
    _paid: Receipt | None = None
    """What a fit of a search has of the receipt of the search."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(_FitState):
    """A scikit-learn estimator with a differential privacy guarantee for one row, or for all rows of one person."""

    supervised: ClassVar[bool] = False
    """Whether a fit needs ``y``."""
    gaussian: ClassVar[bool] = True
    """Whether a fit has a loss in Gaussian differential privacy."""

    epsilon: Any = None
    delta: Any = None
    bounds: Any = None
    max_rows: int = 1
    ledger: Any = None
    dataset: str | None = None

    def _checked_rows(self, X: object, y: object = None, *, reset: bool) -> tuple[Array, object]:  # noqa: N803
        """The input in scikit-learn's form. Messages do not show values."""
        options: dict[str, object] = {"reset": reset, "dtype": None if self.categories else "numeric"}
        if reset:
            options["ensure_min_samples"] = self._least_rows
        if self.categories:
            options["ensure_all_finite"] = False  # missing values are looked for in numbers only
        try:
            if reset and self.supervised:
                return validate_data(self, X, y, **options, **self._target_options())  # type: ignore[no-any-return]
            return validate_data(self, X, **options), y
        except ValueError as failure:
            if "could not convert" in str(failure):
                raise WrongKind(
                    "The features contain text.", fix="Declare the columns with text in `categories`."
                ) from None
            raise

    def _target_options(self) -> dict[str, object]:
        return {}

    def _domain(self) -> FeatureDomain:
        names = getattr(self, "feature_names_in_", None)
        return FeatureDomain.declare(self.n_features_in_, bounds=self.bounds, categories=self.categories, names=names)

    def _check_budget(self) -> None:
        """Refuse a bad epsilon or delta before the data is looked at."""
        squared_budget(self.epsilon, self.delta)

    def public_parameters(self) -> dict[str, object]:
        """Parameters that are published as they are, and must not come from the data."""
        own = {"ledger", "dataset", "epsilon", "delta"}
        return {name: value for name, value in self.get_params(deep=False).items() if name not in own}

    def _account(self) -> FitAccount:
        """Who is charged for a fit."""
        return FitAccount(
            ledger=self.ledger, dataset=self.dataset, max_rows=self.max_rows, cut=self._cut,
            unit=self.unit or ("row" if self.max_rows == 1 else "person"), public=self.public_parameters(),
            name=name_of(type(self)),
        )  # fmt: skip

    def _charge(self) -> NoisySums:
        """Charge the budget, and set the privacy statement."""
        paid, self._paid = self._paid, None
        sums, self.privacy_ = charge_fit(self._account(), epsilon=self.epsilon, delta=self.delta, paid=paid)
        return sums

    def _fitted_rows(self, X: object) -> Array:  # noqa: N803
        """The input of a fitted model."""
        check_is_fitted(self)
        return self._checked_rows(X, reset=False)[0]

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = self.supervised
        tags.input_tags.string = tags.input_tags.categorical = bool(self.categories)
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(PrivateEstimator, ABC):
    """A private classifier: its classes are public too."""

    supervised = True
    categories: Any = None
    classes: Any = None

    def _codes(self, y: object) -> npt.NDArray[np.int64]:
        """Positions of the labels in the declared classes, which become ``classes_``."""
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(y)
        if self.classes is None:
            raise BadParameter(
                "`classes` is required: the labels that `y` may have.",
                fix="For example classes=[0, 1]. They must not come from the data.",
            )
        declared = np.unique(np.asarray(self.classes))
        if declared.ndim != 1 or len(declared) < 2:
            raise BadParameter("`classes` must list at least two labels; one class cannot be learned.")
        known = {label: code for code, label in enumerate(declared.tolist())}
        codes = np.array([known.get(label, -1) for label in np.asarray(y).tolist()], dtype=np.int64)
        if (codes < 0).any():
            raise WrongKind(
                f"{counted(int((codes < 0).sum()), 'label')} of `y` are not among the declared classes.",
                fix="Declare every label in `classes`.",
            )
        self.classes_ = declared
        return codes

    def predict(self, X: object) -> Array:  # noqa: N803
        """The most probable class of every row."""
        chances = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(chances, axis=1)])

    @abstractmethod
    def predict_proba(self, X: object) -> npt.NDArray[np.float64]:  # noqa: N803
        """The probability of every class, in the order of ``classes_``."""


class ScoringClassifier(PrivateClassifier):
    """A private classifier whose probabilities follow from scores in log-odds."""

    def predict_proba(self, X: object) -> npt.NDArray[np.float64]:  # noqa: N803
        """The probability of every class, in the order of ``classes_``."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    @abstractmethod
    def decision_function(self, X: object) -> npt.NDArray[np.float64]:  # noqa: N803
        """The score of every row: of the second class, or of each of three and more."""
