"""Private estimators by name: every module in ``learning/estimators`` defines one.

>>> "logistic-regression" in estimator_names()
True
>>> estimator("logistic-regression").__name__
'LogisticRegression'
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from sfumato.errors import UnknownPart
from sfumato.params import part_name
from sfumato.wording import did_you_mean

_FOLDER = Path(__file__).parent / "estimators"
_ACRONYMS = {"Pca": "PCA", "KMeans": "KMeans"}


def estimator_names() -> tuple[str, ...]:
    """Names of all private estimators; nothing is imported."""
    found = (module.name for module in pkgutil.iter_modules([str(_FOLDER)]))
    return tuple(sorted(name.replace("_", "-") for name in found if not name.startswith("_")))


def class_name(name: str) -> str:
    """The class of an estimator's name: ``k-means`` is ``KMeans``, ``pca`` is ``PCA``."""
    stem = "".join(word.capitalize() for word in name.split("-"))
    return _ACRONYMS.get(stem, stem)


def estimator(name: str) -> type:
    """The class of that name. An unknown name is refused with the nearest one."""
    if name not in estimator_names():
        raise UnknownPart(
            f"No estimator is called `{name}`.", fix=did_you_mean(name, estimator_names()), kind="estimator", name=name
        )
    module = importlib.import_module(f"sfumato.learning.estimators.{name.replace('-', '_')}")
    found: type = getattr(module, class_name(name))
    return found


def name_of(cls: type) -> str:
    """The name of an estimator's class."""
    return part_name("Pca" if cls.__name__ == "PCA" else cls.__name__)
