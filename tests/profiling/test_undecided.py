"""Nothing leaves undecided: `protect` refuses columns whose role nobody has decided, and decisions are recorded."""

import json

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.dataset import Role
from sfumato.errors import BadParameter, UndecidedColumns, UnknownColumn
from sfumato.profiling import exposure as exposure_module
from sfumato.profiling import propose, unique_share
from sfumato.profiling.exposure import exposures
from sfumato.recipe import Recipe
from sfumato.release.decisions import column_decisions

RECIPE = """\
sfumato: 1
columns:
  # years
  age: {role: quasi, hierarchy: {intervals: [10]}}  # kept
  ht: {role: undecided, kind: number}   # height
  wt:
    role: undecided   # body weight
    kind: number
  visits: undecided
  ill: sensitive
models: [k-anonymity: 3]
steps: [{generalize: {suppression: 0.2}}]
"""
FACTS = "decided_by: A. Steward, reason: counts of no interest"
STUDY = {**Recipe.parse(RECIPE).to_dict(), "study": {"candidates": [{"microaggregate": {"k": 3}}]}}


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    draw = np.random.default_rng(4)
    size = 300
    return pl.DataFrame(
        {
            "age": draw.integers(20, 70, size),
            "ht": draw.normal(170, 10, size).round(1),
            "wt": draw.normal(70, 12, size).round(1),
            "visits": draw.integers(0, 4, size),
            "ill": draw.choice(["flu", "none"], size),
        }
    )


def decided(people: pl.DataFrame) -> str:
    roles = {"ht": "quasi", "wt": "drop", "visits": "plain"}
    return sfumato.decide(RECIPE, roles, by="A. Steward", reason="counts of no interest")


def test_protect_refuses_all_undecided_columns_at_once(people):
    with pytest.raises(UndecidedColumns) as caught:
        sfumato.protect(RECIPE, people)
    error = caught.value
    assert (error.code, error.status) == ("SFU-403", 2)
    found = {entry["column"]: entry for entry in error.to_dict()["error"]["columns"]}
    assert set(found) == {"ht", "wt", "visits"}
    pair = next(combination for combination in found["ht"]["best"] if len(combination["columns"]) == 2)
    assert pair["columns"] == ["ht", "wt"]
    assert pair["unique"] == unique_share(people.select("ht", "wt")) > 0.9
    assert found["visits"]["alone"] == 0
    for word in ("ht", "wt", "visits", "sfumato.decide", "quasi", "plain", "drop"):
        assert word in str(error)


def test_a_study_of_undecided_columns_is_refused(people):
    with pytest.raises(UndecidedColumns):
        sfumato.study(STUDY, people, workers=1)


def test_a_file_too_large_for_memory_is_refused_too(people, tmp_path):
    people.write_parquet(tmp_path / "people.parquet")
    with pytest.raises(UndecidedColumns, match="3 columns"):
        sfumato.protect(RECIPE, tmp_path / "people.parquet", engine="duckdb")


def test_a_decision_is_recorded_and_says_what_leaves_unchanged(people):
    done = sfumato.protect(decided(people), people, seed=1, n_targets=50)
    found = {decision.column: decision for decision in done.evaluation.decisions}
    assert found["visits"].to_dict() == {
        "column": "visits", "role": "plain", "decided_by": "A. Steward", "reason": "counts of no interest",
        "released": True, "unchanged": True,
    }  # fmt: skip
    assert (found["wt"].role, found["wt"].released, found["wt"].unchanged) == ("drop", False, False)
    assert found["ht"].unchanged is False
    assert found["ill"].unchanged is True
    assert found["age"].decided_by is None
    assert "wt" not in done.data.columns
    assert done.to_dict()["decisions"] == [decision.to_dict() for decision in column_decisions(done.release.manifest)]
    assert column_decisions(done.report_data.external().manifest) == done.evaluation.decisions


def test_a_dropped_column_leaves_no_release_by_any_engine(people, tmp_path):
    people.write_parquet(tmp_path / "people.parquet")
    done = sfumato.protect(decided(people), tmp_path / "people.parquet", engine="duckdb", n_targets=50, suffix=".csv")
    assert "wt" not in done.column_names
    key = str(tmp_path / "key")
    text = decided(people).replace("steps: [", f"steps: [{{pseudonymize: {{columns: [wt], key: '{key}'}}}}, ")
    assert "wt" not in sfumato.protect(text, people, seed=1, n_targets=50).data.columns


