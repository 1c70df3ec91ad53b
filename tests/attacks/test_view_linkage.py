"""Linkage over views: simple attackers on one view of the data find no more than the attack does."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import poisson, rankdata

from sfumato.attacks import AttackScenario, Outcome, default_attacks, evaluate_attack, risk
from sfumato.attacks.record_linkage._near_rows import different_rows, near_rows
from sfumato.attacks.record_linkage.view_linkage import ViewLinkage
from sfumato.attacks.record_linkage.view_linkage.views import VIEWS
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.errors import NotApplicable
from sfumato.masking.base import Context
from sfumato.masking.methods.noise import Noise
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.masking.methods.shift_dates import ShiftDates
from sfumato.progress import SILENT
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

Floats = npt.NDArray[np.float64]


def amounts(rows: int, columns: int = 3, seed: int = 1) -> Floats:
    """Correlated amounts, as incomes, rents and savings are."""
    draw = np.random.default_rng(seed)
    common = draw.normal(9, 0.7, (rows, 1))
    return np.exp(common + draw.normal(0, 0.6, (rows, columns)))


def scenario(
    original: pl.DataFrame, released: pl.DataFrame, steps: list[dict[str, object]] | None = None
) -> AttackScenario:
    order = np.random.default_rng(3).permutation(released.height)
    schema = Schema(columns={name: Column(role="quasi") for name in original.columns})
    manifest = {} if steps is None else {"steps": steps}
    return AttackScenario(
        original=Data.of(Table(frame=original), schema),
        release=Release(table=Table(frame=released[order]), manifest=manifest),
        lineage=Lineage(order),
    )


def attacked(original: pl.DataFrame, released: pl.DataFrame, seed: int = 1, **parameters: object) -> Outcome:
    return evaluate_attack(ViewLinkage(**parameters), scenario(original, released), rng=Rng(seed))  # type: ignore[arg-type]


def frame(values: Floats) -> pl.DataFrame:
    return pl.DataFrame(values, schema=[f"c{place}" for place in range(values.shape[1])])


MOVES: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "logarithms": lambda values, draw: np.log(values),
    "roots": lambda values, draw: np.sqrt(values),
    "reversed order": lambda values, draw: -values,
    "one random factor per person": lambda values, draw: values * np.exp(draw.normal(0, 0.5, (len(values), 1))),
    "one random shift per person": lambda values, draw: values + draw.normal(0, values.std(), (len(values), 1)),
    "whole numbers added": lambda values, draw: values + draw.integers(-20_000, 20_000, values.shape),
    "a rotation": lambda values, draw: values @ np.linalg.qr(draw.normal(size=(values.shape[1],) * 2))[0],
    "values exchanged between the columns of a row": lambda values, draw: draw.permuted(values, axis=1),
    "a factor on two columns, noise on the third": lambda values, draw: np.column_stack(
        [
            values[:, :2] * np.exp(draw.normal(0, 0.5, (len(values), 1))),
            values[:, 2] * np.exp(draw.normal(0, 0.5, len(values))),
        ]
    ),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_move_that_one_view_undoes_hides_nobody(move: str) -> None:
    values = amounts(600)
    released = MOVES[move](values, np.random.default_rng(2))
    assert risk(attacked(frame(values), frame(released))).low > 0.93


def test_there_is_no_cliff_in_the_number_of_rows() -> None:
    """Logarithms of 12,000 rows are linked as those of 8,000 rows are, by the default attacks."""
    values = amounts(12_000)
    where = scenario(frame(values), frame(np.log(values)))
    [attack] = [attack for attack in default_attacks(where) if isinstance(attack, ViewLinkage)]
    outcome = evaluate_attack(attack, where, rng=Rng(1))
    assert risk(outcome).low > 0.97


def test_a_linear_map_is_found_although_the_view_is_selected_on_some_people() -> None:
    values = amounts(2500)
    turned = values @ np.random.default_rng(2).normal(size=(3, 3))
    assert risk(attacked(frame(values), frame(turned))).low > 0.98


def test_rank_swapping_is_linked_as_well_as_by_an_assignment_over_all_pairs() -> None:
    """With 15 near rows per person 7.4 % of 2,000 people were found where 8.9 % can be; 60 rows find them."""
    values = amounts(1200, 8)
    schema = Schema(columns={f"c{place}": Column(role="quasi") for place in range(8)})
    swapped = RankSwap(p=15).apply(Data.of(Table(frame=frame(values)), schema), Context(rng=Rng(3))).table.frame
    left, right = (rankdata(part, axis=0) for part in (values, swapped.to_numpy()))
    cost = np.square(left).sum(axis=1)[:, None] + np.square(right).sum(axis=1)[None] - 2 * left @ right.T
    simple = float((linear_sum_assignment(cost)[1] == np.arange(len(values))).mean())
    found = risk(attacked(frame(values), swapped, view="ranks"))
    assert simple <= found.high
    assert found.value > 0.95 * simple


def test_dates_that_are_shifted_together_are_found_by_their_intervals() -> None:
    draw = np.random.default_rng(4)
    days = np.cumsum(draw.integers(1, 400, (1500, 3)), axis=1) + draw.integers(0, 9000, (1500, 1))
    people = pl.DataFrame(
        {name: pl.Series(days[:, place]).cast(pl.Int32).cast(pl.Date) for place, name in enumerate("abc")}
    )
    data = Data.of(Table(frame=people), Schema(columns={name: Column(role="quasi") for name in "abc"}))
    masked = ShiftDates(days=365).apply(data, Context(rng=Rng(7))).table.frame
    outcome = attacked(people, masked)
    assert risk(outcome).low > 0.97
    assert risk(attacked(people, masked, view="values")).high < 0.2


def test_correlated_noise_is_linked_in_its_own_units() -> None:
    """At least what Mahalanobis distance by the covariance of both files finds, with a row for everybody."""
    values = np.log(amounts(800, columns=8))
    data = Data.of(Table(frame=frame(values)), Schema(columns={n: Column(role="quasi") for n in frame(values).columns}))
    masked = Noise(variance_ratio=0.3, variant="correlated").apply(data, Context(rng=Rng(2))).table.frame.to_numpy()
    spread = np.cov(values, rowvar=False) + np.cov(masked, rowvar=False)
    gap = values[:, None, :] - masked[None, :, :]
    cost = np.einsum("ijk,kl,ijl->ij", gap, np.linalg.inv(spread), gap)
    from scipy.optimize import linear_sum_assignment

    simple = float((linear_sum_assignment(cost)[1] == np.arange(800)).mean())
    outcome = attacked(frame(values), frame(masked))
    assert simple > 0.05
    assert risk(outcome).high > simple
    plain = evaluate_attack(ViewLinkage(view="values"), scenario(frame(values), frame(masked)), rng=Rng(1))
    assert outcome.main.rate > plain.main.rate


def test_columns_with_little_noise_are_learned_from_the_pairs_found() -> None:
    draw = np.random.default_rng(6)
    values = np.log(amounts(800, columns=6))
    noise = draw.normal(size=values.shape) * values.std(axis=0) * np.geomspace(0.01, 2.0, 6)
    plain, learned = (
        attacked(frame(values), frame(values + noise), view="values", adapt=adapt) for adapt in (False, True)
    )
    assert risk(learned).low > risk(plain).high + 0.2


def test_the_selection_of_a_view_is_not_counted_as_risk() -> None:
    """On unrelated data the attack finds as many people as random rows do, summed over 24 data sets of 120 rows.

    The bounds are those of a Poisson distribution at one in a million. On the targets of the selection the best view
    finds more than its bound, so an attack that is counted on these would be caught.
    """
    counted = [0.0, 0.0]
    selected = [0.0, 0.0]
    for seed in range(24):
        draw = np.random.default_rng(seed)
        values, others = (frame(draw.normal(size=(120, 3))) for _ in range(2))
        outcome = attacked(values, others, seed=seed)
        people = outcome.detail["picked on"]
        counted = [counted[0] + outcome.main.hits, counted[1] + outcome.main.trials / 120]
        selected = [selected[0] + people * max(outcome.detail["shares"].values()), selected[1] + people / 120]
    assert counted[0] <= poisson.isf(1e-6, counted[1])
    assert selected[0] > poisson.isf(1e-6, selected[1])


def test_targets_of_the_selection_are_not_counted() -> None:
    values = frame(amounts(400))
    outcome = attacked(values, values)
    assert (outcome.main.trials, outcome.detail["picked on"]) == (300, 100)
    assert outcome.main.hits == 300


def test_columns_that_no_step_perturbed_agree_exactly() -> None:
    draw = np.random.default_rng(8)
    values = frame(draw.integers(0, 30, (900, 2)).astype(float)).with_columns(c2=draw.normal(size=900))
    released = values.with_columns(c2=pl.col("c2") + draw.normal(0, 0.3, 900))
    steps: list[dict[str, object]] = [{"step": "noise", "parameters": {}, "columns": ["c2"], "truthful": False}]
    known = evaluate_attack(ViewLinkage(view="values"), scenario(values, released, steps), rng=Rng(1))
    unknown = evaluate_attack(ViewLinkage(view="values"), scenario(values, released), rng=Rng(1))
    assert risk(known).low > risk(unknown).value


def test_few_known_people_of_a_large_release() -> None:
    """Without competition the nearest row is named, and the scale of the release is still found."""
    values = amounts(20_000)
    where = scenario(frame(values), frame(np.log(values)))
    few = AttackScenario(
        original=where.original, release=where.release, lineage=where.lineage, targets=np.arange(500, dtype=np.int64)
    )
    assert risk(evaluate_attack(ViewLinkage(), few, rng=Rng(1))).value > 0.2


def test_near_rows_are_the_nearest_in_order() -> None:
    draw = np.random.default_rng(9)
    targets, released = draw.normal(size=(40, 3)), draw.normal(size=(2500, 3))
    rows, distance = near_rows(targets, released, 7, draw, SILENT)
    gap = np.square(targets[:, None] - released[None]).sum(axis=2)
    assert np.allclose(distance, np.sort(gap, axis=1)[:, :7])
    assert np.allclose(np.take_along_axis(gap, rows, axis=1), distance)


def test_equal_rows_are_drawn_at_random() -> None:
    """Equal rows in file order would be the truth in an aligned release."""
    draw = np.random.default_rng(10)
    first = [int(near_rows(np.zeros((1, 1)), np.zeros((10, 1)), 1, draw, SILENT)[0][0, 0]) for _ in range(200)]
    assert len(set(first)) == 10


def test_different_people_get_different_rows() -> None:
    near = np.array([[0, 1], [0, 2], [0, 1]])
    cost = np.array([[0.0, 1.0], [0.0, 3.0], [0.0, 2.0]])
    rows = different_rows(near, cost, np.random.default_rng(1))
    assert sorted(rows) == [0, 1, 2]
    assert rows.tolist() == [1, 2, 0]


def test_every_view_can_be_named() -> None:
    assert set(get_args(ViewLinkage.model_fields["view"].annotation)) == {"strongest", *VIEWS}


def test_a_view_that_the_columns_do_not_have_is_refused() -> None:
    people = pl.DataFrame({"town": ["a", "b"] * 50, "age": range(100)})
    with pytest.raises(NotApplicable, match="ratios"):
        attacked(people, people, view="ratios")
    with pytest.raises(NotApplicable, match="too few"):
        attacked(people.head(3), people.head(3), view="values", adapt=True)
