"""Contract of every registered attack."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.registry import registry
from sfumato.testing import check_part
from sfumato.testing.attacks import ATTACK_CHECKS, AttackBench, odd_releases_are_judged_or_refused

BENCHES = [
    (AttackBench(kind.build(parameters)), number)
    for kind in registry("attack")
    for number, parameters in enumerate(kind.examples)
]
CASES = [
    pytest.param(
        bench,
        check,
        id=f"{bench.attack.part_name()}-{number}-{check.__name__}",
    )
    for bench, number in BENCHES
    for check in ATTACK_CHECKS
    # The first example of each attack meets all odd releases; its other examples share that code.
    if number == 0 or check is not odd_releases_are_judged_or_refused
]


@pytest.mark.parametrize(("bench", "check"), CASES)
def test_contract(bench: AttackBench, check: Callable[[AttackBench], None]) -> None:
    check(bench)
    assert bench.attack.part_name() in registry("attack")


@pytest.mark.parametrize(("bench", "number"), BENCHES)
def test_part(bench: AttackBench, number: int) -> None:
    check_part(bench.attack)
    assert bench.attack == type(bench.attack).build(type(bench.attack).examples[number])