def test_deciding_keeps_every_other_character(people):
    text = decided(people)
    assert text == (
        RECIPE.replace(
            "ht: {role: undecided,", "ht: {role: quasi, decided_by: A. Steward, reason: counts of no interest,"
        )
        .replace(
            "role: undecided   # body weight\n",
            "role: drop   # body weight\n    decided_by: A. Steward\n    reason: counts of no interest\n",
        )
        .replace("visits: undecided", f"visits: {{role: plain, {FACTS}}}")
    )
    assert Recipe.parse(text).schema.names(Role.UNDECIDED) == ()
    again = sfumato.decide(text, {"wt": "quasi", "ht": "plain"}, by='B: "x"', reason="two\nlines # here")
    columns = Recipe.parse(again).schema.columns
    assert (columns["wt"].role, columns["wt"].decided_by, columns["wt"].reason) == (
        Role.QUASI, 'B: "x"', "two\nlines # here",
    )  # fmt: skip
    assert columns["visits"].decided_by == "A. Steward"
    assert "# body weight" in again
    assert "# height" in again


@pytest.mark.parametrize(
    ("roles", "more", "error"),
    [
        ({"nothing": "plain"}, {"reason": "x"}, UnknownColumn),
        ({"ht": "undecided"}, {}, BadParameter),
        ({"ht": "secret"}, {}, BadParameter),
        ({"ht": "plain"}, {}, BadParameter),
        ({"ht": "quasi"}, {"by": " "}, BadParameter),
    ],
)
def test_a_decision_that_is_none_is_refused(roles, more, error):
    with pytest.raises(error):
        sfumato.decide(RECIPE, roles, **{"by": "me", **more})


def test_columns_that_share_one_declaration_are_not_edited_silently():
    text = "sfumato: 1\ncolumns:\n  a: &x {role: undecided}\n  b: *x\n"
    with pytest.raises(BadParameter, match="by hand"):
        sfumato.decide(text, {"a": "quasi"}, by="me")


def test_a_new_column_is_added_before_the_others():
    text = sfumato.decide(RECIPE, {"badge #": "drop"}, by="me", new=True)
    assert text == RECIPE.replace("  # years\n  age", '  # years\n  "badge #": {role: drop, decided_by: me}\n  age')
    assert next(iter(Recipe.parse(text).schema.columns)) == "badge #"
    with pytest.raises(UnknownColumn, match="`new` adds a column"):
        sfumato.decide(RECIPE, {"badge": "drop"}, by="me")


def test_a_pattern_decides_several_columns_but_no_identifier():
    text = "sfumato: 1\ncolumns:\n" + "".join(
        f"  {name}: {{role: {role}}}\n"
        for name, role in (("cd40", "undecided"), ("cd80", "quasi"), ("cdid", "identifier"))
    )
    decided = Recipe.parse(sfumato.decide(text, {"cd*": "sensitive", "cd80": "drop"}, by="me")).schema.columns
    assert {name: column.role.value for name, column in decided.items()} == {
        "cd40": "sensitive", "cd80": "drop", "cdid": "identifier",
    }  # fmt: skip
    with pytest.raises(UnknownColumn, match="no column `zz"):
        sfumato.decide(text, {"zz*": "quasi"}, by="me")


@pytest.mark.parametrize("limits", ["limits: {risk: 0.1}  # ours\n", "limits:\n  risk: 0.1  # ours\n"])
def test_attackers_who_know_more_are_accepted_with_name_and_reason(limits):
    text = "sfumato: 1\ncolumns:\n  a: {role: quasi}\n" + limits
    changed = sfumato.decide(text, accept=True, by="me", reason="no file: none")
    accepted = Recipe.parse(changed).limits.accepted
    assert accepted is not None
    assert (accepted.by, accepted.reason) == ("me", "no file: none")
    assert "# ours" in changed
    again = Recipe.parse(sfumato.decide(changed, {"a": "drop"}, accept=True, by="you", reason="still none"))
    assert again.limits.accepted is not None
    assert again.limits.accepted.by == "you"
    assert again.schema.columns["a"].role is Role.DROP
    with pytest.raises(BadParameter, match="reason is required"):
        sfumato.decide(text, accept=True, by="me")
    with pytest.raises(BadParameter, match="no limit on risk"):
        sfumato.decide(RECIPE, accept=True, by="me", reason="x")


def test_the_rest_are_only_the_undecided():
    columns = Recipe.parse(sfumato.decide(RECIPE, {"ht": "quasi"}, rest="drop", by="me")).schema.columns
    assert {name: column.role.value for name, column in columns.items()} == {
        "age": "quasi", "ht": "quasi", "wt": "drop", "visits": "drop", "ill": "sensitive",
    }  # fmt: skip


