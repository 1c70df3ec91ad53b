"""Risk of files of any size: computed from equivalence classes, or the evaluation of a release in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sfumato
from sfumato.attacks import Outcome
from sfumato.dataset import Schema
from sfumato.engines.choice import masking_engine
from sfumato.engines.stored_table import StoredTable
from sfumato.errors import OutOfMemory
from sfumato.evaluation.class_queries import ClassCounter, SecretCounts
from sfumato.rng import Rng

RECIPE: dict[str, Any] = {
    "sfumato": 1,
    "seed": 3,
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
        "town": "quasi",
        "illness": "sensitive",
        "pay": "plain",
    },
    "models": [{"k-anonymity": 4}],
    "steps": [{"generalize": {"suppression": 0.05, "suppressed": "star"}}],
}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    draw = Rng(5).generator
    rows = 900
    frame = pl.DataFrame(
        {
            "age": draw.integers(20, 80, rows),
            "town": draw.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "illness": draw.choice(["flu", "cold", "gout"], rows, p=[0.5, 0.3, 0.2]),
            "pay": draw.normal(100, 10, rows),
        }
    )
    frame.with_columns(pl.when(pl.int_range(pl.len()) % 7 > 0).then("illness").alias("illness")).write_parquet(
        tmp_path / "people.parquet"
    )
    return tmp_path / "people.parquet"


def outcomes(done: Any) -> dict[str, Any]:
    return {
        item.attack if isinstance(item, Outcome) else str(item.facts["attack"]): item
        for item in done.evaluation.attacks
    }


def test_every_engine_gives_the_same_evaluation(people: Path) -> None:
    """The release of an engine has the rows of the release in memory, in another order."""
    small, large = (sfumato.protect(RECIPE, people, engine=engine, n_targets=200) for engine in ("memory", "duckdb"))
    assert large.lineage.rows.tolist() != small.lineage.rows.tolist()
    a, b = small.to_dict(), large.to_dict()
    for key in ("rows", "original_rows", "undeclared", "verdicts", "limits"):
        assert a[key] == b[key]
    names = [entry["attack"] for entry in a["attacks"]]
    assert [entry["attack"] for entry in b["attacks"]] == names
    assert names == ["linkage", "attribute-linkage", "membership", "value-presence", "any-columns", "any-columns"]
    assert [entry["attack"] for entry in b["attacks_before"]] == [entry["attack"] for entry in a["attacks_before"]]
    assert [entry["measure"] for entry in b["measures"]] == [entry["measure"] for entry in a["measures"]]
    exact = {entry["measure"]: entry["value"] for entry in a["measures"] if entry["measure"] in ("ncp", "uniqueness")}
    assert exact.items() <= {entry["measure"]: entry["value"] for entry in b["measures"]}.items()


def test_computed_risks_agree_with_the_attacks(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = outcomes(sfumato.protect(RECIPE, people, engine="memory", n_targets=900))
    monkeypatch.setattr("sfumato.evaluation.class_risk.CELL_BYTES", 10**9)
    large = sfumato.protect(RECIPE, people, engine="duckdb")
    computed = outcomes(large)
    assert list(computed) == ["linkage", "attribute-linkage", "any-columns", "membership", "value-presence"]
    for name in ("membership", "value-presence"):  # they need the rows, so they are not judged
        assert isinstance(computed[name], OutOfMemory)
        del computed[name]
    for name, outcome in computed.items():
        assert isinstance(outcome, Outcome)
        other = sampled[name]
        assert isinstance(other, Outcome)
        assert outcome.main.rate == pytest.approx(other.main.rate, abs=0.05)
        assert outcome.baseline is not None
        assert other.baseline is not None
        assert outcome.baseline.rate == pytest.approx(other.baseline.rate, abs=0.05)
    released = large.release.table.frame
    shown = released.filter((pl.col("age") != "*") & pl.col("illness").is_not_null())
    most = shown.group_by("age", "town", "illness").len().group_by("age", "town").agg(pl.col("len").max())["len"].sum()
    attribute = computed["attribute-linkage"]
    assert (attribute.main.hits, attribute.main.trials) == (most, shown.height)
    assert attribute.baseline.hits == shown["illness"].value_counts()["count"].max()


def test_the_report_of_a_computed_risk_names_no_interval(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.evaluation.class_risk.CELL_BYTES", 10**9)
    large = sfumato.protect(RECIPE, people, engine="duckdb")
    document = large.save(tmp_path / "release", unmet=True)
    assert document["original_rows"] == sfumato.data.read(people).rows
    internal = (tmp_path / "release-private" / "report.html").read_text(encoding="utf-8")
    assert "computed for all records, not sampled" in internal
    assert "count of the original not shown" not in internal
    assert "count of the original not shown" in (tmp_path / "release" / "report.html").read_text(encoding="utf-8")


def test_altered_quasi_identifiers_have_no_class_risk(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.evaluation.class_risk.CELL_BYTES", 10**9)
    columns = {name: role for name, role in RECIPE["columns"].items() if name != "pay"}
    noisy = {
        **RECIPE,
        "columns": {**columns, "pay": "identifier"},
        "steps": [{"rank-swap": {"p": 5, "columns": ["age"]}}],
        "models": [],
        "limits": {"risk": 0.5},
    }
    done = sfumato.protect(noisy, people, engine="duckdb")
    found = outcomes(done)
    telling = found.pop("any-columns")
    assert all(isinstance(item, OutOfMemory) for item in found.values())
    assert all("altered" in str(found[name]) for name in ("linkage", "attribute-linkage"))
    assert "distance-linkage" in found
    assert isinstance(telling, Outcome)
    assert "age" not in telling.knows
    assert [(limit.value, limit.met) for limit in done.limits] == [(None, None)]
    harmless = {**RECIPE, "steps": [{"noise": {"variance_ratio": 0.1, "columns": ["pay"]}}, *RECIPE["steps"]]}
    found = outcomes(sfumato.protect(harmless, people, engine="duckdb"))
    assert all(isinstance(found[name], Outcome) for name in ("linkage", "attribute-linkage", "any-columns"))


def test_nobody_knows_a_pseudonym(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.read_parquet(people).with_columns(name=pl.format("p{}", pl.int_range(pl.len())), pay=pl.lit(1.0))
    frame.write_parquet(people)
    named = {**RECIPE, "columns": {**RECIPE["columns"], "name": "identifier"}}
    named["steps"] = [{"pseudonymize": {"key": str(tmp_path / "key")}}, *RECIPE["steps"]]
    small = sfumato.protect(named, people, engine="memory", n_targets=200)
    monkeypatch.setattr("sfumato.evaluation.class_risk.CELL_BYTES", 10**9)
    large = sfumato.protect(named, people, engine="duckdb", n_targets=200, key=small.key)
    risks = [
        {entry.setting: entry.main.rate for entry in done.evaluation.attacks if getattr(entry, "any_columns", False)}
        for done in (small, large)
    ]
    assert all("name" not in entry.knows for entry in large.evaluation.attacks if isinstance(entry, Outcome))
    assert risks[0] == pytest.approx(risks[1], abs=0.02)  # rows that show nothing are looked for in memory only


def test_a_release_without_quasi_identifiers_is_judged(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.evaluation.class_risk.CELL_BYTES", 10**9)
    plain = {**RECIPE, "columns": {"illness": "sensitive"}, "models": [], "steps": [{"round": {"base": 10, "columns":
             ["pay"]}}]}  # fmt: skip
    done = sfumato.protect(plain, people, engine="duckdb")
    assert "no quasi-identifier" in str(outcomes(done)["linkage"])
    reasons = {result.measure: result.reason for result in done.evaluation.measures if result.value is None}
    assert len(reasons) == len(done.evaluation.measures)
    assert "declared quasi-identifier" in reasons.pop("class-sizes")
    assert "needs all rows in memory" in reasons["ncp"]


def secret_counts(path: Path) -> SecretCounts:
    with masking_engine("duckdb", memory="1GB").workspace(path, numbered=True) as workspace:
        table = StoredTable.open(workspace, Schema(columns={}), original=False)
        return ClassCounter(table=table).secret(["q"], "s")


def test_suppressed_rows_form_no_class(tmp_path: Path) -> None:
    frame = pl.DataFrame({"q": ["a", "a", "b", "*", "*"], "s": ["x", "y", "x", "x", "y"]})
    frame.write_parquet(tmp_path / "x.parquet")
    counts = secret_counts(tmp_path / "x.parquet")
    assert (counts.rows, counts.common_in_class, counts.common) == (3, 2, 2)
    frame.filter(pl.col("q") == "*").write_parquet(tmp_path / "y.parquet")
    counts = secret_counts(tmp_path / "y.parquet")
    assert (counts.rows, counts.common_in_class, counts.common) == (2, 1, 1)
