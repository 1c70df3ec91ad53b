"""Any deterministic Python function as a learner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from sfumato.errors import BadParameter
from sfumato.integral.encoding import Codes, Encoding
from sfumato.integral.learner import Learner
from sfumato.integral.records import Records


class FunctionLearner(Learner):
    """A function that turns a table of codes into a model, written as text or bytes.

    The function gets one row per record and one column of codes per feature and label, sorted, so that its result
    cannot depend on the order of the records. It is called twice for each data set; two different models are an error.
    """

    function: Callable[[pl.DataFrame], str | bytes]
    """The algorithm."""
    quality: Callable[[bytes, pl.DataFrame], float] | None = None
    """Score of a model on a table, larger is better. 0 for every model if left out."""

    def fit(self, records: Records, counts: Codes) -> bytes:
        first, second = (_bytes(self.function(_table(records, counts))) for _ in range(2))
        if first != second:
            raise BadParameter("The function returned two models for the same data.", fix="Fix its seed.")
        return first

    def score(self, model: bytes, records: Records) -> float:
        return 0.0 if self.quality is None else float(self.quality(model, _table(records, records.counts)))

    def describe(self, model: bytes, encoding: Encoding) -> list[str]:
        return model.decode(errors="replace").splitlines()


def _table(records: Records, counts: Codes) -> pl.DataFrame:
    rows = np.repeat(records.cells, counts, axis=0)
    names = [column.name for column in records.encoding.columns]
    return pl.DataFrame({name: rows[:, index] for index, name in enumerate(names)})


def _bytes(model: object) -> bytes:
    if isinstance(model, str):
        return model.encode()
    if not isinstance(model, bytes):
        raise BadParameter("The function must return text or bytes.", fix="Write the model in a canonical form.")
    return model
