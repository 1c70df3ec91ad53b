"""Schema of the ledger's database: made in one transaction, append-only, refused if it is later than known."""

from __future__ import annotations

import multiprocessing
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from postgres import empty_postgres
from sfumato.dp.loss import pure
from sfumato.errors import LedgerBroken
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.schema import REVISION, VERSION_TABLE


def objects(path: Path) -> list[tuple[str, str]]:
    found = sqlite3.connect(path).execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return sorted(found.fetchall())


_AUDIT = "INSERT INTO sfumato_audit VALUES (1, 'patients', '{}', 'SELECT 1', 'answered', '[]', '0', 'f')"


def test_entries_and_audit_log_are_append_only_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger.open(path).set_cap(pure(1), dataset="flu")
    outside = sqlite3.connect(path, isolation_level=None)
    outside.execute(_AUDIT)
    for table in ("sfumato_ledger", "sfumato_audit"):
        for tampering in (f"UPDATE {table} SET number = 9", f"DELETE FROM {table}"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                outside.execute(tampering)
    assert outside.execute(f"SELECT * FROM {VERSION_TABLE}").fetchall() == [(REVISION,)]


def test_entries_and_audit_log_are_append_only_in_postgres(postgresql: str) -> None:
    import psycopg

    empty_postgres(postgresql)
    Ledger.open(postgresql).set_cap(pure(1), dataset="flu")
    with psycopg.connect(postgresql, autocommit=True) as outside:
        outside.execute(_AUDIT)
        changes = ("UPDATE sfumato_ledger SET unit = ''", "DELETE FROM sfumato_ledger", "TRUNCATE sfumato_audit")
        for tampering in changes:
            with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
                outside.execute(tampering)


def test_a_failed_creation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic.operations import Operations

    path = tmp_path / "ledger.db"
    monkeypatch.setattr(Operations, "create_index", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Ledger.open(path)
    assert objects(path) == []
    monkeypatch.undo()
    Ledger.open(path).set_cap(pure(1), dataset="flu")


def test_a_later_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger.open(path)
    with sqlite3.connect(path) as outside:
        outside.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(LedgerBroken, match="later version"):
        Ledger.open(path)


def _open(path: str) -> int:
    return len(list(Ledger.open(path).entries()))


def test_processes_that_create_a_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(_open, [str(path)] * 4) == [0] * 4


def test_threads_create_ledgers_at_once(tmp_path: Path) -> None:
    def work(place: Path | str) -> str:
        ledger = Ledger.open(place)
        ledger.set_cap(pure(1), dataset="flu")
        return ledger.verify()

    places: list[Path | str] = [*(tmp_path / f"{number}.db" for number in range(12)), *[":memory:"] * 4]
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(work, places))) >= 1
    assert all(objects(tmp_path / f"{number}.db") == objects(tmp_path / "0.db") for number in range(12))


def test_the_revision_is_that_of_the_newest_script() -> None:
    from alembic.script import ScriptDirectory

    import sfumato.ledger.stores.schema as schema

    assert ScriptDirectory(str(schema.LEDGER.scripts)).get_heads() == [REVISION]


def test_a_current_ledger_is_opened_without_sqlalchemy(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger.open(path)
    code = (
        f"import sys; from sfumato.ledger import Ledger; Ledger.open({str(path)!r}).verify(); "
        "print({'sqlalchemy', 'alembic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
