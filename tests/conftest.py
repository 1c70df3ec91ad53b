"""Fixtures for all tests, and the randomness that they run on.

Noise comes from the operating system and cannot be seeded by any setting, so a test of it would draw anew in every
run and fail now and then. Here its source is replaced: a test has a stream of its own, the same in every run, and
`SFUMATO_SEED=7 make test` draws all of them anew. What tests the source itself is marked `os_entropy`.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

import durations
import sfumato.rng
from java import java
from postgres import postgresql

__all__ = ["java", "postgresql"]

SEED = os.environ.get("SFUMATO_SEED")

hypothesis.settings.register_profile("sfumato", deadline=None, derandomize=SEED is None)
hypothesis.settings.load_profile("sfumato")


def _stream(name: str) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()), int(SEED or 0)])


def _replace_keys(patch: pytest.MonkeyPatch, draw: np.random.Generator) -> None:
    """Seeds and keys of `sfumato.rng` from this stream."""
    patch.setattr(sfumato.rng, "urandom", draw.bytes)
    patch.setattr(sfumato.rng, "randbits", lambda count: int.from_bytes(draw.bytes(count // 8), "little"))


@pytest.fixture(scope="module", autouse=True)
def module_stream(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keys for what the tests of a file share, such as a release: a seed alone does not repeat it."""
    with pytest.MonkeyPatch.context() as patch:
        _replace_keys(patch, _stream(request.node.nodeid))
        yield


@pytest.fixture(autouse=True)
def stream(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random words of this test alone, instead of the operating system's."""
    if request.node.get_closest_marker("os_entropy"):
        return
    name = f"{request.node.parent.nodeid}::{request.node.name}"  # the test's own id has its group of xdist in it
    draw = _stream(name)
    monkeypatch.setattr(os, "urandom", draw.bytes)
    _replace_keys(monkeypatch, draw)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file share one process: what they share is made, imported and compiled once.

    So do all tests of Spark, and with them one Java machine, which compiles what it runs often. The groups start in the
    order of their recorded duration, longest first, so that both processes end at about the same time; a file without a
    record comes before all others. A test is `slow` if its file takes longer than a few seconds, or if it says so
    itself.
    """
    recorded = durations.recorded()
    for item in items:
        if "spark" in item.name or "java" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(durations.file_of(item.nodeid)))
        if recorded.get(durations.file_of(item.nodeid), 0.0) > durations.SLOW:
            item.add_marker(pytest.mark.slow)
    groups: dict[str, float] = {}
    for file, group in {(durations.file_of(item.nodeid), durations.group_of(item)) for item in items}:
        groups[group] = groups.get(group, 0.0) + recorded.get(file, math.inf)
    items.sort(key=lambda item: -groups[durations.group_of(item)])


def pytest_configure(config: pytest.Config) -> None:
    """`make durations` records how long each file takes."""
    if os.environ.get("SFUMATO_DURATIONS") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.Recorder())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """`make test` skips nothing for want of a program: what a test needs is installed by the project's own files.

    A skip that a test of ours raises is a failure there. Those of scikit-learn's own checks are not ours.
    """
    outcome: Any = yield
    report = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("SFUMATO_SKIPS") == "refused":
        path, _, reason = report.longrepr
        if Path(path).is_relative_to(Path(__file__).parent):
            report.outcome, report.longrepr = "failed", f"{item.nodeid} was skipped: {reason}"
