"""Duels: on each kind of release the default battery reports at least what a short independent script finds.

The scripts share no code with the attacks. They know what the scenario allows: the original's values of everybody in
all released columns, the published method and its parameters. Row i of both files is the same person for the script's
own count, never for its guesses.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

import sfumato
from plain_mdav import mdav_plain
from sfumato.attacks import Outcome, risk

Floats = npt.NDArray[np.float64]

FILES = Path(__file__).parents[1] / "samples" / "sdcmicro"
GROUPED, AMOUNTS = ("age", "roof", "relat"), ("expend", "income", "savings")
MONEY = ("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "POTHVAL", "FICA")
FAR = 1e6


def reported(recipe: dict[str, Any], original: pl.DataFrame, key: int = 0) -> tuple[float, pl.DataFrame, pl.DataFrame]:
    """The largest upper end of identity risk, and both files with the same person in row i."""
    done = sfumato.protect({"sfumato": 1, "seed": 4, **recipe}, original, unmet=True, key=bytes([key]) * 32)
    found = [item for item in done.attacks if isinstance(item, Outcome) and item.discloses == "identity"]
    assert done.lineage is not None
    return max(risk(item).high for item in found), original[done.lineage.rows], done.release.table.frame


def right(cost: Floats) -> float:
    """The share of people given their row; rows are shuffled first, so that equal ones are guessed at random."""
    order = np.random.default_rng(0).permutation(cost.shape[1])
    person, place = linear_sum_assignment(cost[:, order])
    return float((person == order[place]).mean())


def ends(label: object) -> tuple[float, float]:
    low, _, high = str(label).strip("[]").replace(", ", "–").partition("–")
    return float(low), float(high or low)


def outside_ranges(original: pl.DataFrame, released: pl.DataFrame, names: tuple[str, ...]) -> Floats:
    cost = np.zeros((original.height, released.height))
    for name in names:
        bounds = np.array([ends(label) for label in released[name]])
        known = original[name].to_numpy()[:, None]
        cost += FAR * ((known < bounds[:, 0]) | (known > bounds[:, 1]))
    return cost


def squares(original: pl.DataFrame, released: pl.DataFrame, names: tuple[str, ...], *, ranks: bool = False) -> Floats:
    cost = np.zeros((original.height, released.height))
    for name in names:
        left, other = ((f[name].rank() if ranks else f[name]).cast(pl.Float64).to_numpy() for f in (original, released))
        cost += ((left[:, None] - other[None, :]) / left.std()) ** 2
    return cost


def families() -> pl.DataFrame:
    return pl.read_csv(FILES / "testdata.csv")


def incomes(rows: int) -> pl.DataFrame:
    return pl.read_csv(FILES / "CASCrefmicrodata.csv")[:rows].select(MONEY)


def quasi(frame: pl.DataFrame) -> dict[str, str]:
    return dict.fromkeys(frame.columns, "quasi")


@pytest.mark.parametrize(
    ("step", "ranks"),
    [
        ({"rank-swap": {"p": 30, "columns": list(AMOUNTS)}}, True),
        ({"noise": {"variance_ratio": 1.0, "columns": list(AMOUNTS)}}, False),
    ],
    ids=["rank swap", "noise"],
)
def test_ranges_beside_perturbed_amounts(step: dict[str, Any], ranks: bool) -> None:
    frame = families().sample(250, seed=1).select(*GROUPED, *AMOUNTS)
    roles = {**dict.fromkeys(GROUPED, "quasi"), **dict.fromkeys(AMOUNTS, "sensitive")}
    recipe = {"columns": roles, "models": [{"k-anonymity": 5}], "steps": ["mondrian", step]}
    high, original, released = reported(recipe, frame)
    cost = outside_ranges(original, released, GROUPED) + squares(original, released, AMOUNTS, ranks=ranks)
    assert high >= right(cost) > 0.4


def test_swapped_columns_beside_untouched_ones() -> None:
    frame = incomes(250).with_columns(region=pl.col("AFNLWGT") // 60_000, plan=pl.col("EMCONTRB") // 1500)
    recipe = {"columns": quasi(frame), "steps": [{"rank-swap": {"p": 30, "columns": list(MONEY)}}]}
    high, original, released = reported(recipe, frame)
    cost = squares(original, released, MONEY, ranks=True)
    for name in ("region", "plan"):
        cost += FAR * (original[name].to_numpy()[:, None] != released[name].to_numpy()[None, :])
    assert high >= right(cost) > 0.3


@pytest.mark.parametrize(("k", "m"), [(5, 2.0), (10, 1.5)])
def test_fuzzy_microaggregation_by_memberships(k: int, m: float) -> None:
    frame = incomes(200)
    high, original, released = reported(
        {"columns": quasi(frame), "steps": [{"microaggregate": {"k": k, "fuzzy": m}}]}, frame
    )
    points = frame.to_numpy().astype(float)
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    groups = np.asarray(mdav_plain(points, k))
    sums = [[points[groups == g].mean(axis=0), frame.to_numpy()[groups == g].mean(axis=0)] for g in np.unique(groups)]
    centres, values = np.array([one[0] for one in sums]), np.array([one[1] for one in sums])
    own = original.to_numpy().astype(float)
    own = (own - frame.to_numpy().mean(axis=0)) / frame.to_numpy().std(axis=0)
    distance = np.sqrt(((own[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2))
    share = np.maximum(distance, 1e-9) ** (-2 / (m - 1))
    share[distance > np.sort(distance, axis=1)[:, min(2 * k, len(centres)) - 1][:, None]] = 0
    share /= share.sum(axis=1, keepdims=True)
    cost = np.zeros((len(own), len(own)))
    for place, name in enumerate(MONEY):
        same = np.isclose(values[:, place][:, None], released[name].to_numpy()[None, :], rtol=1e-9)
        cost -= np.log(np.maximum(share @ same, 1e-30))
    assert high >= right(cost) > 0.2


def test_rows_in_the_order_of_the_original() -> None:
    frame = incomes(200)
    recipe = {"columns": quasi(frame), "order": "kept", "steps": [{"rank-swap": {"p": 50}}]}
    assert reported(recipe, frame)[0] == 1.0


def by_group(cost: Floats, group: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The cost of whole groups with as many rows: their rows assigned one to one."""
    numbers = np.unique(group)
    total = np.full((len(numbers), len(numbers)), FAR)
    for i, first in enumerate(numbers):
        for j, second in enumerate(numbers):
            part = cost[np.ix_(group == first, group == second)]
            if part.shape[0] == part.shape[1]:
                pair = linear_sum_assignment(part)
                total[i, j] = part[pair].sum()
    return total, numbers


