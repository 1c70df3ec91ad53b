"""Change detection over repeated reports of local protocols."""

from __future__ import annotations

from math import exp

import pytest

from sfumato.collecting import GeneralizedRandomizedResponse, OptimizedLocalHashing
from sfumato.collecting.change_detection import change_detection_attack
from sfumato.errors import BadParameter
from sfumato.rng import Rng

PROTOCOL = GeneralizedRandomizedResponse(epsilon=1, values=2)


def test_a_change_of_memoized_reports_is_seen_whenever_the_report_differs() -> None:
    """Of two binary reports of different answers, p² + (1 - p)² differ; nobody is suspected wrongly."""
    p = exp(1) / (exp(1) + 1)
    found = change_detection_attack(PROTOCOL, reports=30, memoized=True, rng=Rng(1), people=20_000)
    assert found.detected == pytest.approx(p * p + (1 - p) ** 2, abs=0.02)
    assert found.false_alarms == 0
    assert found.right_day == found.detected
    hashed = OptimizedLocalHashing(epsilon=1, values=16)
    assert change_detection_attack(hashed, reports=3, memoized=True, rng=Rng(1)).detected > 0.99


def test_fresh_reports_show_a_change_when_there_are_many_and_not_when_there_are_few() -> None:
    many = change_detection_attack(PROTOCOL, reports=200, memoized=False, rng=Rng(2), people=2000)
    assert many.false_alarms < 0.1
    assert many.advantage > 0.7
    assert many.right_day < many.detected
    few = change_detection_attack(PROTOCOL, reports=3, memoized=False, rng=Rng(3), people=4000)
    assert few.advantage < 0.15


def test_an_observer_of_reports_without_information_sees_nothing() -> None:
    """Control: at epsilon 0.01 the observer is as often right as wrong."""
    weak = GeneralizedRandomizedResponse(epsilon=0.01, values=4)
    found = change_detection_attack(weak, reports=50, memoized=False, rng=Rng(4), people=2000)
    assert abs(found.advantage) < 0.05


def test_a_change_needs_two_reports() -> None:
    with pytest.raises(BadParameter):
        change_detection_attack(PROTOCOL, reports=1, memoized=False, rng=Rng(1))
