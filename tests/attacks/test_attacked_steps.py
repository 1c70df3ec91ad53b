"""Masking steps whose attacks ended in internal errors: grouped PRAM, shuffling with few people per block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.attacks.record_linkage.learned_linkage.distances import Form
from sfumato.attacks.record_linkage.learned_linkage.fit import learn
from sfumato.attacks.record_linkage.learned_linkage.linkage_problem import LinkageProblem
from sfumato.cli import main

RECIPE = """\
sfumato: 1
data: people.csv
columns: {id: identifier, age: quasi, region: quasi, income: quasi, rent: quasi}
"""


@pytest.mark.parametrize(
    "step",
    [
        "pram: {columns: [region], keep: 0.7, groups: {region: [[n, s], [e, w]]}}",
        "shuffle: {columns: [income, rent], given: []}",
    ],
)
def test_the_attacks_of_a_step_run(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(3)
    age = draw.integers(20, 70, 80)
    income = 1000 + 30 * age + draw.normal(0, 400, 80)
    table = {"id": range(80), "age": age, "region": draw.choice(["n", "s", "e", "w"], 80), "income": income.round(2)}
    pl.DataFrame({**table, "rent": (income * 0.3 + draw.normal(0, 90, 80)).round(2)}).write_csv("people.csv")
    Path("sfumato.yaml").write_text(f"{RECIPE}steps: [{step}]\n")
    assert main(["protect", "sfumato.yaml", "--out", "release", "--json"]) == 0


def test_people_without_competitors_are_linked_by_every_distance() -> None:
    """Each count of linked people is compared with one that is made person by person."""
    draw = np.random.default_rng(4)
    known = draw.normal(size=(12, 2))
    rows = known + 0.3 * draw.normal(size=known.shape)
    # The first, a middle and the last person have no row but their own to choose from.
    pool = [np.array([person]) if person in (0, 5, 11) else np.arange(12) for person in range(12)]
    form = Form(shape="weighted", width=2)
    problem = LinkageProblem.of(form, known, rows, np.arange(12), pool=pool)
    assert (problem.people, problem.alone) == (9, 3)
    for theta in (np.array([1.0, 1.0]), np.array([1.0, 0.0])):
        distance = ((rows[None] - known[:, None]) ** 2) @ theta
        nearest = [int(pool[person][np.argmin(distance[person, pool[person]])]) for person in range(12)]
        assert problem.linked(theta) + problem.alone == sum(row == person for person, row in enumerate(nearest))
    nobody = LinkageProblem.of(form, known, rows, np.arange(12), pool=[np.array([person]) for person in range(12)])
    assert (nobody.people, nobody.alone, learn(form, nobody, draw).linked) == (0, 12, 0)
