"""The checks that ship with sfumato: a part that breaks its contract fails with a message that says how."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato.masking.base import Context, Step
from sfumato.release import Change
from sfumato.schema import Dataset
from sfumato.testing import check_step


class Unseeded(Step):
    """Breaks the contract: draws from a stream of its own."""

    simulable = False

    def apply(self, data: Dataset, context: Context) -> Change:
        noise = pl.Series("height", np.random.default_rng().normal(size=data.rows))
        return Change(table=data.table.with_frame(data.table.frame.with_columns(noise)))


class Loses(Step):
    """Breaks the contract: drops rows without saying which."""

    def apply(self, data: Dataset, context: Context) -> Change:
        return Change(table=data.table.with_frame(data.table.frame.head(data.rows // 2)))


class Tells(Step):
    """Breaks the contract: publishes a name."""

    def apply(self, data: Dataset, context: Context) -> Change:
        return Change(table=data.table, public={"first": data.table.column("name")[0]})


@pytest.mark.parametrize(
    ("bad", "words"),
    [(Unseeded, "same seed"), (Loses, "rows were added or dropped"), (Tells, "values of name|names a person")],
)
def test_broken_methods_are_caught(bad: type[Step], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_step(bad())
