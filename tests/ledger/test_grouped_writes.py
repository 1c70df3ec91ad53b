"""Writers of a SQLite ledger that wait for each other share one commit, and are told of it alone."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sfumato.dp.loss import pure
from sfumato.errors import FileMissing, OverBudget, WriteFailed
from sfumato.ledger.charge import Charge
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SqliteStore

WRITERS = 12


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.open(tmp_path / "ledger.db")
    made.set_cap(pure(1), dataset="flu")
    return made


def store(ledger: Ledger) -> SqliteStore:
    assert isinstance(ledger.store, SqliteStore)
    return ledger.store


def spend(ledger: Ledger, epsilon: str, *, analyst: str = "ana") -> None:
    ledger.charge(Charge(loss=pure(epsilon), unit="row", what="q"), dataset="flu", analyst=analyst)


@contextmanager
def together(ledger: Ledger, work: Callable[[int], object]) -> Iterator[dict[int, str]]:
    """Run work in threads, all of which wait until the block has ended, in which nothing is committed yet."""
    found: dict[int, str] = {}

    def run(number: int) -> None:
        try:
            work(number)
            found[number] = "done"
        except (OverBudget, WriteFailed) as refusal:
            found[number] = type(refusal).__name__

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WRITERS)]
    with store(ledger).write() as transaction:
        transaction.query("INSERT INTO sfumato_answers (key, body) VALUES ('first', '1')")
        for thread in threads:
            thread.start()
        while store(ledger)._waiting < WRITERS:
            time.sleep(0.001)
        yield found
    for thread in threads:
        thread.join(60)


def test_one_commit_serves_all_who_wait(ledger: Ledger) -> None:
    said: list[str] = []
    store(ledger)._connection.set_trace_callback(said.append)
    with together(ledger, lambda number: spend(ledger, "1/100", analyst=f"a{number}")) as found:
        assert ledger.balance(dataset="flu").spent.size == 0  # readers see what is committed, and nobody waits for them
    assert list(found.values()) == ["done"] * WRITERS
    assert sum(one == "COMMIT" for one in said) <= 2
    assert ledger.balance(dataset="flu").spent == pure(f"{WRITERS}/100")
    ledger.verify()


def test_a_refusal_undoes_what_one_writer_wrote(ledger: Ledger) -> None:
    """Every second one writes and is refused behind it."""

    def work(number: int) -> None:
        if number % 2:
            spend(ledger, "2")
        with store(ledger).write() as transaction:
            transaction.query("INSERT INTO sfumato_answers (key, body) VALUES (?, 'x')", f"k{number}")
            if number == 4:
                raise WriteFailed("for the test")

    with together(ledger, work) as found:
        pass
    assert [found[number] for number in range(6)] == ["done", "OverBudget", "done", "OverBudget", "WriteFailed",
                                                      "OverBudget"]  # fmt: skip
    assert ledger.recall("first") == "1"
    assert [number for number in range(WRITERS) if ledger.recall(f"k{number}")] == [0, 2, 6, 8, 10]
    assert ledger.balance(dataset="flu").spent.size == 0
    ledger.verify()


def test_a_commit_that_fails_fails_for_all(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, real = store(ledger), store(ledger)._connection

    class Full:
        """A disk that is full when it is written to."""

        in_transaction = property(lambda _: real.in_transaction)

        def execute(self, sql: str, *values: Any) -> object:
            if sql == "COMMIT":
                raise sqlite3.OperationalError("database or disk is full")
            return real.execute(sql, *values)

    with (
        pytest.raises(WriteFailed, match="nothing was charged"),
        together(ledger, lambda number: spend(ledger, "1/100", analyst=f"a{number}")) as found,
    ):
        monkeypatch.setattr(whole, "_connection", Full())
    deadline = time.monotonic() + 60
    while len(found) < WRITERS and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(found.values()) == ["WriteFailed"] * WRITERS
    monkeypatch.undo()
    assert ledger.balance(dataset="flu").spent.size == 0
    spend(ledger, "1")
    ledger.verify()


def test_caps_hold_among_writers_of_one_commit(ledger: Ledger) -> None:
    with together(ledger, lambda number: spend(ledger, "1/5", analyst=f"a{number}")) as found:
        pass
    assert sorted(found.values()) == ["OverBudget"] * (WRITERS - 5) + ["done"] * 5
    assert ledger.balance(dataset="flu").spent == pure(1)
    ledger.verify()


def test_what_need_not_be_durable_waits_for_no_disk(ledger: Ledger) -> None:
    said: list[str] = []
    store(ledger)._connection.set_trace_callback(said.append)
    with store(ledger).write(durable=False) as transaction:
        transaction.query("INSERT INTO sfumato_answers (key, body) VALUES ('soft', '1')")
    assert "PRAGMA synchronous = NORMAL" in said
    assert ledger.recall("soft") == "1"
    said.clear()
    spend(ledger, "1/2")
    assert "PRAGMA synchronous = FULL" in said


def test_a_ledger_whose_file_is_gone_is_not_made_anew(ledger: Ledger, tmp_path: Path) -> None:
    store(ledger)._readers.clear()
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(FileMissing):
        ledger.balance(dataset="flu")
    assert not (tmp_path / "ledger.db").exists()
