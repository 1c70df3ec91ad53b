"""Every Polars, Arrow and pandas type, with and without gaps, goes through every function of ``import sfumato``."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato
from sfumato.errors import WrongKind

ROWS = 12
STEPS = [{"generalize": {"search": "heuristic", "seconds": 0.2}}]
GAPS = pl.Series([row % 5 == 1 for row in range(ROWS)])
WHOLE = [20 + row % 4 for row in range(ROWS)]
PARTS = [value + 0.5 for value in WHOLE]
WORDS = [f"ab{row % 3}" for row in range(ROWS)]
MOMENTS = [dt.datetime(1960 + row % 4, 1 + row % 3, 3, 4, 5) for row in range(ROWS)]

INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.UInt128)
POLARS: dict[str, pl.Series] = {
    **{str(kind): pl.Series(WHOLE, dtype=kind) for kind in INTEGERS},
    **{str(kind): pl.Series(PARTS, dtype=kind) for kind in (pl.Float32, pl.Float64)},
    **{f"{kind} {odd}": pl.Series([odd, -odd, *PARTS[2:]], dtype=kind)
       for kind in (pl.Float32, pl.Float64) for odd in (math.nan, math.inf)},
    "Decimal": pl.Series([Decimal(f"{value}.50") for value in WHOLE], dtype=pl.Decimal(10, 2)),
    "Date": pl.Series([moment.date() for moment in MOMENTS]),
    **{f"Datetime {unit}": pl.Series(MOMENTS, dtype=pl.Datetime(unit)) for unit in ("ms", "us", "ns")},
    **{f"Datetime {zone}": pl.Series(MOMENTS).dt.replace_time_zone(zone) for zone in ("UTC", "Europe/Berlin")},
    "Time": pl.Series([dt.time(row % 4, 5) for row in range(ROWS)]),
    "Boolean": pl.Series([row % 2 == 0 for row in range(ROWS)]),
    "String": pl.Series(WORDS),
    "Categorical": pl.Series(WORDS, dtype=pl.Categorical),
    "Enum": pl.Series(WORDS, dtype=pl.Enum(["ab2", "ab1", "ab0", "never"])),
    "Null": pl.Series([None] * ROWS, dtype=pl.Null),
}  # fmt: skip

ENDS = {str(kind): pl.select(pl.concat([kind.min(), kind.max()] * (ROWS // 2))).to_series() for kind in INTEGERS}
ARROW: dict[str, pa.Array] = {
    **{str(kind): pa.array(WHOLE, kind) for kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.float16())},
    **{str(kind): pa.array(WORDS, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    "dictionary": pa.array(WORDS).dictionary_encode(),
    "decimal128": pa.array([Decimal(value) for value in WHOLE], pa.decimal128(20, 3)),
    "date32": pa.array([moment.date() for moment in MOMENTS], pa.date32()),
    "date64": pa.array([moment.date() for moment in MOMENTS], pa.date64()),
    "time32": pa.array([dt.time(row % 4, 5) for row in range(ROWS)], pa.time32("s")),
    **{f"timestamp {unit}": pa.array(MOMENTS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "timestamp with zone": pa.array(MOMENTS, pa.timestamp("us", "America/Lima")),
    "bool": pa.array([row % 2 == 0 for row in range(ROWS)]),
    "null": pa.nulls(ROWS),
}
PANDAS: dict[str, pd.Series] = {
    **{kind: pd.Series(WHOLE, dtype=kind) for kind in ("int8", "uint16", "int16[pyarrow]")},
    **{kind: pd.Series(PARTS, dtype=kind) for kind in ("float16", "float32", "double[pyarrow]")},
    **{f"{kind} with gaps": pd.Series(WHOLE, dtype=kind) for kind in ("Int8", "UInt8", "Int64")},
    **{f"{kind} with gaps": pd.Series(PARTS, dtype=kind) for kind in ("Float32", "Float64")},
    **{kind: pd.Series(WORDS, dtype=kind) for kind in ("object", "string", "string[pyarrow]", "category")},
    "ordered category": pd.Series(pd.Categorical(WORDS, ["ab2", "ab1", "ab0"], ordered=True)),
    "category of numbers": pd.Series(WHOLE).astype("category"),
    "bool": pd.Series([row % 2 == 0 for row in range(ROWS)]),
    "boolean": pd.Series([row % 2 == 0 for row in range(ROWS)], dtype="boolean"),
    "datetime": pd.Series(MOMENTS),
    "datetime with zone": pd.Series(MOMENTS).dt.tz_localize("Asia/Tokyo"),
    "period": pd.Series(pd.PeriodIndex(MOMENTS, freq="M")),
    "dates as objects": pd.Series([moment.date() for moment in MOMENTS]),
    "numbers and gaps as objects": pd.Series([None, *WHOLE[1:]], dtype="object"),
}
NOT_A_CELL: dict[str, pl.Series] = {
    "List": pl.Series([[1, 2]] * ROWS),
    "Array": pl.Series([[1, 2]] * ROWS, dtype=pl.Array(pl.Int64, 2)),
    "Struct": pl.Series([{"a": 1}] * ROWS),
    "Duration": pl.Series([dt.timedelta(days=row % 4) for row in range(ROWS)]),
    "Object": pl.Series([object()] * ROWS, dtype=pl.Object),
}


def with_gaps(values: pl.Series) -> pl.Series:
    return pl.select(pl.when(~GAPS).then(values)).to_series()


def table(**columns: pl.Series) -> pl.DataFrame:
    group = pl.Series(["u", "v"] * (ROWS // 2))
    return pl.DataFrame([values.alias(name) for name, values in {**columns, "group": group}.items()])


def released(frame: Any, role: str, names: list[str], folder: Path) -> list[str]:
    """Propose, protect, check, attack, measure, save and report; each must give a result. The released columns."""
    assert profiled(frame)[: len(names)] == names
    columns = {"group": "plain" if role == "quasi" else "quasi", **dict.fromkeys(names, role)}
    recipe = {"sfumato": 1, "unit": "row", "columns": columns, "models": [{"k-anonymity": 2}], "steps": STEPS}
    done = sfumato.protect(recipe, frame, seed=1, n_targets=ROWS)
    assert done.release.table.rows > 0
    assert sfumato.check(done).holds
    assert len(sfumato.attack(done, attacks=["linkage", "attribute-linkage"], seed=1)) > 0
    values = sfumato.measure(done, measures=["uniqueness", "marginals", "ncp"], seed=1).to_frame()["value"]
    assert all(math.isfinite(value) for value in values.drop_nulls())
    done.save(folder / "release")
    sfumato.report(folder / "release", out=folder / "report.html")
    return [name for name in done.release.table.columns if name != "group"]


def profiled(frame: Any) -> list[str]:
    """The columns of the proposed recipe."""
    return list(sfumato.Recipe.parse(sfumato.propose(frame).recipe(k=2)).schema.columns)


@pytest.mark.parametrize("kind", POLARS)
def test_polars_types_are_profiled(kind: str) -> None:
    assert profiled(table(complete=POLARS[kind], gaps=with_gaps(POLARS[kind]))) == ["complete", "gaps", "group"]


@pytest.mark.parametrize("role", ["quasi", "sensitive", "plain", "identifier"])
def test_polars_types_in_every_role(role: str, tmp_path: Path) -> None:
    columns = {kind: with_gaps(values) for kind, values in POLARS.items()}
    expected = [] if role == "identifier" else list(columns)
    assert released(table(**columns), role, list(columns), tmp_path) == expected


def test_smallest_and_largest_integers(tmp_path: Path) -> None:
    assert released(table(**ENDS), "quasi", list(ENDS), tmp_path) == list(ENDS)


@pytest.mark.parametrize("role", ["quasi", "plain"])
def test_arrow_tables(role: str, tmp_path: Path) -> None:
    frame = pa.table({**ARROW, "group": ["u", "v"] * (ROWS // 2)})
    assert released(frame, role, list(ARROW), tmp_path) == list(ARROW)


@pytest.mark.parametrize("role", ["quasi", "plain"])
def test_pandas_frames(role: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({**PANDAS, "group": ["u", "v"] * (ROWS // 2)})
    assert released(frame, role, list(PANDAS), tmp_path) == list(PANDAS)


@pytest.mark.parametrize("kind", NOT_A_CELL)
def test_nested_values_and_durations_are_refused_with_a_remedy(kind: str) -> None:
    frame = table(x=NOT_A_CELL[kind])
    for verb in (sfumato.propose, sfumato.read):
        with pytest.raises(WrongKind, match="Column `x` holds") as refusal:
            verb(frame)
        assert refusal.value.fix


def test_bytes_are_proposed_for_removal_and_refused_in_every_other_role() -> None:
    frame = table(x=pl.Series([b"ab%d" % (row % 3) for row in range(ROWS)]))
    assert sfumato.propose(frame).columns[0].role is sfumato.Role.IDENTIFIER
    recipe = {"sfumato": 1, "columns": {"x": "plain"}, "steps": []}
    with pytest.raises(WrongKind, match="bytes"):
        sfumato.protect(recipe, frame, seed=1)
