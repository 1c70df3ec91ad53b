"""The table of columns in the report: every column, what was done in words, examples for the owner only."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.dataset import Column
from sfumato.masking.base import Step, UnknownStep, method_of
from sfumato.registry import registry
from sfumato.reports import ColumnPicture, ColumnSummary, ReportData, report_html
from sfumato.reports.figures import column_figures
from sfumato.reports.text import unchanged_columns, widest_attack

draw = np.random.default_rng(3)
ROWS = 200
PEOPLE = pl.DataFrame(
    {
        "name": [f"Person {i}" for i in range(ROWS)],
        "age": draw.integers(20, 99, ROWS),
        "zip": draw.choice(["02141", "02142", "94105"], ROWS),
        "hair": draw.choice(["red", "grey"], ROWS),
        "pay": 1000 * draw.integers(1, 90, ROWS) + 777,
        "note": draw.choice(["x", "y"], ROWS),
    }
)
RECIPE: dict[str, Any] = {
    "sfumato": 1,
    "columns": {
        "name": "identifier",
        "age": {"role": "quasi", "hierarchy": {"intervals": {"widths": [20], "top": 80}}},
        "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
        "hair": {"role": "quasi"},
        "pay": "sensitive",
        "note": "plain",
    },
    "models": [{"k-anonymity": 5}],
    "steps": [
        {"top-bottom-code": {"top": {"pay": 80000}}},
        {"round": {"base": 5000, "columns": ["pay"]}},
        {"generalize": {"lowest": {"age": 1, "zip": 1, "hair": 1}}},
    ],
    "attacks": ["linkage"],
    "measures": ["marginals"],
}


@pytest.fixture(scope="module")
def done() -> sfumato.Protection:
    return sfumato.protect(RECIPE, PEOPLE, seed=1)


@pytest.fixture(scope="module")
def lines(done: sfumato.Protection) -> dict[str, ColumnSummary]:
    return {line.column: line for line in done.report_data.column_table}


def test_every_column_says_what_was_done(lines: dict[str, ColumnSummary]) -> None:
    assert list(lines) == PEOPLE.columns
    assert {name: line.done for name, line in lines.items()} == {
        "name": "removed",
        "age": "bands of 20, top 80+",
        "zip": "last character masked",
        "hair": "all values removed (*)",
        "pay": "top 80000+; then rounded to multiples of 5000",
        "note": "",
    }
    assert [name for name, line in lines.items() if line.unchanged] == ["note"]
    assert not lines["name"].released
    assert [name for name, line in lines.items() if line.nothing_left] == ["hair"]


def test_examples_are_pairs_that_occur(done: sfumato.Protection, lines: dict[str, ColumnSummary]) -> None:
    for name in ("age", "zip", "pay"):
        line = lines[name]
        pairs = zip(
            PEOPLE[name].gather(done.lineage.rows).cast(pl.String),
            done.release.table.column(name).cast(pl.String),
            strict=True,
        )
        assert (line.example_before, line.example_after) in set(pairs)
        assert line.example_before != line.example_after
        assert (line.distinct_before, line.distinct_after) == (
            PEOPLE[name].n_unique(),
            done.release.table.column(name).n_unique(),
        )
    assert lines["name"].example_before is None
    assert lines["note"].example_before is None


def test_the_owner_sees_examples_and_others_do_not(done: sfumato.Protection, lines: dict[str, ColumnSummary]) -> None:
    inside, outside = (report_html(done.report_data, audience) for audience in ("internal", "external"))
    assert f"{lines['pay'].example_before} → {lines['pay'].example_after}" in inside
    assert "1 of 6 columns leaves unchanged: “note”." in inside
    assert "1 of 6 columns leaves unchanged: “note”." in outside
    assert "top 80000+; then rounded to multiples of 5000" in outside
    # Every original pay ends in 777, and no released one does.
    assert re.search(r"\d777\b", inside)
    assert not re.search(r"\d777\b", outside)
    assert all(
        line.example_before is line.example_after is line.distinct_before is None
        for line in done.report_data.external().column_table
    )
    assert ReportData.from_dict(done.report_data.to_dict()).column_table == done.report_data.column_table


def test_a_masked_column_has_nothing_left_and_no_distance(done: sfumato.Protection) -> None:
    figures = {figure.title: figure for figure in column_figures(done.report_data)}
    assert figures["hair"].caption == "Nothing is left of hair: every released value is empty or masked."
    assert "distance" not in figures["hair"].alternative
    assert "Total variation distance" in figures["zip"].caption
    assert "<strong>Nothing left.</strong>" in report_html(done.report_data, "external")


def test_who_decided_and_why_is_shown_to_everybody() -> None:
    line = ColumnSummary(
        column="ht", role="plain", done="", released=True, unchanged=True, decided_by="A. Steward", reason="<b>agreed"
    )
    data = ReportData(
        title="T", created="2026-01-01T00:00:00+00:00", versions={}, manifest={"rows": 3}, files={}, recipe_public={},
        column_table=(line,), columns=(ColumnPicture(column="ht", role="plain", kind="integer", bars=()),),
    )  # fmt: skip
    for page in (report_html(data, "internal"), report_html(data, "external")):
        assert "decided by A. Steward: &lt;b&gt;agreed" in page
        assert "1 of 1 column leaves unchanged: “ht”." in page


@pytest.mark.parametrize("kind", list(registry("method")), ids=lambda kind: kind.part_name())
def test_every_method_has_words_of_its_own(kind: type[Step]) -> None:
    """A method that changes columns says what it did with its published parameters, without the word of a fallback."""
    declared = Column.model_validate({"role": "quasi", "hierarchy": {"intervals": [5]}})
    for example in kind.examples:
        try:
            step = kind.build(example)
        except sfumato.SfumatoError:
            continue  # needs a file
        published = {
            "step": kind.part_name(), "parameters": step.public(), "columns": ["x"], "levels": {"x": 1},
            "groups": [[["x"], 3]],
        }  # fmt: skip
        words = kind.column_in_words(published, "x", declared)
        if not (kind.adds_rows or kind.part_name() == "sample"):
            assert words
            assert "changed by" not in words
            assert "{" not in words
        assert kind.column_in_words({**published, "columns": [], "levels": {}}, "x", declared) == ""


def test_an_unknown_method_is_named() -> None:
    published = {"step": "of-another-package", "columns": ["x"]}
    assert method_of(published) is UnknownStep
    words = UnknownStep.column_in_words(published, "x", Column.model_validate({"role": "quasi"}))
    assert words == "changed by of-another-package"


def test_many_columns_fit_the_summary_and_the_heat_map_scrolls() -> None:
    """The summary names a dozen columns; cells of the heat map keep their size beyond 22 columns."""
    names = [f"c{number}" for number in range(30)]
    lines = [ColumnSummary(column=name, role="plain", done="", released=True, unchanged=True) for name in names]
    values = {f"{a} × {b}": 0.1 for place, a in enumerate(names) for b in names[place + 1 :]}
    data = ReportData(
        title="T", created="2026-01-01T00:00:00+00:00", versions={}, files={}, recipe_public={}, manifest={"rows": 3},
        column_table=tuple(lines),
        columns=tuple(ColumnPicture(column=n, role="plain", kind="", bars=()) for n in names),
        measures=({"measure": "pairs", "value": 0.1, "columns": values, "detail": {}},),
    )  # fmt: skip
    assert unchanged_columns(data).endswith("“c11” and 18 others.")
    page = report_html(data, "internal")
    assert '<th scope="row">c29</th>' in page
    figure = page[page.index('<figure id="figure-pairs">') :]
    assert 'class="scroll" tabindex="0"' in figure[:200]
    assert float(re.search(r'class="wide"[^>]* width="([\d.]+)"', figure)[1]) > 29 * 38  # type: ignore[index]


def test_the_head_of_the_report_has_the_risk_by_undeclared_columns(done: sfumato.Protection) -> None:
    widest = widest_attack(done.report_data)
    assert widest is not None
    assert widest["risk"] == max(attack["risk"] for attack in done.report_data.attacks if attack.get("any_columns"))
    for audience in ("internal", "external"):
        facts = re.search(r'<dl class="facts">.*?</dl>', report_html(done.report_data, audience), re.DOTALL)[0]  # type: ignore[index,arg-type]
        assert "People found, knowing any released columns" in facts
