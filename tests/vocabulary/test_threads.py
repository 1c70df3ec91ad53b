"""Tasks beside each other: in order, with the caller's context, stopped at an error, and with the same results."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato import threads
from sfumato.threads import map_tasks

_NAME: ContextVar[str] = ContextVar("name")


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_cores", lambda: 2)


@pytest.mark.usefixtures("two_cores")
def test_two_tasks_run_at_the_same_time_and_see_the_context_of_the_caller() -> None:
    _NAME.set("caller")
    met = threading.Barrier(2, timeout=60)

    def work(number: int) -> tuple[int, str]:
        met.wait()  # fails unless another task is running
        return number, _NAME.get()

    assert list(map_tasks(work, range(4))) == [(number, "caller") for number in range(4)]


@pytest.mark.usefixtures("two_cores")
def test_after_an_error_no_task_is_started() -> None:
    started: list[int] = []

    def work(number: int) -> None:
        started.append(number)
        if number == 0:
            raise ValueError
        time.sleep(0.05)

    with pytest.raises(ValueError):  # noqa: PT011 - the task's own error
        next(map_tasks(work, range(50)))
    # Some tasks may have begun before the error was seen; the rest was cancelled.
    assert len(started) < 50


def test_attacks_beside_each_other_find_the_same_as_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "age": draw.integers(18, 90, 300),
            "income": draw.lognormal(10, 1, 300).round(),
            "ill": draw.choice(["no", "yes"], 300),
        }
    )
    recipe = {
        "sfumato": 1,
        "columns": {"age": "quasi", "income": "quasi", "ill": "sensitive"},
        "steps": [{"noise": {"variance_ratio": 0.3}}],
        "attacks": [
            "posterior-linkage",
            "posterior-inference",
            "distance-linkage",
            "membership",
            "value-presence",
        ],
    }
    found = []
    for cores in (1, 2):
        monkeypatch.setattr(threads, "_cores", lambda cores=cores: cores)
        found.append(sfumato.protect(recipe, frame, seed=5, key=bytes(32)).evaluation.to_dict()["attacks"])
    assert found[0] == found[1]
    assert sum(entry["risk"] is not None for entry in found[0]) >= 5
