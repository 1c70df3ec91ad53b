"""Sums by exact linear algebra, extremes by search: each against the plain way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from audit_oracles import in_span
from sfumato.auditing.extremes import ExtremeAnswer, ExtremeAuditor
from sfumato.auditing.sums import SumAuditor
from sfumato.errors import BadParameter


def test_sums_against_fractions() -> None:
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        n = int(rng.integers(2, 9))
        auditor, told = SumAuditor(n), []
        for _ in range(8):
            row = (rng.random(n) < rng.choice([0.3, 0.5, 0.8])).astype(int)
            safe, exposed, state = auditor.judge(np.flatnonzero(row))
            truth = [i for i in range(n) if in_span([*told, row.tolist()], np.eye(n, dtype=int)[i].tolist())]
            assert exposed.tolist() == truth
            assert safe == (not truth)
            if safe:
                auditor.accept(state)
                told.append(row.tolist())
            else:
                refused += 1
    assert refused > 100


def test_sum_of_all_but_one() -> None:
    auditor = SumAuditor(1000)
    safe, _, state = auditor.judge(range(1000))
    assert safe
    auditor.accept(state)
    safe, exposed, _ = auditor.judge(np.arange(1000) != 17)
    assert not safe
    assert exposed.tolist() == [17]
    with pytest.raises(BadParameter, match="judge again"):
        auditor.accept(state)


def kept_by_enumeration(answers: list[ExtremeAnswer], people: int, values: int) -> list[int] | None:
    worlds = [
        world
        for world in product(range(values), repeat=people)
        if all((max if a.kind == "max" else min)(world[i] for i in a.people) == a.value for a in answers)
    ]
    return [len({world[i] for world in worlds}) for i in range(people)] if worlds else None


@pytest.mark.parametrize("kinds", [("max",), ("min",), ("max", "min")])
def test_extremes_against_enumeration(kinds: tuple[str, ...]) -> None:
    if len(kinds) == 2:
        pytest.importorskip("ortools")
    rng = np.random.default_rng(2)
    some = 0
    for _ in range(25):
        n, values, k = 4, int(rng.integers(2, 6)), int(rng.integers(2, 4))
        world = rng.integers(0, values, n)
        answers = []
        for _ in range(int(rng.integers(1, 5))):
            people = tuple(np.flatnonzero(rng.random(n) < 0.6).tolist()) or (0,)
            kind = str(rng.choice(kinds))
            value = (max if kind == "max" else min)(world[list(people)])
            answers.append(ExtremeAnswer(kind=kind, people=people, value=int(value)))  # type: ignore[arg-type]
        found, kept = ExtremeAuditor(n, values=values, k=k).exposed(*answers), kept_by_enumeration(answers, n, values)
        assert found is not None
        assert kept is not None
        assert found.tolist() == [i for i in range(n) if kept[i] < k], answers
        some += len(found) > 0
    assert some > 3
    impossible = [ExtremeAnswer(kind="max", people=(0, 1), value=1), ExtremeAnswer(kind="max", people=(0, 1), value=2)]
    assert ExtremeAuditor(2, values=5, k=2).exposed(*impossible) is None


def test_a_refused_maximum_tells() -> None:
    auditor = ExtremeAuditor(3, values=10, k=2)
    auditor.accept(ExtremeAnswer(kind="max", people=(0, 1, 2), value=9))
    below = ExtremeAnswer(kind="max", people=(0, 1), value=5)
    assert not auditor.safe(below)  # the third person would have the 9: the refusal says that it is so
    assert auditor.safe(ExtremeAnswer(kind="max", people=(0, 1), value=9))
