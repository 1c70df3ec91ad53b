"""Whatever the table: every row is kept, every class has k rows, and every value shown covers the true one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.attacks.value_parser import Known, reader
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.hierarchies.intervals import IntervalsHierarchy
from sfumato.masking.base import Context, Step
from sfumato.masking.methods.local_recode import LocalRecode
from sfumato.masking.methods.mondrian import Mondrian
from sfumato.masking.methods.suppress_cells import SuppressCells
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.rng import Rng


@st.composite
def tables(draw: st.DrawFn) -> tuple[pl.DataFrame, int]:
    rows = draw(st.integers(2, 30))
    number = st.one_of(st.none(), st.integers(-5, 12))
    frame = pl.DataFrame(
        {
            "a": draw(st.lists(number, min_size=rows, max_size=rows)),
            "b": draw(st.lists(st.sampled_from(["x", "y", "z", None]), min_size=rows, max_size=rows)),
        },
        schema={"a": pl.Int64, "b": pl.String},
    )
    return frame, draw(st.integers(2, rows))


def apply(step: Step, frame: pl.DataFrame, k: int, missing: str = "category") -> pl.DataFrame:
    columns = {
        "a": Column(role=Role.QUASI, hierarchy=IntervalsHierarchy.build([2, 8]), missing=missing),  # type: ignore[arg-type]
        "b": Column(role=Role.QUASI, missing=missing),  # type: ignore[arg-type]
    }
    data = Data.of(Table(frame=frame), Schema(columns=columns))
    return step.apply(data, Context(rng=Rng(0), models=(KAnonymity(k=k),))).table.frame


def covers(frame: pl.DataFrame, shown: pl.DataFrame) -> bool:
    for name in frame.columns:
        known = Known(values=frame[name])
        for row, (truth, label) in enumerate(zip(frame[name], shown[name].cast(pl.String), strict=True)):
            if label is None:
                if truth is not None:
                    return False
                continue
            read = reader(label)
            if not (read(known)[row] if read is not None else label == str(truth)) and label != "*":
                return False
    return True


@settings(deadline=None, max_examples=60)
@given(tables(), st.sampled_from([Mondrian(), Mondrian(cuts="relaxed"), Mondrian(values="set"), LocalRecode()]))
def test_classes_are_large_enough_and_values_stay_true(given_table: tuple[pl.DataFrame, int], step: Step) -> None:
    frame, k = given_table
    shown = apply(step, frame, k)
    assert shown.height == frame.height
    assert shown.group_by(shown.columns).len()["len"].min() >= k
    assert covers(frame, shown)


@settings(deadline=None, max_examples=60)
@given(tables())
def test_emptied_cells_are_the_only_change_and_their_number_is_least(given_table: tuple[pl.DataFrame, int]) -> None:
    frame, k = given_table
    alike = apply(SuppressCells(), frame, k)
    assert alike.group_by(alike.columns).len()["len"].min() >= k
    full = frame.drop_nulls()
    if full.height < k:
        return
    shown = apply(SuppressCells(), full, k, missing="wildcard")
    for name in full.columns:
        kept = shown[name].is_not_null()
        assert shown[name].filter(kept).equals(full[name].filter(kept))
    texts = np.array([[str(value) for value in row] for row in full.rows()])
    for row, empty in enumerate(shown.select(pl.all().is_null()).rows()):
        fewest = next(
            size
            for size in range(3)
            for hidden in combinations(range(2), size)
            if sum(all(texts[row, c] == other[c] for c in range(2) if c not in hidden) for other in texts) >= k
        )
        assert sum(empty) == fewest
