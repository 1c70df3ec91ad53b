"""Learning with differential privacy: scikit-learn estimators with public bounds, exact noise and a budget ledger.

>>> import numpy as np
>>> from sfumato.learning import LogisticRegression
>>> draw = np.random.default_rng(0)
>>> X = draw.uniform(0, 10, size=(5000, 2))
>>> model = LogisticRegression(epsilon=1, delta=1e-6, bounds=(0, 10), classes=[0, 1]).fit(X, X[:, 0] > X[:, 1])
>>> model.score(X, X[:, 0] > X[:, 1]) > 0.9
True
>>> print(model.privacy_)  # doctest: +NORMALIZE_WHITESPACE
(1, 1e-06)-differential privacy for one row (add or remove all rows of one unit); no ledger: this run's cost is
not added to that of others.
"""

from sfumato.learning.catalogue import class_name, estimator, estimator_names
from sfumato.registry import exports

_lookup, _listed = exports(__name__, RandomizedSearch="search")


def __getattr__(name: str) -> object:
    for known in estimator_names():
        if class_name(known) == name:
            return estimator(known)
    return _lookup(name)


def __dir__() -> list[str]:
    return sorted({*_listed(), *map(class_name, estimator_names())})
