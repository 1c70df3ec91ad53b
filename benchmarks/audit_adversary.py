"""An adversary against the auditor on random tables: how many people are determined beyond the promise.

    python benchmarks/audit_adversary.py [INSTANCES] [--record]      300 instances of each kind by default

Every instance is a small random table and a random log, asked in turn. The adversary then enumerates all assignments
of values to people that agree with the answers (and with what else the promise grants them) and looks for people who
keep fewer values than promised, or for values that are more probable than promised. Numbers are lists, steps of more
than 1, whole numbers and fractions, in few and in many steps, with every k from 2 to 5. With two columns, either the
second column is a function of the first one and the adversary knows it, or both are declared independent. Simulatable
audits with ``allow: 0`` are not played: they refuse every first query, because everybody might have the same value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from audit_adversary_numbers import FAMILIES, declared_numbers
from record import Figures

from sfumato.auditing.auditor import Auditor, Decision
from sfumato.auditing.rules import AuditRules
from sfumato.dataset import RangeDomain

Worlds = npt.NDArray[np.int64]
_FORMS: dict[str, Callable[[npt.NDArray[Any]], Any]] = {
    "v": lambda values: tuple(sorted(values.tolist())), "SUM(v)": lambda values: round(float(values.sum()), 6),
    "AVG(v)": lambda values: round(float(values.mean()), 6), "MAX(v)": lambda values: round(float(values.max()), 6),
    "MIN(v)": lambda values: round(float(values.min()), 6),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of instance."""

    name: str
    step: float = 1.0
    """Distance of neighbouring numbers."""
    skew: bool = False
    rules: dict[str, Any] = field(default_factory=dict)
    items: tuple[str, ...] = tuple(_FORMS)
    known: int = 0
    """People whose value the adversary knows."""
    second: str = ""
    """A second sensitive column: "function" of the first one, or "independent" of it."""


KINDS = (
    Kind(name="whole numbers, uniform"),
    Kind(name="whole numbers, skewed", skew=True),
    Kind(name="halves, skewed", step=0.5, skew=True),
    Kind(name="two people known", known=2),
    Kind(name="no value above 0.7 (probable)", rules={"probable": 0.7}),
    Kind(name="counterfeits, lists", skew=True, rules={"counterfeits": 2}, items=("v",)),
    Kind(name="two columns, one a function of the other", second="function"),
    Kind(name="two columns, independent", skew=True, second="independent", rules={"independent": ["v", "w"]}),
)
VALUES, PEOPLE, QUERIES = 3, 5, 6


def play(kind: Kind, rng: np.random.Generator) -> tuple[int, int, int]:
    """Ask a random log; return the numbers of answers, of people, and of people beyond the promise."""
    shares = np.array([0.7, 0.2, 0.1]) if kind.skew else np.full(VALUES, 1 / VALUES)
    codes = rng.choice(VALUES, PEOPLE, p=shares)
    codes[rng.permutation(PEOPLE)[:2]] = 0, VALUES - 1
    rules: dict[str, Any] = {"k": 2, **kind.rules}
    if "probable" in rules:
        rules["shares"] = {"v": {f"{code * kind.step:g}": float(share) for code, share in enumerate(shares)}}
    if kind.known:
        rules["known"] = {"v": f"id < {kind.known}"}
    log = []
    for _ in range(QUERIES):
        people = np.sort(rng.choice(PEOPLE, int(rng.integers(1, PEOPLE + 1)), replace=False))
        item = str(rng.choice(kind.items))
        log.append((item.replace("v", str(rng.choice(["v", "w"]))) if kind.second else item, people))
    second = VALUES - 1 - codes  # known to the adversary as a function of the first column
    if kind.second == "independent":
        second = _independent(codes, rng)
    decisions = _ask(codes, kind, rules, log, second)
    everything = np.array(list(product(range(VALUES), repeat=PEOPLE)))
    worlds = dict.fromkeys(("v", "w"), everything)  # of each column; those of v alone if w is a function of it
    for (item, people), decision in zip(log, decisions, strict=True):
        if decision.verdict != "refused":
            name = "w" if "w" in item else "v"
            about = name if kind.second == "independent" else "v"
            held = VALUES - 1 - worlds[about] if about != name else worlds[about]
            form = item.replace("w", "v")
            worlds[about] = worlds[about][[_agrees(world, form, people, decision, kind) for world in held]]
    if kind.second == "independent":
        beyond = sum(len(set(worlds[name][:, person].tolist())) < 2 for name in worlds for person in range(PEOPLE))
        return sum(decision.verdict != "refused" for decision in decisions), 2 * PEOPLE, beyond
    return _judge(codes, kind, rules, decisions, worlds["v"], shares)


