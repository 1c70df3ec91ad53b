"""JSON Schema of ``report.json``: the form of the report's data for programs, from typed models.

The models forbid unknown keys. A test reads reports of every kind with them, so that the schema cannot fall behind
what is written. Keys of the owner are empty or missing in the external report.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from sfumato.attacks import Discloses
from sfumato.release import Standing, State
from sfumato.reports.report_data import Audience


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class VerdictEntry(_Entry):
    """Verdict of a check or a privacy model."""

    model: str
    column: str | None = None
    """The sensitive column that the model is about."""
    state: State
    wanted: float | None = None
    """The required value."""
    worst: float | None = None
    """Owner: the worst value over all equivalence classes."""
    failing: int = 0
    """Owner: rows in failing classes."""
    reason: str = ""
    """Owner: the reason in words."""
    exact: bool = False
    """Owner: whether it compares with the original."""


class AttackEntry(_Entry):
    """Result of an attack: the share of targets about whom it was right, or the reason why there is none."""

    attack: str
    discloses: Discloses
    setting: str = ""
    """A few words that distinguish this configuration from others of the same attack."""
    risk: float | None
    """Share of correct guesses; null if the attack has no result, never 0 instead."""
    low: float | None = None
    high: float | None = None
    """The ends of the interval of the risk; in an external report rounded outwards."""
    level: float | None = None
    """Confidence level of the interval."""
    baseline: float | None = None
    """Success rate without the release."""
    control: float | None = None
    """Success rate of the same attack on people who are not in the release."""
    reference: float | None = None
    """What is deducted before the risk is compared with a limit."""
    judged: float | None = None
    """Owner: the value that limits are compared with."""
    excess: float | None = None
    """Owner: risk beyond baseline and control, as a share of what was left to learn."""
    knows: tuple[str, ...] = ()
    """Columns that the attacker knows."""
    any_columns: bool = False
    """Whether the attacker knows columns that the owner did not declare."""
    counts: Literal["people", "rows"] = "people"
    """What a target is."""
    secret: str | None = None
    """The column that the attacker wants to know."""
    threat: str = ""
    truth: str = ""
    """How correct guesses were determined."""
    outside: bool = False
    """Whether the attacker had an outside file."""
    stopped: bool = False
    """Whether time was up before all targets were processed."""
    reason: str = ""
    """Why there is no result."""
    tried: int | None = None
    """Owner: number of targets."""
    planned: int | None = None
    """Owner: number of targets that were planned."""
    hits: float | None = None
    """Owner: expected number of correct guesses."""
    claims: int | None = None
    """Owner: number of targets for whom the attack made a guess."""
    precision: float | None = None
    """Owner: hits by claims."""
    certain: int | None = None
    """Owner: number of guesses with one candidate only."""
    certain_hits: int | None = None
    """Owner: those of them that are correct."""
    parameters: dict[str, JsonValue] = {}
    """Owner."""
    detail: dict[str, JsonValue] = {}
    """Owner: further results of the attack."""
    without: dict[str, dict[str, float]] = {}
    """Owner: for each known column the risk, with its interval, if the attacker does not know it."""


class LimitEntry(_Entry):
    """A limit on risk, and what was compared with it."""

    limit: str
    wanted: float
    value: float | None
    """The largest judged risk; null if no attack of this kind has a result."""
    met: bool | None
    """null if it could not be judged; only true counts as met."""
    attack: str | None = None
    """Owner: the attack with the largest judged risk."""
    stopped: tuple[str, ...] = ()
    """Owner: attacks that ran out of time or memory."""
    accepted: dict[str, JsonValue] = {}
    """Who accepted attackers who know undeclared columns, why, and the value accepted."""


class MeasureEntry(_Entry):
    """Value of a measure of risk or utility, or the reason why it has none."""

    measure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    columns: dict[str, JsonValue] = {}
    """Owner: values by column."""
    detail: dict[str, JsonValue] = {}
    reason: str = ""


class BarEntry(_Entry):
    """A category or range of a column."""

    label: str
    before: float | None
    """Owner: share of the original rows."""
    after: float
    """Share of the released rows."""


class ColumnPictureEntry(_Entry):
    """A column before and after, in at most about twenty bars."""

    column: str
    role: str
    kind: str
    bars: tuple[BarEntry, ...]
    note: str
    """How the values were grouped into bars."""
    nothing_left: bool
    """Whether every released value is empty or ``*``."""


class ColumnSummaryEntry(_Entry):
    """A line of the table of columns."""

    column: str
    role: str
    done: str
    """What the steps did to it."""
    released: bool
    unchanged: bool
    decided_by: str
    reason: str
    nothing_left: bool
    example_before: str | None
    """Owner."""
    example_after: str | None
    """Owner."""
    distinct_before: int | None
    """Owner."""
    distinct_after: int | None


class AdviceEntry(_Entry):
    """What to change about an attack that exceeds its limit."""

    attack: str
    discloses: Discloses
    finding: str
    changes: tuple[str, ...]


class ReportDocument(_Entry):
    """Report of a release for the owner (``internal``) or for outside readers (``external``)."""

    report: Literal[1]
    """Version of this document."""
    audience: Audience
    standing: Standing
    """All models and limits together. A release with something unchecked, or without a limit on risk, is not judged."""
    answer: tuple[str, ...]
    """The summary in sentences."""
    left_out: tuple[str, ...]
    """What an external report leaves out."""
    title: str
    created: str
    """ISO 8601 with time zone."""
    versions: dict[str, str]
    """Library to version."""
    manifest: dict[str, JsonValue]
    """The public manifest of the release."""
    files: dict[str, str]
    """Released file to SHA-256."""
    recipe_public: dict[str, JsonValue]
    recipe: dict[str, JsonValue] | None
    """Owner: the recipe as it was run."""
    original_rows: int | None
    """Owner."""
    original_columns: tuple[str, ...] | None
    """Owner."""
    outcomes: tuple[dict[str, JsonValue], ...]
    """Owner: what each step did."""
    verdicts: tuple[VerdictEntry, ...]
    """Owner: the verdicts in full. Those for others are in the manifest."""
    attacks_before: tuple[AttackEntry, ...]
    """Owner: the same attacks on the original without identifiers."""
    attacks: tuple[AttackEntry, ...]
    measures: tuple[MeasureEntry, ...]
    limits: tuple[LimitEntry, ...]
    columns: tuple[ColumnPictureEntry, ...]
    released_columns: tuple[ColumnPictureEntry, ...]
    """Pictures of the released table alone, where the release promises differential privacy."""
    column_table: tuple[ColumnSummaryEntry, ...]
    riskiest: tuple[int, ...] | None
    """Owner: row numbers (from 1) of the original's records that are easiest to find."""
    about: dict[str, JsonValue]
    pictures: dict[str, JsonValue]
    """The pictures as data: the kind of chart, its rows and its width."""
    advice: tuple[AdviceEntry, ...] = ()
    """Owner."""
    compliance: tuple[dict[str, JsonValue], ...] = ()
    """Owner: how the report answers the points of laws and guidelines."""


def report_schema() -> dict[str, object]:
    """The JSON Schema of ``report.json``."""
    schema = ReportDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "sfumato report"}
