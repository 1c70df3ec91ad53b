"""Bad input gets a clear error with a stable code, shows no value of the data, and costs nothing that was there."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from sfumato.data import Table, read, replacing, write
from sfumato.errors import BadParameter, OutputExists, SfumatoError, UnknownColumn

SECRET = "Ann Example"
GOOD = f"name,zip,n\n{SECRET},02141,1\nBen,00501,2\n"


def make_folder(path: Path) -> None:
    path.mkdir()


def make_unreadable_workbook(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04" + SECRET.encode() * 50)


def parquet_cut_short(path: Path) -> None:
    pl.DataFrame({"name": [SECRET] * 1000}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])


def content(text: str | bytes) -> Callable[[Path], None]:
    data = text.encode() if isinstance(text, str) else text
    return lambda path: path.write_bytes(data) and None


CASES: list[tuple[str, str, Callable[[Path], None], str]] = [
    ("a file that is not there", "t.csv", lambda path: None, "SFU-101"),
    ("a folder", "t.csv", make_folder, "SFU-101"),
    ("a Parquet file named CSV", "t.csv", content(b"PAR1" + SECRET.encode()), "SFU-102"),
    ("CSV named Parquet", "t.parquet", content(GOOD), "SFU-102"),
    ("CSV named Arrow", "t.arrow", content(GOOD), "SFU-102"),
    ("CSV named Excel", "t.xlsx", content(GOOD), "SFU-102"),
    ("CSV named SPSS", "t.sav", content(GOOD), "SFU-102"),
    ("CSV named Stata", "t.dta", content(GOOD), "SFU-102"),
    ("CSV named SAS", "t.xpt", content(GOOD), "SFU-102"),
    ("CSV named DuckDB", "t.duckdb", content(GOOD), "SFU-102"),
    ("CSV named JSON lines", "t.jsonl", content(GOOD), "SFU-102"),
    ("a web page named CSV", "t.csv", content(f"<!DOCTYPE html><p>{SECRET}</p>"), "SFU-102"),
    ("CSV named gzip", "t.csv.gz", content(GOOD), "SFU-102"),
    ("gzip cut short", "t.csv.gz", content(gzip.compress(GOOD.encode())[:-9]), "SFU-102"),
    ("Parquet cut short", "t.parquet", parquet_cut_short, "SFU-102"),
    ("half a workbook", "t.xlsx", make_unreadable_workbook, "SFU-102"),
    ("an SPSS file of noise", "t.sav", content(b"$FL2" + SECRET.encode() * 50), "SFU-102"),
    ("bytes that are no text", "t.csv", content(b"\x00\x01\x02" * 100), "SFU-102"),
    ("an empty file", "t.csv", content(""), "SFU-103"),
    ("an empty Parquet file", "t.parquet", content(""), "SFU-103"),
    ("nothing but blank lines", "t.csv", content("\n\n\n"), "SFU-103"),
    ("a header without rows", "t.csv", content("name,zip\n"), "SFU-103"),
    ("an empty gzip", "t.csv.gz", content(gzip.compress(b"")), "SFU-103"),
    ("two columns of one name", "t.csv", content(f"name,n,name\n{SECRET},1,x\n"), "SFU-104"),
    ("an unknown suffix", "t.docx", content(GOOD), "SFU-105"),
    ("no suffix", "table", content(GOOD), "SFU-105"),
    ("a line too short", "t.csv", content(f"{GOOD}{SECRET}\n"), "SFU-109"),
    ("a line too long", "t.csv", content(f"{GOOD}{SECRET},1,2,3\n"), "SFU-109"),
    ("a quote that is never closed", "t.csv", content(f'{GOOD}"{SECRET},1,2\n'), "SFU-109"),
]


@pytest.mark.parametrize(("name", "make", "code"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_bad_file_is_refused_with_its_code(
    name: str, make: Callable[[Path], None], code: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    make(path)
    with pytest.raises(SfumatoError) as caught:
        read(path)
    refusal = caught.value
    assert (refusal.code, refusal.status) == (code, 2)
    assert path.name in refusal.message or code == "SFU-104"
    assert SECRET not in str(refusal)
    assert SECRET not in str(refusal.to_dict())


@pytest.mark.parametrize("name", ["*", "^a.*$"])
def test_a_column_called_like_a_pattern_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{name},age\nx,1\n")
    with pytest.raises(BadParameter, match="pattern"):
        read(tmp_path / "t.csv")


def test_one_row_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,zip,n\nAnn,02141,1\n")
    assert read(path).frame.rows() == [("Ann", "02141", 1)]


def test_an_all_missing_column_stays(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,,x\n2,NA,y\n")
    assert read(path).frame["b"].to_list() == [None, None]


def test_an_unknown_column_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(GOOD)
    with pytest.raises(UnknownColumn) as caught:
        read(path).column("nmae")
    assert caught.value.code == "SFU-201"
    assert "`name`" in caught.value.fix
    assert SECRET not in str(caught.value)


def test_an_output_that_exists_survives(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("mine")
    with pytest.raises(OutputExists) as caught:
        write(Table(frame=pl.DataFrame({"a": [1]})), path)
    assert (caught.value.code, path.read_text()) == ("SFU-107", "mine")


def test_a_written_file_has_the_rights_of_any_other(tmp_path: Path) -> None:
    with replacing(tmp_path / "t.csv") as temporary:
        temporary.write_text("x")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "t.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(sys.platform == "win32", reason="signals work differently there")
def test_ctrl_c_leaves_the_old_output_and_nothing_else(tmp_path: Path) -> None:
    """A process of its own, interrupted in the middle of writing."""
    place = tmp_path / "t.csv"
    place.write_text("old")
    code = (
        "import sys, time; from sfumato.data import replacing\n"
        f"with replacing({str(place)!r}, force=True) as temporary:\n"
        "    temporary.write_text('half'); print('writing', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
    assert process.returncode != 0
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]
