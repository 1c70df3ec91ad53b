"""The part of the adversary suite about real numbers; see :mod:`audit_adversary`, which plays it."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.query.auditing.auditor import Auditor, Decision
from sfumato.query.auditing.rules import AuditRules

Numbers = npt.NDArray[np.float64]
Log = list[tuple[str, npt.NDArray[np.int64]]]
_PEOPLE, _QUERIES = 7, 12


def real_sums(rng: np.random.Generator, *, simulatable: bool) -> tuple[int, int, int]:
    """Sums and means of skewed real numbers; the adversary solves the linear equations.

    Simulatable: three other tables with the same answers get the same log, and everybody counts as beyond the promise
    if a decision differs.
    """
    values = rng.lognormal(3, 1, _PEOPLE)
    log = _log(rng, ["SUM(v)", "AVG(v)"], _PEOPLE, _QUERIES)
    rules = AuditRules(k=2, simulatable=simulatable)
    decisions = _ask(values, rules, log)
    told = [people for (_, people), decision in zip(log, decisions, strict=True) if decision.verdict != "refused"]
    facts = np.array([np.isin(np.arange(_PEOPLE), people) for people in told], np.float64).reshape(-1, _PEOPLE)
    free = np.eye(_PEOPLE) - np.linalg.pinv(facts) @ facts if len(facts) else np.eye(_PEOPLE)
    beyond = int((np.abs(np.diag(free)) < 1e-9).sum())
    if simulatable:
        verdicts = [decision.verdict for decision in decisions]
        others = [values + free @ rng.normal(0, 5, _PEOPLE) for _ in range(3)]
        if any([decision.verdict for decision in _ask(other, rules, log)] != verdicts for other in others):
            beyond = _PEOPLE
    return len(told), _PEOPLE, beyond


def real_extremes(rng: np.random.Generator) -> tuple[int, int, int]:
    """Largest and smallest of real numbers, of which several are equal; the adversary looks at a grid of numbers."""
    people = 4
    values = np.round(rng.lognormal(3, 1, people), 4)
    if rng.random() < 0.5:
        values[rng.integers(people)] = values[rng.integers(people)]
    log = _log(rng, ["MAX(v)", "MIN(v)"], people, 6)
    decisions = _ask(values, AuditRules(k=2), log)
    told = [(*query, float(d.answer)) for query, d in zip(log, decisions, strict=True) if d.verdict != "refused"]
    answers = sorted({answer for _, _, answer in told})
    if not answers:
        return 0, people, 0
    between = [(low + high) / 2 for low, high in pairwise(answers)]
    grid = np.array(sorted([answers[0] - 1, *answers, *between, answers[-1] + 1]))
    worlds = np.array(list(product(grid, repeat=people)))
    for item, asked, answer in told:
        extreme = worlds[:, asked].max(axis=1) if item == "MAX(v)" else worlds[:, asked].min(axis=1)
        worlds = worlds[extreme == answer]
    # One number of the grid that is not an answer stands for an interval, so only an answer determines a person.
    return len(told), people, sum(len(set(worlds[:, person].tolist())) < 2 for person in range(people))


def _log(rng: np.random.Generator, items: list[str], people: int, length: int) -> Log:
    sizes = rng.integers(1, people + 1, length)
    return [(str(rng.choice(items)), np.sort(rng.choice(people, int(size), replace=False))) for size in sizes]


def _ask(values: Numbers, rules: AuditRules, log: Log) -> list[Decision]:
    auditor = Auditor(pl.DataFrame({"id": np.arange(len(values)), "v": values}), secrets=["v"], rules=rules)
    return [auditor.ask(f"SELECT {item} FROM t WHERE id IN ({', '.join(map(str, people))})") for item, people in log]
