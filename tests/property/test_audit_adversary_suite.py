"""The adversary suite of ``benchmarks/audit_adversary.py`` on a few instances of each kind; it finds mutants."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sfumato.auditing.k_assign import AssignAuditor

FILE = Path(__file__).parents[2] / "benchmarks" / "audit_adversary.py"


@pytest.fixture(scope="module")
def suite() -> Any:
    sys.path.insert(0, str(FILE.parent))
    try:
        spec = importlib.util.spec_from_file_location("audit_adversary", FILE)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["audit_adversary"] = module
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(FILE.parent))
        sys.modules.pop("audit_adversary", None)


def played(suite: ModuleType, number: int, instances: int) -> tuple[int, int]:
    rng = np.random.default_rng(11)
    found = np.array([suite.play(suite.KINDS[number], rng) for _ in range(instances)])
    return int(found[:, 0].sum()), int(found[:, 2].sum())


@pytest.mark.parametrize("number", range(7))
def test_nobody_is_determined_beyond_the_promise(suite: ModuleType, number: int) -> None:
    pytest.importorskip("ortools")
    answers, beyond = played(suite, number, 3)
    assert beyond == 0
    assert answers >= 3 or suite.KINDS[number].rules.get("simulatable")


def test_an_auditor_that_ignores_what_is_known_is_found(suite: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AssignAuditor, "unknown", lambda self, rows, answer: (rows, answer))
    assert played(suite, 3, 6)[1] > 0


def test_an_auditor_without_probabilities_is_found(suite: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sfumato.auditing.k_assign.posterior", lambda system, *_, **__: np.full(system.known.shape, 0.5)
    )
    assert played(suite, 4, 6)[1] > 0
