"""A release that has nothing to do with the original raises no alarm: 40 runs of the fast attacks.

The chance of an alarm is 2.5 % at nominal coverage. Seven alarms in 40 runs come by chance once in 30,000 tests of an
attack; intervals of half the width give them in more than half of all tests.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from sfumato.attacks.inference.attribute_linkage import AttributeLinkage
from sfumato.attacks.inference.membership import Membership
from sfumato.attacks.inference.model_inference import ModelInference
from sfumato.attacks.inference.value_presence import ValuePresence
from sfumato.attacks.record_linkage.assignment import Assignment
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage

RUNS, ROWS = 40, 150
ATTACKS = (
    Linkage(knows=("age", "sex")),
    AttributeLinkage(knows=("sex",)),
    ModelInference(model="neighbours", neighbours=5),
    DistanceLinkage(),
    Assignment(),
    Membership(),
    ValuePresence(),
    PosteriorLinkage(),
)


@pytest.fixture(scope="module")
def alarms() -> Counter[tuple[str, bool]]:
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    try:
        import null_release
    finally:
        sys.path.pop(0)
    total: Counter[tuple[str, bool]] = Counter()
    for seed in range(RUNS):
        total += null_release.alarms(null_release.null_scenario(ROWS, seed), ATTACKS, seed)
    return total


def test_every_attack_has_a_result_in_most_runs(alarms: Counter[tuple[str, bool]]) -> None:
    for name in {name for name, _ in alarms}:
        assert alarms[name, True] + alarms[name, False] >= RUNS - 2, name
    assert len({name for name, _ in alarms}) == len(ATTACKS)


def test_a_null_release_raises_no_alarm(alarms: Counter[tuple[str, bool]]) -> None:
    assert {name: count for (name, alarm), count in alarms.items() if alarm and count > 6} == {}
