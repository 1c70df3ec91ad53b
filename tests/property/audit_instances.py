"""Small random auditing problems, and the plain enumeration that says what is true of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.auditing.atoms import AnswerConstraint

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


def agree(worlds: npt.NDArray[np.int64], secrets: Sequence[int], question: Question) -> npt.NDArray[np.bool_]:
    """Which worlds would have allowed the answer that was given."""
    people, fakes, groups = question
    values = int(max(worlds.max(initial=0), *secrets, *fakes)) + 1
    told = np.arange(values) if groups is None else np.asarray(groups)
    returned = Counter(told[[secrets[p] for p in people]].tolist()) + Counter(fakes)
    here = told[worlds[:, list(people)]]
    counts = {value: (here == value).sum(axis=1) for value in set(told.tolist())}
    fits = [counts[v] <= returned[v] if fakes else counts[v] == returned[v] for v in counts]
    return np.logical_and.reduce(fits)


def enumerate_possible(secrets: Sequence[int], values: int, asked: Sequence[Question]) -> np.ndarray:
    """People by values, by trying every world; untouched people may have any value."""
    touched = sorted({p for people, _, _ in asked for p in people})
    table = np.ones((len(secrets), values), bool)
    if not touched:
        return table
    worlds = np.tile(np.asarray(secrets, np.int64), (values ** len(touched), 1))
    worlds[:, touched] = np.indices((values,) * len(touched)).reshape(len(touched), -1).T
    for question in asked:
        worlds = worlds[agree(worlds, secrets, question)]
    for person in touched:
        table[person] = np.isin(np.arange(values), worlds[:, person])
    return table
