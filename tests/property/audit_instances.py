"""Small random auditing problems, and the plain enumeration that says what is true of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from sfumato.query.auditing.atoms import AnswerConstraint, Ints

Question = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None]
"""People, counterfeits, and groups of values (None: values as they are)."""


def instance(
    rng: np.random.Generator, *, people: int = 8, questions: int = 6, fancy: bool = False
) -> tuple[list[int], int, list[Question]]:
    """Secrets, number of values, questions; ``fancy`` adds counterfeits and coarser answers."""
    n, values = int(rng.integers(2, people + 1)), int(rng.integers(2, 5))
    secrets = rng.integers(0, values, n).tolist()
    asked: list[Question] = []
    for _ in range(int(rng.integers(1, questions + 1))):
        chosen = tuple(np.flatnonzero(rng.random(n) < rng.choice([0.3, 0.5, 0.8])).tolist())
        fakes: tuple[int, ...] = ()
        groups = None
        if fancy and rng.random() < 0.4:
            fakes = tuple(rng.integers(0, values, int(rng.integers(1, 3))).tolist())
        elif fancy and rng.random() < 0.3:
            groups = tuple(rng.integers(0, 2, values).tolist())
        asked.append((chosen, fakes, groups))
    return secrets, values, asked


def grouped(groups: tuple[int, ...] | None) -> Callable[[Ints], AnswerConstraint] | None:
    """The answer that reveals groups of values, as the auditor takes it."""
    return None if groups is None else lambda counts: AnswerConstraint.grouped(counts, groups)


def agrees(world: Sequence[int], secrets: Sequence[int], question: Question) -> bool:
    """Whether a world would have allowed the answer that was given."""
    people, fakes, groups = question
    told = (lambda value: value) if groups is None else groups.__getitem__
    returned = Counter(told(secrets[p]) for p in people) + Counter(fakes)
    here = Counter(told(world[p]) for p in people)
    return here == returned if not fakes else all(returned[value] >= count for value, count in here.items())


def enumerate_possible(secrets: Sequence[int], values: int, asked: Sequence[Question]) -> np.ndarray:
    """People by values, by trying every world; untouched people may have any value."""
    touched = sorted({p for people, _, _ in asked for p in people})
    table = np.ones((len(secrets), values), bool)
    if touched:
        table[touched] = False
    world = list(secrets)
    for guess in product(range(values), repeat=len(touched)):
        for person, value in zip(touched, guess, strict=True):
            world[person] = value
        if all(agrees(world, secrets, question) for question in asked):
            table[touched, list(guess)] = True
    return table
