"""The privacy unit of a table: a column whose values are people with several rows each, as in panels and visits."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sfumato.dataset import Kind, Role
from sfumato.dataset.data import ROWS_OF_AN_IDENTIFIER
from sfumato.profiling.detectors.finding import Finding

_NUMBERED = frozenset("GHIR")
"""HIPAA classes of numbers that belong to one person."""
_CONSTANT = frozenset({"sex", "race or ethnic origin", "a date of birth", "a year of birth"})
"""What does not change from row to row of a person."""
_FEWEST_PEOPLE = 20
_ROWS_PER_PERSON = (ROWS_OF_AN_IDENTIFIER, 1000)


def person_number(frame: pl.DataFrame, findings: Mapping[str, Finding]) -> str | None:
    """The first column that was recognized as a number of people and whose values repeat; None if there is none."""
    for name, finding in findings.items():
        if finding.role is Role.IDENTIFIER and finding.hipaa in _NUMBERED and _repeats(frame.get_column(name)):
            return name
    return None


def shared_by_rows_of_a_person(frame: pl.DataFrame, findings: Mapping[str, Finding]) -> dict[str, Finding]:
    """Columns without a telling name that are numbers of people: sex, race or birth are the same in all their rows."""
    fixed = [name for name, finding in findings.items() if finding.detector in _CONSTANT]
    found = {}
    for name, finding in findings.items():
        series = frame.get_column(name)
        if finding.role is not Role.UNDECIDED or Kind.of(series.dtype) not in (Kind.INTEGER, Kind.CATEGORY):
            continue
        if not _repeats(series, least=2):
            continue
        same = [other for other in fixed if _constant(series, frame.get_column(other))]
        if same:
            reason = (
                f"{', '.join(f'`{other}`' for other in same)} is the same in all rows of a value: a person's number"
            )
            found[name] = Finding(
                detector="a person's number", role=Role.IDENTIFIER, reason=reason, confidence=0.6, hipaa="R"
            )
    return found


def _repeats(series: pl.Series, *, least: float = _ROWS_PER_PERSON[0]) -> bool:
    known = series.drop_nulls()
    distinct = known.n_unique()
    return distinct >= _FEWEST_PEOPLE and least <= len(known) / distinct <= _ROWS_PER_PERSON[1]


def _constant(person: pl.Series, value: pl.Series) -> bool:
    """Whether the value never changes within a person, and differs between people."""
    table = pl.DataFrame([person.alias("person"), value.alias("value")]).drop_nulls()
    values = table.group_by("person").agg(pl.col("value").n_unique())
    return bool((values["value"] == 1).all()) and table["value"].n_unique() > 1
