"""`sfumato init`: sensible roles, what singles people out, and a recipe that can be run."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main
from sfumato.data.table import Table
from sfumato.dataset import Data, Role
from sfumato.demos.people import hospital
from sfumato.profiling import propose, to_yaml
from sfumato.recipe import Recipe

ODD_NAMES = [
    "^a.*",
    "a: b",
    "#1",
    "- x",
    'quo"te',
    "yes",
    "null",
    "{x}",
    "ünï",
    "line\nbreak",
    "1",
    " pad ",
    "tab\t",
    "back\\slash",
    "[",
    "**",
    "a,b",
]


@pytest.fixture(scope="module")
def patients() -> pl.DataFrame:
    return hospital(7, patients=3000, town=9000)


def adult(rows: int = 2000) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "sex": draw.choice(["Male", "Female"], rows),
            "age": draw.integers(17, 91, rows),
            "race": draw.choice(["White", "Black", "Other"], rows),
            "marital-status": draw.choice(["Never-married", "Divorced", "Widowed"], rows),
            "education": draw.choice(["Bachelors", "HS-grad"], rows),
            "native-country": draw.choice(["United-States", "Mexico"], rows),
            "workclass": draw.choice(["Private", "State-gov"], rows),
            "occupation": draw.choice(["Sales", "Tech-support"], rows),
            "salary-class": draw.choice(["<=50K", ">50K"], rows),
        }
    )


def test_adult_gets_sensible_roles():
    proposal = propose(Table(frame=adult()))
    assert proposal.of_role(Role.SENSITIVE) == ("salary-class",)
    assert proposal.of_role(Role.QUASI) == tuple(adult().columns[:-1])


def test_hospital_is_told_that_zip_birth_date_and_sex_single_out_most(patients):
    proposal = propose(Table(frame=patients))
    assert proposal.register.columns == ("zip", "birth_date", "sex")
    counted = patients.group_by("zip", "birth_date", "sex").len().filter(pl.col("len") == 1).height
    assert proposal.register.unique == counted / patients.height > 0.5
    assert proposal.of_role(Role.IDENTIFIER) == ("name",)
    assert proposal.of_role(Role.SENSITIVE) == ("diagnosis",)


@pytest.mark.parametrize("k", [None, 5])
def test_the_recipe_is_what_was_proposed(patients, k):
    proposal = propose(Table(frame=patients))
    text = to_yaml(proposal, "hospital.csv", k=k)
    recipe = Recipe.parse(text)
    assert {name: c.role for name, c in recipe.schema.columns.items()} == {c.name: c.role for c in proposal.columns}
    assert {name: c.kind for name, c in recipe.schema.columns.items() if c.kind} == {
        c.name: c.kind for c in proposal.columns if c.role is not Role.IDENTIFIER
    }
    assert [type(m).__name__ for m in recipe.models] == ([] if k is None else ["KAnonymity"])
    assert recipe.seed is None
    assert "secret" in text
    for column in proposal.columns:
        assert column.finding.reason.split(";")[0] in text


def test_uncommenting_the_model_gives_a_recipe(patients):
    text = to_yaml(propose(Table(frame=patients)), "hospital.csv")
    filled = text.replace("#  - k-anonymity: {k: }", "  - k-anonymity: {k: 3}")
    assert Recipe.parse(filled).models[0].k == 3


def test_names_that_yaml_would_misread_survive():
    frame = pl.DataFrame({name: [1, 2] for name in ODD_NAMES})
    text = to_yaml(propose(Table(frame=frame)), "odd: file #1.csv", k=2)
    recipe = Recipe.parse(text)
    assert list(recipe.schema.columns) == ODD_NAMES
    assert recipe.source.location == "odd: file #1.csv"


@pytest.mark.parametrize("name", ["a\x1bb", "a\x00b", "a\x7fb", "a\ufffeb", "a\nb", "a: b", "#a", "😀", "null", "- a"])
def test_a_column_of_any_name_gives_a_recipe_that_can_be_read(name):
    """The name stands in comments as well, where it is told what singles people out."""
    frame = pl.DataFrame({name: [f"v{i % 60}" for i in range(120)], "h": ["a"] * 60 + ["b"] * 60, "s": ["f", "m"] * 60})
    text = to_yaml(propose(Table(frame=frame)), "x.csv", k=2)
    assert "# Unique rows." in text
    assert list(Recipe.parse(text).schema.columns) == [name, "h", "s"]


def test_bytes_are_proposed_for_removal():
    frame = pl.DataFrame({"face": [b"\xff\x00"] * 30, "age": range(30)})
    proposal = propose(Table(frame=frame))
    assert proposal.of_role(Role.IDENTIFIER) == ("face",)
    recipe = Recipe.parse(to_yaml(proposal, "x.parquet", k=2))
    assert Data.of(Table(frame=frame), recipe.schema).identifiers == ("face",)


@pytest.mark.parametrize(
    "frame", [pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [None, None]}), pl.DataFrame({"name": ["x"]})]
)
def test_tiny_and_empty_columns(frame):
    assert Recipe.parse(to_yaml(propose(Table(frame=frame)), "x.csv", k=2)).schema.columns


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch, patients) -> Path:
        monkeypatch.chdir(tmp_path)
        patients.write_csv("hospital.csv")
        return tmp_path

    def test_init_then_protect(self, folder, capsys):
        assert main(["init", "hospital.csv", "--k", "5"]) == 0
        shown = capsys.readouterr().out
        assert "zip + birth_date + sex" in shown
        assert "quasi" in shown
        assert main(["protect", "sfumato.yaml", "--json"]) == 0
        verdicts = json.loads(capsys.readouterr().out)["verdicts"]
        assert [(v["model"], v["state"]) for v in verdicts] == [("k-anonymity", "holds")]

    def test_without_k_protect_refuses_and_says_what_to_do(self, folder, capsys):
        assert main(["init", "hospital.csv"]) == 0
        assert "--k" in capsys.readouterr().err
        assert main(["protect", "sfumato.yaml"]) == 2
        assert "model" in capsys.readouterr().err
        assert not folder.joinpath("release").exists()

    def test_json_is_one_document(self, folder, capsys):
        assert main(["init", "hospital.csv", "--json", "--out", "r.yaml"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["recipe"] == "r.yaml"
        assert {c["column"]: c["role"] for c in document["columns"]}["diagnosis"] == "sensitive"
        assert document["register"]["columns"] == ["zip", "birth_date", "sex"]
        assert document["singling"]["minimal"]

    def test_nothing_is_overwritten(self, folder, capsys):
        folder.joinpath("sfumato.yaml").write_text("mine")
        assert main(["init", "hospital.csv"]) == 2
        assert "SFU-107" in capsys.readouterr().err
        assert folder.joinpath("sfumato.yaml").read_text() == "mine"
        assert main(["init", "hospital.csv", "--force"]) == 0
        assert folder.joinpath("sfumato.yaml").read_text() != "mine"

    def test_the_recipe_names_the_data_from_where_it_stands(self, folder):
        folder.joinpath("sub").mkdir()
        assert main(["init", "hospital.csv", "--out", "sub/r.yaml"]) == 0
        assert "data: ../hospital.csv" in folder.joinpath("sub/r.yaml").read_text()
        assert Path(Recipe.load(folder / "sub/r.yaml").source.location).resolve() == folder / "hospital.csv"

    def test_printed(self, folder, capsys):
        assert main(["init", "hospital.csv", "--out", "-"]) == 0
        assert Recipe.parse(capsys.readouterr().out).schema.columns
        assert not folder.joinpath("-").exists()

    def test_a_file_that_is_not_there(self, folder, capsys):
        assert main(["init", "nobody.csv"]) == 2
        assert "SFU-101" in capsys.readouterr().err

    def test_k_is_checked(self, folder, capsys):
        assert main(["init", "hospital.csv", "--k", "1"]) == 2
        assert not folder.joinpath("sfumato.yaml").exists()


class TestHierarchyCommand:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch) -> Path:
        monkeypatch.chdir(tmp_path)
        Path("people.csv").write_text("city,age\nBonn,23\nParis,41\nAtlantis,7\n")
        Path("city.csv").write_text("Bonn;Germany;*\nParis;France;*\n")
        Path("sfumato.yaml").write_text(
            "sfumato: 1\ndata: people.csv\ncolumns:\n  city: {role: quasi, hierarchy: {file: city.csv}}\n"
            "  age: {role: quasi, hierarchy: {intervals: [10]}}\n"
        )
        return tmp_path

    def test_check_counts_but_does_not_show(self, folder, capsys):
        assert main(["hierarchy", "check", "sfumato.yaml"]) == 1
        shown = capsys.readouterr()
        assert "city: 1 value has no line" in shown.out
        assert "age: complete" in shown.out
        assert "Atlantis" not in shown.out + shown.err

    def test_check_shows_when_asked(self, folder, capsys):
        assert main(["hierarchy", "check", "sfumato.yaml", "--show-values", "--json"]) == 1
        [city, age] = json.loads(capsys.readouterr().out)["hierarchies"]
        assert city == {"column": "city", "state": "incomplete", "missing": 1, "values": ["Atlantis"]}
        assert age["state"] == "complete"

    def test_repaired(self, folder, capsys):
        with folder.joinpath("city.csv").open("a") as file:
            file.write("Atlantis;Sea;*\n")
        assert main(["hierarchy", "check", "sfumato.yaml"]) == 0

    def test_write_edit_and_use_again(self, folder, capsys):
        assert main(["hierarchy", "write", "sfumato.yaml", "age"]) == 0
        written = folder / "age.hierarchy.csv"
        assert written.read_text() == "7;0–9;*\n23;20–29;*\n41;40–49;*\n"
        assert main(["hierarchy", "write", "sfumato.yaml", "age"]) == 2
        text = folder.joinpath("sfumato.yaml").read_text()
        folder.joinpath("sfumato.yaml").write_text(text.replace("{intervals: [10]}", "{file: age.hierarchy.csv}"))
        assert main(["hierarchy", "show", "sfumato.yaml", "age", "--json", "--show-values"]) == 0
        document = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert document["levels"][1] == {"level": 1, "groups": 3, "largest": 1}
        assert document["rows"][0] == ["7", "0–9", "*"]

    def test_show_hides_values(self, folder, capsys):
        assert main(["hierarchy", "show", "sfumato.yaml", "city"]) == 0
        assert "Bonn" not in capsys.readouterr().out

    def test_unknown_column(self, folder, capsys):
        assert main(["hierarchy", "show", "sfumato.yaml", "cty"]) == 2
        assert "Did you mean `city`" in capsys.readouterr().err

    def test_a_hierarchy_that_is_refused(self, folder, capsys):
        folder.joinpath("city.csv").write_text("Bonn;Germany;*\nBonn;France;*\n")
        assert main(["hierarchy", "check", "sfumato.yaml"]) == 1
        assert "twice" in capsys.readouterr().out
