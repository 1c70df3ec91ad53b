"""Derived columns: a released column from which a masked one can be computed is found, and independent ones are not."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.dataset import Role
from sfumato.errors import Unmet
from sfumato.evaluation.checks.derived_columns import DERIVED
from sfumato.profiling import derived as derived_module
from sfumato.profiling import propose
from sfumato.profiling.derived import find_determinations
from sfumato.release import State

ROWS = 2000


def people(seed: int = 1, rows: int = ROWS) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "income": draw.lognormal(10, 1, rows).round(2),
            "race": draw.choice(["white", "black", "asian", "other"], rows, p=[0.6, 0.2, 0.15, 0.05]),
            "height": draw.normal(170, 10, rows).round(1),
            "mass": draw.normal(75, 12, rows).round(1),
            "day": [dt.date(2000, 1, 1) + dt.timedelta(days=int(n)) for n in draw.integers(0, 3000, rows)],
            "other": draw.normal(0, 1, rows),
            "coin": draw.integers(0, 2, rows),
        }
    )


TABLE = people()
AGE, INCOME, RACE, DAY = pl.col("age"), pl.col("income"), pl.col("race"), pl.col("day")
ALONE = {
    "square": ("age", AGE**2),
    "log": ("income", INCOME.log().round(4)),
    "months": ("age", AGE * 12 + 7),
    "negative": ("age", -AGE),
    "text": ("age", AGE.cast(pl.String)),
    "label": ("age", (AGE * 7919 % 97).cast(pl.String) + "y"),
    "code": ("race", RACE.replace_strict({"white": 3, "black": 1, "asian": 4, "other": 2})),
    "rounded": ("income", (INCOME / 100).round(0)),
    "noisy": ("income", INCOME * (1 + 0.01 * pl.col("other").sin())),
    "two_year_bands": ("age", AGE // 2),
    "folded": ("age", (AGE - 50) ** 3),
    "calendar": ("day", DAY.dt.strftime("%d.%m.%Y").str.to_date("%d.%m.%Y").dt.epoch("d")),
    "year_month": ("day", DAY.dt.strftime("%Y%m").cast(pl.Int64)),
}
SEVERAL = {
    "sum": ("income", {"total": INCOME + pl.col("mass") * 1000, "mass": pl.col("mass")}),
    "difference": ("mass", {"gain": pl.col("mass") - pl.col("height"), "height": pl.col("height")}),
    "ratio": ("mass", {"bmi": (pl.col("mass") / (pl.col("height") / 100) ** 2).round(2), "height": pl.col("height")}),
    "dummies": ("race", {f"is_{name}": (name == RACE).cast(pl.Int8) for name in ("white", "black", "asian")}),
    "date parts": ("day", {"y": DAY.dt.year(), "m": DAY.dt.month(), "d": DAY.dt.day()}),
}


@pytest.mark.parametrize("name", ALONE)
def test_one_column_that_determines_another_is_found(name):
    target, expression = ALONE[name]
    known = TABLE.select(expression.alias(name), "coin", pl.col("other").shuffle(seed=2))
    [found] = find_determinations(known, TABLE.select(target))
    assert (found.columns, found.target) == ((name,), target)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_columns_that_determine_another_are_found(name):
    target, expressions = SEVERAL[name]
    known = TABLE.select(*[expression.alias(column) for column, expression in expressions.items()], "coin", "other")
    [found] = find_determinations(known, TABLE.select(target))
    assert set(found.columns) <= set(expressions)
    assert len(found.columns) == max(2, len(expressions) - (name == "date parts"))  # year and month nearly suffice


def _formulas(exceptions: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pay = (total - 1000 bonus) / months, and a difference that is often 0; some rows are exceptions."""
    draw = np.random.default_rng(8)
    months, bonus = draw.integers(2, 13, ROWS), draw.integers(0, 30, ROWS)
    pay = draw.lognormal(8, 0.7, ROWS).round()
    gain = np.where(draw.random(ROWS) < 0.42, 0, draw.lognormal(7, 1, ROWS).round())
    base = draw.lognormal(9, 0.6, ROWS).round()
    other = draw.random(ROWS) < exceptions
    frame = pl.DataFrame({"months": months, "bonus": bonus, "base": base, "noise": draw.normal(size=ROWS)})
    frame = frame.with_columns(total=pl.Series(pay * months + 1000 * bonus), now=pl.Series(base + gain))
    strange = draw.lognormal(7, 1.5, ROWS).round()
    hidden = pl.DataFrame({"pay": np.where(other, strange, pay), "gain": np.where(other, strange, gain)})
    return frame, hidden


