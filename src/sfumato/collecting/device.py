"""The device's side of a survey: draw a question, randomize the answer, keep what is sent again."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.collecting.random_source import OS_ENTROPY, RandomSource, below
from sfumato.collecting.survey import Survey, SurveyQuestion
from sfumato.data.atomic import locked, replacing, write_secret
from sfumato.data.declared import as_kind
from sfumato.data.table import Table
from sfumato.dataset.domain import RangeDomain
from sfumato.errors import BadParameter, NotThatFormat

SURVEY_KEY = b"sfumato.survey"
"""Key of the Parquet metadata that names the survey of the reports."""

NUMBER_TYPE = "<i4"
"""Reports of numbers are four bytes."""


def randomize_table(survey: Survey, answers: Table, *, source: RandomSource = OS_ENTROPY) -> pl.DataFrame:
    """One report per row of a table with one column per question: columns `question` and `report`.

    For trials and for devices that speak for several people; a person's own device uses :func:`randomize_answer`. A row
    whose answer is missing or none of the possible ones sends the report of a random value, or of the middle of the
    bounds: to refuse the file, or to send nothing, would tell who that is.
    """
    names = list(survey.questions)
    answers.require(names)
    frame, protocols = answers.frame, survey.protocols()
    drawn = below(len(names), frame.height, source)
    reports: list[bytes] = [b""] * frame.height
    for index, name in enumerate(names):
        rows = np.flatnonzero(drawn == index)
        given = _possible(survey.questions[name], frame[name].gather(rows), source)
        encoded = _encoded(protocols[name], survey.questions[name], name, given, source)
        for row, report in zip(rows.tolist(), encoded, strict=True):
            reports[row] = report
    return pl.DataFrame(
        {
            "question": pl.Series([names[i] for i in drawn], dtype=pl.String),
            "report": pl.Series(reports, dtype=pl.Binary),
        }
    )


def _possible(question: SurveyQuestion, answers: pl.Series, source: RandomSource) -> pl.Series:
    """The answers, with a possible one that does not depend on anybody in place of every other."""
    possible = question.answers
    if isinstance(possible, RangeDomain):
        return as_kind(answers, "number").fill_null(possible.middle)
    texts = pl.Series(possible.texts)
    given = as_kind(answers, "category")
    unknown = (~given.is_in(texts.implode())).fill_null(True).arg_true()
    return given.scatter(unknown, texts.gather(below(len(texts), len(unknown), source))) if len(unknown) else given


def write_reports(survey: Survey, reports: pl.DataFrame, path: Path, *, force: bool = False) -> None:
    """Write reports as a Parquet file that names its survey. The order of the reports is that of the answers."""
    import pyarrow.parquet as pq

    table = reports.to_arrow().replace_schema_metadata({SURVEY_KEY: survey.fingerprint().encode()})
    with replacing(path, force=force) as temporary:
        pq.write_table(table, temporary)


def randomize_answer(
    survey: Survey, answers: Mapping[str, object], *, memory: Path | None = None, source: RandomSource = OS_ENTROPY
) -> dict[str, object]:
    """The report of one person as plain data. ``memory`` is a file on the person's own device for repeated reports.

    The memory is locked while a report is drawn, and is on disk before the report is returned: processes that ask at
    once send the same report, and a crash in between sends none. It counts the reports, because the intervals of the
    collector hold for as many of one person as the survey states.
    """
    memoized = survey.repeats is not None and survey.repeats.memoized
    if memoized and memory is None:
        raise BadParameter(
            "The survey is memoized: its privacy loss holds for devices that keep their report.",
            fix="Name a file on this device as `memory`.",
            option="memory",
        )
    if memory is not None and survey.repeats is not None and not memoized:
        raise BadParameter(
            "The survey draws every report anew, so that a device keeps none.",
            fix="Leave out `memory`.",
            option="memory",
        )
    names = list(survey.questions)
    missing = [name for name in names if answers.get(name) is None]
    if missing:
        raise BadParameter(
            f"No answer to {', '.join(missing)}: the device draws a question and must be able to answer it.",
            fix="Give an answer to every question of the survey.",
        )
    if memory is None:
        return _report(survey, answers, _Memory(), source)[0]
    with locked(memory):
        report, kept = _report(survey, answers, _remembered(memory, survey), source)
        document = {
            "survey": survey.fingerprint(),
            "question": kept.question,
            "reports": kept.reports,
            "sent": kept.sent,
        }
        write_secret(memory, json.dumps(document).encode(), force=True)
    return report


@dataclass(frozen=True, kw_only=True)
class _Memory:
    """What a device has reported."""

    question: str | None = None
    reports: Mapping[str, str] = field(default_factory=dict)
    """By answer."""
    sent: int = 0


def _remembered(memory: Path, survey: Survey) -> _Memory:
    if not memory.exists():
        return _Memory()
    try:
        kept = json.loads(memory.read_text(encoding="utf-8"))
        stated, question, reports, sent = kept["survey"], kept["question"], kept["reports"], kept["sent"]
        texts = [question, *reports, *reports.values()]
        sound = all(isinstance(text, str) for text in texts) and isinstance(sent, int) and sent >= len(reports) > 0
        for report in reports.values():
            base64.b64decode(report, validate=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(memory) from None
    if stated != survey.fingerprint():
        raise BadParameter("The memory file belongs to another survey.", fix="Use one memory file per survey.")
    if not sound or question not in survey.questions:
        raise _damaged(memory)
    return _Memory(question=question, reports=reports, sent=sent)


def _damaged(memory: Path) -> NotThatFormat:
    return NotThatFormat(
        f"{memory} is damaged, or is no memory of a device. No report was drawn: a new one costs the loss again.",
        fix="Restore the file. If it is lost, this device must not report to this survey any more.",
        path=str(memory),
    )


def _report(
    survey: Survey, answers: Mapping[str, object], kept: _Memory, source: RandomSource
) -> tuple[dict[str, Any], _Memory]:
    """The report, and the memory after it."""
    if kept.sent >= survey.reports_of_one:
        raise BadParameter(
            f"This device has made all its reports of the survey ({survey.reports_of_one}). More would count as more "
            "people.",
            fix="State more `days` in the survey. A report that did not arrive can be sent again as it was printed.",
        )
    names = list(survey.questions)
    name = kept.question or names[int(below(len(names), 1, source)[0])]
    answer, known = str(answers[name]), kept.reports
    if answer not in known:
        if survey.repeats is not None and survey.repeats.memoized and len(known) >= survey.repeats.answers:
            raise BadParameter(
                "The answer changed more often than the survey's privacy loss covers. Nothing was randomized.",
                fix="State more `answers` in the survey; its loss grows with them.",
            )
        column = pl.Series([answers[name]])
        report = _encoded(survey.protocols()[name], survey.questions[name], name, column, source)[0]
        known = {**known, answer: base64.b64encode(report).decode()}
    document = {"survey": survey.fingerprint(), "question": name, "report": known[answer]}
    return document, _Memory(question=name, reports=known, sent=kept.sent + 1)


def _encoded(
    protocol: Any, question: SurveyQuestion, name: str, answers: pl.Series, source: RandomSource
) -> list[bytes]:
    if answers.null_count():
        raise BadParameter(
            f"Some people have no answer to {name}; sending nothing would tell so.",
            fix="Add a value such as `none` to the question and write it for them.",
        )
    if isinstance(protocol, FrequencyProtocol):
        numbers = {text: i for i, text in enumerate(question.texts)}
        codes = answers.cast(pl.String).replace_strict(numbers, default=None, return_dtype=pl.Int64)
        if codes.null_count():
            raise BadParameter(f"Some answers to {name} are not among its values.", fix="List every value there is.")
        reports = protocol.randomize(codes.to_numpy(), source=source)
        return [row.tobytes() for row in reports]
    try:
        numbers_given = answers.cast(pl.Float64).to_numpy()
    except pl.exceptions.InvalidOperationError:
        raise BadParameter(f"Some answers to {name} are not numbers.") from None
    return [number.tobytes() for number in protocol.randomize(numbers_given, source=source).astype(NUMBER_TYPE)]
