"""The data set document: forms, people, links, dialect, and mistakes with their lines."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

import sfumato
from sfumato.cli import main
from sfumato.data.yaml_documents import load_document
from sfumato.dataset.document import Dataset
from sfumato.errors import BadParameter, InvalidRecipe, UnknownColumn
from sfumato.recipe import Recipe
from sfumato.recipe.json_schema import json_schema

HOSPITAL = """\
sfumato: 1
dataset: hospital
person: patients
ledger: ledger.db
tables:
  patients:
    data: {file: patients.csv, delimiter: ";", encoding: latin-1, missing: ["", "NA"]}
    key: id
    columns:
      id: identifier
      zip: {role: quasi, kind: category, hierarchy: {mask: right}}
  visits:
    data: visits.parquet
    links: {patient: patients}
    bounds: {rows: 20, groups: 5}
    columns: {patient: {role: identifier}, ward: {kind: category, domain: {values: [east, west]}}}
  referrals:
    data: referrals.csv
    links: {sender: patients, receiver: patients}
public:
  wards: {data: wards.csv, key: [ward]}
answering: {policy: differential-privacy, min_epsilon: 0.01}
"""


def hospital(folder: Path, text: str = HOSPITAL) -> Path:
    file = folder / "hospital.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_paths_are_relative_to_the_document(tmp_path: Path) -> None:
    loaded = Dataset.load(hospital(tmp_path))
    assert loaded.ledger == str(tmp_path / "ledger.db")
    source = loaded.tables["patients"].data
    assert source.location == str(tmp_path / "patients.csv")
    assert source.address.endswith("patients.csv?delimiter=%3B&encoding=latin-1&missing=&missing=NA")


def test_the_person_of_each_table(tmp_path: Path) -> None:
    loaded = Dataset.load(hospital(tmp_path))
    assert (loaded.unit("patients"), loaded.unit("visits")) == ("id", "patient")
    with pytest.raises(BadParameter, match="`referrals` is about several people"):
        loaded.unit("referrals")
    assert loaded.released_table()[1].unit is None  # each row of the table of people is a person
    assert loaded.released_table("visits")[1].unit == "patient"
    with pytest.raises(BadParameter, match="referrals"):
        loaded.released_table("referrals")


@pytest.mark.parametrize(
    ("wrong", "right", "line", "words"),
    [
        ("delimeter", "delimiter", 7, "delimeter"),
        ("grups", "groups", 15, "Did you mean `groups`"),
        ("{patient: patiens}", "{patient: patients}", 5, "no table `patiens`"),
        ("person: people", "person: patients", 5, "neither `row` nor a declared column"),
        ("{maks: right}", "{mask: right}", 11, "maks"),
        ("policy: rounded", "policy: differential-privacy", 22, "No policy is called `rounded`"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, wrong: str, right: str, line: int, words: str) -> None:
    with pytest.raises(InvalidRecipe) as refusal:
        Dataset.load(hospital(tmp_path, HOSPITAL.replace(right, wrong)))
    [problem, *_] = refusal.value.problems
    assert problem.line == line
    assert words in problem.message


def test_the_short_form_is_one_table(tmp_path: Path) -> None:
    head = "sfumato: 1\ndata: people.csv\nunit: person\ncolumns:\n"
    short = f"{head}  person: identifier\n  age: {{role: quasi, kin: integer}}\n"
    with pytest.raises(InvalidRecipe) as refusal:
        Dataset.load(hospital(tmp_path, short))
    assert [(problem.line, problem.where) for problem in refusal.value.problems] == [(6, "columns.age.kin")]
    loaded = Dataset.load(hospital(tmp_path, short.replace("kin:", "kind:") + "steps: []\n"))
    assert (loaded.dataset, loaded.person, list(loaded.tables)) == ("people", "person", ["people"])


def test_a_plan_names_its_data_set(tmp_path: Path) -> None:
    hospital(tmp_path)
    plan = tmp_path / "plan.yaml"
    plan.write_text("sfumato: 1\ndataset: hospital.yaml\nsteps: []\n", encoding="utf-8")
    assert Dataset.load(plan) == Dataset.load(tmp_path / "hospital.yaml")


def test_one_loader_for_every_model(tmp_path: Path) -> None:
    from sfumato.collecting.survey import Survey

    file = tmp_path / "survey.yaml"
    file.write_text("survey: s\nepsilon: 1\npeople: 100\nquestions:\n  age: {low: 0, hihg: 10}\n", encoding="utf-8")
    with pytest.raises(InvalidRecipe) as refusal:
        load_document(Survey, file, kind="survey", fix="")
    assert {(p.line, p.where) for p in refusal.value.problems} >= {(5, "questions.age.hihg")}


def _two_tables(folder: Path) -> None:
    patients = "".join(f"{i},{20 + i % 60},{10000 + i % 4}\n" for i in range(1, 201))
    (folder / "patients.csv").write_text("id,age,zip\n" + patients)
    visits = "".join(f"{5000 + i},{1 + i % 200},{['east', 'west'][i % 2]}\n" for i in range(600))
    (folder / "visits.csv").write_text("visit,patient,ward\n" + visits)


def test_several_files_become_one_document_for_releases_and_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _two_tables(tmp_path)
    assert main(["init", "patients.csv", "visits.csv", "--out", "hospital.yaml"]) == 0
    draft = sfumato.init(["patients.csv", "visits.csv"])
    assert draft.text == Path("hospital.yaml").read_text()
    assert set(draft.tables) == {"patients", "visits"}
    for wrong in ({"k": 5}, {"preset": "research-file"}, {"rest": "drop", "by": "Ann"}):
        with pytest.raises(BadParameter, match="one table"):
            sfumato.init(["patients.csv", "visits.csv"], **wrong)  # type: ignore[arg-type]
    loaded = Dataset.load("hospital.yaml")
    assert (loaded.person, loaded.tables["patients"].key) == ("patients", "id")
    assert loaded.tables["visits"].links == {"patient": "patients"}
    for table, roles in {"patients": ["age=quasi", "zip=quasi"], "visits": ["ward=sensitive", "visit=drop"]}.items():
        assert main(["decide", "hospital.yaml", *roles, "--table", table, "--by", "Ann"]) == 0
    text = Path("hospital.yaml").read_text().replace("# bounds: {rows: , groups: }", "bounds: {rows: 3, groups: 2}")
    text = text.replace("ward: {role: sensitive", "ward: {role: sensitive, domain: {values: [east, west]}")
    Path("hospital.yaml").write_text(text)
    plan = "sfumato: 1\ndataset: hospital.yaml\nmodels: [k-anonymity: 2]\nsteps: [generalize]\n"
    Path("plan.yaml").write_text(plan)
    assert main(["protect", "plan.yaml", "--out", "release"]) == 0
    assert Recipe.load("plan.yaml").schema.unit is None
    Path("visits.yaml").write_text(plan + "table: visits\n")
    assert Recipe.load("visits.yaml").schema.unit == "patient"
    Path("both.yaml").write_text(plan + "table: [patients, visits]\n")
    assert main(["protect", "both.yaml", "--out", "two"]) == 2
    assert "several cannot be released together" in capsys.readouterr().err
    ledger = f"{loaded.dataset}-ledger.db"
    assert main(["ledger", "cap", ledger, "--dataset", loaded.dataset, "--epsilon", "1e6"]) == 0
    capsys.readouterr()
    sql = "SELECT ward, COUNT(*) AS n FROM visits JOIN patients ON visits.patient = patients.id GROUP BY ward"
    assert main(["query", "hospital.yaml", sql, "--epsilon", "100000", "--json"]) == 0
    assert sum(row["n"]["value"] for row in json.loads(capsys.readouterr().out)["rows"]) == pytest.approx(600, abs=3)


def test_a_plan_in_the_same_file(tmp_path: Path) -> None:
    plan = HOSPITAL + "table: visits\nmodels: [k-anonymity: 2]\nsteps: [generalize]\n"
    recipe = Recipe.load(hospital(tmp_path, plan))
    assert recipe.source is not None
    assert (Path(recipe.source.location).name, recipe.schema.unit) == ("visits.parquet", "patient")
    with pytest.raises(InvalidRecipe, match="about several people"):
        Recipe.load(hospital(tmp_path, plan.replace("table: visits", "table: referrals")))


def test_the_schema_for_editors_knows_the_document() -> None:
    editor = jsonschema.Draft202012Validator(json_schema())
    good = yaml.safe_load(HOSPITAL)
    assert not list(editor.iter_errors(good))
    assert not list(editor.iter_errors({"sfumato": 1, "dataset": "hospital.yaml", "steps": ["generalize"]}))
    good["tables"]["visits"]["bound"] = {"rows": 1}
    assert list(editor.iter_errors(good))


def test_hierarchies_of_any_table_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "people.csv").write_text("id,age\n" + "".join(f"{n},{20 + n}\n" for n in range(9)))
    (tmp_path / "stays.csv").write_text("person,ward\n0,east\n1,west\n2,north\n")
    (tmp_path / "wards.csv").write_text("east;A\nwest;A\n")
    document = tmp_path / "hospital.yaml"
    document.write_text(
        "sfumato: 1\ndataset: hospital\nperson: people\ntables:\n  people:\n    data: people.csv\n    key: id\n"
        "    columns: {id: identifier, age: {role: quasi, hierarchy: {intervals: [5, 10]}}}\n  stays:\n"
        "    data: stays.csv\n    links: {person: people}\n    columns:\n      person: identifier\n"
        "      ward: {role: quasi, hierarchy: {file: wards.csv}}\n"
    )
    words = ["hierarchy", "check", str(document), "--json"]
    assert main(words) == 0
    assert [one["column"] for one in json.loads(capsys.readouterr().out)["hierarchies"]] == ["age"]
    assert main([*words, "--table", "stays"]) == 1
    shown = json.loads(capsys.readouterr().out)["hierarchies"]
    [found] = sfumato.check_hierarchies(document, table="stays")
    assert shown == [found.to_dict()] == [{"column": "ward", "state": "incomplete", "missing": 1}]
    assert found.values == ("north",)
    assert sfumato.hierarchy_of(document, "age").height == 3
    with pytest.raises(UnknownColumn, match="`ward`"):
        sfumato.hierarchy_of(document, "ward")
