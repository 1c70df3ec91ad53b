"""The section of a report that says what synthetic rows may be used for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from report_sample import sample_account
from sfumato.reports.page import report_html
from sfumato.reports.synthetic_use import synthetic_use


def marginal(*columns: str, measured: bool = True, cells: int = 6, error: float = 0.01) -> dict[str, Any]:
    return {"columns": list(columns), "measured": measured, "cells": cells, "error": error}


MANIFEST = {
    "steps": [
        {"step": "noise"},
        {
            "step": "private-synthesis",
            "marginals": [
                marginal("age"),
                marginal("job"),
                marginal("ill", cells=1),
                marginal("age", "job", error=0.02),
                marginal("age", "ill"),
                marginal("ill", "job", measured=False),
            ],
        },
    ]
}


def test_pairs_are_usable_only_if_they_were_measured_and_told_apart() -> None:
    [use] = synthetic_use(MANIFEST)
    assert use.level == "row"
    assert [one.columns for one in use.columns] == [("age",), ("job",), ("ill",)]
    assert [one.columns for one in use.measured] == [("age", "job")]
    assert [one.columns for one in use.assumed] == [("age", "ill"), ("ill", "job")]
    words = " ".join(use.sentences)
    assert "1 of 3 pairs" in words
    assert "Not measured: 2 pairs" in words
    assert "values of ill apart" in words


def test_households_have_a_table_of_their_own() -> None:
    step = {**MANIFEST["steps"][1], "household_marginals": [marginal("region")]}
    assert [use.level for use in synthetic_use({"steps": [step]})] == ["household", "member"]


def test_the_page_has_the_section_only_for_private_synthetic_rows() -> None:
    report = sample_account()
    assert "may be used for" not in report_html(report, "internal")
    synthetic = replace(report, manifest={**report.manifest, **MANIFEST})
    for audience in ("internal", "external"):
        page = report_html(synthetic, audience)
        assert "What this synthetic file may be used for" in page
        assert "age × job" in page
        assert "± 2%" in page