def test_panel_with_pseudonyms_and_noise(tmp_path: Path) -> None:
    """Utilities by month: the rows of a pseudonym as one vector."""
    names = ("res", "com", "ind")
    frame = pl.read_csv(FILES / "EIA.csv").filter(pl.col("UTILITYID") > 0)
    months = frame.group_by("UTILITYID").len().filter(pl.col("len") >= 8)["UTILITYID"].sort()[:60]
    frame = (
        frame.filter(pl.col("UTILITYID").is_in(months.to_list()))
        .group_by("UTILITYID", maintain_order=True)
        .head(8)
        .select(
            pl.col("UTILITYID").cast(pl.String).alias("id"),
            pl.col("MONTH").alias("month"),
            *(pl.col(f"{name.upper()}REVENUE").clip(0).log1p().alias(name) for name in names),
        )
    )
    steps = [
        {"pseudonymize": {"key": str(tmp_path / "key")}},
        {"noise": {"variance_ratio": 0.5, "columns": list(names)}},
    ]
    roles = {"id": "identifier", "month": "quasi", **dict.fromkeys(names, "quasi")}
    high, original, released = reported({"unit": "id", "columns": roles, "steps": steps}, frame)
    order = original.with_row_index("row").sort("id", "month")["row"]
    vectors = [f[order].select(names).to_numpy().reshape(-1, 8 * len(names)) for f in (original, released)]
    assert original[order]["id"].to_numpy().reshape(-1, 8).shape == (60, 8)
    scale = np.tile(frame.select(names).to_numpy().std(axis=0), 8)
    left, other = (side / scale for side in vectors)
    assert high >= right(((left[:, None, :] - other[None, :, :]) ** 2).sum(axis=2)) > 0.3