@pytest.mark.parametrize("exceptions", [0.0, 0.005, 0.2])
def test_formulas_are_found_whatever_the_exceptions_are(exceptions: float) -> None:
    known, hidden = _formulas(exceptions)
    found = {one.target: one for one in find_determinations(known, hidden)}
    assert set(found["pay"].columns) == {"total", "bonus", "months"}
    assert set(found["gain"].columns) == {"base", "now"}
    assert found["pay"].computable
    assert found["pay"].holds == pytest.approx(1 - exceptions, abs=0.02)
    assert ("of the rows" in str(found["pay"])) is (exceptions > 0)


def test_a_formula_that_holds_in_few_rows_is_none() -> None:
    known, hidden = _formulas(0.7)
    assert find_determinations(known, hidden) == ()


def test_a_masked_secret_that_follows_by_a_formula_is_a_verdict() -> None:
    known, hidden = _formulas(0.005)
    frame = known.with_columns(hidden["pay"])
    roles = {**dict.fromkeys(known.columns, "plain"), "noise": "quasi", "pay": "sensitive"}
    recipe = {
        "sfumato": 1,
        "columns": roles,
        "steps": [{"noise": {"variance_ratio": 1.0, "columns": ["pay"]}}],
        "attacks": ["linkage"],
    }
    done = sfumato.protect(recipe, frame, seed=1, key=bytes(32), unmet=True)
    [verdict] = [one for one in done.verdicts if one.model == DERIVED]
    assert verdict.state is State.FAILS
    assert "`pay`" in str(verdict.reason)


def test_missing_values_hide_no_derived_column():
    gaps = pl.when(pl.col("other") > 1).then(None)
    known = TABLE.select(gaps.otherwise(AGE**2).alias("square"), gaps.otherwise(pl.col("mass") - INCOME).alias("rest"))
    found = find_determinations(known.with_columns(TABLE["income"]), TABLE.select("age", "mass"))
    assert [(d.columns, d.target) for d in found] == [(("square",), "age"), (("income", "rest"), "mass")] or [
        (set(d.columns), d.target) for d in found
    ] == [({"square"}, "age"), ({"income", "rest"}, "mass")]


