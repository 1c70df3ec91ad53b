"""Special uniques: the scores that sdcMicro and the books on it print, to all their digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.measures import MeasureResult, ReleasePair, judge
from sfumato.measures.disclosure.suda import Suda, dis_scores, scores
from sfumato.release import Release
from sfumato.rng import Rng

DATA = Path(__file__).parents[1] / "samples" / "sdcmicro"
KEYS = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")

GUIDE = pl.DataFrame(
    {
        "residence": list("UUUURUUUUU"),
        "gender": list("FFFMFMFMFF"),
        "education": ["si", "si", "pi", "sc", "sc", "sc", "pc", "ps", "si", "si"],
        "labour": list("EENEUENUNN"),
    }
)
"""Benschop, Machingauta, Welch (2016), Statistical Disclosure Control for Microdata: A Practice Guide, table 4.5."""

BOOK = pl.DataFrame(
    {
        "age": ["20s"] * 7 + ["60s"],
        "gender": ["m"] * 4 + ["f"] * 3 + ["m"],
        "income": ["50k+"] * 2 + ["50k-"] * 6,
        "education": ["high"] * 4 + ["university", "high", "middle", "university"],
    }
)
"""Templ (2017), Statistical Disclosure Control for Microdata, doi:10.1007/978-3-319-50272-4."""


def by_row(frame: pl.DataFrame, score: str = "elliot") -> tuple[list[float], list[float], list[float]]:
    codes = [frame[name].rank("dense").cast(pl.Int64).to_numpy() for name in frame.columns]
    none = [np.zeros(len(frame), dtype=bool) for _ in codes]
    found, share = scores(codes, none, len(codes), score, lambda _: None)
    return found.tolist(), share.tolist(), dis_scores(found, codes, 0.01).tolist()


def measured(frame: pl.DataFrame, missing: str = "category") -> MeasureResult:
    schema = Schema(columns={name: Column(role=Role.QUASI, missing=missing) for name in frame.columns})
    original = Data.of(Table(frame=frame), schema)
    return judge(Suda(), ReleasePair(original=original, release=Release(table=original.table, manifest={})), rng=Rng(1))


def test_scores_of_the_practice_guide() -> None:
    assert by_row(GUIDE)[0] == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert by_row(GUIDE, "ihsn")[0] == pytest.approx([0, 0, 1.75, 0, 3.25, 0, 1.75, 2.75, 0, 0])


def test_dis_scores_of_the_practice_guide() -> None:
    """Nine digits, as printed by sdcMicro (github.com/sdcTools/sdcMicro/issues/74)."""
    printed = [0, 0, 0.005120313, 0, 0.010702061, 0, 0.005120313, 0.008775093, 0, 0]
    assert by_row(GUIDE, "ihsn")[2] == pytest.approx(printed, abs=5e-10)


def test_scores_of_the_book() -> None:
    assert by_row(BOOK)[0] == [0, 0, 0, 0, 4, 2, 6, 8]
    assert by_row(BOOK, "ihsn")[0][7] == pytest.approx(2.25)


def test_scores_of_the_small_survey() -> None:
    """The first row's scores stand in sdcMicro's own tests: 2 on five keys, 180 and 2.73 on seven."""
    frame = pl.read_csv(DATA / "testdata2.csv")
    assert by_row(frame.select("urbrur", "roof", "walls", "water", "sex"))[0][0] == 2
    assert by_row(frame.select(KEYS))[0][0] == 180
    assert by_row(frame.select(KEYS), "ihsn")[0][0] == pytest.approx(2.73, abs=0.005)


@pytest.mark.parametrize("order", ["abc", "acb", "cab", "cba"])
def test_contributions_do_not_depend_on_the_order_of_columns(order: str) -> None:
    """50, 37.5 and 37.5 percent (github.com/sdcTools/sdcMicro/issues/275)."""
    frame = pl.DataFrame({"a": [2, 1, 1], "b": [0, 3, 0], "c": [0, 6, 0]}).select(list(order))
    assert dict(measured(frame).columns) == pytest.approx({"a": 0.5, "b": 0.375, "c": 0.375})


def test_constant_columns_contribute_nothing() -> None:
    frame = pl.DataFrame({"a": [1, 1, 2, 2, 1], "b": [1, 1, 1, 2, 2], "c": [1, 1, 1, 1, 1]})
    found = measured(frame)
    # Row 3: {a=2,b=1}; row 4: {a=2,b=2}; row 5: {a=1,b=2}. Each one minimal sample unique of two of three columns.
    assert found.detail["rows"] == 3
    assert dict(found.columns) == pytest.approx({"a": 1.0, "b": 1.0, "c": 0.0})


def test_every_unique_row_of_the_survey_has_a_score() -> None:
    found = measured(pl.read_csv(DATA / "testdata.csv").select(KEYS))
    assert found.detail["rows"] == 157
    assert found.value == pytest.approx(0.678143, abs=1e-6)


def test_a_missing_code_takes_part_in_no_minimal_sample_unique() -> None:
    """101 records and a largest score of 0.4624549: sdcMicro's SUDA2 on this file with ``missing = 3``.

    The run behind this pair came without its arguments. Of the settings tried (each code as missing, raw or ranked;
    each depth; both weights) only this one gives it. sdcMicro computes DIS in single precision: 0.46245499 then.
    """
    frame = pl.read_csv(DATA / "testdata.csv").select(
        pl.when(pl.col(name) == 3).then(None).otherwise(pl.col(name)).alias(name) for name in KEYS
    )
    found = measured(frame, missing="wildcard")
    assert found.detail["rows"] == 101
    assert found.value == pytest.approx(0.4624549, abs=2e-7)
