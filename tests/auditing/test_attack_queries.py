"""Query attacks through SQL: the sets of people that they write, their power, and `sfumato attack ward.yaml`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.attacks.query._sql import secret_bit
from sfumato.attacks.query._subset_sql import PeopleConditions
from sfumato.auditing.policy_query import PolicyQuery, parse_policy_query
from sfumato.auditing.table import SubsetTableResponder
from sfumato.cli import main
from sfumato.errors import BadParameter, NotApplicable, OutOfTime
from sfumato.query.policy.subsets import pack, unpack

PEOPLE = 60
METADATA = """\
sfumato: 1
dataset: ward
ledger: ledger.db
answering: {policy: POLICY}
person: row
tables:
  patients:
    data: patients.csv
    columns:
      id: {kind: integer}
      zip: {kind: integer}
      disease: {kind: category, role: sensitive}
      bill: {kind: number, role: sensitive, domain: {low: 0, high: 5000}}
"""


@pytest.fixture
def ward(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    disease, bill = rng.choice(["Flu", "Cold", "Asthma"], PEOPLE, p=[0.5, 0.3, 0.2]), rng.uniform(10, 5000, PEOPLE)
    rows = zip(range(PEOPLE), rng.integers(1300, 1304, PEOPLE), disease, bill.round(2), strict=True)
    lines = ["id,zip,disease,bill", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "patients.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def metadata(folder: Path, policy: str) -> Path:
    (folder / "ward.yaml").write_text(METADATA.replace("POLICY", policy))
    return folder / "ward.yaml"


def risks(results: sfumato.AttackResults) -> dict[tuple[str, str], tuple[float, float]]:
    return {(e["attack"], e["secret"]): (e["risk"], e["baseline"]) for e in results.entries()}


NUMBERS = pl.DataFrame({"id": np.random.default_rng(1).permutation(500)[:90]})
BORN = pl.Series("born", ["2001-02-03", "1999-01-01", "1980-05-06"]).str.to_date()
FRAMES: dict[str, tuple[pl.DataFrame, int]] = {
    "numbers": (NUMBERS, 1000),
    "a range of numbers": (NUMBERS, 30),
    "numbers with duplicates": (pl.DataFrame({"id": [1, 2, 2, 3, 5, 8, 9, 9, 11]}), 1000),
    "negative numbers": (pl.DataFrame({"id": [-4, -1, 0, 3]}), 1000),
    "texts": (pl.DataFrame({"who": ["O'Hara", "b", "c;", None, "--", 'q"']}), 1000),
    "two columns": (pl.DataFrame({"zip": [1, 1, 2, 2, 2, None], "sex": ["f", "m", "f", "f", "m", "m"]}), 99),
    "dates": (pl.DataFrame({"born": BORN}), 99),
}


@pytest.mark.parametrize("case", FRAMES)
def test_conditions_select_exactly_the_chosen_people(case: str) -> None:
    frame, most = FRAMES[case]
    rng = np.random.default_rng(2)
    people = PeopleConditions(frame, tuple(frame.columns), rng, most)
    assert 2 <= people.people <= most
    data = frame.with_row_index("row").to_arrow()  # noqa: F841
    masks = [rng.random((6, people.people)) < share for share in (0.5, 0.05, 0.95)]
    masks.append(np.array([[True] * people.people, [False] * people.people]))
    halves = unpack(people.random_halves(6, rng), people.people)
    near = halves.copy()
    near[:, 0], near[:, -1] = True, False
    for mask in np.concatenate([*masks, halves, ~halves, near]):
        condition = people.of(pack(mask)[0])
        rows = duckdb.sql("SELECT row FROM data" + (f" WHERE {condition}" if condition else "")).fetchall()
        assert {row for (row,) in rows} == set(people.rows[mask].tolist()), condition
    for number in range(people.people):
        [[row]] = duckdb.sql(f"SELECT row FROM data WHERE {people.person(number)}").fetchall()
        assert row == people.rows[number]


def test_nobody_is_attacked_whom_the_known_columns_do_not_single_out() -> None:
    with pytest.raises(NotApplicable, match="singled out"):
        PeopleConditions(pl.DataFrame({"zip": [1, 1, 2, 2]}), ("zip",), np.random.default_rng(1), 10)


def test_a_sum_counts_each_person_between_0_and_1() -> None:
    series = pl.Series("bill", [3.0, 9.0, 4.0, 100.0])
    bit = secret_bit(series, low=0, high=200)
    assert bit.bits(series).tolist() == [0, 1, 0, 1]
    each = [bit.scaled(value, 1) for value in series]
    assert [share > 0.5 for share in each] == [False, True, False, True]
    assert all(0 <= share <= 1 for share in each)
    assert bit.scaled(float(series.sum()), 4) == pytest.approx(sum(each))
    words = secret_bit(pl.Series("disease", ["Flu", "Flu", None, "Cold"]))
    assert (words.condition, words.bits(pl.Series(["Flu", None])).tolist()) == ("\"disease\" = 'Flu'", [1, 0])


def test_a_query_service_is_attacked_from_the_command_line(ward: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(metadata(ward, "{size-control: 5}"))
    options = ["--attack", "differencing", "--attack", "tracker", "--attack", "expressions", "--seed", "1"]
    assert main(["attack", path, "--limit", "0.3", "--secret", "bill", *options, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    found = {entry["attack"]: entry for entry in document["attacks"]}
    assert found["tracker"]["risk"] == 1.0
    assert found["tracker"]["low"] > found["tracker"]["baseline"]
    assert found["tracker"]["detail"]["policy"] == "size-control"
    assert found["differencing"]["claims"] == found["expressions"]["claims"] == 0
    assert document["limits"][0]["met"] is False
    assert not (ward / "ledger.db").exists()
    assert main(["attack", path, *options[:4], "--secret", "disease", "--knows", "id"]) == 0
    assert "tracker" in capsys.readouterr().out


def test_an_audited_service_keeps_to_its_promise(ward: Path) -> None:
    """With three values and k = 3, no difference is answered."""
    results = sfumato.attack_queries(
        metadata(ward, "{audit: {k: 3}}"), attacks=["differencing", "refusals", "expressions"], secrets=["disease"],
        seed=1, n_targets=20,
    )  # fmt: skip
    for entry in results.entries():
        assert entry["claims"] == 0
        assert entry["detail"]["refused"] > 0
        assert entry["risk"] <= entry["baseline"]


def test_refusals_tell_unless_they_are_simulatable(ward: Path) -> None:
    """k = 2 of three values: an answered difference means another disease, a refused one means this one."""
    options: dict[str, Any] = {"attacks": ["refusals"], "secrets": ["disease"], "seed": 1, "n_targets": 20}
    told = risks(sfumato.attack_queries(metadata(ward, "{audit: {k: 2}}"), **options))["refusals", "disease"]
    assert told[0] == 1.0 > told[1]
    [entry] = sfumato.attack_queries(
        metadata(ward, "{audit: {k: 2, simulatable: true}}"), **options | {"n_targets": 3}
    ).entries()
    assert entry["claims"] == 0


def test_expressions_have_power_where_a_policy_does_not_refuse_them(
    ward: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy without its check of expressions gives everybody away by one query each."""
    options: dict[str, Any] = {"attacks": ["expressions"], "secrets": ["bill"], "seed": 1, "n_targets": 20}
    for policy in ("summary-only", "{rounding: {base: 4, smallest: 5}}"):
        path = metadata(ward, policy)
        guarded = risks(sfumato.attack_queries(path, **options))["expressions", "bill"]

        def parse(self: SubsetTableResponder, sql: str) -> PolicyQuery:
            return parse_policy_query(sql, self._table.catalog)

        with monkeypatch.context() as patch:
            patch.setattr(SubsetTableResponder, "parse", parse)
            assert risks(sfumato.attack_queries(path, **options))["expressions", "bill"][0] == 1.0
        assert guarded[0] < 0.9


