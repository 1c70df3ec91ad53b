"""Schema migrations of the ledger's database: ledgers of version 0.1 keep their entries, chain and triggers."""

from __future__ import annotations

import multiprocessing
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_ledger import empty_postgres

from sfumato.dp.ledger import Ledger
from sfumato.dp.loss import pure
from sfumato.dp.stores.schema import REVISION, VERSION_TABLE
from sfumato.errors import LedgerBroken, OverBudget

OLD_SQLITE = """
CREATE TABLE IF NOT EXISTS tacit_ledger (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('cap', 'spend')),
    dataset TEXT NOT NULL, analyst TEXT NOT NULL, measure TEXT NOT NULL, size INTEGER NOT NULL CHECK (size >= 0),
    delta INTEGER NOT NULL CHECK (delta >= 0), about TEXT NOT NULL, totals TEXT NOT NULL, previous TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE
) STRICT;
CREATE INDEX IF NOT EXISTS tacit_ledger_account ON tacit_ledger (kind, dataset, analyst, number);
CREATE INDEX IF NOT EXISTS tacit_ledger_dataset ON tacit_ledger (kind, dataset, number);
CREATE INDEX IF NOT EXISTS tacit_ledger_analyst ON tacit_ledger (kind, analyst, number);
CREATE TRIGGER IF NOT EXISTS tacit_ledger_keep BEFORE UPDATE ON tacit_ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS tacit_ledger_stay BEFORE DELETE ON tacit_ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TABLE IF NOT EXISTS tacit_answers (key TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS tacit_audit (number INTEGER PRIMARY KEY, dataset TEXT NOT NULL, rules TEXT NOT NULL,
    question TEXT NOT NULL, verdict TEXT NOT NULL, fakes TEXT NOT NULL, previous TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE);
"""
OLD_POSTGRES = (
    "CREATE TABLE IF NOT EXISTS tacit_ledger (number BIGINT PRIMARY KEY, at TEXT NOT NULL, "
    "kind TEXT NOT NULL CHECK (kind IN ('cap', 'spend')), dataset TEXT NOT NULL, analyst TEXT NOT NULL, "
    "measure TEXT NOT NULL, size BIGINT NOT NULL CHECK (size >= 0), delta BIGINT NOT NULL CHECK (delta >= 0), "
    "about TEXT NOT NULL, totals TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE)",
    "CREATE INDEX IF NOT EXISTS tacit_ledger_account ON tacit_ledger (kind, dataset, analyst, number)",
    "CREATE INDEX IF NOT EXISTS tacit_ledger_dataset ON tacit_ledger (kind, dataset, number)",
    "CREATE INDEX IF NOT EXISTS tacit_ledger_analyst ON tacit_ledger (kind, analyst, number)",
    "CREATE OR REPLACE FUNCTION tacit_ledger_keep() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
    "CREATE OR REPLACE TRIGGER tacit_ledger_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON tacit_ledger "
    "FOR EACH STATEMENT EXECUTE FUNCTION tacit_ledger_keep()",
    "CREATE TABLE IF NOT EXISTS tacit_answers (key TEXT PRIMARY KEY, body TEXT NOT NULL)",
)
AUDIT = (1, "patients", "{}", "SELECT 1", "answered", "[]", "0" * 64, "f" * 64)


def entries(tmp_path: Path) -> tuple[list[tuple[Any, ...]], str]:
    """Entries as version 0.1 wrote them (the chain does not contain the name of the table), and the last hash."""
    ledger = Ledger.open(tmp_path / "source.db")
    ledger.set_cap(pure(1), dataset="flu")
    for _ in range(3):
        ledger.reserve(pure("0.3"), dataset="flu", analyst="ana", query="q")
    return [tuple(entry.to_dict().values()) for entry in ledger.entries()], ledger.verify()


def old_file(tmp_path: Path) -> tuple[Path, str]:
    rows, last = entries(tmp_path)
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(OLD_SQLITE)
        connection.executemany(f"INSERT INTO tacit_ledger VALUES ({', '.join('?' * 12)})", rows)
        connection.execute("INSERT INTO tacit_answers VALUES ('k', '[7]')")
        connection.execute("INSERT INTO tacit_audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", AUDIT)
    connection.close()
    return path, last


def objects(path: Path) -> list[tuple[str, str]]:
    found = sqlite3.connect(path).execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return sorted(found.fetchall())


