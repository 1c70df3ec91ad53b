"""The part of the adversary suite about declared numbers; see :mod:`audit_adversary`, which plays it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.auditing.auditor import Auditor
from sfumato.auditing.rules import AuditRules
from sfumato.dataset import Domain, RangeDomain, ValuesDomain

Held = npt.NDArray[Any]
"""Databases by people."""
_ITEMS: dict[str, Callable[[Held], Held]] = {
    "SUM(v)": lambda held: held.sum(axis=1), "AVG(v)": lambda held: held.mean(axis=1),
    "v": lambda held: np.sort(held, axis=1), "MAX(v)": lambda held: held.max(axis=1),
    "MIN(v)": lambda held: held.min(axis=1),
}  # fmt: skip
FAMILIES = {"sums": ["SUM(v)", "AVG(v)"], "MAX and MIN": ["MAX(v)", "MIN(v)"], "all kinds": [*_ITEMS, "COUNT(*)"]}


def declared_numbers(rng: np.random.Generator, *, items: Sequence[str]) -> tuple[int, int, int]:
    """A random log about numbers of a random declared domain; the adversary looks at every database."""
    domain, numbers = _domain(rng)
    people, k = 3, int(rng.integers(2, min(5, len(numbers)) + 1))
    likely = numbers[[0, 1, -2, -1, len(numbers) // 2]]
    truth = rng.choice(likely, people)
    frame = pl.DataFrame({"id": np.arange(people), "v": truth})
    auditor = Auditor(frame, secrets=["v"], rules=AuditRules(k=k), domains={"v": domain})
    worlds = numbers[np.indices((len(numbers),) * people)].reshape(people, -1).T
    answers = 0
    for _ in range(7):
        asked = np.sort(rng.choice(people, int(rng.integers(1, people + 1)), replace=False))
        item, bound = str(rng.choice(items)), rng.choice(numbers)
        condition = f" AND v >= {bound}" if item == "COUNT(*)" else ""
        told = partial(_at_least, bound) if condition else _ITEMS[item]
        text = f"SELECT {item} FROM t WHERE id IN ({', '.join(map(str, asked))}){condition}"
        if auditor.ask(text).verdict == "answered":
            answers += 1
            same = told(worlds[:, asked]) == told(truth[None, asked])[0]
            worlds = worlds[same if same.ndim == 1 else same.all(axis=1)]
    return answers, people, sum(len(np.unique(worlds[:, person])) < k for person in range(people))


def _at_least(bound: float, held: Held) -> Held:
    return np.asarray((held >= bound).sum(axis=1))


def _domain(rng: np.random.Generator) -> tuple[Domain, Held]:
    """A list, a range in steps of more than 1, whole numbers or quarters; few numbers or many."""
    form, many = int(rng.integers(4)), bool(rng.integers(2))
    if form == 0:
        numbers = np.sort(rng.choice(60, int(rng.integers(3, 8)), replace=False))
        return ValuesDomain(values=tuple(numbers.tolist())), numbers
    count, step = 40 if many else 5, (1000, 1, 0.25)[form - 1]
    numbers = np.arange(count) * step
    return RangeDomain(low=0, high=float(numbers[-1]), step=step), numbers
