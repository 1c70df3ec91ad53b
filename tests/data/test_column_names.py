"""Names that other readers do not tell apart are refused when a table is opened, on every engine."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.errors import BadParameter, DuplicateColumns

NAMES = [("Sex", "sex"), ("a ", "a"), (" ZIP", "zip")]


def _plan(*quasi: str) -> dict[str, object]:
    columns = {**{name: {"role": "quasi"} for name in quasi}, "ill": {"role": "sensitive"}}
    return {"sfumato": 1, "unit": "row", "columns": columns, "models": [{"k-anonymity": 5}], "steps": ["generalize"]}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_names_that_differ_by_case_or_blanks_are_refused(
    names: tuple[str, str], engine: str, suffix: str, tmp_path: Path
) -> None:
    frame = pl.DataFrame({names[0]: ["x", "y"] * 10, names[1]: ["u"] * 20, "ill": ["p", "q"] * 10})
    file = tmp_path / f"people{suffix}"
    frame.write_csv(file) if suffix == ".csv" else frame.write_parquet(file)
    with pytest.raises(DuplicateColumns) as refused:
        sfumato.protect(_plan(*names), file, engine=engine, seconds=0.001)
    assert names[1].strip() in str(refused.value)


def test_a_frame_and_a_column_without_a_name() -> None:
    with pytest.raises(DuplicateColumns, match="differ only by capitals"):
        sfumato.read(pl.DataFrame({"Sex": [1], "sex": [2]}))
    for name in ("", " "):
        with pytest.raises(BadParameter, match="no name"):
            sfumato.protect(_plan("a"), pl.DataFrame({"a": [1], name: [2], "ill": [1]}))