def visits() -> pl.DataFrame:
    """Visits of 60 people. They are drawn: no real file with dates of several visits is at hand."""
    draw = np.random.default_rng(3)
    gaps = np.cumsum(np.column_stack([np.zeros(60, int), draw.geometric(1 / 20, (60, 3))]), axis=1)
    days = pl.Series((draw.integers(0, 700, 60)[:, None] + gaps).ravel())
    frame = pl.DataFrame({"id": np.repeat([f"p{i}" for i in range(60)], 4), "day": days})
    return frame.select("id", visit=pl.date(2020, 1, 1) + pl.duration(days=pl.col("day")))


@pytest.mark.parametrize("unit", ["id", "row"])
def test_dates_with_one_offset_for_each_person(tmp_path: Path, unit: str) -> None:
    """The days between visits, whether or not the pseudonym is declared as the person."""
    steps = [{"pseudonymize": {"key": str(tmp_path / "key")}}, {"shift-dates": {"days": 300, "person": "id"}}]
    recipe = {"unit": unit, "columns": {"id": "identifier", "visit": "quasi"}, "steps": steps}
    high, original, released = reported(recipe, visits())
    order = original.with_row_index("row").sort("id", "visit")["row"]
    known, seen = (f[order]["visit"].cast(pl.Int32).to_numpy().reshape(-1, 4) for f in (original, released))
    cost = np.abs(np.diff(known, axis=1)[:, None, :] - np.diff(np.sort(seen, axis=1), axis=1)[None, :, :]).sum(axis=2)
    assert high >= right(cost.astype(float)) > 0.8


@pytest.mark.parametrize("unit", ["id", "row"])
def test_sampled_visits_of_one_pseudonym_have_one_offset(tmp_path: Path, unit: str) -> None:
    """The script knows all visits of everybody and gives a pseudonym to the person whose visits fit at one offset."""
    steps = [
        {"pseudonymize": {"key": str(tmp_path / "key")}},
        {"shift-dates": {"days": 300, "person": "id"}},
        {"sample": {"fraction": 0.75}},
    ]
    recipe = {"unit": unit, "columns": {"id": "identifier", "visit": "quasi"}, "steps": steps}
    frame = visits()
    high, original, released = reported(recipe, frame)
    people = {name: set(days.to_list()) for (name,), days in _days(frame)}
    groups = {name: days.to_list() for (name,), days in _days(released)}
    cost = np.zeros((len(groups), len(people)))
    for i, days in enumerate(groups.values()):
        for j, known in enumerate(people.values()):
            offsets = {first - days[0] for first in known}
            cost[i, j] = -max(sum(day + offset in known for day in days) for offset in offsets)
    whose = dict(zip(released["id"].to_list(), original["id"].to_list(), strict=True))
    group, person = linear_sum_assignment(cost)
    names, found = list(groups), list(people)
    hits = sum(whose[names[i]] == found[j] for i, j in zip(group, person, strict=True))
    assert high >= hits / len(groups) > 0.5


def _days(frame: pl.DataFrame) -> Any:
    return ((name, part["visit"].cast(pl.Int32)) for name, part in frame.group_by("id", maintain_order=True))


def test_whole_households_with_noise() -> None:
    names = ("age", "expend", "income")
    frame = families().filter(pl.col("ori_hid") <= 50).select(pl.col("ori_hid").alias("home"), *names)
    shuffled = pl.Series(np.random.default_rng(1).permutation(51))
    frame = frame.with_columns(home=shuffled.gather(frame["home"]))
    roles = {"home": "household", **dict.fromkeys(names, "quasi")}
    steps = [{"noise": {"variance_ratio": 0.5, "columns": list(names)}}]
    high, original, released = reported({"columns": roles, "steps": steps}, frame)
    cost = squares(original, released, names)
    total, numbers = by_group(cost, original["home"].to_numpy())
    first, second = linear_sum_assignment(total)
    hits = 0
    for i, j in zip(first, second, strict=True):
        own, other = (np.flatnonzero(original["home"].to_numpy() == numbers[n]) for n in (i, j))
        person, row = linear_sum_assignment(cost[np.ix_(own, other)])
        hits += int((own[person] == other[row]).sum())
    assert high >= hits / original.height > 0.3


