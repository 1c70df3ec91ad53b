"""The exact auditor agrees with enumeration on thousands of small problems; the swap auditor never promises more."""

from __future__ import annotations

import numpy as np
import pytest
from audit_instances import enumerate_possible, grouped, instance

from sfumato.auditing.delta2 import Delta2Auditor
from sfumato.auditing.k_assign import AssignAuditor
from sfumato.auditing.linear_system import CountSystem, closed
from sfumato.auditing.possibilities import Possibilities

pytest.importorskip("ortools")


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "fancy", "count"), [(1, False, 700), (2, True, 300)])
def test_possible_values_are_those_of_enumeration(seed: int, fancy: bool, count: int) -> None:
    rng = np.random.default_rng(seed)
    overlapping = 0
    for _ in range(count):
        secrets, values, asked = instance(rng, people=6 if fancy else 7, fancy=fancy)
        auditor = AssignAuditor(secrets, values=values, k=2)
        for people, fakes, groups in asked:
            judgement = auditor.judge(people, fakes=fakes, told=grouped(groups), full=True)
            overlapping += judgement.how in ("relaxation", "search")
            auditor.accept(judgement)
        truth = enumerate_possible(secrets, values, asked)
        assert (auditor.possible() == truth).all(), (secrets, asked)
    assert overlapping > count / 5  # the solvers were needed, not only the easy cases


@pytest.mark.slow
def test_eight_people_six_questions() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        secrets, values, asked = instance(rng, people=8)
        auditor = AssignAuditor(secrets, values=values, k=2)
        for people, _, _ in asked:
            auditor.accept(auditor.judge(people, full=True))
        assert (auditor.possible() == enumerate_possible(secrets, values, asked)).all(), (secrets, asked)


def test_decisions_are_those_of_enumeration_question_by_question() -> None:
    """An auditor that refuses goes on from the state before, and its decisions for k need not settle every pair."""
    rng = np.random.default_rng(4)
    refused = 0
    for _ in range(150):
        secrets, values, asked = instance(rng, people=7)
        k = int(rng.integers(2, values + 1))
        auditor, given = AssignAuditor(secrets, values=values, k=k), []
        for people, _, _ in asked:
            judgement = auditor.judge(people)
            truth = enumerate_possible(secrets, values, [*given, (people, (), None)]).sum(axis=1) >= k
            assert judgement.certain
            assert judgement.safe == truth.all(), (secrets, given, people)
            if judgement.safe:
                auditor.accept(judgement)
                given.append((people, (), None))
            else:
                refused += 1
                assert not truth[judgement.exposed].any()
    assert refused > 50


def test_swaps_never_promise_what_is_not_so() -> None:
    rng = np.random.default_rng(5)
    fewer = 0
    for _ in range(250):
        secrets, values, asked = instance(rng, people=6, questions=5)
        auditor, given = Delta2Auditor(secrets, values=values), []
        for people, _, _ in asked:
            fakes = tuple(rng.integers(0, values, 1).tolist()) if rng.random() < 0.3 else ()
            auditor.accept(people, fakes)
            given.append((people, fakes, None))
        truth, shown = enumerate_possible(secrets, values, given), auditor.table()
        assert not (shown & ~truth).any(), (secrets, given)
        fewer += int((truth & ~shown).any())
    assert fewer > 0  # it is an approximation, and these problems show it


def test_no_time_is_a_no() -> None:
    """Crossing questions whose search is not allowed to run are refused, and the judgement says it is not certain."""
    asked = [((0, 3, 5, 6), (2,)), ((3, 4), (0,)), ((0,), (2, 0)), ((0, 4, 5), ())]
    unsure = 0
    for effort in (0.0, 10.0):
        auditor = AssignAuditor([0, 0, 3, 3, 2, 3, 0], values=4, k=3, effort=effort)
        for people, fakes in asked:
            judgement = auditor.judge(people, fakes=fakes)
            if not judgement.certain:
                unsure += 1
                assert effort == 0
                assert not judgement.safe
                assert judgement.how == "time ran out"
            elif judgement.safe:
                auditor.accept(judgement)
    assert unsure == 1
    empty = Possibilities(yes=np.zeros((1, 2), bool), no=np.zeros((1, 2), bool))
    assert not empty.decided(2)


def test_a_false_example_is_not_believed() -> None:
    answers = AssignAuditor([0, 1, 1], values=2, k=2)
    answers.accept(answers.judge([0, 1, 2]))
    system = CountSystem(
        member=answers.partition.member[:, 1:], answers=answers.answers, sizes=np.array([3]), known=np.array([[1, 2]])
    )
    assert system.fits(np.array([[1, 2]]))
    assert not system.fits(np.array([[2, 1]]))
    assert not system.fits(np.array([[-1, 4]]))
    assert closed(system) is not None
