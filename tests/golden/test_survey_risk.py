"""Counting and survey risk: numbers of sdcMicro, ARX and hand counts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import hyp2f1

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.population_uniques import Sizes, pitman, snb, zayatz
from sfumato.measures import MeasureResult, ReleasePair, judge
from sfumato.measures.base import Measure
from sfumato.measures.disclosure._population import individual_risk
from sfumato.registry import registry
from sfumato.release import Release
from sfumato.rng import Rng

DATA = Path(__file__).parents[1] / "samples"
KEYS = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")


def pair(frame: pl.DataFrame, quasi: tuple[str, ...], **roles: Role) -> ReleasePair:
    columns = {name: Column(role=Role.QUASI) for name in quasi} | {
        name: Column(role=role) for name, role in roles.items()
    }
    original = Data.of(Table(frame=frame), Schema(columns=columns))
    return ReleasePair(original=original, release=Release(table=original.table, manifest={}))


def run(name: str, where: ReleasePair, **parameters: object) -> MeasureResult:
    part = registry("measure").get(name).build(parameters)
    assert isinstance(part, Measure)
    return judge(part, where, rng=Rng(1))


@pytest.fixture(scope="module")
def survey() -> ReleasePair:
    frame = pl.read_csv(DATA / "sdcmicro" / "testdata.csv")
    return pair(frame, KEYS, sampling_weight=Role.WEIGHT, ori_hid=Role.HOUSEHOLD)


def test_individual_risk_of_the_literature_example() -> None:
    frame = pl.read_csv(DATA / "sdcmicro" / "francdat.csv")
    fits = np.array([2, 2, 2, 1, 1, 1, 1, 2])
    population = np.array([110, 84.5, 84.5, 17, 541, 8, 5, 110])
    published = [0.01714426, 0.02204233, 0.02204233, 0.1770758, 0.01165448, 0.2970631, 0.4023595, 0.01714426]
    assert individual_risk(fits, population) == pytest.approx(published, abs=5e-8)
    found = run("individual-risk", pair(frame, ("Key1", "Key2", "Key3", "Key4"), w=Role.WEIGHT))
    assert found.detail["expected"] == pytest.approx(sum(published), abs=1e-6)


def test_survey_counts_and_expected_reidentifications(survey: ReleasePair) -> None:
    found = run("individual-risk", survey, formula="sdcmicro")
    assert (found.detail["below_2"], found.detail["below_3"], found.detail["below_5"]) == (157, 281, 458)
    assert found.detail["expected"] == pytest.approx(10.7783, abs=5e-5)
    exact = run("individual-risk", survey)
    assert exact.detail["expected"] == pytest.approx(10.775525, abs=5e-7)


def test_household_risk(survey: ReleasePair) -> None:
    assert run("household-risk", survey, formula="sdcmicro").detail["expected"] == pytest.approx(51.81293, abs=5e-5)


@pytest.mark.parametrize("fits", [1, 2, 3, 5, 20, 59, 61, 200])
@pytest.mark.parametrize("share", [0.001, 0.05, 0.3, 0.49, 0.5, 0.9, 0.999])
def test_individual_risk_is_the_posterior_mean(fits: int, share: float) -> None:
    """Checked against the hypergeometric function of the paper, and its defining sum where that overflows."""
    mine = individual_risk(np.array([fits]), np.array([fits / share]))[0]
    if fits <= 20:
        assert mine == pytest.approx(share**fits / fits * hyp2f1(fits, fits, fits + 1, 1 - share), rel=1e-8)
    size = np.arange(fits, int(60 * fits / share))
    from scipy.stats import nbinom

    assert mine == pytest.approx(float((nbinom.pmf(size - fits, fits, share) / size).sum()), rel=1e-6)


@pytest.fixture(scope="module")
def adult_sizes() -> Sizes:
    """Class sizes of Adult (30,162 rows, nine quasi-identifiers), counted once and kept as a table."""
    table = pl.read_csv(DATA / "adult_class_sizes.csv")
    return Sizes(size=table["size"].to_numpy(), count=table["classes"].to_numpy(), fraction=0.1)


def test_population_uniqueness_of_adult(adult_sizes: Sizes) -> None:
    assert (adult_sizes.classes, adult_sizes.unique, adult_sizes.rows) == (19502, 15512, 30162)
    assert zayatz(adult_sizes) == pytest.approx(0.320740, abs=5e-7)
    assert pitman(adult_sizes) == pytest.approx(0.276850, abs=5e-7)
    assert adult_sizes.classes / adult_sizes.rows == pytest.approx(0.646575, abs=5e-7)


def test_slide_negative_binomial_recovers_its_own_model() -> None:
    """A population drawn from the model: the estimate lies within 3 % of the true share of uniques."""
    draw = np.random.default_rng(4)
    population = 1 + draw.negative_binomial(0.8, 0.25, 60_000)
    sample = draw.binomial(population, 0.3)
    truth = (population == 1).sum() / population.sum()
    estimate = snb(Sizes.of(sample[sample > 0], float(sample.sum() / population.sum())))
    assert estimate == pytest.approx(truth, rel=0.03)


def test_wildcards_are_counted_in_every_class_they_fit() -> None:
    frame = pl.DataFrame({"a": ["x", "x", "y", None], "b": ["1", "1", "1", "1"]})
    schema = Schema(columns={"a": Column(role=Role.QUASI, missing="wildcard"), "b": Column(role=Role.QUASI)})
    original = Data.of(Table(frame=frame), schema)
    found = run("class-sizes", ReleasePair(original=original, release=Release(table=original.table, manifest={})))
    assert found.value == 2.0
    assert found.detail["histogram"] == [
        {"low": 2, "high": 2, "classes": 1, "rows": 1},
        {"low": 3, "high": 4, "classes": 2, "rows": 3},
    ]


def test_log_linear_risk_by_hand() -> None:
    """Nine rows in two columns; the one unique row's cell has 3 x 3 / 9 = 1 expected row, 4 in a population of 36.

    Given the row itself, the others of its cell are Poisson with mean 4 x (1 - 1/4) = 3: it is alone with probability
    e^-3, and 1 / F is 1 / (1 + others) on average.
    """
    cells = [(0, 1)] * 2 + [(1, 0)] * 2 + [(0, 0)] + [(2, 2)] * 4
    frame = pl.DataFrame(cells, schema=["a", "b"], orient="row")
    found = run("log-linear-risk", pair(frame, ("a", "b")), fraction=0.25)
    chances = [math.exp(-3) * 3**others / math.factorial(others) for others in range(60)]
    assert found.detail["sample_uniques"] == 1
    assert found.detail["tau1"] == pytest.approx(math.exp(-3))
    assert found.detail["tau2"] == pytest.approx(sum(chance / (1 + others) for others, chance in enumerate(chances)))


def test_log_linear_risk_orders_by_dependence() -> None:
    """Independent columns: main effects and pairs agree; the model never claims more uniques than there are."""
    draw = np.random.default_rng(0)
    frame = pl.DataFrame({name: draw.integers(0, 12, 3000) for name in ("a", "b", "c")})
    both = pair(frame, ("a", "b", "c"))
    main = run("log-linear-risk", both, fraction=0.2)
    pairs = run("log-linear-risk", both, fraction=0.2, effects="pairs")
    assert main.detail["sample_uniques"] == pairs.detail["sample_uniques"]
    assert main.detail["tau1"] <= main.detail["tau2"] <= main.detail["sample_uniques"]
    assert pairs.detail["tau2"] == pytest.approx(main.detail["tau2"], rel=0.25)
