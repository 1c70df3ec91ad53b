"""Counterfeits; and refusals that tell, or do not."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from sfumato.auditing.answer_forms import ListForm
from sfumato.auditing.atoms import AnswerConstraint
from sfumato.auditing.k_assign import AssignAuditor
from sfumato.auditing.repair import counterfeits, safe_counterfeits
from sfumato.auditing.simulatable import SimulatableAuditor
from sfumato.errors import BadParameter

pytest.importorskip("ortools")


def asked(k: int = 3) -> AssignAuditor:
    auditor = AssignAuditor([0, 1, 2, 1, 3, 1], values=4, k=k)
    auditor.accept(auditor.judge([0, 1, 2]))
    return auditor


def test_counterfeits_make_the_answer_safe() -> None:
    auditor = asked()
    assert [repair.fakes for repair in safe_counterfeits(auditor, [0, 3, 4, 5], size=1)] == [(2,)]
    repair = counterfeits(auditor, [0, 3, 4, 5], most=1, rng=np.random.default_rng(1))
    assert repair is not None
    assert repair.fakes == (2,)
    auditor.accept(repair.assessment)
    assert (auditor.possible().sum(axis=1) >= 3).all()


def test_every_safe_set_of_counterfeits_is_drawn() -> None:
    auditor = asked()
    choices = {repair.fakes for size in (1, 2) for repair in safe_counterfeits(auditor, [0, 3, 4, 5], size=size)}
    rng = np.random.default_rng(1)
    drawn = {repair.fakes for _ in range(80) if (repair := counterfeits(auditor, [0, 3, 4, 5], most=2, rng=rng))}
    assert drawn == choices
    assert len(choices) > 2
    for size in (1, 2):
        for fakes in combinations_with_replacement(range(4), size):
            assert auditor.judge([0, 3, 4, 5], fakes=fakes).safe == (fakes in choices)
    assert counterfeits(AssignAuditor([0, 0], values=3, k=3), [0, 1], most=1, rng=rng) is None


PAIR, TRIPLE = (0, 1), (0, 1, 2)
LIST = ListForm(range(3))


def worlds_after(decide: str) -> list[tuple[int, ...]]:
    """Worlds that an adversary cannot rule out after asking about two people (refused) and then three (answered)."""
    truth = (0, 0, 1)

    def transcript(world: tuple[int, ...]) -> tuple[object, ...]:
        seen: list[object] = []
        auditor = AssignAuditor(world, values=3, k=2)
        public = SimulatableAuditor(people=3, values=3, k=2, allow=0.3, shares=[1, 1, 1])
        for people in (PAIR, TRIPLE):
            judgement = auditor.judge(people)
            yes = judgement.safe if decide == "looks" else public.allows(people, LIST)
            seen.append(tuple(judgement.answer.totals.tolist()) if yes else None)
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
        public = SimulatableAuditor(people=30, values=3, k=2, allow=0.05, shares=[1, 1, 1])
        first = public.allows(range(20), LIST)
        public.learn(range(20), AnswerConstraint.plain(np.array([8, 7, 5])))
        return [first, *(public.allows(rows, LIST) for rows in (range(10), [0], range(19), range(20)))]

    assert decisions() == decisions() == [True, True, False, False, True]


def test_every_answer_is_stricter() -> None:
    public = SimulatableAuditor(people=9, values=3, k=2, allow=0.0)
    assert not public.allows(range(8), LIST)  # they might all have the same value
    public.learn(range(8), AnswerConstraint.plain(np.array([3, 3, 2])))
    assert public.allows(range(8), LIST)
    assert not public.allows([0], LIST)
    wide = SimulatableAuditor(people=9, values=30, k=2, allow=0.0)
    wide.learn(range(8), AnswerConstraint.plain(np.array([1] * 8 + [0] * 22)))
    assert not wide.allows(range(8), ListForm(range(30)))  # too many answers to check


def test_bad_parameters() -> None:
    with pytest.raises(BadParameter, match="at least 2"):
        AssignAuditor([0, 1], values=2, k=1)
    with pytest.raises(BadParameter, match="only 2"):
        AssignAuditor([0, 1], values=2, k=3)
    with pytest.raises(BadParameter, match="between 0 and 1"):
        SimulatableAuditor(people=3, values=2, k=2, allow=1.0, shares=[1, 1])
    with pytest.raises(BadParameter, match="rows 0 to 1"):
        AssignAuditor([0, 1], values=2, k=2).judge([2])
    stale = AssignAuditor([0, 1, 1, 0], values=2, k=2)
    first = stale.judge([0, 1])
    stale.accept(stale.judge([0, 1, 2, 3]))
    with pytest.raises(BadParameter, match="judge again"):
        stale.accept(first)
