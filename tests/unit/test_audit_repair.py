"""Counterfeits; and refusals that tell, or do not."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from sfumato.errors import BadParameter
from sfumato.query.auditing.atoms import AnswerConstraint
from sfumato.query.auditing.k_assign import AssignAuditor
from sfumato.query.auditing.repair import counterfeits
from sfumato.query.auditing.simulatable import SimulatableAuditor

pytest.importorskip("ortools")


def asked(k: int = 3) -> AssignAuditor:
    auditor = AssignAuditor([0, 1, 2, 1, 3, 1], values=4, k=k)
    auditor.accept(auditor.judge([0, 1, 2]))
    return auditor


def test_fewest_counterfeits() -> None:
    auditor = asked()
    repair = counterfeits(auditor, [0, 3, 4, 5], most=2)
    assert repair is not None
    assert repair.fakes == (2,)
    auditor.accept(repair.assessment)
    assert (auditor.possible().sum(axis=1) >= 3).all()


def test_no_smaller_set_of_counterfeits_would_do() -> None:
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(40):
        secrets = rng.integers(0, 3, 6)
        auditor = AssignAuditor(secrets, values=3, k=3)
        people = np.flatnonzero(rng.random(6) < 0.6)
        if not len(people) or auditor.judge(people).safe:
            continue
        repair = counterfeits(auditor, people, most=3)
        if repair is None:
            continue
        found += len(repair.fakes) > 1
        for size in range(len(repair.fakes)):
            for fakes in combinations_with_replacement(range(3), size):
                assert not auditor.judge(people, fakes=fakes).safe
    assert found


PAIR, TRIPLE = (0, 1), (0, 1, 2)


def worlds_after(decide: str) -> list[tuple[int, ...]]:
    """Worlds that an adversary cannot rule out after asking about two people (refused) and then three (answered)."""
    truth = (0, 0, 1)

    def transcript(world: tuple[int, ...]) -> tuple[object, ...]:
        seen: list[object] = []
        auditor = AssignAuditor(world, values=3, k=2)
        public = SimulatableAuditor(people=3, values=3, k=2, allow=0.3)
        for people in (PAIR, TRIPLE):
            judgement = auditor.judge(people)
            yes = judgement.safe if decide == "looks" else public.allows(people)
            seen.append(tuple(judgement.answer.counts.tolist()) if yes else None)
            if yes:
                auditor.accept(judgement)
                public.learn(people, judgement.answer)
        return tuple(seen)

    told = transcript(truth)
    assert told == (None, (2, 1, 0))
    return [world for world in product(range(3), repeat=3) if transcript(world) == told]


def test_a_refusal_that_looks_at_the_answer_gives_everyone_away() -> None:
    assert worlds_after("looks") == [(0, 0, 1)]


def test_a_simulatable_refusal_tells_nothing() -> None:
    left = worlds_after("simulates")
    assert sorted(left) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]  # exactly what the one answer leaves
    assert all(len({world[person] for world in left}) == 2 for person in range(3))


def test_the_same_public_history_gives_the_same_decision() -> None:
    def decisions() -> list[bool]:
        public = SimulatableAuditor(people=30, values=3, k=2, allow=0.05)
        first = public.allows(range(20))
        public.learn(range(20), AnswerConstraint.plain(np.array([8, 7, 5])))
        return [first, public.allows(range(10)), public.allows([0]), public.allows(range(19)), public.allows(range(20))]

    assert decisions() == decisions() == [True, True, False, False, True]


def test_every_answer_is_stricter() -> None:
    public = SimulatableAuditor(people=9, values=3, k=2, allow=0.0)
    assert not public.every_answer(range(8))  # they might all have the same value
    public.learn(range(8), AnswerConstraint.plain(np.array([3, 3, 2])))
    assert public.every_answer(range(8))
    assert not public.every_answer([0])
    assert not public.every_answer(range(8), most=10)


def test_bad_parameters() -> None:
    with pytest.raises(BadParameter, match="at least 2"):
        AssignAuditor([0, 1], values=2, k=1)
    with pytest.raises(BadParameter, match="only 2"):
        AssignAuditor([0, 1], values=2, k=3)
    with pytest.raises(BadParameter, match="between 0 and 1"):
        SimulatableAuditor(people=3, values=2, k=2, allow=1.0)
    with pytest.raises(BadParameter, match="rows 0 to 1"):
        AssignAuditor([0, 1], values=2, k=2).judge([2])
    stale = AssignAuditor([0, 1, 1, 0], values=2, k=2)
    first = stale.judge([0, 1])
    stale.accept(stale.judge([0, 1, 2, 3]))
    with pytest.raises(BadParameter, match="judge again"):
        stale.accept(first)
