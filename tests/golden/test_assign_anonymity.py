"""The worked example of k-assign anonymity: six people with A, B, C, B, D, B and two overlapping questions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.auditing.delta2 import Delta2Auditor
from sfumato.auditing.k_assign import AssignAuditor

SECRETS = [0, 1, 2, 1, 3, 1]
FIRST, SECOND = [0, 1, 2], [0, 3, 4, 5]
C = 2


def words(table: npt.NDArray[np.bool_]) -> list[str]:
    return ["".join(letter for letter, shown in zip("ABCD", row, strict=True) if shown) for row in table]


def exact(k: int) -> AssignAuditor:
    pytest.importorskip("ortools")
    auditor = AssignAuditor(SECRETS, values=4, k=k)
    auditor.accept(auditor.judge(FIRST))
    return auditor


def swaps() -> Delta2Auditor:
    auditor = Delta2Auditor(SECRETS, values=4)
    auditor.accept(FIRST)
    return auditor


def test_after_the_first_question_everyone_has_three_values() -> None:
    assert words(exact(2).possible())[:3] == ["ABC"] * 3
    assert words(swaps().table())[:3] == ["ABC"] * 3


def test_exact_table_after_both_questions() -> None:
    auditor = exact(2)
    judgement = auditor.judge(SECOND)
    assert judgement.safe
    auditor.accept(judgement)
    assert words(auditor.possible()) == ["AB", "ABC", "ABC", "ABD", "ABD", "ABD"]


def test_swap_table_after_both_questions() -> None:
    auditor = swaps()
    auditor.accept(SECOND)
    assert words(auditor.table()) == ["AB", "ABC", "BC", "ABD", "BD", "ABD"]


def test_matchings_of_the_first_person() -> None:
    left = {frozenset(matching) for matching in swaps().after(SECOND) if any(person == 0 for person, _ in matching)}
    a, b = 0, 1
    assert left == {frozenset({(0, b), (1, a), (3, a)}), frozenset({(0, b), (1, a), (5, a)})}  # B(2,4), B(2,6); no C(3)


def test_two_values_are_not_three() -> None:
    auditor = exact(3)
    judgement = auditor.judge(SECOND, full=True)
    assert not judgement.safe
    assert judgement.certain
    assert judgement.exposed.tolist() == [0]
    assert not swaps().safe(SECOND, 3)
    assert swaps().safe(SECOND, 2)


def test_one_counterfeit_makes_it_three() -> None:
    auditor = exact(3)
    judgement = auditor.judge(SECOND, fakes=[C])
    assert judgement.safe
    auditor.accept(judgement)
    assert auditor.possible().sum(axis=1).tolist() == [3, 3, 3, 4, 4, 4]
    approximate = swaps()
    approximate.accept(SECOND, [C])
    assert approximate.table().sum(axis=1).tolist() == [3, 3, 3, 4, 3, 4]


def test_questions_looked_at_one_by_one_would_promise_too_much() -> None:
    """Merging the two graphs allows 1 to have C or D, which no assignment has."""
    alone = np.ones((6, 4), np.bool_)
    for people in (FIRST, SECOND):
        single = AssignAuditor(SECRETS, values=4, k=2)
        single.accept(single.judge(people))
        alone &= single.possible()
    merged = np.zeros((6, 4), np.bool_)
    for people in (FIRST, SECOND):
        single = AssignAuditor(SECRETS, values=4, k=2)
        single.accept(single.judge(people))
        merged[people] |= single.possible()[people]
    auditor = exact(2)
    auditor.accept(auditor.judge(SECOND))
    true = auditor.possible()
    assert words(merged)[0] == "ABCD"
    assert (alone & ~true).sum() == 0  # in this example each answer alone already rules C and D out for person 1 ...
    assert (merged & ~true).any()  # ... but the union of the graphs does not
