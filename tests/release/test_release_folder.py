"""What a release folder tells its recipient: README, codebook, purpose and sign-off, and nothing private."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pypdf
import pytest
from playwright.sync_api import sync_playwright

import programs
import sfumato
from sfumato.data.table import ColumnLabels, Table
from sfumato.errors import InvalidRecipe
from sfumato.reports import codebook, report_html

draw = np.random.default_rng(7)
ROWS = 200
PEOPLE = pl.DataFrame(
    {
        "name": [f"Person {i}" for i in range(ROWS)],
        "age": draw.integers(20, 79, ROWS),
        "pay": 1000 * draw.integers(1, 90, ROWS) + 777,
        "ward": draw.choice(["east", "west"], ROWS),
    }
).with_columns(ward=pl.when(pl.int_range(ROWS) == 0).then(None).otherwise("ward"))
ABOUT: dict[str, Any] = {
    "purpose": "Study of waiting times",
    "recipient": "University of Testing",
    "legal_basis": "Contract 12/2026",
    "terms": "CC BY 4.0",
    "contact": "data@example.org",
    "reevaluate": "2028-01-31",
    "prepared_by": "Pat Preparer",
    "columns": {"age": "age at admission in years"},
}


def recipe(**about: Any) -> dict[str, Any]:
    return {
        "sfumato": 1,
        "title": "Hospital stays",
        "about": {**ABOUT, **about},
        "columns": {
            "name": "identifier",
            "age": {"role": "quasi", "hierarchy": {"intervals": {"widths": [20], "top": 70}}},
            "pay": "sensitive",
            "ward": {"role": "plain", "missing_codes": ["n/a"]},
        },
        "models": [{"k-anonymity": 5}],
        "steps": [{"round": {"base": 5000, "columns": ["pay"]}}, {"generalize": {"lowest": {"age": 1}}}],
        "attacks": ["linkage"],
        "measures": ["marginals"],
    }


def released(tmp_path: Path, **about: Any) -> tuple[sfumato.Protection, Path]:
    done = sfumato.protect(recipe(**about), PEOPLE, seed=1)
    done.save(tmp_path / "release", suffix=".csv")
    return done, tmp_path / "release"


def test_the_recipient_gets_a_readme_and_a_codebook(tmp_path: Path) -> None:
    _, folder = released(tmp_path)
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# Hospital stays\n\n200 records, 3 columns")
    for words in ("**Purpose:** Study of waiting times", "2028-01-31", "- `age`: bands of 20, top 70+.", "`ward`"):
        assert words in text
    book = {row["column"]: row for row in pl.read_csv(folder / "codebook.csv", infer_schema=False).to_dicts()}
    assert list(book) == ["age", "pay", "ward"]
    assert book["age"]["meaning"] == "age at admission in years"
    assert book["age"]["values"] == "20–39; 40–59; 60–69; >= 70"
    dash = "written as 10–19, with a dash that spreadsheets do not read as a date"
    assert book["age"]["done"] == f"bands of 20, top 70+; {dash}"
    assert dash not in book["pay"]["done"] + book["ward"]["done"]
    assert book["pay"]["values"] == "0 to 90000"
    assert (book["ward"]["values"], book["ward"]["empty_cells"]) == ("east; west", "1")
    assert book["ward"]["missing_codes"] == "n/a"
    assert [row["changed"] for row in book.values()] == ["yes", "yes", "no"]
    manifest = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert list(manifest["files"]) == ["data.csv", "README.md", "codebook.csv", "report.html", "report.json"]
    assert sfumato.check(folder, original=PEOPLE).holds


def test_nothing_private_goes_out(tmp_path: Path) -> None:
    """Names, unrounded pay (each ends in 777), and who prepared the release stay inside."""
    done, folder = released(tmp_path)
    private = re.compile(r"\b\d+777\b|Person \d|Pat Preparer")
    for file in folder.iterdir():
        assert not private.search(file.read_text(encoding="utf-8")), file.name
    assert private.search(report_html(done.report_data, "internal"))


def test_value_labels_of_values_that_are_not_released_stay_inside() -> None:
    done = sfumato.protect(recipe(), PEOPLE, seed=1)
    frame = done.release.table.frame
    labels = {"ward": ColumnLabels(label="Ward of <stay>", value_labels={"east": "East wing", "south": "Burnt down"})}
    book = codebook(done.report_data, Table(frame=frame, labels=labels))
    [line] = book.filter(pl.col("column") == "ward").to_dicts()
    assert line["values"] == "east = East wing; west"
    assert line["meaning"] == "Ward of <stay>"


def test_a_withheld_method_is_not_in_the_release(tmp_path: Path) -> None:
    done, folder = released(tmp_path, method="withheld")
    for file in folder.iterdir():
        assert not re.search('bands of|multiples of|"?base"?:|generalize', file.read_text(encoding="utf-8")), file.name
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "does not publish the masking method" in text
    assert "Unchanged: `ward`." in text
    assert json.loads((folder / "release.json").read_text(encoding="utf-8"))["steps"] == []
    # The attacks of protect still know the method, and the owner's report names it.
    assert done.release.manifest["steps"]
    assert "bands of 20, top 70+" in report_html(done.report_data, "internal")
    assert sfumato.check(folder, original=PEOPLE).holds


def test_missing_fields_are_lines_to_fill_in_for_the_owner() -> None:
    plain = {key: value for key, value in recipe().items() if key != "about"}
    data = sfumato.protect(plain, PEOPLE, seed=1).report_data
    inside = report_html(data, "internal")
    for label in ("Purpose", "Recipient", "Legal basis", "Risk to be evaluated again by", "Prepared by", "Approved by"):
        assert f'<dt>{label}</dt><dd class="blank"></dd>' in inside
    outside = report_html(data, "external")
    assert 'class="blank"' not in outside
    assert "Approved by" not in outside


def test_the_about_section_is_checked_and_kept() -> None:
    parsed = sfumato.Recipe.parse(recipe())
    assert sfumato.Recipe.parse(parsed.to_yaml()).about == parsed.about
    assert "prepared_by" not in parsed.public()["about"]
    with pytest.raises(InvalidRecipe, match="purpos"):
        sfumato.Recipe.parse(recipe(purpos="x"))
    with pytest.raises(InvalidRecipe, match=r"about\.reevaluate"):
        sfumato.Recipe.parse(recipe(reevaluate="soon"))
    with pytest.raises(InvalidRecipe, match=r"about\.columns\.agge"):
        sfumato.Recipe.parse(recipe(columns={"agge": "x"}))


def test_a_title_is_made_of_the_file_name(tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "stays.2026.csv")
    untitled = {key: value for key, value in recipe().items() if key != "title"}
    done = sfumato.protect(untitled, tmp_path / "stays.2026.csv", seed=1)
    assert done.report_data.title == "Release of stays.2026"
    assert done.report_data.external().title == "Release"


@pytest.mark.slow
def test_the_first_printed_page_is_the_summary(tmp_path: Path) -> None:
    done = sfumato.protect(recipe(), PEOPLE, seed=1)
    page, pdf = tmp_path / "report.html", tmp_path / "report.pdf"
    done.report().save(page)
    program, environment = programs.chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=programs.BROWSER_OPTIONS, env=environment)
        tab = browser.new_page()
        tab.goto(page.as_uri())
        tab.pdf(path=pdf)
        browser.close()
    first = pypdf.PdfReader(pdf).pages[0].extract_text()
    assert "Approved by" in first
    assert "Requirements and results" not in first


def test_the_readme_names_a_sample(tmp_path: Path) -> None:
    columns = {"age": "quasi", "pay": "sensitive", "ward": "sensitive"}
    plan = {"sfumato": 1, "columns": columns, "steps": [{"sample": 0.5}], "attacks": []}
    done = sfumato.protect(plan, PEOPLE.drop("name"), unmet=True)
    done.save(tmp_path / "release")
    assert "- Records: a random sample of 50 %." in (tmp_path / "release" / "README.md").read_text(encoding="utf-8")
