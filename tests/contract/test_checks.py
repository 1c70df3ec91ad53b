"""Contract of checks: one list of verdicts in memory, on an engine and in ``check``; what lacks is never a tick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.data import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.evaluation.check import Check, Subject, run_checks
from sfumato.masking import KAnonymity, LDiversity
from sfumato.registry import registry
from sfumato.release import Lineage, Release, State

ENGINES = ("memory", "duckdb")


def panel(people: int = 60, rows: int = 5) -> pl.DataFrame:
    """Several rows a person: classes of five rows are one person's. ``born`` tells the age."""
    draw = np.random.default_rng(3)
    persons = pl.DataFrame(
        {
            "person": [f"p{i}" for i in range(people)],
            "age": draw.integers(20, 80, people),
            "town": draw.choice(["a", "b", "c", "d"], people),
        }
    )
    repeated = persons.select(pl.all().repeat_by(rows)).explode(pl.all())
    return repeated.with_columns(
        born=2026 - pl.col("age"),
        ill=pl.Series(draw.choice(["no", "yes", "unknown"], people * rows)),
        pay=pl.Series(draw.normal(3000, 500, people * rows).round(0)),
    ).sample(fraction=1.0, shuffle=True, seed=5)


COLUMNS: dict[str, Any] = {
    "person": "drop",
    "age": {"role": "quasi", "hierarchy": {"intervals": [20, 60]}},
    "town": "quasi",
    "born": "drop",
    "ill": "sensitive",
    "pay": "drop",
}


def recipe(**changes: Any) -> dict[str, Any]:
    """A recipe for the panel; one attack is enough where only verdicts are compared."""
    columns = {**COLUMNS, **changes.pop("columns", {})}
    base = {"sfumato": 1, "models": [{"k-anonymity": 5}], "steps": ["generalize"], "attacks": ["linkage"]}
    return {**base, "columns": columns, "measures": ["class-sizes"], **changes}