def _independent(codes: Worlds, rng: np.random.Generator) -> Worlds:
    """A second column that neither determines the first one nor is determined by it."""
    while True:
        second = rng.permutation(codes)
        pairs = {tuple(pair) for pair in np.stack([codes, second], axis=1).tolist()}
        if len(pairs) > len(set(codes.tolist())):
            return second


def _judge(
    codes: Worlds, kind: Kind, rules: dict[str, Any], decisions: Sequence[Decision], worlds: Worlds,
    shares: npt.NDArray[np.float64],
) -> tuple[int, int, int]:  # fmt: skip
    worlds = worlds[(worlds[:, : kind.known] == codes[: kind.known]).all(axis=1)]
    protected = range(kind.known, PEOPLE)
    beyond = sum(len(set(worlds[:, person].tolist())) < 2 for person in protected)
    if "probable" in rules:
        weight = shares[worlds].prod(axis=1)
        likely = [max(weight[worlds[:, p] == v].sum() for v in range(VALUES)) / weight.sum() for p in protected]
        beyond = sum(share > rules["probable"] + 1e-9 for share in likely)
    answers = sum(decision.verdict != "refused" for decision in decisions)
    return answers, len(protected), beyond


def _ask(
    codes: Worlds, kind: Kind, rules: dict[str, Any], log: Sequence[tuple[str, npt.NDArray[np.int64]]], second: Worlds
) -> list[Decision]:
    frame = pl.DataFrame({"id": np.arange(PEOPLE), "v": codes * kind.step if kind.step != 1 else codes})
    if kind.second:
        frame = frame.with_columns(w=second)
    domains = {
        "v": RangeDomain(low=0, high=(VALUES - 1) * kind.step, step=kind.step),
        "w": RangeDomain(low=0, high=VALUES - 1),
    }
    secrets = ["v", "w"] if kind.second else ["v"]
    auditor = Auditor(frame, secrets=secrets, rules=AuditRules.model_validate(rules), domains=domains)
    return [auditor.ask(f"SELECT {item} FROM t WHERE id IN ({', '.join(map(str, people))})") for item, people in log]


def _agrees(world: Worlds, item: str, people: npt.NDArray[np.int64], decision: Decision, kind: Kind) -> bool:
    values = world[people] * kind.step
    if decision.fakes:  # the true list is contained in the published one
        published, left = list(decision.answer), sorted(values.tolist())
        return all(published.count(value) >= left.count(value) for value in left)
    answer = tuple(decision.answer) if item == "v" else round(float(decision.answer), 6)
    return bool(_FORMS[item](values) == answer)


if __name__ == "__main__":
    instances = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    figures = Figures(
        "audit_adversary", "people", {"kind": "", "instances": ",", "answers": ",", "people": ",", "beyond": ","},
        {"beyond": "people beyond the promise"},
    )  # fmt: skip
    games: dict[str, Callable[[np.random.Generator], tuple[int, int, int]]] = {
        **{kind.name: partial(play, kind) for kind in KINDS},
        **{f"declared numbers, {name}": partial(declared_numbers, items=items) for name, items in FAMILIES.items()},
    }
    broken = 0
    for name, game in games.items():
        generator = np.random.default_rng(11)
        found = np.array([game(generator) for _ in range(instances)])
        answers, people, beyond = (int(n) for n in found.sum(axis=0))
        figures.add(kind=name, instances=instances, answers=answers, people=people, beyond=beyond)
        broken += beyond
    sys.exit(1 if broken else 0)
