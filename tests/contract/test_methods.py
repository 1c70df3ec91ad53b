"""Contract of every registered masking method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.masking.base import Step, UnknownStep, method_of
from sfumato.registry import registry
from sfumato.testing import check_part
from sfumato.testing.steps import STEP_CHECKS

CASES = [
    pytest.param(kind, parameters, id=f"{kind.part_name()}-{number}")
    for kind in registry("method")
    for number, parameters in enumerate(kind.examples)
]


@pytest.mark.parametrize("check", [check_part, *STEP_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize(("kind", "parameters"), CASES)
def test_contract(
    kind: type[Step],
    parameters: dict[str, Any],
    check: Callable[[Step], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # a method with a key file makes it in the current folder
    check(kind.build(parameters))
    assert kind.part_name() in registry("method")


def test_a_method_that_is_not_installed_is_the_worst_case() -> None:
    unknown = method_of({"step": "of-another-package"})
    assert unknown is UnknownStep
    assert not any((unknown.truthful, unknown.simulable, unknown.coarsens, unknown.leaves_values))