def test_check_attack_and_measure_take_undecided_columns(people, tmp_path):
    (tmp_path / "r.yaml").write_text(RECIPE)
    results = sfumato.check(people, recipe=tmp_path / "r.yaml")
    assert not results.holds
    [verdict] = [verdict for verdict in results if verdict.model == "undecided columns"]
    assert (verdict.state, verdict.worst) == ("fails", 3)
    assert "`wt`" in verdict.reason
    schema = Recipe.parse(RECIPE).schema
    attacks = sfumato.attack(people, original=people, schema=schema, aligned=True, seed=1, attacks=["linkage"])
    assert attacks.entries()[0]["risk"] is not None
    measures = sfumato.measure(people, original=people, schema=schema, measures=["marginals", "ks"], seed=1)
    assert measures[0].value == 0


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch, people):
        monkeypatch.chdir(tmp_path)
        people.write_csv("people.csv")
        return tmp_path

    def test_from_init_to_a_release(self, folder, capsys):
        assert main(["init", "people.csv", "--k", "3"]) == 0
        assert "sfumato decide sfumato.yaml" in capsys.readouterr().err
        assert main(["protect", "sfumato.yaml"]) == 2
        assert "sfumato decide sfumato.yaml" in capsys.readouterr().err
        assert not folder.joinpath("release").exists()
        assert main(["protect", "sfumato.yaml", "--unmet"]) == 2
        capsys.readouterr()
        left = Recipe.load("sfumato.yaml").schema.names(Role.UNDECIDED)
        assert "visits" in left
        assert main(["decide", "sfumato.yaml", *[f"{name}=quasi" for name in left], "--by", "me", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["undecided"] == []
        assert [entry["column"] for entry in document["decided"]] == list(left)
        assert main(["protect", "sfumato.yaml", "--targets", "50"]) == 0

    def test_init_decides_the_rest_by_name(self, folder, capsys):
        assert main(["init", "people.csv", "--k", "3", "--rest", "quasi"]) == 2
        assert "--by" in capsys.readouterr().err
        assert main(["init", "people.csv", "--k", "3", "--rest", "quasi", "--by", "me"]) == 0
        captured = capsys.readouterr()
        assert "undecided" not in captured.err
        visits = Recipe.load("sfumato.yaml").schema.columns["visits"]
        assert (visits.role, visits.decided_by) == (Role.QUASI, "me")
        assert main(["protect", "sfumato.yaml", "--targets", "50"]) == 0

    def test_init_is_short_and_gives_details_on_demand(self, folder, capsys):
        assert main(["init", "people.csv", "--k", "3"]) == 0
        short = capsys.readouterr().out
        assert main(["init", "people.csv", "--k", "3", "--force", "--details"]) == 0
        details = capsys.readouterr().out
        for name in ("age", "ht", "wt", "visits", "ill"):
            assert name in short
            assert name in details
        assert "not recognized; choose a role" not in short
        assert "not recognized; choose a role" in details
        assert 2 * len(short.split()) < len(details.split())

    @pytest.mark.parametrize("facts", ["", ", decided_by: me", ", reason: harmless", ", decided_by: me, reason: '  '"])
    @pytest.mark.parametrize("engine", ["memory", "duckdb"])
    def test_plain_by_hand_needs_a_name_and_a_reason(self, folder, capsys, facts, engine):
        text = RECIPE.replace("ht: {role: undecided,", f"ht: {{role: plain{facts},")
        text = text.replace("role: undecided", "role: drop").replace("visits: undecided", "visits: drop")
        (folder / "r.yaml").write_text(text)
        command = ["protect", "r.yaml", "people.csv", "--engine", engine, "--targets", "50", "--out", "out"]
        assert main(command) == 2
        told = capsys.readouterr().err
        assert "SFU-403" in told
        assert "sfumato decide r.yaml ht=plain --by YOUR-NAME --reason WHY" in told
        assert not (folder / "out").exists()
        assert main(["decide", "r.yaml", "ht=plain", "--by", "me", "--reason", "harmless"]) == 0
        assert main(command) == 0

    def test_a_decision_is_written_back_or_not_at_all(self, folder, capsys):
        path = folder / "r.yaml"
        path.write_text(RECIPE)
        assert main(["decide", "r.yaml", "ht=quasi", "--rest", "plain", "--by", "me"]) == 2
        assert path.read_text() == RECIPE
        assert main(["decide", "r.yaml", "ht", "--by", "me"]) == 2
        assert main(["decide", "r.yaml", "--by", "me"]) == 2
        assert main(["decide", "r.yaml", "ht=quasi", "--by", "me"]) == 0
        captured = capsys.readouterr()
        assert "undecided -> quasi: ht" in captured.out
        assert "Still undecided: wt, visits" in captured.err


def test_exposure_agrees_with_counting_and_with_the_sampled_comparison(people, monkeypatch):
    counted = exposures(people, people.columns)
    for found in counted:
        assert found.alone == unique_share(people.select(found.column))
        for combination in found.best:
            assert combination.unique == unique_share(people.select(combination.columns))
        others = [name for name in people.columns if name != found.column]
        best = max(unique_share(people.select(found.column, other)) for other in others)
        assert max([found.alone, *(c.unique for c in found.best if len(c.columns) == 2)]) >= best - 0.005
    monkeypatch.setattr(exposure_module, "_VISITS", 0)
    assert exposures(people, people.columns) == counted


def test_init_proposes_undecided_wherever_it_does_not_know():
    frame = pl.DataFrame({"v17": [1, 2] * 50, "year": [2019, 2020] * 50, "nothing": [None] * 100})
    assert {column.role for column in propose(frame).columns} == {Role.UNDECIDED}