def test_a_wrong_likelihood_finds_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """The duels have power: with a channel of the wrong fuzziness the attack finds far less."""
    from sfumato.masking.methods.microaggregate import Microaggregate

    right_channels: Callable[..., Any] = Microaggregate.channels
    frame = incomes(150)
    recipe = {
        "columns": quasi(frame),
        "steps": [{"microaggregate": {"k": 5, "fuzzy": 2.0}}],
        "attacks": ["posterior-linkage"],
    }
    good = reported(recipe, frame)[0]
    monkeypatch.setattr(
        Microaggregate,
        "channels",
        lambda published, knowledge: right_channels(
            {**published, "parameters": {**published["parameters"], "aggregate": "median"}}, knowledge
        ),
    )
    assert reported(recipe, frame)[0] < good - 0.2


def test_a_sample_does_not_hide_the_step_before_it() -> None:
    """Sampling changes no value: what microaggregation did to a column is still known."""
    draw = np.random.default_rng(5)
    names = ("a", "b", "c", "d")
    frame = pl.DataFrame({name: draw.normal(size=300) for name in names})
    groups = [{"columns": ["a", "b"], "k": 8}, {"columns": ["c", "d"], "k": 8}]
    recipe = {
        "columns": dict.fromkeys(names, "sensitive"),
        "steps": [{"microaggregate": {"groups": groups}}, {"sample": {"fraction": 0.5}}],
    }
    high, original, released = reported(recipe, frame)
    assert high + 0.02 >= right(squares(original, released, names)) > 0.6


def test_a_kept_order_places_the_people_of_a_sample() -> None:
    """The number of rows before a person is known up to its spread; a script pairs rows and people in both orders."""
    draw = np.random.default_rng(6)
    frame = pl.DataFrame({"a": draw.normal(size=300), "b": draw.normal(size=300)})
    steps = [{"sample": {"fraction": 0.5}}, {"noise": {"columns": ["a", "b"], "variance_ratio": 1}}]
    rows = {values: place for place, values in enumerate(frame.rows())}
    highs, scripts = [], []
    for key in range(4):  # one release alone is within 8 points of the mean
        high, original, released = reported({"columns": quasi(frame), "order": "kept", "steps": steps}, frame, key)
        place = np.array([rows[values] for values in original.rows()])
        cost = squares(original, released, ("a", "b")) / 2 + ((place[:, None] / 2 - np.arange(150)[None, :]) / 6) ** 2
        highs.append(high)
        scripts.append(right(cost))
    assert np.mean(highs) >= np.mean(scripts) > 0.25


@pytest.mark.parametrize("step", [{"rank-swap": {"p": 30}}, {"noise": {"variance_ratio": 1.0}}], ids=["swap", "noise"])
def test_an_attacker_who_does_not_know_the_steps_uses_ranges_and_amounts(step: dict[str, Any]) -> None:
    """Without the method nothing is excluded. The ranges alone find at most one person in five (k = 5)."""
    [(name, parameters)] = step.items()
    frame = families().sample(250, seed=1).select(*GROUPED, *AMOUNTS)
    roles = {**dict.fromkeys(GROUPED, "quasi"), **dict.fromkeys(AMOUNTS, "sensitive")}
    recipe = {
        "columns": roles,
        "models": [{"k-anonymity": 5}],
        "steps": ["mondrian", {name: {**parameters, "columns": list(AMOUNTS)}}],
        "attacks": [{"posterior-linkage": {"transparent": False, "knows": [*GROUPED, *AMOUNTS]}}],
    }
    done = sfumato.protect({"sfumato": 1, "seed": 4, **recipe}, frame, unmet=True, key=bytes(32))
    [found] = [item for item in done.attacks if isinstance(item, Outcome) and item.attack == "posterior-linkage"]
    assert risk(found).low > 0.3


