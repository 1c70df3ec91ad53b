"""Panels and households: numbers of people are never released, and k counts people instead of rows."""

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.dataset import Role
from sfumato.evaluation.checks.people_per_class import PEOPLE
from sfumato.profiling import propose
from sfumato.profiling.recipe_text import to_yaml
from sfumato.recipe import Recipe
from sfumato.recipe.presets import preset_names, preset_text


def panel(name: str = "id", *, people: int = 120, years: int = 6) -> pl.DataFrame:
    draw = np.random.default_rng(8)
    person = np.repeat(np.arange(people), years)
    return pl.DataFrame(
        {
            name: (person * 7 + 1003).astype(float),
            "wave": np.tile(np.arange(years), people),
            "sex": np.where(draw.integers(0, 2, people)[person] == 1, "male", "female"),
            "age": draw.integers(20, 60, people)[person] + np.tile(np.arange(years), people),
            "illness": draw.choice(["none", "flu", "asthma", "gout", "burn"], people * years),
        }
    )


@pytest.mark.parametrize("name", ["id", "pid", "nr", "x3"])
def test_a_repeated_number_is_the_unit_and_an_identifier(name):
    """By its name, or because sex never changes within its values; floats that are whole numbers count as numbers."""
    proposal = propose(panel(name))
    assert proposal.unit == name
    assert proposal.of_role(Role.IDENTIFIER) == (name,)
    assert Recipe.parse(proposal.recipe(k=3)).schema.unit == name


def test_a_place_or_a_wave_is_no_unit():
    frame = panel().drop("id").with_columns(school=pl.Series(np.random.default_rng(1).integers(0, 40, 720)))
    assert propose(frame).unit is None
    assert propose(frame).of_role(Role.IDENTIFIER) == ()


@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_removes_numbers_of_people(preset):
    frame = panel()
    recipe = to_yaml(propose(frame), None, preset=preset_text(preset))
    decided = sfumato.decide(recipe, {"wave": "drop"}, rest="drop", by="me")
    done = sfumato.protect(decided, frame, seed=1, n_targets=20, unmet=True)
    assert "id" not in done.data.columns


def test_a_class_of_k_rows_of_one_person_does_not_count():
    """Sixty people with six rows each: k-anonymity of rows holds for k = 5, of people it does not."""
    frame = panel(people=60).with_columns(pl.col("age").first().over("id"))
    recipe = {
        "sfumato": 1, "unit": "id",
        "columns": {"id": "identifier", "wave": "drop", "sex": "quasi", "illness": "sensitive",
                    "age": {"role": "quasi", "hierarchy": {"intervals": [10]}}},
        "models": [{"k-anonymity": 5}], "steps": [{"generalize": {"suppression": 0.1}}],
    }  # fmt: skip
    done = sfumato.protect(recipe, frame, seed=1, n_targets=20)
    verdicts = {verdict.model: verdict for verdict in done.verdicts}
    assert verdicts["k-anonymity"].holds
    assert not verdicts[PEOPLE].holds
    assert verdicts[PEOPLE].worst < 5
    assert any("one row per person" in problem for problem in done.unmet)
    coarser = {**recipe, "steps": [{"generalize": {"lowest": {"age": 2}}}]}
    enough = sfumato.protect(coarser, frame, seed=1, n_targets=20)
    assert enough.unmet == ()
    rows = sfumato.protect({**recipe, "unit": "row"}, frame, seed=1, n_targets=20)
    assert rows.unmet == ()
    nobody = sfumato.protect(
        {key: value for key, value in recipe.items() if key != "unit"}, frame, seed=1, n_targets=20
    )
    assert "no `unit` is declared" in nobody.unmet[0]


def test_household_numbers_leave_as_pseudonyms(tmp_path):
    draw = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "hhid": np.arange(300) // 3 + 5000,
            "sex": draw.choice(["male", "female"], 300),
            "age": draw.integers(0, 90, 300),
        }
    )
    for text in (propose(frame).recipe(k=3), to_yaml(propose(frame), None, preset=preset_text("research-file"))):
        done = sfumato.protect(Recipe.parse(text, base=tmp_path), frame, seed=1, n_targets=20)
        assert [v.model for v in done.verdicts if not v.holds] == ["people with several rows"]
        released = done.judged_release.table.column("hhid").cast(pl.String)
        assert not set(released) & set(frame["hhid"].cast(pl.String))
        assert released.n_unique() <= 100
