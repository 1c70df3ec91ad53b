"""Errors of published figures against exact ones, at the door and by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.measures.figure_errors import figure_errors

PEOPLE = pl.DataFrame(
    {"town": ["a"] * 7 + ["b"] * 11 + ["c"] * 2, "sex": ["F", "M"] * 10, "age": [20 + 3 * i for i in range(20)]}
)
DATA = """
sfumato: 1
dataset: people
data: people.csv
unit: row
columns:
  town: {role: quasi, kind: category, domain: {values: [a, b, c]}}
  sex: {role: quasi, kind: category, domain: {values: [F, M]}}
  age: {role: quasi, kind: integer, domain: {low: 0, high: 100}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    PEOPLE.write_csv(tmp_path / "people.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(plan: str) -> dict[str, sfumato.measures.MeasureResult]:
    Path("plan.yaml").write_text(DATA + plan)
    sfumato.protect("plan.yaml").save("out", unmet=True)
    return {one.measure: one for one in sfumato.measure("out", original="plan.yaml")}


def test_suppressed_cells_are_missing_and_the_others_exact() -> None:
    found = measured("tables: [[town, sex]]\nsensitive: {threshold: 3}\n")
    shown = pl.read_csv("out/tables.csv")["value"]
    assert found["suppressed-figures"].value == shown.null_count() / len(shown) > 0
    assert found["relative-error"].value == 0


def test_rounding_errors_are_those_of_the_cells() -> None:
    found = measured("tables: [[town]]\nround: 5\n")
    shown = dict(pl.read_csv("out/tables.csv").select(pl.col("town").fill_null("all"), "value").rows())
    exact = {"a": 7, "b": 11, "c": 2, "all": 20}
    errors = {name: abs(shown[name] - value) for name, value in exact.items()}
    assert found["suppressed-figures"].value == 0
    assert found["relative-error"].value == pytest.approx(sum(errors.values()) / sum(exact.values()))
    assert found["relative-error"].detail["largest_error"] == {"tables": max(errors.values())}


def test_statistics_are_compared_figure_by_figure() -> None:
    found = measured("statistics: [{of: age, by: [sex]}, {of: age, by: [town]}]\nthreshold: 3\n")
    assert found["suppressed-figures"].value is not None
    assert found["suppressed-figures"].value > 0
    assert set(found["relative-error"].columns) <= {f"age: {name}" for name in ("count", "total", "mean", "variance")}
    assert found["relative-error"].value == pytest.approx(0)


def test_noise_of_tables_with_a_guarantee() -> None:
    assert sfumato.set_budget("ledger.db", dataset="people", rho=200) is not None
    Path("areas.csv").write_text("town\na\nb\nc\nd\n")
    plans = {
        "noisy": "statistics: [{of: age, by: [sex]}]\nbudget: {rho: 1/100}\n",
        "clear": "statistics: [{of: age, by: [sex]}]\nbudget: {rho: 50}\n",
        "areas": "areas: {data: areas.csv, levels: [town]}\nby: [sex]\nlevels: [1, 1]\n"
        "queries: [{by: [sex], share: 1}]\ntables: [{level: town, by: [sex]}, {by: [sex]}]\nbudget: {rho: 50}\n",
    }
    values = {}
    for name, plan in plans.items():
        made = sfumato.protect(DATA + "ledger: ledger.db\n" + plan)
        values[name] = {one.measure: one for one in sfumato.measure(made)}["relative-error"]
    assert values["clear"].value < 0.05 < values["noisy"].value
    assert values["areas"].value < 0.05
    assert set(values["areas"].columns) == {"town-sex", "all-sex"}


def test_a_group_without_people_has_count_zero_and_no_mean() -> None:
    keys = {"statistic": [1, 1], "of": ["age"] * 2, "group": ["town = z"] * 2, "figure": ["count", "mean"]}
    shown = pl.DataFrame({**keys, "value": [3.0, 40.0]})
    missing, error = figure_errors({"statistics": shown}, {"statistics": shown.clear()})
    assert (missing.value, error.value) == (0, None)
    assert error.reason
    assert error.detail["largest_error"] == {"age: count": 3.0}
