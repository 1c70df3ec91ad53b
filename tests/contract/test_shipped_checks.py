"""The checks that ship with sfumato: every method passes them, and methods that break the contract do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.masking.base import Context, Step
from sfumato.registry import registry
from sfumato.release import Change
from sfumato.schema import Dataset
from sfumato.testing import check_step, sample

EXAMPLES = [(cls, example) for cls in registry("method") for example in cls.examples]


@pytest.mark.parametrize(("cls", "example"), EXAMPLES, ids=[f"{cls.part_name()}-{e}" for cls, e in EXAMPLES])
def test_every_method_keeps_the_contract(
    cls: type[Step], example: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    step = cls.build(example)
    check_step(step)
    assert sample().rows == 300


class Unseeded(Step):
    """Breaks the contract: draws from a stream of its own."""

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
    ("bad", "words"), [(Unseeded, "same seed"), (Loses, "rows came or went"), (Tells, "names a person")]
)
def test_broken_methods_are_caught(bad: type[Step], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_step(bad())
