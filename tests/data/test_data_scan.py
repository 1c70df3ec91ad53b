"""Files are queried where they lie, through a connection that can reach nothing else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from sfumato.data import Table, preview, read, scan, size_hint, write
from sfumato.data.scan import SizeHint
from sfumato.errors import EmptyTable, FileMissing, NotThatFormat, RaggedLine, UnknownFormat

SAMPLES = Path(__file__).parent.parent / "samples" / "formats"
FRAME = pl.DataFrame(
    {
        "zip": ["02141", None, "00501"],
        "n": [1, 2, None],
        "x": [0.5, None, 2.0],
        "word": ["NA", "", 'q"\n,'],
        "flag": [True, False, None],
    }
)


def whole(source: Path, **options: object) -> pl.DataFrame:
    found = scan(source, **options)  # type: ignore[arg-type]
    with found.connect() as connection:
        result: pl.DataFrame = connection.sql(f"SELECT * FROM {found.expression}").pl()
    assert list(found.columns) == result.columns
    return result


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.duckdb", 'o\'hara "x".csv'])
def test_a_scan_gives_the_same_table_as_reading(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(Table(frame=FRAME), path)
    assert whole(path).equals(FRAME)
    assert whole(path).equals(read(path).frame)
    assert scan(path).count() == 3


@pytest.mark.parametrize(
    "name", ["latin1_semicolon.csv", "bom.csv", "excel_export.csv", "no_header.csv", "utf16.txt", "uci_style.data.csv"]
)
def test_the_samples_are_scanned_as_they_are_read(name: str) -> None:
    assert whole(SAMPLES / name).equals(read(SAMPLES / name).frame)


def test_types_are_known_without_reading(tmp_path: Path) -> None:
    write(Table(frame=FRAME), tmp_path / "t.csv")
    assert dict(scan(tmp_path / "t.csv").columns) == {
        "zip": "VARCHAR",
        "n": "BIGINT",
        "x": "DOUBLE",
        "word": "VARCHAR",
        "flag": "BOOLEAN",
    }


def test_the_options_of_the_format_count(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("icd;x\n250.00;1,234\n250.0;2,345\n")
    assert whole(path, text=["icd"], decimal=",").rows() == [("250.00", 1.234), ("250.0", 2.345)]
    assert whole(path).rows() == [(250.0, "1,234"), (250.0, "2,345")]
    assert read(path).frame.equals(whole(path))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.duckdb"])
def test_the_connection_reaches_nothing_else(name: str, tmp_path: Path) -> None:
    path, other = tmp_path / name, tmp_path / "other.csv"
    write(Table(frame=FRAME), path)
    write(Table(frame=FRAME), other)
    found = scan(path)
    refused = [
        f"SELECT * FROM read_csv('{other}')",
        f"SELECT * FROM '{other}'",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        f"ATTACH '{tmp_path}/new.duckdb'",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "INSTALL httpfs",
        "LOAD httpfs",
    ]
    with found.connect() as connection:
        for query in refused:
            with pytest.raises(duckdb.Error):
                connection.execute(query)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted({name, "other.csv"})


def test_more_than_the_memory_allowed_is_sorted_on_disk(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path, spill = tmp_path / "big.parquet", tmp_path / "spill"
    spill.mkdir()
    pl.DataFrame(
        {"key": rng.permutation(1_500_000), "a": rng.random(1_500_000), "b": rng.random(1_500_000)}
    ).write_parquet(path)
    found = scan(path)
    with found.connect(memory="40MB", threads=1, temporary=spill) as connection:
        connection.execute(f"CREATE TEMP TABLE sorted AS SELECT * FROM {found.expression} ORDER BY a")
        used = sum(file.stat().st_size for file in spill.rglob("*") if file.is_file())
        row = connection.execute("SELECT count(*), min(key), max(key) FROM sorted").fetchone()
    assert row == (1_500_000, 0, 1_499_999)
    assert used > 0
    assert list(spill.iterdir()) == []


@pytest.mark.parametrize("encoding", ["UTF-8", "utf8", "UTF_8_SIG", "ascii", "ISO-8859-1"])
def test_an_encoding_goes_by_any_of_its_names(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n,word\n1,a\n2,b\n")
    assert whole(path, encoding=encoding).equals(read(path, encoding=encoding).frame)


def test_an_encoding_that_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n,word\n1,a\n")
    with pytest.raises(NotThatFormat, match="utf-9"):
        scan(path, encoding="utf-9")


@pytest.mark.parametrize("name", ["Row_Number", "ROW_NUMBER", "row_number_"])
def test_a_first_look_keeps_a_column_of_any_name(name: str, tmp_path: Path) -> None:
    """Names that differ by their case alone are one name to DuckDB."""
    path = tmp_path / "t.csv"
    frame = pl.DataFrame({"row_number": range(3000), name: range(3000), "word": "x"} if name[-1] == "_" else
                         {name: range(3000), "word": "x"})  # fmt: skip
    write(Table(frame=frame), path)
    found = preview(path, most=100, whole=False)
    assert found.partial
    assert found.table.frame.schema == frame.schema
    assert set(found.table.frame.rows()) <= set(frame.rows())


def test_bad_files_are_refused(tmp_path: Path) -> None:
    ragged, empty, fake = tmp_path / "ragged.csv", tmp_path / "empty.csv", tmp_path / "fake.parquet"
    ragged.write_text("a,b\n1,2\nsecret\n")
    empty.write_text("a,b\n")
    fake.write_text("a,b\n1,2\n")
    with pytest.raises(RaggedLine) as caught:
        scan(ragged)
    assert caught.value.facts["line"] == 3
    assert "secret" not in str(caught.value)
    with pytest.raises(EmptyTable):
        scan(empty)
    with pytest.raises(NotThatFormat):
        scan(fake)
    with pytest.raises(FileMissing):
        scan(tmp_path / "nowhere.csv")
    write(Table(frame=FRAME), tmp_path / "t.xlsx")
    with pytest.raises(UnknownFormat):
        scan(tmp_path / "t.xlsx")


def test_a_hint_of_the_size(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write(Table(frame=FRAME), path)
    hint = size_hint(path)
    assert hint.on_disk == path.stat().st_size
    assert hint.in_memory > hint.on_disk
    assert hint.fits
    assert not SizeHint(on_disk=10, in_memory=20, available=30).fits
