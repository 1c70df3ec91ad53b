"""What every attack must do: certain success on an unmasked release, none on an unrelated one, the same by seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
import pytest
from people import NUMBERS, QUASI, dataset, frame

from sfumato.attacks import Attack, AttackScenario, Discloses, Outcome, evaluate_attack, risk
from sfumato.attacks.evaluation.intervals import wilson
from sfumato.data.table import Table
from sfumato.deadline import Deadline
from sfumato.errors import OutOfTime, SfumatoError
from sfumato.masking.base import Context, Step
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.rng import Rng
from sfumato.schema import Column, Dataset, Role, Schema

COUNT = 400

SPLINK = pytest.mark.skipif(
    find_spec("splink") is None, reason="Splink is not installed: pip install 'sfumato[linkage]'"
)

PARTS = [
    pytest.param(
        kind,
        parameters,
        id=f"{kind.part_name()}-{number}",
        marks=[SPLINK] if parameters.get("engine") == "splink" else [],
    )
    for kind in registry("attack")
    for number, parameters in enumerate(kind.examples)
]


def weak_step(attack: type[Attack]) -> Step | None:
    """The step that the attack exploits, with parameters that protect almost nobody; None for a general attack."""
    if attack.weak_masking is None:
        assert not attack.exploited({"step": name} for name in registry("method").names())
        return None
    [(name, parameters)] = attack.weak_masking.items()
    part = registry("method").get(name).build(parameters)
    assert isinstance(part, Step)
    assert attack.exploits(type(part))
    return part


def in_fours(people: Dataset) -> Dataset:
    """The same people in households of four, which the release numbers otherwise."""
    frame = people.table.frame.with_columns(household=pl.int_range(pl.len()) // 4)
    columns = {**people.schema.columns, "household": Column(role=Role.HOUSEHOLD)}
    return Dataset.of(Table(frame=frame), Schema(columns=columns))


def scenario(attack: type[Attack], people: Dataset) -> AttackScenario:
    """The people's file, gently masked where the attack needs a method, in another order, under our row map."""
    step, steps = weak_step(attack), []
    table = people.table.frame
    if step is not None:
        change = step.apply(people, Context(rng=Rng(11)))
        table = change.table.frame
        steps = [{"step": step.part_name(), "parameters": step.public(), **change.public}]
    original = dataset(COUNT)
    if attack.by_household:
        original, table = in_fours(original), table.with_columns(household=1000 - pl.int_range(pl.len()) // 4)
    shuffle = np.random.default_rng(3).permutation(COUNT)
    return AttackScenario(
        original=original,
        release=Release(table=Table(frame=table.drop("name")[shuffle]), manifest={"steps": steps} if steps else {}),
        lineage=Lineage(shuffle),
        control=Table(frame=frame(COUNT, seed=2)) if attack.discloses is Discloses.MEMBERSHIP else None,
    )


def events(seed: int = 1) -> Dataset:
    """A hundred people with a dozen rated films each."""
    draw = np.random.default_rng(seed)
    rows = 1200
    table = pl.DataFrame(
        {
            "user": np.repeat(np.arange(100), 12),
            "film": [f"film {number}" for number in draw.integers(0, 300, rows)],
            "stars": draw.integers(1, 6, rows),
            "day": draw.integers(0, 700, rows),
        }
    )
    return Dataset.of(Table(frame=table), Schema(columns={"film": Column(role=Role.QUASI)}, unit="user"))


def event_scene(people: Dataset) -> AttackScenario:
    original = events()
    pseudonym = np.random.default_rng(5).permutation(100)
    table = people.table.frame.with_columns(pl.col("user").map_elements(lambda user: int(pseudonym[user]), pl.Int64))
    return AttackScenario(original=original, release=Release(table=Table(frame=table), manifest={}), aligned=True)


def unmasked(attack: type[Attack]) -> AttackScenario:
    if attack.by_unit:
        return event_scene(events())
    return scenario(attack, dataset(COUNT))


def unrelated(attack: type[Attack]) -> AttackScenario:
    """A release about other people, of which the row map claims that it is about ours."""
    if attack.by_unit:
        return event_scene(events(seed=9))
    return scenario(attack, dataset(COUNT, seed=9))


def run(attack: Attack, where: AttackScenario, seed: int = 5) -> Outcome:
    return evaluate_attack(attack, where, rng=Rng(seed), n_targets=COUNT)


@cache
def _first_run(kind: type[Attack], parameters: str) -> Outcome:
    return run(kind.build(json.loads(parameters)), unmasked(kind))


def first_run(kind: type[Attack], parameters: dict[str, Any]) -> Outcome:
    """The attack on the unmasked release, run once for all tests that look at it."""
    return _first_run(kind, json.dumps(parameters))


@pytest.mark.parametrize(("kind", "parameters"), PARTS)
def test_unmasked_release_is_found_out(kind: type[Attack], parameters: dict[str, Any]) -> None:
    outcome = first_run(kind, parameters)
    assert outcome.main.trials > 0
    assert risk(outcome).high >= 0.999, outcome.to_dict()


@pytest.mark.parametrize(("kind", "parameters"), PARTS)
def test_unrelated_release_gives_no_more_than_the_baseline(kind: type[Attack], parameters: dict[str, Any]) -> None:
    outcome = run(kind.build(parameters), unrelated(kind))
    found = risk(outcome, level=0.999)
    reached = wilson(outcome.baseline.hits, outcome.baseline.trials, 0.999)[1]
    assert found.low <= reached, outcome.to_dict()
    if kind.discloses is Discloses.IDENTITY:
        assert found.value <= 0.05, outcome.to_dict()


@pytest.mark.parametrize(("kind", "parameters"), PARTS)
def test_same_seed_same_outcome_and_inputs_untouched(kind: type[Attack], parameters: dict[str, Any]) -> None:
    where = unmasked(kind)
    before, released = where.original.table.frame.clone(), where.release.table.frame.clone()
    first, second = first_run(kind, parameters), run(kind.build(parameters), where)
    assert first.to_dict() == second.to_dict()
    assert where.original.table.frame.equals(before)
    assert where.release.table.frame.equals(released)


@pytest.mark.parametrize(("kind", "parameters"), PARTS)
def test_counts_are_sound(kind: type[Attack], parameters: dict[str, Any]) -> None:
    outcome = first_run(kind, parameters)
    for arm in (outcome.main, outcome.baseline, *([outcome.control] if outcome.control else [])):
        assert 0 <= arm.hits <= arm.trials
    assert outcome.certain_hits <= outcome.certain <= outcome.claims <= outcome.main.trials
    assert outcome.certain_hits <= outcome.main.hits
    plain = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    assert plain["low"] <= plain["risk"] <= plain["high"]
    assert plain["attack"] == kind.part_name()
    assert plain["discloses"] == kind.discloses.value
    assert plain["tried"] == outcome.main.trials


class Clock:
    """A clock that stands still, but jumps past any deadline at the n-th reading."""

    def __init__(self, readings: int) -> None:
        self.left = readings

    def __call__(self) -> float:
        self.left -= 1
        return 0.0 if self.left >= 0 else 1e9


@pytest.mark.parametrize("readings", [0, 3, 10, 40])
@pytest.mark.parametrize(("kind", "parameters"), PARTS)
def test_time_is_up(kind: type[Attack], parameters: dict[str, Any], readings: int) -> None:
    """What was found by then is counted; with nothing found there is no risk at all, least of all one of 0."""

    def late() -> Outcome:
        until = Deadline(until=1.0, clock=Clock(readings))
        return evaluate_attack(kind.build(parameters), unmasked(kind), rng=Rng(5), n_targets=COUNT, progress=until)

    if readings == 0:
        with pytest.raises(OutOfTime, match="Stopped"):
            late()
        return
    try:
        outcome = late()
    except OutOfTime:
        return
    whole = first_run(kind, parameters)
    assert outcome.planned == whole.main.trials
    assert 0 < outcome.main.trials <= whole.main.trials
    assert outcome.stopped == (outcome.main.trials < whole.main.trials)
    assert len(outcome.rows) == len(outcome.hit) == len(outcome.confidence) == outcome.main.trials
    if outcome.stopped:
        plain = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
        assert (plain["stopped"], plain["planned"]) == (True, whole.main.trials)
        assert risk(outcome).high >= 0.99
        assert outcome.main.hits < outcome.main.trials or risk(outcome).low <= risk(whole).low


@pytest.mark.parametrize("kind", list(registry("attack")), ids=lambda kind: kind.part_name())
def test_threat_model_is_written_down(kind: type[Attack]) -> None:
    assert len(kind.summary()) > 40
    assert set(NUMBERS) <= set(QUASI)


def constant(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.lit(1.0).alias(name) for name in NUMBERS)


def as_text(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.all().cast(pl.String))


def starred(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.lit("*").alias(name) for name in QUASI)


def emptied(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.lit(None, dtype=table.schema[name]).alias(name) for name in QUASI)


def holed(table: pl.DataFrame) -> pl.DataFrame:
    hole = pl.int_range(pl.len()) % 5 == 0
    return table.with_columns(pl.when(hole).then(None).otherwise(pl.col(name)).alias(name) for name in QUASI)


def one_row(table: pl.DataFrame) -> pl.DataFrame:
    return table.head(1)


def other_names(table: pl.DataFrame) -> pl.DataFrame:
    return table.rename({name: f"{name}_2" for name in QUASI})


def other_units(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.lit("somewhere").alias(name) for name in QUASI)


@pytest.mark.parametrize(
    "spoil",
    [constant, as_text, starred, emptied, holed, one_row, other_names, other_units],
    ids=lambda spoil: spoil.__name__,
)
@pytest.mark.parametrize(
    "kind", [kind for kind in registry("attack") if not kind.by_unit], ids=lambda kind: kind.part_name()
)
def test_bad_releases_are_judged_or_refused(kind: type[Attack], spoil: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Whatever the release looks like, there is a sound outcome or a refusal that says why; never a crash."""
    where = unmasked(kind)
    table = spoil(where.release.table.frame)
    assert where.lineage is not None
    spoilt = AttackScenario(
        original=where.original,
        release=Release(table=Table(frame=table), manifest=where.release.manifest),
        lineage=Lineage(where.lineage.rows[: table.height]),
        control=where.control,
    )
    try:
        outcome = evaluate_attack(kind.build(kind.examples[0]), spoilt, rng=Rng(1), n_targets=60)
    except SfumatoError as refusal:
        said = str(refusal)
    else:
        assert 0 <= outcome.main.hits <= outcome.main.trials
        said = json.dumps(outcome.to_dict(), allow_nan=False)
    assert len(said) > 20
