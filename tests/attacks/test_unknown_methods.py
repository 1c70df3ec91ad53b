"""A release of unknown steps: how columns were changed is learned, and short scripts find no more people."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import AttackScenario, default_attacks, evaluate_attack, risk
from sfumato.attacks.posterior.unknown import MixtureColumn, learned, unknown_column
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
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
@pytest.mark.parametrize("rows", [ROWS, 1500])
def test_a_count_of_rare_equal_cells_finds_no_more_people(share: float, rows: int) -> None:
    """With 1,500 rows amounts have too many values for cells, and equal ones are compared one by one."""
    original = people(rows)
    where = scenario(original, replaced(original, share))
    found = risk(evaluate_attack(PosteriorLinkage(), where, rng=Rng(1)))
    assert by_rarity(where) <= found.high
    assert found.low > {0.3: 0.92, 0.6: 0.5}[share]


def test_people_without_a_kept_value_take_no_row_from_others() -> None:
    """A third of the cells are kept, the others are new: 1 - 0.7^4 = 76 % keep one."""
    draw = np.random.default_rng(5)
    values = draw.lognormal(5, 1, (1000, 4))
    kept = draw.random(values.shape) < 0.3
    sides = [
        pl.DataFrame(part, schema=list("abcd")) for part in (values, np.where(kept, values, draw.random(values.shape)))
    ]
    found = risk(evaluate_attack(PosteriorLinkage(), scenario(sides[0], sides[1]), rng=Rng(1)))
    assert found.value >= kept.any(axis=1).mean()


def test_few_known_people_are_found_one_by_one() -> None:
    original = people(2000)
    where = scenario(original, replaced(original, 0.3), targets=60)
    assert risk(evaluate_attack(PosteriorLinkage(), where, rng=Rng(1))).low > 0.75


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
    where = scenario(sides[0], sides[1])
    reachable = len(np.unique(blank, axis=0)) / 300
    found = risk(evaluate_attack(PosteriorLinkage(), where, rng=Rng(1)))
    assert found.high > reachable
    assert found.value > 0.85 * reachable


def test_an_unrelated_release_shows_no_risk() -> None:
    where = scenario(people(seed=1), people(seed=9))
    assert risk(evaluate_attack(PosteriorLinkage(), where, rng=Rng(1))).low < 0.01


def test_the_default_battery_holds_the_attack_unless_values_are_synthetic() -> None:
    where = scenario(people(), people())
    assert any(isinstance(attack, PosteriorLinkage) for attack in default_attacks(where))
    synthetic = AttackScenario(
        original=where.original, release=where.release, lineage=Lineage(np.full(ROWS, -1, dtype=np.int64))
    )
    assert not any(isinstance(attack, PosteriorLinkage) for attack in default_attacks(synthetic))


def columns_of(known: pl.DataFrame, released: pl.DataFrame) -> list[MixtureColumn]:
    made = (
        unknown_column(known[name], released[name], None, recoding=None, blanks_unknown=False) for name in known.columns
    )
    return [column for column in made if column is not None]


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_the_share_of_kept_values_is_learned(share: float) -> None:
    """Nobody's row is known, and the learned share is within 0.12 of the true one."""
    original = people()
    changed = replaced(original, share)
    for column in learned(ROWS, ROWS, columns_of(original, changed), SILENT)[:4]:
        kept = column.weights[column.exact] if column.exact >= 0 else column.kept
        assert kept == pytest.approx(1 - share, abs=0.12), column.name
