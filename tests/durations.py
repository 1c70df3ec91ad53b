"""Recorded durations of the test files: which tests are slow, and in which order files start.

``make durations`` runs all tests and writes ``tests/durations.csv``: seconds of each file in one process, start-up and
fixtures included.
"""

from __future__ import annotations

import csv
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

__all__ = ["SLOW", "Recorder", "file_of", "group_of", "recorded"]

FILE = Path(__file__).with_suffix(".csv")
SLOW = 2.0
"""Seconds of a file from which its tests are left out of `make quick`."""


@cache
def recorded() -> dict[str, float]:
    """Seconds of each file; none in a copy of the project without the record."""
    if not FILE.exists():
        return {}
    with FILE.open(encoding="utf-8", newline="") as lines:
        return {file: float(seconds) for file, seconds in list(csv.reader(lines))[1:]}


def file_of(test: str) -> str:
    """The file of a test, by its id."""
    return test.split("::")[0]


def group_of(item: pytest.Item) -> str:
    """The group of tests that run in one process."""
    marker = item.get_closest_marker("xdist_group")
    assert marker is not None
    return str(marker.args[0])


class Recorder:
    """Adds up the durations of a run and writes them."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[file_of(report.nodeid)] += report.duration  # type: ignore[assignment]

    def pytest_sessionfinish(self) -> None:
        with FILE.open("w", encoding="utf-8", newline="") as lines:
            table = csv.writer(lines, lineterminator="\n")
            table.writerow(("file", "seconds"))
            table.writerows((file, f"{seconds:.1f}") for file, seconds in sorted(self._seconds.items()))
