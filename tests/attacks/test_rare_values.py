"""Linkage by rare equal values: an attacker who counts equal cells finds no more people than the attack does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from sfumato.attacks import AttackScenario, default_attacks, evaluate_attack, risk
from sfumato.attacks.base import View
from sfumato.attacks.record_linkage.rare_values import RareValues
from sfumato.attacks.record_linkage.rare_values.scores import Postings, best_rows
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

ROWS = 500


def people(rows: int = ROWS, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "income": draw.lognormal(10, 1, rows).round(),
            "rent": draw.lognormal(6, 1, rows).round(),
            "age": draw.integers(18, 90, rows),
            "job": draw.choice([f"job {number}" for number in range(30)], rows),
            "region": draw.choice(list("abcdefgh"), rows),
            "sex": draw.choice(["f", "m"], rows),
        }
    )


def replaced(frame: pl.DataFrame, share: float, seed: int = 2) -> pl.DataFrame:
    """The frame with a random share of the cells of each column exchanged at random."""
    draw = np.random.default_rng(seed)
    return frame.with_columns(
        pl.when(pl.Series(draw.random(frame.height) < share))
        .then(frame[name].gather(draw.permutation(frame.height)))
        .otherwise(frame[name])
        .alias(name)
        for name in frame.columns
    )


def scenario(original: pl.DataFrame, released: pl.DataFrame, targets: int | None = None) -> AttackScenario:
    order = np.random.default_rng(3).permutation(released.height)
    schema = Schema(columns={name: Column(role="quasi") for name in original.columns})
    return AttackScenario(
        original=Data.of(Table(frame=original), schema),
        release=Release(table=Table(frame=released[order]), manifest={}),
        lineage=Lineage(order),
        targets=None if targets is None else np.arange(targets),
    )


def by_rarity(where: AttackScenario) -> float:
    """A simple attacker: the row with the largest sum of -log(share) over equal cells."""
    known, released = where.original.table.frame, where.release.table.frame
    score = np.zeros((known.height, released.height))
    for name in known.columns:
        share = released[name].to_frame("v").select(pl.len().over("v")).to_series().to_numpy() / released.height
        score += (known[name].to_numpy()[:, None] == released[name].to_numpy()[None]) * -np.log(share)
    assert where.release_row is not None
    return float((score.argmax(axis=1) == where.release_row).mean())


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_count_of_rare_equal_cells_finds_no_more_people(share: float) -> None:
    original = people()
    where = scenario(original, replaced(original, share))
    found = risk(evaluate_attack(RareValues(), where, rng=Rng(1)))
    assert by_rarity(where) <= found.high
    assert found.low > {0.3: 0.92, 0.6: 0.5}[share]


def test_people_without_a_kept_value_take_no_row_from_others() -> None:
    """A third of the cells are kept, the others are new: 1 - 0.7^4 = 76 % keep one; 71 % were found when every person
    took a row."""
    draw = np.random.default_rng(5)
    values = draw.lognormal(5, 1, (1000, 4))
    kept = draw.random(values.shape) < 0.3
    sides = [
        pl.DataFrame(part, schema=list("abcd")) for part in (values, np.where(kept, values, draw.random(values.shape)))
    ]
    found = risk(evaluate_attack(RareValues(), scenario(*sides), rng=Rng(1)))
    assert found.value >= kept.any(axis=1).mean()


def test_few_known_people_are_found_one_by_one() -> None:
    original = people(2000)
    where = scenario(original, replaced(original, 0.3), targets=60)
    assert risk(evaluate_attack(RareValues(), where, rng=Rng(1))).low > 0.75


def test_people_are_found_by_what_is_missing() -> None:
    """Every value is changed and blanks stay: 2^9 patterns of blanks tell 300 people apart in part."""
    draw = np.random.default_rng(4)
    blank = draw.random((300, 9)) < 0.4
    sides = []
    for values in (draw.normal(size=(300, 9)), draw.normal(size=(300, 9))):
        sides.append(pl.DataFrame([pl.Series(f"c{place}", values[:, place]) for place in range(9)]))
        sides[-1] = sides[-1].with_columns(
            pl.when(pl.Series(blank[:, place])).then(None).otherwise(pl.col(f"c{place}")).alias(f"c{place}")
            for place in range(9)
        )
    where = scenario(*sides)
    patterns = np.unique(blank, axis=0, return_counts=True)[1]
    reachable = len(patterns) / 300
    found = risk(evaluate_attack(RareValues(), where, rng=Rng(1)))
    assert found.high > reachable
    assert found.value > 0.85 * reachable


def test_columns_contribute_by_rarity_and_by_what_was_kept() -> None:
    original = people()
    changed = replaced(original, 0.3).with_columns(rent=pl.Series(np.arange(ROWS) + 0.5))
    found = evaluate_attack(RareValues(), scenario(original, changed), rng=Rng(1)).detail["columns"]
    assert list(found) == original.columns
    assert found["income"] > found["age"] > found["sex"] > 0
    assert found["rent"] < found["age"]


def test_an_unrelated_release_shows_no_risk() -> None:
    where = scenario(people(seed=1), people(seed=9))
    assert risk(evaluate_attack(RareValues(), where, rng=Rng(1))).low < 0.01


def test_values_that_all_changed_are_refused() -> None:
    original = people().select("income", "rent")
    with pytest.raises(NotApplicable, match="No known value recurs"):
        evaluate_attack(RareValues(), scenario(original, original + 0.5), rng=Rng(1))


def test_the_default_battery_holds_the_attack_unless_values_are_true_or_synthetic() -> None:
    where = scenario(people(), people())
    assert any(isinstance(attack, RareValues) for attack in default_attacks(where))
    synthetic = AttackScenario(
        original=where.original, release=where.release, lineage=Lineage(np.full(ROWS, -1, dtype=np.int64))
    )
    assert not any(isinstance(attack, RareValues) for attack in default_attacks(synthetic))


def test_best_rows_are_those_of_all_pairs() -> None:
    frame = people(80).with_columns(pl.when(pl.col("age") > 70).then(None).otherwise(pl.col("job")).alias("job"))
    other = replaced(frame, 0.5)
    view = View(release=Release(table=Table(frame=other), manifest={}), targets=frame, knows=tuple(frame.columns))
    postings = Postings.of(view, np.random.default_rng(1))
    assert postings.columns == ("income", "rent", "age", "job", "job is missing", "region", "sex")
    weights = postings.weights(np.full(7, 0.5))
    found = best_rows(postings, weights, 80, 5, SILENT)
    every: npt.NDArray[np.int64] = np.stack([postings.score(weights, np.full(80, row)) for row in range(80)], axis=1)
    assert (found.score == -np.sort(-every, axis=1)[:, :5]).all()
    assert (found.ties == (every == every.max(axis=1, keepdims=True)).sum(axis=1)).all()
    assert (np.take_along_axis(every, found.row, axis=1) == found.score).all()
