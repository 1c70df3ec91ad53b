"""One thread watches all statements: late ones are interrupted until they end, others never."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

from sfumato.engines.backends.duckdb.time_limit import TimeLimit


def test_what_takes_too_long_is_interrupted_until_it_ends() -> None:
    heard = threading.Semaphore(0)
    limit = TimeLimit(0.05, heard.release)
    with limit.watch():
        assert all(heard.acquire(timeout=60) for _ in range(3))  # again and again
    with limit.watch():
        assert heard.acquire(timeout=60)  # and the next one, too


def test_what_ends_in_time_is_left_alone() -> None:
    calls: list[float] = []
    limit = TimeLimit(3600, lambda: calls.append(time.monotonic()))
    before = threading.active_count()
    for _ in range(200):
        with limit.watch():
            pass
    assert not calls
    assert threading.active_count() <= before + 1


def test_a_statement_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen by a clock of our own: time that earlier statements took does not count."""
    now = 0.0
    monkeypatch.setattr("sfumato.engines.backends.duckdb.time_limit.monotonic", lambda: now)
    calls: list[float] = []
    limit = TimeLimit(3600, lambda: calls.append(now))
    for _ in range(5):
        with limit.watch():
            now += 3000
            assert limit.look() == 600
        now += 100
    assert not calls
    with limit.watch():
        now += 3600
        assert limit.look() == pytest.approx(0.1)
        assert calls == [now]
    assert limit.look() is None


def test_nothing_is_interrupted_once_it_has_ended() -> None:
    calls: list[int] = []
    limit = TimeLimit(1e-9, lambda: calls.append(1))
    with limit.watch():
        limit.look()
    seen = len(calls)
    assert seen >= 1
    assert limit.look() is None
    assert len(calls) == seen


def test_the_thread_keeps_nothing_alive() -> None:
    limit = TimeLimit(3600, lambda: None)
    with limit.watch():
        pass
    held = weakref.ref(limit)
    del limit
    gc.collect()
    assert held() is None
