"""Linkage that uses the columns which the masking left unchanged: only rows that agree in them compete."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import AttackScenario, evaluate_attack, risk
from sfumato.attacks.base import Linking, View
from sfumato.attacks.record_linkage._near_rows import different_rows, near_rows
from sfumato.attacks.record_linkage._unchanged_columns import blocks, unchanged_columns
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.attacks.record_linkage.learned_linkage import LearnedLinkage
from sfumato.attacks.record_linkage.view_linkage import ViewLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.progress import SILENT
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

ROWS = 600
NOISE = {"step": "noise", "parameters": {}, "columns": ["income", "rent"], "truthful": False}


def people() -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "income": draw.normal(size=ROWS),
            "rent": draw.normal(size=ROWS),
            "town": draw.choice([f"T{number:02d}" for number in range(6)], ROWS),
        }
    )


def noisy(steps: list[dict[str, object]], *, town: bool = True) -> AttackScenario:
    """Noise of half a standard deviation on two numbers; the town is released as it is, or in another row order."""
    draw = np.random.default_rng(2)
    frame = people()
    released = frame.with_columns(pl.col("income", "rent") + 0.5 * pl.Series(draw.normal(size=ROWS)))
    if not town:
        released = released.with_columns(town=pl.Series(draw.permutation(frame["town"].to_numpy())))
    order = draw.permutation(ROWS)
    schema = Schema(columns={name: Column(role="quasi") for name in frame.columns})
    return AttackScenario(
        original=Data.of(Table(frame=frame), schema),
        release=Release(table=Table(frame=released[order]), manifest={"steps": steps}),
        lineage=Lineage(order),
    )


def view(steps: list[dict[str, object]], knows: tuple[str, ...] = ("income", "rent", "town"), **more: bool) -> View:
    release = Release(table=Table(frame=people()), manifest={"steps": steps})
    return View(release=release, targets=people().head(10), knows=knows, **more)


def test_only_columns_that_no_step_names_are_unchanged() -> None:
    assert unchanged_columns(view([NOISE])) == ("town",)
    assert unchanged_columns(view([NOISE, {"step": "generalize", "columns": ["town"], "truthful": True}])) == ()
    assert unchanged_columns(view([{"step": "noise"}])) == ()
    assert unchanged_columns(view([])) == ()
    assert unchanged_columns(view([NOISE], transparent=False)) == ()
    assert unchanged_columns(view([NOISE], blanks_unknown=True)) == ()
    assert unchanged_columns(view([NOISE], knows=("town",))) == ()


def test_blocks_number_combinations_of_values_in_both_files() -> None:
    targets, released = blocks(view([NOISE]), ("town",))
    frame = people()
    assert [[left == right for right in released] for left in targets] == [
        [left == right for right in frame["town"]] for left in frame["town"].head(10)
    ]


@pytest.mark.parametrize("attack", [LearnedLinkage(), LearnedLinkage(taught=0.3), ViewLinkage()])
def test_an_unchanged_column_excludes_all_other_rows(attack: Linking) -> None:
    """A bound on a family of distances is no bound if a plain distance links more people."""
    where = noisy([NOISE])
    outcome = evaluate_attack(attack, where, rng=Rng(1))
    plain = risk(evaluate_attack(DistanceLinkage(), where, rng=Rng(1)))
    assert risk(outcome).high > plain.value
    if isinstance(attack, LearnedLinkage):
        assert outcome.detail["exact"] == ["town"]


def test_a_published_step_that_is_wrong_about_a_column_does_not_stop_learning() -> None:
    """Known pairs that disagree in a column show that it was changed, whatever the steps say."""
    attack = LearnedLinkage(taught=0.3, distance="weighted", most=100)
    outcome = evaluate_attack(attack, noisy([NOISE], town=False), rng=Rng(1))
    assert "exact" not in outcome.detail
    assert outcome.claims == outcome.main.trials


def test_random_matches_agree_in_unchanged_columns() -> None:
    """The baseline of an attack that learns from its targets is chance within a block, one in about 100 rows here."""
    outcome = evaluate_attack(LearnedLinkage(), noisy([NOISE]), rng=Rng(1))
    assert outcome.baseline is not None
    assert 0 < outcome.baseline.rate < 0.5 * outcome.main.rate


def test_rows_of_other_blocks_are_never_named() -> None:
    draw = np.random.default_rng(3)
    targets, released = draw.normal(size=(30, 2)), draw.normal(size=(300, 2))
    block = draw.integers(0, 40, 30), np.concatenate([np.arange(39), draw.integers(0, 39, 261)])
    rows, distance = near_rows(targets, released, 20, draw, SILENT, block)
    for person in range(30):
        own = np.flatnonzero(block[1] == block[0][person])
        gap = np.sort(np.square(released[own] - targets[person]).sum(axis=1))[:20]
        assert set(rows[person][rows[person] >= 0]) <= set(own)
        assert np.allclose(distance[person][: len(gap)], gap)
        assert np.isinf(distance[person][len(gap) :]).all()
    given = different_rows(rows, distance, draw)
    assert ((given < 0) == (block[0] == 39)).all()
    assert all(block[1][row] == own for row, own in zip(given, block[0], strict=True) if row >= 0)
