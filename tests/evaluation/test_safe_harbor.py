"""HIPAA Safe Harbor: the form of dates, ZIP codes and ages, checked twice, and the preset that asks for it."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.evaluation.counts import count_classes
from sfumato.evaluation.rules import verify
from sfumato.masking.models.safe_harbor import SafeHarbor
from sfumato.profiling import propose, to_yaml
from sfumato.recipe import Recipe
from sfumato.recipe.presets import preset_text
from sfumato.release import State

ALL = {"zips": ["zip"], "dates": ["day"], "births": ["born"], "ages": ["age"], "year": 2026}


def both(frame: pl.DataFrame, **parameters: Any) -> int:
    """Failing rows by the model; the independent check must agree."""
    model = SafeHarbor.build(parameters)
    schema = Schema(columns={name: Column(role=Role.QUASI) for name in frame.columns})
    verdict = model.check(Data.of(Table(frame=frame), schema))
    counts = count_classes(Data.plain(frame), quasi=tuple(frame.columns))
    [second] = verify([{"safe-harbor": model.public()}], counts)
    assert (second.state, second.failing) == (verdict.state, verdict.failing)
    return verdict.failing


ALLOWED = {
    "zip": ["021**", "02***", "000**", "021", "*", "*****", None, "{021**, 022**}", "9"],
    "day": ["1996", "1990s", "1900-1999", "1990-1994", "[1990, 1995)", "{1990, 1996}", "< 1937", "*", None],
    "born": ["1937", "1930s", "< 1937", "<= 1936", "< 1950", "1900-1999", "2026", "*", None],
    "age": ["89", "89.5", "90", "90.0", ">= 90", "90+", "0-4", "80-89", ">= 85", "*", None],
}
BROKEN = {
    "zip": ["02141", "0214*", "036**", "893", "02141-1234", "{021**, 036**}", "2141"],
    "day": ["1996-12", "1996-12-19", "1996-Q4", "1996-W51", "Dec 1996", "12/19/1996", "[1996-01-02, 1996-02-03]", "96"],
    "born": ["1936", "1920s", "< 1936", "<= 1935", "< 1900", "1900-1936", "1941-08", "1941-08-06"],
    "age": ["91", "101", "90-94", "95-99", ">= 95", "90.5", "91.0", "young"],
}  # fmt: skip


@pytest.mark.parametrize("column", ALLOWED)
def test_what_the_rule_allows_and_what_it_does_not(column: str) -> None:
    kind = next(kind for kind, named in ALL.items() if named == [column])
    for values, failing in ((ALLOWED[column], 0), (BROKEN[column], 1)):
        for value in values:
            frame = pl.DataFrame({column: pl.Series([value, value], dtype=pl.String)})
            assert both(frame, **{kind: [column], "year": 2026}) == 2 * failing, value


def test_rows_are_counted_once_whatever_columns_break_the_rule() -> None:
    frame = pl.DataFrame({"zip": ["02141", "021**", "021**"], "age": ["95", "95", "40"], "other": ["a", "b", "c"]})
    assert both(frame, zips=["zip"], ages=["age"]) == 2


def test_dates_that_nobody_named_fail() -> None:
    days = [date(1996, 12, 19), None, date(1997, 1, 2)]
    assert both(pl.DataFrame({"zip": ["021**"] * 3, "seen": days}), zips=["zip"]) == 2
    assert both(pl.DataFrame({"zip": ["021**"] * 3, "seen": ["1996-12-19", None, "1997-01-02"]}), zips=["zip"]) == 2
    assert both(pl.DataFrame({"zip": ["021**"] * 3, "seen": ["1996-12-19", None, "a note"]}), zips=["zip"]) == 0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("0129356 -<>=,.[]{}*sQW+", max_size=9), min_size=1, max_size=30), st.sampled_from([*ALL][:4]))
def test_the_two_readings_agree_on_odd_labels(labels: list[str], kind: str) -> None:
    failing = both(pl.DataFrame({"value": labels}), **{kind: ["value"], "year": 2026})
    assert 0 <= failing <= len(labels)


def test_a_list_of_small_areas_replaces_the_usual_one() -> None:
    frame = pl.DataFrame({"zip": ["555**", "036**"]})
    assert both(frame, zips=["zip"], small=["555"]) == 1
    assert both(frame, zips=["zip"], small=[]) == 0


def test_births_need_the_year_and_columns_must_be_named() -> None:
    for parameters, words in (({}, "name the columns"), ({"births": ["born"]}, "need `year`")):
        with pytest.raises(sfumato.SfumatoError, match=words):
            SafeHarbor.build(parameters)


def hospital() -> pl.DataFrame:
    rows = 400
    return pl.DataFrame(
        {
            "name": [f"Ann{chr(97 + i % 26)} B{chr(97 + i // 26 % 26)}ell" for i in range(rows)],
            "zip": [["02141", "02139", "03601", "94105"][i % 4] for i in range(rows)],
            "city": [["Cambridge", "Boston", "Acworth", "San Francisco"][i % 4] for i in range(rows)],
            "birth_date": [date(1900 + i % 120, 1 + i % 12, 1 + i % 28) for i in range(rows)],
            "admitted": [date(2020 + i % 5, 1 + i % 12, 1 + i % 28) for i in range(rows)],
            "age": [i % 105 for i in range(rows)],
            "diagnosis": [["asthma", "flu", "HIV"][i % 3] for i in range(rows)],
        }
    )


def test_the_preset_gives_recognized_columns_the_form_of_the_rule() -> None:
    """Before, the preset left it to the reader: ZIP codes and months of birth could leave as they were."""
    people = hospital()
    recipe = to_yaml(propose(people), None, preset=preset_text("hipaa-safe-harbor"))
    done = sfumato.protect(recipe, people, seed=1, n_targets=20)
    made = done.release.table.frame
    states = {verdict.model: verdict.state for verdict in done.verdicts}
    assert states == {"k-anonymity": State.HOLDS, "safe-harbor": State.HOLDS}
    assert {"name", "city"}.isdisjoint(made.columns)
    assert {*made["zip"].to_list()} <= {"021**", "000**", "941**", "*"}
    year = date.today().year
    assert {*made["birth_date"].to_list()} & {f"< {year - 89}", "*"}
    shown = {"zips": ["zip"], "births": ["birth_date"], "dates": ["admitted"], "ages": ["age"], "year": year}
    assert both(made, **shown) == 0
    assert shown.items() <= Recipe.parse(recipe).models[1].public().items()


def test_a_preset_for_columns_without_dates_places_and_ages() -> None:
    recipe = to_yaml(propose(pl.DataFrame({"sex": ["F", "M"] * 50})), None, preset=preset_text("hipaa-safe-harbor"))
    assert [model.part_name() for model in Recipe.parse(recipe).models] == ["k-anonymity"]
    assert "no date, ZIP code or age was found" in recipe
