"""DuckDB in this process: where rows go that do not fit the memory, and what a statement can reach."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

import sfumato
from sfumato.data.in_process import open_duckdb
from sfumato.errors import BadParameter

SOURCE = Path(sfumato.__file__).parent
SPILL = """
import os, signal, sys
from sfumato.data.in_process import open_duckdb
with open_duckdb(memory="60MB", threads=1) as connection:
    connection.execute("CREATE TABLE t AS SELECT 'person ' || i AS name FROM range(4000000) r(i)")
    if "killed" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def opens_duckdb(tree: ast.Module) -> list[str]:
    """Calls of functions of the module: classes, its exceptions, are written with capital letters."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [
        call.attr for call in calls
        if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id == "duckdb"
        and call.attr.islower()
    ]  # fmt: skip
    imported = [
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "duckdb"
        for alias in node.names if alias.name.islower()
    ]  # fmt: skip
    return named + imported


def test_one_function_opens_duckdb() -> None:
    found = {
        str(path.relative_to(SOURCE)): calls
        for path in sorted(SOURCE.rglob("*.py"))
        if "duckdb" in (text := path.read_text(encoding="utf-8")) and (calls := opens_duckdb(ast.parse(text)))
    }
    assert found == {"data/in_process.py": ["connect"]}, "Use sfumato.data.in_process.open_duckdb."
    for line in ("duckdb.connect()", "duckdb.sql('SELECT 1')", "from duckdb import connect"):
        assert opens_duckdb(ast.parse(f"import duckdb\n{line}"))


def run(folder: Path, *words: str) -> tuple[list[Path], list[Path]]:
    """What a process that spills leaves in its own folder and in the temporary one."""
    own, temporary = folder / "own", folder / "temporary"
    for each in (own, temporary):
        each.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run([sys.executable, "-c", SPILL, *words], cwd=own, env=environment, check=False)
    assert done.returncode == (-9 if words else 0)
    return sorted(own.iterdir()), sorted(temporary.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="signals and modes of POSIX")
def test_rows_that_do_not_fit_go_into_a_private_folder(tmp_path: Path) -> None:
    own, [spill] = run(tmp_path, "killed")
    assert own == []
    assert spill.stat().st_mode & 0o777 == 0o700
    assert any(file.stat().st_size for file in spill.iterdir())  # it did spill
    # The next process removes what the killed one left, and its own.
    assert run(tmp_path) == ([], [])


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_the_folder_of_a_living_process_stays(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with open_duckdb(temporary=temporary):
        [spill] = temporary.iterdir()
        assert run(tmp_path) == ([], [spill])
    assert list(temporary.iterdir()) == []


def test_a_connection_that_does_not_spill_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_duckdb(memory="60MB", threads=1, spills=False) as connection, pytest.raises(duckdb.OutOfMemoryException):
        connection.execute("CREATE TABLE t AS SELECT 'person ' || i AS name FROM range(4000000) r(i)")
    assert list(tmp_path.iterdir()) == []


def test_statements_reach_the_named_files_alone(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1]})
    named, other = tmp_path / "named.parquet", tmp_path / "other.parquet"
    for path in (named, other):
        frame.write_parquet(path)
    with open_duckdb(files=[named]) as connection:
        assert connection.execute(f"SELECT * FROM '{named}'").fetchall() == [(1,)]
        for statement in (
            f"SELECT * FROM '{other}'",
            f"COPY (SELECT 1) TO '{tmp_path / 'new.csv'}'",
            "SELECT * FROM frame",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            "SET temp_directory = '.tmp'",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)


def test_wrong_amount_of_memory() -> None:
    with pytest.raises(BadParameter, match="`much` is no amount"), open_duckdb(memory="much"):
        pass
