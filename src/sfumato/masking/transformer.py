"""scikit-learn transformer for masking steps: mask features inside a pipeline.

>>> import numpy as np
>>> from sfumato.masking.transformer import MaskingTransformer
>>> MaskingTransformer({"top-bottom-code": {"top": 90}}).fit_transform(np.array([[34.0], [97.0]])).tolist()
[[34.0], [90.0]]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from sfumato.data import Table, read, to_native
from sfumato.data.fingerprint import frame_digest
from sfumato.data.key_file import load_key
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import NotApplicable
from sfumato.extras import missing_extra
from sfumato.masking.base import Context, Step
from sfumato.registry import registry
from sfumato.rng import KeyedRng
from sfumato.secret import Permit, SecretValue

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data
except ImportError:
    raise missing_extra("learning", "scikit-learn", needed_by="MaskingTransformer") from None

_PROTECT = "Use sfumato.protect, which checks privacy models and attacks the release."


class MaskingTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Apply one masking step to features: noise, rounding, swapping, top coding and others that keep every row.

    The step masks the table that is transformed; nothing is learned by ``fit``, so training and test data are masked
    separately. All features are treated as quasi-identifiers. **This transformer checks no privacy model and runs no
    attack: it makes no statement about risk.** Steps that exist to meet a privacy model, and steps that add, drop or
    replace rows or columns, are refused.

    Parameters
    ----------
    step
        A step such as ``Noise(variance_ratio=0.1)``, or as in a recipe: ``{"noise": {"variance_ratio": 0.1}}``.
    random_state
        Seed or random state. None draws new random numbers in every call.
    key
        File with the secret key that the seed needs to repeat the masking. If left out, ``fit`` draws a new key: a
        fitted transformer repeats itself, and a seed alone determines nothing.

    Frames (pandas, Polars) are returned as they came, arrays as arrays. NaN in an array is a missing value.
    """

    def __init__(self, step: Step | str | Mapping[str, Any], *, random_state: Any = None, key: Any = None) -> None:
        self.step = step
        self.random_state = random_state
        self.key = key

    def fit(self, X: Any, y: Any = None) -> MaskingTransformer:  # noqa: N803 - scikit-learn's name
        """Check the step and remember the features."""
        self._accepted_step()
        self._checked(X, reset=True)
        self.key_ = (KeyedRng().key if self.key is None else load_key(self.key)).open(Permit("masking features"))
        return self

    def transform(self, X: Any) -> object:  # noqa: N803 - scikit-learn's name
        """The masked features, row by row in the same order."""
        check_is_fitted(self, "n_features_in_")
        step, checked = self._accepted_step(), self._checked(X, reset=False)
        table = self._table(checked)
        schema = Schema(columns={name: Column(role=Role.QUASI) for name in table.columns})
        change = step.apply(
            Data(table=table, schema=schema), Context(rng=self._rng().of_run(step.to_dict(), frame_digest(table.frame)))
        )
        if change.rows is not None or change.table.rows != table.rows or change.table.columns != table.columns:
            raise NotApplicable(
                f"Step `{step.part_name()}` changes the rows or columns of a table, so it cannot be a transformer.",
                fix=_PROTECT,
            )
        if isinstance(checked, np.ndarray):
            return change.table.frame.to_numpy()
        masked = to_native(change.table)
        return masked.set_index(checked.index) if hasattr(checked, "index") and hasattr(masked, "set_index") else masked

    def get_feature_names_out(self, input_features: Any = None) -> object:
        """The names of the features, which stay the same."""
        check_is_fitted(self, "n_features_in_")
        return _check_feature_names_in(self, input_features)

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None or self.key is None
        return tags

    def _accepted_step(self) -> Step:
        step = registry("method").part(self.step, Step)
        if step.coarsens or step.adds_rows:
            why = "meets privacy models that a transformer does not check" if step.coarsens else "adds records"
            raise NotApplicable(
                f"Step `{step.part_name()}` {why}, so it cannot be a transformer.", fix=_PROTECT, part=step.part_name()
            )
        return step

    def _checked(self, X: Any, *, reset: bool) -> Any:  # noqa: N803 - scikit-learn's name
        if isinstance(X, pl.DataFrame) or (hasattr(X, "columns") and hasattr(X, "iloc")):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(self, X, reset=reset, ensure_all_finite="allow-nan")

    def _table(self, checked: Any) -> Table:
        if not isinstance(checked, np.ndarray):
            return read(checked)
        names = [f"x{place}" for place in range(checked.shape[1])]
        columns = {name: pl.Series(checked[:, place]) for place, name in enumerate(names)}
        return Table(frame=pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None)))

    def _rng(self) -> KeyedRng:
        if self.random_state is None or isinstance(self.random_state, int):
            seed = self.random_state
        else:
            seed = int(check_random_state(self.random_state).randint(2**31))
        return KeyedRng(seed, key=SecretValue(self.key_))
