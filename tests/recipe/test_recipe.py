"""Recipes: what is accepted, what is refused, and where the refusal points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.dataset import Role
from sfumato.errors import FileMissing, InvalidRecipe, NotThatFormat
from sfumato.recipe import Recipe
from sfumato.recipe.presets import preset_names, preset_text
from sfumato.studies import StudyPlan

GOOD = """\
sfumato: 1
data: people.csv
seed: 7
unit: person
columns:
  person: identifier
  zip:    {role: quasi, kind: category, hierarchy: {mask: right}}
  age:    {role: quasi, kind: integer, hierarchy: {intervals: [5, 10, 20]}}
  illness: {role: sensitive}
models:
  - k-anonymity: 5
steps:
  - generalize: {search: optimal, suppression: 0.05, metric: loss}
  - remove
attacks: [linkage]
measures: [marginals, pairs]
limits: {risk: 0.09}
"""


def problems(text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(InvalidRecipe) as caught:
        Recipe.parse(text)
    return [(problem.line, problem.where, problem.message) for problem in caught.value.problems]


def test_a_good_recipe_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sfumato.yaml"
    file.write_text(GOOD)
    recipe = Recipe.load(file)
    assert recipe.schema.names(Role.QUASI) == ("zip", "age")
    assert recipe.schema.unit == "person"
    assert [model.part_name() for model in recipe.models] == ["k-anonymity"]
    assert [step.part_name() for step in recipe.steps] == ["generalize", "remove"]
    assert recipe.source is not None
    assert Path(recipe.source.location) == tmp_path / "people.csv"
    assert recipe.limits.risk == 0.09


def test_plain_and_yaml_forms_give_the_recipe_back() -> None:
    recipe = Recipe.parse(GOOD)
    assert Recipe.parse(recipe.to_dict()) == recipe
    assert Recipe.parse(recipe.to_yaml()) == recipe


def test_the_public_recipe_keeps_seed_and_places_to_itself() -> None:
    recipe = Recipe.parse(GOOD.replace("  - remove", "  - pseudonymize: {key: secret.key}\n  - remove"))
    public = recipe.public()
    assert "seed" not in public
    assert "data" not in public
    assert "secret.key" not in str(public)
    assert "people.csv" not in str(public)


def test_all_problems_are_reported_at_once_with_their_lines() -> None:
    found = problems(
        "sfumato: 1\n"
        "sed: 3\n"
        "columns:\n"
        "  sex: {role: quasy}\n"
        "  age: {role: quasi, hierachy: {intervals: [5]}}\n"
        "models:\n"
        "  - k-anonymity: {k: 1}\n"
        "  - k-anonimity: {k: 5}\n"
        "measures: marginals\n"
        "limits: {risk: 3}\n"
    )
    assert [line for line, _, _ in found] == [2, 4, 5, 7, 8, 9, 10]
    assert "Did you mean `seed`" in found[0][2]
    assert "Did you mean `hierarchy`" in found[2][2]
    assert found[3][1] == "models.0.k-anonymity.k"
    assert "Did you mean `k-anonymity`" in found[4][2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "starts with `sfumato: 1`"),
        ("- a\n- b\n", "starts with `sfumato: 1`"),
        ("sfumato: 2\ncolumns: {a: quasi}\n", "sfumato: 1"),
        ("sfumato: 1\n", "must name the columns"),
        ("sfumato: 1\ncolumns: {a: quasi}\nmodels: [{k-anonymity: {}}]\n", "is required"),
        ("sfumato: 1\ncolumns: {a: quasi}\nsteps: [{generalize: {}, remove: {}}]\n", "one name with parameters"),
        ("sfumato: 1\ncolumns: {a: quasi}\nseed: -1\n", "greater than or equal to 0"),
        ("sfumato: 1\ncolumns: {a: quasi}\norder: random\n", "'kept'"),
        ("sfumato: 1\ncolumns: {a: quasi}\ncolumns: {b: quasi}\n", "not valid YAML"),
        ("sfumato: 1\ncolumns: {a: [\n", "not valid YAML"),
        ("sfumato: 1\ncolumns: {a: quasi}\ndata: 7\n", "file name"),
        ("sfumato: 1\ncolumns: {a: {role: quasi, hierarchy: {intervals: [5, 7]}}}\n", "multiple"),
        (
            "sfumato: 1\ncolumns: {a: {role: quasi, domain: {lowest: 3}}}\n",
            "a domain is {values: [...]}, {low: ..., high: ...}",
        ),
    ],
)
def test_refusals_say_what_is_wrong(text: str, words: str) -> None:
    assert any(words in message for _, _, message in problems(text))


def test_a_domain_with_one_bound_names_the_other() -> None:
    assert problems("sfumato: 1\ncolumns: {a: {role: quasi, domain: {low: 3}}}\n") == [
        (2, "columns.a.domain.high", "is required")
    ]


def test_norway_stays_norway() -> None:
    recipe = Recipe.parse("sfumato: 1\ncolumns:\n  country: {role: quasi, domain: {values: [NO, SE, 'yes']}}\n")
    domain = recipe.schema.column("country").domain
    assert domain is not None
    assert domain.values == ("NO", "SE", "yes")


def test_a_missing_recipe_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match="sfumato init"):
        Recipe.load(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_a_valid_recipe_once_it_has_columns(name: str) -> None:
    text = preset_text(name).replace("safe-harbor: {}", "safe-harbor: {ages: [age]}")
    recipe = Recipe.parse(text + "columns: {age: {role: quasi}, illness: {role: sensitive}}\n")
    assert recipe.models
    assert recipe.steps
    assert text.startswith("#"), "a preset explains itself"


def test_the_json_schema_knows_every_part() -> None:
    from sfumato.recipe.json_schema import json_schema
    from sfumato.recipe.validate import SECTIONS
    from sfumato.registry import registry

    schema = json_schema()
    for section, kind in SECTIONS.items():
        listed: list[Any] = schema["properties"][section]["items"]["anyOf"]
        named = {next(iter(entry["properties"])) for entry in listed if "properties" in entry}
        assert named == {*registry(kind).names(), *registry(f"graph-{kind}").names()}
    assert "hierarchy.intervals" in schema["$defs"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_recipe_with_or_without_a_mark(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_bytes("sfumato: 1\n# Größe\ncolumns: {größe: quasi}\n".encode(encoding))
    assert list(Recipe.load(tmp_path / "r.yaml").schema.columns) == ["größe"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_recipe_in_another_encoding_is_refused_in_words(encoding: str, tmp_path: Path) -> None:
    for load in (Recipe.load, StudyPlan.load):
        (tmp_path / "r.yaml").write_bytes("sfumato: 1\n# Größe\ncolumns: {größe: quasi}\n".encode(encoding))
        with pytest.raises(NotThatFormat, match="UTF-8"):
            load(tmp_path / "r.yaml")
        with pytest.raises(FileMissing, match="There is no"):
            load(tmp_path / "nowhere.yaml")
