"""Cross-tabs: what readers see of protected tables, as files, in the terminal and in the reports."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main
from sfumato.reports.figures_page import FIGURES_PAGE
from sfumato.tables.cells import tabulate
from sfumato.tables.cross_tab import CONFIDENTIAL, cross_tab, sdmx_csv

PLAN = """
sfumato: 1
data: town.csv
unit: row
columns:
  county: {role: quasi, kind: category}
  place: {role: quasi, kind: category}
  job: {role: quasi, kind: category}
tables: [[[county, place], job], [job]]
sensitive: {threshold: 4}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two counties of two places; few people have the third job."""
    draw = np.random.default_rng(5)
    places = draw.choice(["x1", "x2", "y1", "y2"], 120)
    jobs = draw.choice(["clerk", "cook", "=1+1"], 120, p=[0.7, 0.15, 0.15])
    people = pl.DataFrame({"county": [place[0] for place in places], "place": places, "job": jobs})
    people.write_csv(tmp_path / "town.csv")
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def lines_of(file: Path) -> list[list[str]]:
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))


def told(text: str) -> set[str]:
    """The statuses that a text names."""
    return {status for status in ("primary", "secondary") if status in text}


def by_place(folder: Path) -> dict[tuple[str | None, ...], str]:
    """The published cells of the file with a line per cell, as text."""
    frame = pl.read_csv(folder / "tables.csv", infer_schema=False).select("county", "place", "job", "value")
    return {line[:3]: CONFIDENTIAL if line[3] is None else line[3] for line in frame.rows()}


def test_a_cross_tab_shows_what_the_file_with_a_line_per_cell_shows(folder: Path) -> None:
    assert main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "out")]) == 0
    cells = by_place(folder / "out")
    head, *lines = lines_of(folder / "out" / "cross-tab-1.csv")
    assert head == ["county", "place", "=1+1", "clerk", "cook", "Total"]
    shown = {
        tuple(None if name == "Total" else name for name in (*line[:2], job)): value
        for line in lines
        for job, value in zip(head[2:], line[2:], strict=True)
    }
    assert shown == cells
    assert CONFIDENTIAL in shown.values()
    assert [line[:2] for line in lines][-1] == ["Total", "Total"]
    head, *lines = lines_of(folder / "out" / "cross-tab-2.csv")
    assert head == ["job", "value"]
    assert {line[0]: line[1] for line in lines} == {
        job or "Total": value for (county, _, job), value in cells.items() if county is None
    }


def test_sdmx_csv_has_every_cell_with_its_status(folder: Path) -> None:
    """A suppressed cell has no value and one status, whether it is sensitive itself or protects another."""
    assert main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "out")]) == 0
    head, *lines = lines_of(folder / "out" / "tables-sdmx.csv")
    assert sorted(head[3:6]) == ["COUNTY", "JOB", "PLACE"]
    shown = {}
    for line in lines:
        one = dict(zip(head, line, strict=True))
        assert (one["STRUCTURE"], one["STRUCTURE_ID"], one["ACTION"]) == ("dataflow", "SFUMATO:TABLES(1.0)", "I")
        free = one["OBS_VALUE"] != ""
        assert (one["OBS_STATUS"], one["CONF_STATUS"]) == (("A", "F") if free else ("Q", "C"))
        place = tuple(None if one[name] == "_T" else one[name] for name in ("COUNTY", "PLACE", "JOB"))
        shown[place] = one["OBS_VALUE"] if free else CONFIDENTIAL
    assert shown == by_place(folder / "out")


def test_names_become_different_identifiers_of_sdmx() -> None:
    cells = pl.DataFrame({"Größe (cm)": ["x"], "grosse cm": ["y"], "2020": ["z"], "action": ["w"], "value": [1]})
    head = sdmx_csv(cells.rename({"grosse cm": "Große-cm"}), name="1 a").splitlines()[0].split(",")
    assert head[3:7] == ["GROE_CM", "GROE_CM_2", "C_2020", "ACTION_2"]


def test_missing_values_are_a_category_by_choice(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    town = pl.read_csv(folder / "town.csv")
    gaps = pl.when(pl.int_range(pl.len()) % 6 == 0).then(None).otherwise(pl.col("job")).alias("job")
    town.with_columns(gaps).write_csv(folder / "town.csv")
    assert main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "out")]) == 2
    assert "`missing: unknown` in the plan" in capsys.readouterr().err
    (folder / "plan.yaml").write_text(PLAN + "missing: unknown\n")
    assert main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "out")]) == 0
    assert by_place(folder / "out")[None, None, "unknown"] == "20"
    assert by_place(folder / "out")[None, None, None] == "120"
    assert main(["measure", str(folder / "out"), "--original", str(folder / "plan.yaml")]) == 0
    (folder / "plan.yaml").write_text(PLAN + "missing: clerk\n")
    assert main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "other")]) == 2
    assert "a value that column `job` has already" in capsys.readouterr().err


def test_the_workbook_has_a_sheet_per_table_and_text_stays_text(folder: Path) -> None:
    import fastexcel

    for name in ("out", "again"):
        assert main(["protect", str(folder / "plan.yaml"), "--out", str(folder / name)]) == 0
    book = fastexcel.read_excel(folder / "out" / "cross-tabs.xlsx")
    assert book.sheet_names == ["table 1", "table 2"]
    for number, sheet in enumerate(book.sheet_names, 1):
        read = book.load_sheet(sheet, header_row=None, dtypes="string").to_polars()
        assert [list(line) for line in read.rows()] == lines_of(folder / "out" / f"cross-tab-{number}.csv")
    same = [(folder / name / "cross-tabs.xlsx").read_bytes() for name in ("out", "again")]
    assert same[0] == same[1]


def test_readers_do_not_see_which_suppressed_cells_are_sensitive(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "out")]) == 0
    terminal = capsys.readouterr().out
    assert CONFIDENTIAL in terminal
    assert "county / place × job" in terminal
    for public in (folder / "out").iterdir():
        if public.suffix != ".xlsx":
            text = public.read_text(encoding="utf-8")
            assert not told(text), public.name
    assert not told(terminal)
    assert "[c]</td>" in (folder / "out" / "report.html").read_text(encoding="utf-8")
    external = FIGURES_PAGE.of_folder(folder / "out", audience="external")
    assert "[c]" in external.json
    assert not told(external.json + external.html)
    internal = FIGURES_PAGE.of_folder(folder / "out")
    assert told(internal.html) == {"primary", "secondary"}
    assert "[c] primary</td>" in internal.html


def test_the_internal_report_calls_exactly_the_sensitive_cells_primary(folder: Path) -> None:
    assert main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "out")]) == 0
    people = pl.read_csv(folder / "town.csv")
    counts = {line[:2]: line[2] for line in people.group_by("place", "job").len().rows()}
    tab = json.loads(FIGURES_PAGE.of_folder(folder / "out").json)["cross_tabs"][0]
    found = {
        (line[1], job): status
        for line, statuses in zip(tab["lines"], tab["statuses"], strict=True)
        for job, status in zip(tab["head"][2:], statuses, strict=True)
        if "Total" not in (line[1], job)
    }
    primary = {place for place, status in found.items() if status == "primary"}
    assert primary == {place for place, count in counts.items() if count < 4} != set()
    assert "secondary" in found.values()


def test_rounded_tables_are_cross_tabs_without_a_mark(folder: Path) -> None:
    (folder / "plan.yaml").write_text(PLAN.replace("sensitive: {threshold: 4}", "round: 5"))
    assert main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "out")]) == 0
    assert CONFIDENTIAL not in (folder / "out" / "cross-tab-1.csv").read_text(encoding="utf-8")
    lines = lines_of(folder / "out" / "cross-tab-1.csv")[1:]
    assert all(int(value) % 5 == 0 for line in lines for value in line[2:])
    assert "[c]" not in (folder / "out" / "report.html").read_text(encoding="utf-8")


def test_a_category_called_total_is_not_the_total() -> None:
    cells = tabulate(pl.DataFrame({"a": ["Total", "x", "x"]}), [["a"]])
    tab = cross_tab(["a"], dict(zip(cells.keys, map(int, cells.values), strict=True)))
    assert dict(tab.lines) == {"Total": 1, "x": 2, "Total (all)": 3}
