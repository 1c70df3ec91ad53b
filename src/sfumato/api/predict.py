"""``sfumato.predict``: predictions of a model that was learned with differential privacy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.api.attack_model import stored_model
from sfumato.api.learn import LearnResults
from sfumato.api.protection import Protection
from sfumato.data import Table, read
from sfumato.data.read_write import to_native
from sfumato.learning.run import predict_frame


def predict(model: object, data: object) -> Any:
    """Predict every row of a table: the class and its probabilities, a number, a cluster or components.

    Predictions depend on the row and the model only, so they cost no budget of the people in the training data.

    Parameters
    ----------
    model
        A file that :func:`learn` wrote, a release folder, the result of :func:`learn` or :func:`protect`, or a fitted
        estimator of ``sfumato.learning``.
    data
        A file, a database URL, or a pandas, Polars or Arrow table with the features of the model.

    Returns
    -------
    DataFrame
        One row per row of ``data``, in the caller's own type; Polars for files.
    """
    table = data if isinstance(data, Table) else read(data)
    return to_native(replace(table, frame=predict_frame(_fitted(model), table.frame)))


def _fitted(model: object) -> object:
    if isinstance(model, LearnResults):
        return model.model
    if isinstance(model, Protection):
        return model.data
    return stored_model(Path(model)) if isinstance(model, str | Path) else model