@pytest.mark.parametrize(
    ("steps", "ranks", "least"),
    [
        ([{"rank-swap": {"p": 10}}, {"noise": {"variance_ratio": 0.3}}], True, 0.15),
        ([{"noise": {"variance_ratio": 0.3}}, {"round": {"base": 20_000}}], False, 0.15),
    ],
    ids=["swap and noise", "noise and rounding"],
)
def test_steps_one_after_the_other(steps: list[dict[str, Any]], ranks: bool, least: float) -> None:
    """Channels compose: the attacker who knows all steps finds at least what distances find after all of them."""
    draw = np.random.default_rng(8)
    amounts = draw.uniform(0, 1e6, size=(250, 4)).round()
    frame = pl.DataFrame(amounts, schema=list("abcd"))
    high, original, released = reported(
        {"columns": quasi(frame), "steps": steps, "attacks": ["posterior-linkage"]}, frame
    )
    assert high >= right(squares(original, released, tuple("abcd"), ranks=ranks)) > least


def test_fuzzy_microaggregation_before_a_sample() -> None:
    """The groups are those of everybody, whoever is left out afterwards."""
    frame = incomes(250)
    steps = [{"microaggregate": {"k": 5, "fuzzy": 2.0}}]
    recipe = {"columns": quasi(frame), "attacks": ["posterior-linkage"]}
    whole = reported({**recipe, "steps": steps}, frame)[0]
    sample = reported({**recipe, "steps": [*steps, {"sample": {"fraction": 0.7}}]}, frame)[0]
    assert sample > whole - 0.1 > 0.3


def test_noise_on_centroids() -> None:
    """The groups are those of everybody: the script computes the centroids again, then looks for the nearest row."""
    frame = incomes(250).select(MONEY[:4])
    pairs = (MONEY[:2], MONEY[2:4])
    steps = [
        {"microaggregate": {"groups": [{"columns": list(pair), "k": 5} for pair in pairs]}},
        {"noise": {"variance_ratio": 0.1}},
    ]
    recipe = {"columns": quasi(frame), "steps": steps, "attacks": ["posterior-linkage"]}
    high, original, released = reported(recipe, frame)
    centroids = original
    for pair in pairs:
        points = frame.select(pair).to_numpy().astype(float)
        groups = np.asarray(mdav_plain((points - points.mean(axis=0)) / points.std(axis=0), 5))
        means = np.array([points[groups == group].mean(axis=0) for group in range(groups.max() + 1)])[groups]
        own = dict(zip(frame.select(pair).rows(), means.tolist(), strict=True))
        values = [own[row] for row in original.select(pair).rows()]
        centroids = centroids.with_columns(pl.DataFrame(values, schema=pair, orient="row"))
    assert high >= right(squares(centroids, released, MONEY[:4])) > 0.3


def test_noisy_columns_are_denoised_by_their_correlation() -> None:
    """The script: moments of the release less the published noise, then a regression and the row that fits best."""
    draw, names = np.random.default_rng(1), ("a", "b", "c", "d")
    common = draw.normal(size=(400, 1))
    frame = pl.DataFrame(100 + 10 * (0.9**0.5 * common + 0.1**0.5 * draw.normal(size=(400, 4))), schema=names)
    recipe = {
        "sfumato": 1,
        "seed": 4,
        "columns": {**dict.fromkeys("abc", "quasi"), "d": "sensitive"},
        "steps": [{"noise": {"variance_ratio": 0.5}}],
        "attacks": [{"posterior-inference": {"secret": "d", "tolerance": 0.05}}],
    }
    done = sfumato.protect(recipe, frame, unmet=True, key=bytes(32))
    [found] = [one for one in done.attacks if isinstance(one, Outcome) and one.attack == "posterior-inference"]
    assert done.lineage is not None
    released = done.release.table.frame.select(names).to_numpy()
    known = frame[done.lineage.rows].to_numpy()
    spread = np.cov(released, rowvar=False)
    spread -= np.diag(np.diag(spread)) / 3
    weight = np.linalg.solve(spread[:3, :3], spread[:3, 3])
    line = released[:, 3].mean() + (known[:, :3] - released[:, :3].mean(axis=0)) @ weight
    script = float((np.abs(line - known[:, 3]) <= 0.05 * known[:, 3]).mean())
    assert risk(found).high >= script > 0.6
    assert found.main.rate > script - 0.03