CASES: dict[str, tuple[dict[str, Any], dict[str, State]]] = {
    "nothing wrong": (recipe(), {}),
    "few people in a class": (
        recipe(unit="person", columns={"age": {"role": "quasi"}}, steps=[]),
        {"people per equivalence class": State.FAILS, "people with several rows": State.NOT_CHECKED},
    ),
    "a derived column": (
        recipe(columns={"born": "plain"}, models=[{"k-anonymity": 30}]),
        {"derived columns": State.FAILS},
    ),
    "a column that no model covers": (
        recipe(
            columns={"pay": "sensitive"}, models=[{"k-anonymity": 5}, {"l-diversity": {"l": 2, "column": "ill"}}]
        ),
        {"sensitive columns": State.NOT_CHECKED},
    ),
    "all sensitive columns": (
        recipe(columns={"pay": {"role": "sensitive"}}, models=[{"k-anonymity": 5}, {"l-diversity": {"l": 2}}]),
        {},
    ),
    "an identifier in several rows and no unit": (
        recipe(columns={"person": "identifier"}),
        {"people with several rows": State.NOT_CHECKED},
    ),
    "an identifier in several rows that are declared to be people": (
        recipe(unit="row", columns={"person": "identifier"}),
        {},
    ),
    "a household": (
        recipe(columns={"person": "household"}),
        {"people with several rows": State.NOT_CHECKED},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_engine_and_check_give_the_same_verdicts(case: str, tmp_path: Path) -> None:
    document, wanted = CASES[case]
    panel().write_parquet(tmp_path / "panel.parquet")
    lists = {}
    for engine in ENGINES:
        done = sfumato.protect(document, tmp_path / "panel.parquet", engine=engine, seed=1, n_targets=10)
        done.save(tmp_path / engine, unmet=True)
        lists[engine] = [(v.model, v.column, v.state, v.worst) for v in done.verdicts]
        again = sfumato.check(tmp_path / engine, original=tmp_path / "panel.parquet")
        lists[f"{engine}, checked"] = [(v.model, v.column, v.state, v.worst) for v in again]
        unmet = {v.model: v.state for v in done.verdicts if not v.holds}
        assert unmet.items() >= wanted.items()
        assert bool(unmet) == bool(wanted)
    assert len(set(map(tuple, lists.values()))) == 1, lists


def test_no_engine_writes_what_another_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    panel().write_csv(tmp_path / "panel.csv")
    document, _ = CASES["few people in a class"]
    (tmp_path / "r.yaml").write_text(json.dumps({**document, "data": "panel.csv"}))
    for engine in ENGINES:
        out = tmp_path / f"out-{engine}"
        words = [
            "protect",
            str(tmp_path / "r.yaml"),
            "--engine",
            engine,
            "--out",
            str(out),
            "--targets",
            "10",
            "--json",
        ]
        assert main(words) == 1
        assert not out.exists()
        assert main([*words, "--unmet"]) == 1
        capsys.readouterr()
        assert main(["check", str(out), "--original", str(tmp_path / "panel.csv"), "--json"]) == 1
        verdicts = {v["model"]: v for v in json.loads(capsys.readouterr().out)["verdicts"]}
        assert verdicts["people per equivalence class"]["state"] == "fails"
        assert verdicts["people per equivalence class"]["worst"] == 1


def test_a_pseudonym_that_links_rows_has_no_tick(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    panel().write_csv(tmp_path / "panel.csv")
    columns = {**dict.fromkeys(COLUMNS, "drop"), "person": "identifier", "pay": "quasi"}
    steps = [{"pseudonymize": {"key": str(tmp_path / "k")}}, {"noise": {"variance_ratio": 4, "columns": ["pay"]}}]
    document = {"sfumato": 1, "data": "panel.csv", "columns": columns, "steps": steps, "limits": {"risk": 0.9}}
    (tmp_path / "r.yaml").write_text(json.dumps({**document, "attacks": ["linkage"]}))
    words = ["protect", str(tmp_path / "r.yaml"), "--out", str(tmp_path / "out"), "--targets", "100"]
    assert main(words) == 1
    printed = capsys.readouterr().out
    assert "Not judged for groups: the column `person` tells which rows belong together" in " ".join(printed.split())
    assert not (tmp_path / "out").exists()
    assert main([*words, "--unmet", "--json"]) == 1
    [limit] = json.loads(capsys.readouterr().out)["limits"]
    assert limit["met"] is None
    assert main(["check", str(tmp_path / "out")]) == 1


def _subject(**more: Any) -> Subject:
    """A release to which every check applies."""
    frame = panel()
    roles = dict.fromkeys(("age", "town"), Role.QUASI) | {"ill": Role.SENSITIVE, "pay": Role.UNDECIDED}
    schema = Schema(columns={name: Column(role=role) for name, role in roles.items()}, unit="person")
    return Subject(
        schema=schema,
        models=(KAnonymity(k=5), LDiversity(l=2, column="nothing released")),
        steps=[{"step": "suppress-items", "parameters": {"item": "ill", "k": 2, "m": 1}, "unit": "person"}],
        release=Data(table=Table(frame=frame.drop("person", "born")), schema=schema),
        earlier=[Release(table=Table(frame=frame), manifest={})],
        **more,
    )


@pytest.mark.parametrize("kind", registry("check").names())
def test_what_a_check_lacks_is_not_checked_and_never_silent(kind: str) -> None:
    check = registry("check").get(kind).build()
    assert isinstance(check, Check)
    lacking = _subject()
    if kind == "copied-rows":
        lacking = Subject(schema=lacking.schema, steps=[{"step": "synthesize"}], release=lacking.release)
    assert check.applies(lacking)
    own = [verdict for verdict in run_checks(lacking) if verdict.model == check.verdict_name()]
    if check.needs:
        assert [verdict.state for verdict in own] == [State.NOT_CHECKED]
        assert own[0].reason.startswith("It needs ")
    else:
        assert all(not verdict.holds for verdict in own)
    assert any(not verdict.holds for verdict in run_checks(lacking))


def test_rows_of_a_person_that_nothing_links_are_judged() -> None:
    frame = panel()
    released = Table(frame=frame.select("ill", "town").with_columns(town=pl.lit("*")))
    subject = Subject(
        schema=Schema(columns={"town": Column(role=Role.QUASI), "ill": Column(role=Role.SENSITIVE)}, unit="person"),
        models=(KAnonymity(k=5),),
        lineage=Lineage.identity(frame.height),
        release=Data(table=released, schema=Schema(columns={})),
        original=Data(table=Table(frame=frame), schema=Schema(columns={}, unit="person")),
    )
    names = {verdict.model: verdict.state for verdict in run_checks(subject)}
    assert "people with several rows" not in names
    assert names["people per equivalence class"] is State.HOLDS


@pytest.mark.parametrize("values", ["case", "amount"])
def test_values_that_only_one_person_has_may_link_rows(values: str) -> None:
    frame = panel()
    case = pl.format("{}-{}", "person", pl.int_range(pl.len()).over("person"))
    amount = pl.col("person").str.slice(1).cast(pl.Float64) * 10 + pl.int_range(pl.len()).over("person") / 100
    released = frame.select("ill", value=case if values == "case" else amount)
    subject = Subject(
        schema=Schema(
            columns={"ill": Column(role=Role.SENSITIVE), "value": Column(role=Role.SENSITIVE)}, unit="person"
        ),
        lineage=Lineage.identity(frame.height),
        release=Data(table=Table(frame=released), schema=Schema(columns={})),
        original=Data(table=Table(frame=frame), schema=Schema(columns={}, unit="person")),
    )
    names = {verdict.model: verdict.state for verdict in run_checks(subject)}
    assert names["people with several rows"] is State.NOT_CHECKED
