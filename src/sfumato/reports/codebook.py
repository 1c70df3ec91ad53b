"""The codebook and README of a release folder, for its recipients. Made from the release and public facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from sfumato.data.table import ColumnLabels, Table
from sfumato.dataset import Kind
from sfumato.dataset.bound_hierarchy import RANGE_DASH
from sfumato.masking.base import method_of
from sfumato.reports.report_data import ReportData
from sfumato.reports.text import ABOUT_LABELS, summary
from sfumato.wording import counted

__all__ = ["CODEBOOK", "README", "codebook", "readme"]

README, CODEBOOK = "README.md", "codebook.csv"
_MOST_LEVELS = 50
"""A column with more distinct released values shows their number instead."""
_DASHED = f"written as 10{RANGE_DASH}19, with a dash that spreadsheets do not read as a date"
"""How ranges of whole numbers stand in the file."""
_HEAD = ("column", "meaning", "type", "values", "empty_cells", "missing_codes", "changed", "done")


def codebook(report: ReportData, release: Table | None) -> pl.DataFrame:
    """One row per released column: meaning, type, released values, empty cells, and what was done to it.

    ``report`` may be internal: its external copy is used. Without the released table the values are left out.
    """
    public = report.external() if report.audience == "internal" else report
    rows = [_line(public, line.column, release) for line in public.column_table if line.released]
    return pl.DataFrame(rows, schema=dict.fromkeys(_HEAD, pl.String))


def _line(report: ReportData, name: str, release: Table | None) -> dict[str, str]:
    [summary_line] = [line for line in report.column_table if line.column == name]
    declared = report.manifest.get("columns", {}).get(name, {})
    series = release.column(name) if release is not None else None
    labels = release.labels.get(name, ColumnLabels()) if release is not None else ColumnLabels()
    changed = "nothing left" if summary_line.nothing_left else "no" if summary_line.unchanged else "yes"
    return {
        "column": name,
        "meaning": report.about.get("columns", {}).get(name) or labels.label or "",
        "type": str(declared.get("kind") or ("" if series is None else Kind.of(series.dtype))),
        "values": "" if series is None else _values(series, labels.value_labels),
        "empty_cells": "" if series is None else str(series.null_count()),
        "missing_codes": _codes(declared.get("missing_codes", ())),
        "changed": changed,
        "done": "; ".join(filter(None, (summary_line.done, _DASHED if _has_ranges(series) else ""))),
    }


def _has_ranges(series: pl.Series | None) -> bool:
    """Whether released values are ranges of whole numbers."""
    return (
        series is not None and series.dtype == pl.String and bool(series.str.contains(rf"^\d+{RANGE_DASH}\d+$").any())
    )


def _values(series: pl.Series, words: Mapping[object, str]) -> str:
    """The released values: all levels of a category, the range of numbers and dates."""
    known = series.drop_nulls()
    if known.is_empty():
        return ""
    if (series.dtype.is_numeric() or series.dtype.is_temporal()) and not words:
        return f"{known.min()!s} to {known.max()!s}"
    levels = known.unique().sort() if series.dtype != pl.Binary else known.unique()
    if len(levels) > _MOST_LEVELS:
        return f"{len(levels):,} different values"
    return "; ".join(f"{level} = {words[level]}" if level in words else str(level) for level in levels.to_list())


def _codes(codes: Sequence[object]) -> str:
    shown = [f"{code[0]} to {code[1]}" if isinstance(code, list | tuple) else str(code) for code in codes]
    return "; ".join(shown)


def _code(name: str) -> str:
    """A column name in Markdown; characters that would end the code span are replaced."""
    return "`" + "".join(sign if sign.isprintable() and sign != "`" else "·" for sign in name) + "`"


def readme(report: ReportData, *, data: str) -> str:
    """The README of the release folder: what it holds, for whom, how it was protected and what is guaranteed."""
    public = report.external() if report.audience == "internal" else report
    about = {**public.about}
    facts = [f"- **{label}:** {about[key]}" for key, label in ABOUT_LABELS.items() if about.get(key)]
    released = [line for line in public.column_table if line.released]
    rows = public.manifest.get("rows")
    steps = public.manifest.get("steps", ())
    done = [f"- Records: {words}." for step in steps if (words := method_of(step).rows_in_words(step))]
    done += [f"- {_code(line.column)}: {line.done}." for line in released if line.done and not line.unchanged]
    method = (
        ["The owner does not publish the masking method."]
        if about.get("method") == "withheld"
        else done or ["No column was changed."]
    )
    same = [_code(line.column) for line in released if line.unchanged]
    sections: list[tuple[str, list[str]]] = [
        ("", [f"{counted(rows or 0, 'record')}, {counted(len(released), 'column')}, made on {public.created[:10]}."]),
        ("", facts),
        (
            "Files",
            [
                f"- `{data}`: the data.",
                f"- `{CODEBOOK}`: the meaning, type and values of each column, and what was done to it.",
                "- `report.html`: the disclosure report; `report.json` has the same figures for programs.",
                "- `release.json`: how the release was made, with the SHA-256 of every file.",
            ],
        ),
        ("How the data was changed", [*method, "", f"Unchanged: {', '.join(same) if same else 'none'}."]),
        ("What was found, and what is guaranteed", [f"- {sentence}" for sentence in summary(public)]),
        (
            "What recipients should do",
            [
                "Do not try to identify anybody, and do not link the records to other data about people."
                " Empty cells are missing or removed values.",
                *(["Report a suspected identification to the contact above."] if about.get("contact") else []),
            ],
        ),
    ]
    parts = [f"# {public.title}"]
    for title, lines in sections:
        if lines:
            parts += [f"## {title}"] if title else []
            parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
