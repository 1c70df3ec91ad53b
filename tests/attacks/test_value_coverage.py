"""Coverage equals its plain definition, and measures on a million rows of ranges stay within a memory limit."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.attacks.candidate_rows import compare
from sfumato.attacks.normalize import canonical
from sfumato.attacks.value_coverage import coverage
from sfumato.attacks.value_parser import Known, reader


def _values(kind: str, draw: np.random.Generator) -> list[Any]:
    count = int(draw.integers(2, 40))
    match kind:
        case "integer":
            return [int(value) for value in draw.integers(-30, 60, count)]
        case "float":
            return [float(value) for value in draw.normal(20, 20, count).round(1)]
        case "date":
            return [date(1960, 1, 1) + timedelta(days=int(day)) for day in draw.integers(0, 4000, count)]
        case _:
            return [
                str(value)
                for value in draw.choice(["a", "b", "02139", "02145", "5-7", "[1, 9)", "12.5", "{a,b}"], count)
            ]


def _label(draw: np.random.Generator) -> str | None:
    low, high = sorted(draw.integers(-40, 70, 2).tolist())
    day = date(1960, 1, 1) + timedelta(days=int(draw.integers(0, 4000)))
    later = day + timedelta(days=int(draw.integers(0, 900)))
    choices = (
        None, "*", f"[{low}, {high})", f"]{low},{high}]", f"{low}-{high}", f"{low}..{high}.5", f"<{high}", f">={low}",
        f">{low}", f"<={high}.5", f"{high}+", f"{{{low}, {high}, a}}", f"{low}", "a", "021**", "5-7", "[1, 9)",
        f"[{day}, {later}]", f"({day}, {later})", f"{day}", f"{day.year}", f"{day.year}-{day.month:02d}",
        f"{day.year // 10}0s", f"{day.year}-Q2", f"[, {high}]", f"{low}*", f">{day}",
    )  # fmt: skip
    return choices[int(draw.integers(len(choices)))]


@pytest.mark.parametrize("kind", ["integer", "float", "date", "text"])
def test_coverage_is_the_plain_definition(kind: str) -> None:
    draw = np.random.default_rng(len(kind))
    for _ in range(60):
        values: list[Any] = _values(kind, draw) + ([None] if draw.random() < 0.5 else [])
        original = pl.Series("x", values)
        released = pl.Series("x", [_label(draw) for _ in range(30)], dtype=pl.String)
        found = coverage(original, released)
        known = Known(values=found.values)
        table = []
        for code, label in enumerate(found.text.to_list()):
            read = reader(label) if label is not None else Known.everything
            expected = np.array([value is not None and value == label for value in known.text.to_list()])
            if read is not None:
                expected = expected | read(known)
            table.append(expected)
            covered = found.members[found.starts[code] : found.stops[code]]
            assert sorted(covered.tolist()) == np.flatnonzero(expected).tolist(), label
            assert found.covers(np.arange(len(found.values)), np.full(len(found.values), code)).tolist() == list(
                expected
            )
        cells = draw.integers(0, 4, len(found.values))
        matrix = np.zeros((len(found.labels), 4), dtype=np.int64)
        label_of, cell, common = found.by_cell(cells, 4)
        matrix[label_of, cell] = common
        plain = np.zeros_like(matrix)
        starts, labels = found.by_value()
        np.add.at(plain, (labels, np.repeat(cells, np.diff(starts))), 1)
        for value, row in enumerate(np.array(table).T):
            assert labels[starts[value] : starts[value + 1]].tolist() == np.flatnonzero(row).tolist()
        assert (matrix == plain).all()


def test_a_value_that_is_a_label_itself_matches_its_own_label() -> None:
    """An original coded in ranges and released as it is: "5-7" is the value "5-7", not nothing."""
    compared = compare(pl.Series(["5-7", "1-4", "20-29"]), pl.Series(["5-7", "1-4", "*"]))
    fits = [compared.fits[compared.starts[v] : compared.starts[v + 1]].tolist() for v in range(3)]
    assert fits == [[0, 2], [1, 2], [2]]
    assert canonical(pl.Series(["5-7"])).to_list() == ["5-7"]


_CHILD = """
import resource
import numpy as np, polars as pl
import sfumato
from sfumato.data import read
from sfumato.measures.base import ReleasePair
from sfumato.registry import registry
from sfumato.release import Release
from sfumato.rng import Rng
from sfumato.dataset import Data

rows, draw = 1_000_000, np.random.default_rng(1)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
income = draw.lognormal(10, 1, rows).round(2)
number = np.empty(rows, dtype=np.int64)
number[np.argsort(income * draw.lognormal(0, 0.3, rows))] = np.arange(rows) // 50
ends = pl.DataFrame({"c": number, "v": income}).with_columns(
    low=pl.col("v").min().over("c"), high=pl.col("v").max().over("c")
)
before = {"income": income, "sex": number % 2}
after = {"income": ends.select(pl.format("[{}, {}]", "low", "high")).to_series(), "sex": number % 2}
original = pl.DataFrame(before)
pair = ReleasePair(
    original=Data.of(read(original), sfumato.Schema.of(original, quasi=list(before))),
    release=Release(table=read(pl.DataFrame(after)), manifest={}),
)
for name in ("ncp", "marginals", "pairs"):
    value = registry("measure").get(name).build().compute(pair, Rng(1)).value
    assert value is not None and 0 < value < 1, (name, value)
"""


def test_a_million_rows_of_overlapping_ranges_in_four_gigabytes() -> None:
    """20,000 overlapping ranges over a million distinct values: a list of all pairs would need hundreds of GB."""
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