def test_independent_columns_raise_no_alarm():
    """120 tables of 60 to 3,000 rows, 12 x 12 columns of ten shapes each: no finding at all."""
    alarms = []
    for seed in range(120):
        draw = np.random.default_rng([seed, 7])
        rows = int(draw.choice([60, 200, 3000], p=[0.5, 0.4, 0.1]))

        def columns(prefix: str, draw=draw, rows=rows) -> pl.DataFrame:
            return pl.DataFrame(
                {
                    f"{prefix}_unique": draw.permutation(rows),
                    f"{prefix}_sorted": np.sort(draw.normal(size=rows)) if prefix == "a" else draw.normal(size=rows),
                    f"{prefix}_normal": draw.normal(size=rows),
                    f"{prefix}_skewed": draw.lognormal(0, 2, rows),
                    f"{prefix}_zeros": np.where(draw.random(rows) < 0.8, 0, draw.lognormal(0, 1, rows)),
                    f"{prefix}_coin": draw.integers(0, 2, rows),
                    f"{prefix}_rare": (draw.random(rows) < 0.02).astype(int),
                    f"{prefix}_codes": draw.integers(0, 30, rows),
                    f"{prefix}_words": draw.choice(list("abcde"), rows),
                    f"{prefix}_names": [f"n{n}" for n in draw.integers(0, rows // 2, rows)],
                }
            )

        alarms += [(seed, str(found)) for found in find_determinations(columns("a"), columns("b"))]
    assert alarms == []


def test_correlated_columns_raise_no_alarm():
    """A correlation of 0.98, or a category that is right nine times in ten, does not determine."""
    draw = np.random.default_rng(3)
    near = TABLE["height"] + draw.normal(0, 2, ROWS)
    told = np.where(draw.random(ROWS) < 0.9, TABLE["race"].to_numpy(), "white")
    known = pl.DataFrame({"near": near, "told": told, "decade": TABLE["age"] // 20})
    assert find_determinations(known, TABLE.select("height", "race", "age")) == ()


def test_a_key_of_many_values_is_found_on_a_large_table(monkeypatch):
    """Rows are examined in windows of equal and neighbouring values; a plain sample would see each town once."""
    draw = np.random.default_rng(5)
    town = draw.integers(0, 20_000, 60_000)
    county = draw.integers(0, 300, 20_000)[town]
    known = pl.DataFrame({"town": town, "noise": draw.normal(size=60_000), "zone": town // 50})
    monkeypatch.setattr(derived_module, "_ROWS", 2_000)
    found = find_determinations(known, pl.DataFrame({"county": [f"c{n}" for n in county]}))
    assert [d.columns for d in found] == [("town",)]


def test_what_the_masked_column_shows_anyway_is_no_finding():
    bands = TABLE.select((AGE // 5).alias("bands"))
    shown = {"age": TABLE.select((AGE // 5 * 5).cast(pl.String)).to_series()}
    assert find_determinations(bands, TABLE.select("age"))
    assert find_determinations(bands, TABLE.select("age"), masked=shown) == ()
    assert find_determinations(bands, TABLE.select("age"), masked={"age": pl.Series(["*"] * ROWS)})


RECIPE = """\
sfumato: 1
columns:
  age: {role: quasi, hierarchy: {intervals: [20]}}
  asq: {role: plain, decided_by: A. Steward, reason: synthetic}
  income: sensitive
models: [k-anonymity: 5]
steps: [{generalize: {suppression: 0.1, lowest: {age: 1}}}]
"""


@pytest.fixture(scope="module")
def squared() -> pl.DataFrame:
    return TABLE.select("age", (AGE**2).alias("asq"), "income").head(600)


def test_protect_refuses_a_release_that_keeps_the_square(squared, tmp_path):
    done = sfumato.protect(RECIPE, squared, seed=1, n_targets=50)
    [verdict] = [verdict for verdict in done.verdicts if verdict.model == DERIVED]
    assert verdict.state == "fails"
    assert "`asq` determines `age`" in verdict.reason
    with pytest.raises(Unmet, match="asq"):
        done.save(tmp_path / "release")


def test_dropping_the_age_does_not_hide_it_beside_its_square(squared):
    dropped = RECIPE.replace("age: {role: quasi, hierarchy: {intervals: [20]}}", "age: drop")
    dropped = dropped.replace("steps: [{generalize: {suppression: 0.1, lowest: {age: 1}}}]", "steps: []")
    done = sfumato.protect(dropped.replace("models: [k-anonymity: 5]", "models: []"), squared, seed=1, n_targets=50)
    assert DERIVED in [verdict.model for verdict in done.verdicts]
    near = squared.with_columns(asq=pl.col("age") // 5)  # a coarser copy of a column that is only superfluous
    done = sfumato.protect(dropped.replace("models: [k-anonymity: 5]", "models: []"), near, seed=1, n_targets=50)
    assert DERIVED not in [verdict.model for verdict in done.verdicts]


@pytest.mark.parametrize("role", ["quasi", "drop"])
def test_protected_together_it_may_leave(squared, role):
    done = sfumato.protect(RECIPE.replace("role: plain", f"role: {role}"), squared, seed=1, n_targets=50)
    assert done.unmet == ()


def test_masked_until_it_determines_no_more_it_may_leave(squared):
    coarse = RECIPE.replace("steps: [", "steps: [{round: {columns: [asq], base: 3000}}, ")
    done = sfumato.protect(coarse, squared, seed=1, n_targets=50)
    assert [verdict.model for verdict in done.verdicts] == ["k-anonymity"]


def test_check_and_attack_find_it_on_the_release(squared, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    squared.write_csv("people.csv")
    (tmp_path / "r.yaml").write_text(RECIPE)
    assert main(["protect", "r.yaml", "people.csv", "--unmet", "--seed", "1", "--targets", "50"]) == 1
    results = sfumato.check("release", original="people.csv")
    assert [v.model for v in results if not v.holds] == [DERIVED]
    lone = sfumato.check("release/data.csv", original="people.csv", recipe="r.yaml")
    assert [v.model for v in lone if not v.holds] == [DERIVED]
    assert [v.state for v in sfumato.check("release") if not v.holds] == [State.NOT_CHECKED]  # nothing to compare with
    attacks = sfumato.attack("release", original="people.csv", attacks=["linkage"], seed=1)
    assert [found["columns"] for found in attacks.to_dict()["derived"]] == [["asq"]]
    assert "`asq` determines `age`" in str(attacks)


def test_an_engine_finds_it_too(squared, tmp_path):
    squared.write_parquet(tmp_path / "people.parquet")
    done = sfumato.protect(RECIPE, tmp_path / "people.parquet", engine="duckdb", seed=1, n_targets=50)
    assert DERIVED in [verdict.model for verdict in done.verdicts]


def test_init_proposes_to_protect_derived_columns_together():
    frame = TABLE.select("age", (AGE**2).alias("v2"), pl.col("other").alias("v3"), pl.col("coin").alias("v4"))
    proposal = propose(frame)
    columns = {column.name: column for column in proposal.columns}
    assert columns["v2"].role is Role.QUASI
    assert "`v2` determines `age`" in columns["v2"].reason
    assert columns["v4"].role is Role.UNDECIDED
    assert [found.columns for found in proposal.derived] == [("v2",)]
    assert proposal.to_dict()["derived"][0]["target"] == "age"
    assert "determines `age`" in proposal.recipe(k=5)
