"""Search for hyper-parameters with differential privacy: the best of a random number of fits, charged once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.dp.analytic_gaussian import normal_epsilon
from sfumato.dp.os_random import below
from sfumato.errors import BadParameter, NotApplicable
from sfumato.extras import missing_extra
from sfumato.learning.base import PrivateEstimator
from sfumato.learning.budget import FitAccount, charge_search, squared_budget
from sfumato.learning.catalogue import name_of
from sfumato.learning.noisy_sums import WEIGHT_STEPS
from sfumato.learning.search_cost import SearchCost
from sfumato.rationals import rational
from sfumato.wording import did_you_mean

try:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
    from sklearn.model_selection import ParameterGrid
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise missing_extra("learning", "scikit-learn", needed_by="sfumato.learning") from None
from sfumato.dp.contribution_bounds import Enforced
from sfumato.release.guarantee import Guarantee

_SCORE = Fraction(1, 10)
"""Share of the budget of one fit for its score."""
_FIXED = {"epsilon", "delta", "max_rows", "ledger", "dataset"}
"""Parameters that the search sets, or that state what is protected."""


class RandomizedSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Random search for hyper-parameters whose whole cost is (epsilon, delta).

    The number of fits is random with mean ``fits``. Each fit draws a candidate, learns from all rows, and measures its
    quadratic score on them with noise; the model with the best noisy score is kept and the others are discarded. By
    private selection the search costs two to three times the epsilon of one fit, whatever the number of candidates,
    while a ledger would add up all fits. The cost is charged once, before anything is fitted.

    The number of fits must stay secret, and so must the time that the search took.

    Parameters
    ----------
    estimator
        A private classifier or regressor with its public domain; its budget and ledger are not used.
    candidates
        Values to try: ``{parameter: values}``, or a list of such mappings. They must not come from the data.
    fits
        Expected number of fits, 2 to 100.
    epsilon, delta, ledger, dataset
        As for :class:`~sfumato.learning.LogisticRegression`, for the whole search.

    Attributes
    ----------
    best_estimator_, best_params_
        The chosen model, whose ``privacy_`` states the cost of the search, and its parameters.

    References
    ----------
    Papernot, Steinke (2022). Hyperparameter tuning with Rényi differential privacy. arXiv:2110.03620, Theorem 2

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.learning import AdditiveModel, RandomizedSearch
    >>> X = np.random.default_rng(0).uniform(0, 10, size=(4000, 2))
    >>> model = AdditiveModel(bounds=(0, 10), classes=[0, 1])
    >>> search = RandomizedSearch(model, {"epochs": [2, 5], "bins": [4, 16]}, fits=3, epsilon=3, delta=1e-6)
    >>> search.fit(X, X[:, 0] > X[:, 1]).score(X, X[:, 0] > X[:, 1]) > 0.8
    True
    """

    privacy_: Guarantee
    unit: str | None = None
    """As for a single estimator."""
    _cut: Enforced | None = None
    """That a plan cut every person at ``max_rows`` rows."""

    def __init__(
        self, estimator: Any = None, candidates: Any = None, *, fits: int = 10, epsilon: Any = None, delta: Any = None,
        ledger: Any = None, dataset: str | None = None,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.candidates = candidates
        self.fits = fits
        self.epsilon = epsilon
        self.delta = delta
        self.ledger = ledger
        self.dataset = dataset

    def fit(self, X: Any, y: Any) -> RandomizedSearch:  # noqa: N803
        """Charge the whole search, fit a random number of random candidates, and keep the best."""
        squared_budget(self.epsilon, self.delta)
        cost = SearchCost.for_mean(self.fits)
        squared = cost.squared_for(rational(self.epsilon), rational(self.delta))
        tried = self._candidates()
        epsilon = _rounded_down(normal_epsilon(squared * (1 - _SCORE), rational(self.delta)))
        own = {"epsilon": epsilon, "delta": self.delta, "ledger": None, "dataset": None}
        models = [clone(self.estimator).set_params(**one, **own) for one in tried]
        for model in models:  # refusals come before the charge
            _check(model, X, y)
        used = squared_budget(epsilon, self.delta)
        part = used / (1 - _SCORE) * _SCORE
        if cost.epsilon(used + part, rational(self.delta)) > rational(self.epsilon):
            raise BadParameter("The budget cannot be divided among fits.", fix="Use a larger epsilon.")
        rows = models[0].max_rows
        account = FitAccount(
            ledger=self.ledger, dataset=self.dataset, max_rows=rows, cut=self._cut,
            unit=self.unit or ("row" if rows == 1 else "person"), name=f"search {name_of(type(self.estimator))}",
            public={**models[0].public_parameters(), "candidates": tried, "fits": self.fits},
        )  # fmt: skip
        paid, self.privacy_ = charge_search(
            account, epsilon=self.epsilon, delta=self.delta, fit=used, score=part, fits=cost.draw
        )
        best: tuple[float, int, Any] | None = None
        for receipt, sums in paid:
            place = int(below(len(tried), 1)[0])
            model = clone(models[place])
            model._paid = receipt
            model.fit(X, y)
            scores = np.trunc(_row_scores(model, X, y) * WEIGHT_STEPS).astype(np.int64)
            score = float(sums.measure(np.array([scores.sum()]), distance=WEIGHT_STEPS**2, share=1)[0])
            if best is None or score > best[0]:
                best = score, place, model
        assert best is not None
        _, place, self.best_estimator_ = best
        self.best_params_ = tried[place]
        self.best_estimator_.privacy_ = self.privacy_
        self.n_features_in_ = self.best_estimator_.n_features_in_
        return self

    def _candidates(self) -> list[dict[str, object]]:
        kind = self.estimator
        if not isinstance(kind, PrivateEstimator) or not (is_classifier(kind) or is_regressor(kind)):
            raise BadParameter("A search needs a private classifier or regressor of `sfumato.learning`.")
        if not kind.gaussian:
            raise NotApplicable(
                f"The cost of a search over {name_of(type(kind))} is not known: its fits are not Gaussian private.",
                fix="Search over another estimator.",
            )
        if not isinstance(self.candidates, Mapping | Sequence) or not self.candidates:
            raise BadParameter("`candidates` must map parameters to the values to try.")
        known = set(kind.get_params(deep=False)) - _FIXED
        tried = [dict(one) for one in ParameterGrid(self.candidates)]
        for name in sorted({name for one in tried for name in one} - known):
            raise BadParameter(f"`{name}` cannot be searched.", fix=did_you_mean(name, tuple(known)))
        return tried

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Predictions of the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Probabilities of the chosen classifier."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Accuracy or R² of the chosen model. It describes these rows and is not private."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    @property
    def classes_(self) -> Any:
        """Classes of the chosen classifier."""
        return self.best_estimator_.classes_

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.estimator_type = getattr(self.estimator.__sklearn_tags__(), "estimator_type", None)
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags


class _ReadyToCharge(Exception):
    """Everything that a fit refuses has been checked."""


def _check(model: Any, X: Any, y: Any) -> None:  # noqa: N803
    """Run a fit up to its charge, which it refuses nothing after."""

    def stop() -> None:
        raise _ReadyToCharge

    probe = clone(model)
    probe._charge = stop
    with suppress(_ReadyToCharge):
        probe.fit(X, y)


def _row_scores(model: Any, X: Any, y: Any) -> Any:  # noqa: N803
    """One minus the squared error of every row, in 0 .. 1; for classes, of the probability of the true one."""
    if is_classifier(model):
        places = {label: place for place, label in enumerate(np.asarray(model.classes_).tolist())}
        codes = np.array([places[label] for label in np.asarray(y).tolist()])
        error = 1 - model.predict_proba(X)[np.arange(len(codes)), codes]
    else:
        low, high = (float(end) for end in model.target_bounds)
        error = (np.clip(np.asarray(y, dtype=np.float64), low, high) - model.predict(X)) / (high - low)
    return 1 - np.clip(np.nan_to_num(error, nan=1.0), -1, 1) ** 2


def _rounded_down(epsilon: Fraction) -> float:
    return int(epsilon * 10**9) / 10**9