def check_budget(ledger: Ledger, last: str) -> None:
    assert ledger.verify(last=last) == last
    assert ledger.balance(dataset="flu").spent == pure("0.9")
    assert ledger.recall("k") == "[7]"
    with pytest.raises(OverBudget):
        ledger.reserve(pure("0.2"), dataset="flu", analyst="ana", query="q")
    ledger.reserve(pure("0.1"), dataset="flu", analyst="ana", query="q")
    ledger.verify(last=last)


def test_a_file_of_version_0_1_keeps_entries_chain_and_triggers(tmp_path: Path) -> None:
    path, last = old_file(tmp_path)
    check_budget(Ledger.open(path), last)
    new = tmp_path / "new.db"
    Ledger.open(new)
    assert objects(path) == objects(new)
    outside = sqlite3.connect(path, isolation_level=None)
    assert outside.execute("SELECT * FROM sfumato_audit").fetchall() == [AUDIT]
    for table in ("sfumato_ledger", "sfumato_audit"):
        for tampering in (f"UPDATE {table} SET number = 9", f"DELETE FROM {table}"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                outside.execute(tampering)
    assert outside.execute(f"SELECT * FROM {VERSION_TABLE}").fetchall() == [(REVISION,)]


def test_a_postgres_ledger_of_version_0_1_keeps_entries_chain_and_triggers(tmp_path: Path, postgresql: str) -> None:
    import psycopg

    rows, last = entries(tmp_path)
    empty_postgres(postgresql)
    with psycopg.connect(postgresql, autocommit=True) as outside:
        for statement in OLD_POSTGRES:
            outside.execute(statement)
        for row in rows:
            outside.execute(f"INSERT INTO tacit_ledger VALUES ({', '.join(['%s'] * 12)})", row)
        outside.execute("INSERT INTO tacit_answers VALUES ('k', '[7]')")
        check_budget(Ledger.open(postgresql), last)
        assert Ledger.open(postgresql).balance(dataset="flu").left == pure(0)
        for tampering in ("UPDATE sfumato_ledger SET size = 1", "DELETE FROM sfumato_ledger", "TRUNCATE sfumato_audit"):
            with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
                outside.execute(tampering)
        left = outside.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'tacit%' AND relkind = 'r'").fetchone()
        assert left == (0,)


def test_an_empty_ledger_beside_an_old_one_gives_way_and_a_used_one_is_refused(tmp_path: Path) -> None:
    path, last = old_file(tmp_path)
    with sqlite3.connect(path) as outside:
        outside.executescript(OLD_SQLITE.replace("tacit", "sfumato"))
    check_budget(Ledger.open(path), last)
    folder = tmp_path / "other"
    folder.mkdir()
    other, _ = old_file(folder)
    with sqlite3.connect(other) as outside:
        outside.executescript(OLD_SQLITE.replace("tacit", "sfumato"))
        outside.execute("INSERT INTO sfumato_ledger SELECT * FROM tacit_ledger WHERE number = 1")
    with pytest.raises(LedgerBroken, match="two ledgers"):
        Ledger.open(other)
    assert sqlite3.connect(other).execute("SELECT count(*) FROM tacit_ledger").fetchone() == (4,)


def test_a_failed_migration_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic.operations import Operations

    path, last = old_file(tmp_path)
    before = objects(path)
    monkeypatch.setattr(Operations, "create_index", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Ledger.open(path)
    assert objects(path) == before
    monkeypatch.undo()
    check_budget(Ledger.open(path), last)


def test_a_later_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger.open(path)
    with sqlite3.connect(path) as outside:
        outside.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(LedgerBroken, match="later version"):
        Ledger.open(path)


def _open(path: str) -> int:
    return len(list(Ledger.open(path).entries()))


def test_processes_that_open_an_old_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    path, last = old_file(tmp_path)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(_open, [str(path)] * 4) == [4] * 4
    check_budget(Ledger.open(path), last)


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

    import sfumato.dp.stores.schema as schema

    assert ScriptDirectory(str(schema.LEDGER.scripts)).get_heads() == [REVISION]


def test_a_current_ledger_is_opened_without_sqlalchemy(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger.open(path)
    code = (
        f"import sys; from sfumato.dp import Ledger; Ledger.open({str(path)!r}).verify(); "
        "print({'sqlalchemy', 'alembic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