def test_differential_privacy_needs_a_budget_and_holds(ward: Path) -> None:
    path = metadata(ward, "differential-privacy")
    with pytest.raises(BadParameter, match="epsilon"):
        sfumato.attack_queries(path)
    with pytest.raises(BadParameter, match="no budget"):
        sfumato.attack_queries(path, epsilon="0.1")
    results = sfumato.attack_queries(
        path, attacks=["reconstruction", "tracker"], secrets=["disease", "bill"], epsilon="0.1", budget=1, seed=1
    )
    assert all(entry["low"] <= entry["baseline"] + 0.1 for entry in results.entries())
    assert any(entry["detail"]["refused"] for entry in results.entries())
    with pytest.raises(BadParameter, match="has no budget"):
        sfumato.attack_queries(metadata(ward, "exact"), epsilon=1)


def test_wrong_calls_are_refused(ward: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = metadata(ward, "exact")
    assert main(["attack", str(path), "--original", "patients.csv"]) == 2
    assert "--original does not apply to a release of kind `answers`" in capsys.readouterr().err
    assert main(["attack", str(ward / "patients.csv"), "--budget", "1", "--original", "x"]) == 2
    with pytest.raises(BadParameter, match="no column `shoe`"):
        sfumato.attack_queries(path, secrets=["shoe"])


def test_an_attack_that_is_out_of_time_has_no_risk(ward: Path) -> None:
    results = sfumato.attack_queries(
        metadata(ward, "exact"), attacks=["tracker"], secrets=["bill"], seconds=0, limit=0.5
    )
    assert isinstance(results[0], OutOfTime)
    assert results.limits[0].met is None
