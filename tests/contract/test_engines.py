"""Contract of every registered engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.engines.engine import Engine
from sfumato.registry import registry
from sfumato.testing import check_part
from sfumato.testing.engines import ENGINE_CHECKS, gives_up_in_time

SLOW = {"spark": [pytest.mark.slow]}
PARTS = [
    pytest.param(kind.build(example), marks=SLOW.get(kind.part_name(), []), id=f"{kind.part_name()} {example}")
    for kind in registry("engine")
    for example in kind.examples
]


@pytest.fixture(params=PARTS)
def engine(request: pytest.FixtureRequest) -> Engine:
    part = request.param
    assert isinstance(part, Engine)
    if part.part_name() == "postgres":
        return part.model_copy(update={"url": request.getfixturevalue("postgresql")})
    if part.part_name() == "spark":
        request.getfixturevalue("java")
    return part


@pytest.mark.parametrize("check", [check_part, *ENGINE_CHECKS], ids=lambda check: check.__name__)
def test_contract(engine: Engine, check: Callable[[Engine], None]) -> None:
    check(engine)
    assert engine.part_name() in registry("engine")


def test_a_statement_is_given_up_in_time_and_the_next_is_answered(engine: Engine) -> None:
    seconds = 10 if engine.part_name() == "spark" else 1.5  # a busy machine needs seconds for Spark's smallest answer
    gives_up_in_time(engine, seconds=seconds)
    assert "timeout" in type(engine).model_fields
