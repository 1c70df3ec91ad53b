"""The default battery: which attacks run on which release, configured how, and in which order.

The place of an attack in the battery is the number of its random stream, so the order is part of every figure. The
lists in ``tests/samples/default_attacks.json`` were recorded before attacks chose themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import Attack, AttackScenario, Discloses, Guesses, View, default_attacks, defaults
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.progress import SILENT, Progress
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

RECORDED = Path(__file__).parent.parent / "samples" / "default_attacks.json"

ROWS = 300
ROLES = {
    "name": Role.IDENTIFIER,
    "zip": Role.QUASI,
    "birth": Role.QUASI,
    "height": Role.QUASI,
    "income": Role.QUASI,
    "salary": Role.SENSITIVE,
    "diagnosis": Role.SENSITIVE,
    "household": Role.HOUSEHOLD,
}


def frame(rows: int = ROWS, *, codes: int = 30) -> pl.DataFrame:
    draw = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "name": [f"person {number}" for number in range(rows)],
            "zip": [f"{code:05d}" for code in draw.integers(2100, 2100 + codes, rows)],
            "birth": [date(1930, 1, 1) + timedelta(days=int(day)) for day in draw.integers(0, 25_000, rows)],
            "height": np.round(draw.normal(170, 9, rows), 3),
            "income": np.round(draw.lognormal(10, 0.5, rows), 2),
            "salary": np.round(draw.lognormal(10, 0.5, rows)),
            "diagnosis": draw.choice(["asthma", "flu", "none"], rows),
            "household": np.arange(rows) // 3,
        }
    )


def scenario(
    *steps: dict[str, Any],
    table: pl.DataFrame | None = None,
    drop: tuple[str, ...] = ("name", "household"),
    lineage: str = "rows",
    control: bool = False,
    **more: Any,
) -> AttackScenario:
    table = frame() if table is None else table
    schema = Schema(columns={name: Column(role=role) for name, role in ROLES.items()})
    rows = np.arange(table.height) if lineage == "rows" else np.full(table.height, -1)
    return AttackScenario(
        original=Data.of(Table(frame=table), schema),
        release=Release(table=Table(frame=table.drop(drop)), manifest={"steps": list(steps)} if steps else {}),
        lineage=None if lineage == "none" else Lineage(rows),
        control=Table(frame=frame()) if control else None,
        **more,
    )


def step(name: str, *columns: str, truthful: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "step": name,
        "parameters": {},
        "truthful": truthful,
        **({"columns": list(columns)} if columns else {}),
        **more,
    }


COARSE = step("generalize", "zip", "birth", "height", "income", truthful=True)

SCENARIOS: dict[str, AttackScenario] = {
    "unknown method": scenario(),
    "unknown method, nobody knows whose": scenario(lineage="none"),
    "synthetic rows": scenario(step("synthesize"), lineage="synthetic"),
    "generalized": scenario(COARSE),
    "generalized, households released": scenario(COARSE, drop=("name",)),
    "generalized, with a control file": scenario(COARSE, control=True),
    "generalized, with counterfeits": scenario(COARSE, step("add-counterfeits", truthful=True)),
    "generalized, then all columns with noise": scenario(COARSE, step("noise", "zip", "birth", "height", "income")),
    "ranks of two columns swapped": scenario(step("rank-swap", "height", "income")),
    "ranks of all columns swapped": scenario(step("rank-swap", "zip", "birth", "height", "income")),
    "ranks of the secret swapped": scenario(step("rank-swap", "salary")),
    "microaggregated": scenario(step("microaggregate", "height", "income", groups=[[["height", "income"], 3]])),
    "post-randomized": scenario(step("pram", "zip")),
    "shuffled, a method that cannot be run again": scenario(step("shuffle", "income")),
    "a step that names no columns": scenario(step("noise")),
    "a method of another package": scenario(step("blur", "income")),
    "a truthful method of another package": scenario(step("blur", "income", truthful=True)),
    "two known columns": scenario(step("rank-swap", "height", "income"), knows=("height", "income")),
    "one known column of text": scenario(COARSE, knows=("zip",)),
    "a secret is known": scenario(COARSE, knows=("zip", "salary")),
    "free text": scenario(table=frame().with_columns(zip="xyz " + pl.col("name"))),
    "many rows": scenario(step("rank-swap", "height", "income"), table=frame(10_001)),
    "many categories": scenario(step("rank-swap", "height", "income", "zip"), table=frame(codes=21)),
    "salaries are codes": scenario(COARSE, table=frame().with_columns(salary=pl.int_range(pl.len()) % 90)),
    "nothing known is released": scenario(COARSE, drop=("name", "household", "zip", "birth", "height", "income")),
}  # fmt: skip


def battery(where: AttackScenario) -> list[str]:
    return [
        " ".join([attack.part_name(), *(f"{name}={value}" for name, value in sorted(settings.items()))])
        for attack in default_attacks(where)
        for settings in [attack.model_dump(mode="json", exclude_defaults=True)]
    ]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_battery_is_as_recorded(name: str) -> None:
    assert battery(SCENARIOS[name]) == json.loads(RECORDED.read_text())[name]


class Echo(Attack):
    """An attacker who names the first row for everybody, to show that an attack takes part by its own word alone."""

    discloses: ClassVar[Discloses] = Discloses.IDENTITY

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        return (cls(),) if scenario.unperturbed else ()

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        return Guesses.of_rows(np.zeros(view.targets.height, dtype=np.int64), np.ones(view.targets.height))


@pytest.mark.parametrize("name", ["generalized", "ranks of two columns swapped", "ranks of all columns swapped"])
def test_a_new_attack_joins_at_the_end_and_leaves_the_others_their_streams(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(defaults, "registry", lambda kind: [Echo, *registry(kind)])
    recorded = json.loads(RECORDED.read_text())[name]
    assert battery(SCENARIOS[name]) == [*recorded, *(["echo"] if "linkage" in recorded else [])]


@pytest.mark.parametrize("kind", list(registry("attack")), ids=lambda kind: kind.part_name())
def test_every_attack_answers_for_every_scenario(kind: type[Attack]) -> None:
    for where in SCENARIOS.values():
        for attack in kind.defaults(where):
            assert type(attack) is kind
            assert getattr(attack, "secret", None) in (None, *where.secrets)
