"""Surveys under local differential privacy: design one, randomize answers, estimate from the reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.collecting.client_design import client_design
from sfumato.collecting.collector import Collection, QuestionEstimate
from sfumato.collecting.design import SurveyDesign
from sfumato.collecting.design import design_survey as expected_design
from sfumato.collecting.device import randomize_answer, randomize_table, write_reports
from sfumato.collecting.report_scan import parquet_files, tally_reports
from sfumato.collecting.survey import Survey
from sfumato.data import Table, replacing
from sfumato.data.declared import kind_of_values, read_declared
from sfumato.data.yaml_documents import read_text_file
from sfumato.dataset.domain import ValuesDomain
from sfumato.errors import NotThatFormat
from sfumato.ledger.charge import OWNER, Charge
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.register import NOTHING_REGISTERED, recorder, register


@dataclass(frozen=True, kw_only=True)
class SurveyEstimates:
    """Estimates of every question of a survey, with their intervals."""

    survey: Survey
    confidence: float
    questions: tuple[QuestionEstimate, ...]
    collection: Collection
    """The counts of reports that the estimates are made of."""

    def to_dict(self) -> dict[str, Any]:
        """The document that ``sfumato collect estimate --json`` prints."""
        return {
            "survey": self.survey.survey,
            "confidence": self.confidence,
            "questions": [self._question(found) for found in self.questions],
        }

    def to_frame(self) -> pl.DataFrame:
        """One row per value of a question, and per mean: estimate, low and high, as shares or numbers."""
        rows = []
        for found in self.to_dict()["questions"]:
            people = max(1, found["reports"])
            for one in found.get("values", ()):
                low, high = one["low"] / people, one["high"] / people
                shown = {"value": str(one["value"]), "estimate": one["share"], "low": low, "high": high}
                rows.append({"question": found["question"], **shown})
            if "mean" in found:
                mean = found["mean"]
                shown = {"value": "mean", "estimate": mean["mean"], "low": mean["low"], "high": mean["high"]}
                rows.append({"question": found["question"], **shown})
        return pl.DataFrame(rows)

    def save_tally(self, path: str | Path, *, force: bool = False) -> None:
        """Write the counts of reports as JSON, to be merged on another machine."""
        with replacing(path, force=force) as temporary:
            temporary.write_text(json.dumps(self.collection.to_dict()), encoding="utf-8")

    def _question(self, found: QuestionEstimate) -> dict[str, object]:
        shared = {"question": found.question, "protocol": found.protocol, "reports": found.reports}
        document: dict[str, object] = {**shared, "people_at_least": found.people}
        answers = self.survey.questions[found.question].answers
        if found.frequencies is not None and isinstance(answers, ValuesDomain):
            columns = zip(
                answers.values, found.frequencies.counts, found.frequencies.shares,
                found.frequencies.low, found.frequencies.high, strict=True,
            )  # fmt: skip
            document["values"] = [
                {"value": value, "count": float(count), "share": float(share),
                 "low": float(low), "high": float(high)}
                for value, count, share, low, high in columns
            ]  # fmt: skip
        if found.mean is not None:
            document["mean"] = {"mean": found.mean.mean, "low": found.mean.low, "high": found.mean.high}
        if found.quantiles:
            names = ("chance", "value", "low", "high")
            document["quantiles"] = [dict(zip(names, row, strict=True)) for row in found.quantiles]
            document["histogram"] = list(found.histogram)
        return document


def design_survey(
    survey: Survey | str | Path, *, client: str | Path | None = None, force: bool = False
) -> SurveyDesign:
    """Protocol, expected error and privacy loss of every question, before anybody is asked.

    Parameters
    ----------
    survey
        A survey, or its YAML file.
    client
        File for the public parameters that devices need. If the survey names a data set with a ledger, the loss of one
        person in the whole survey is charged first, once for the same survey, and the survey is registered.
    """
    loaded = _loaded(survey)
    designed = expected_design(loaded)
    if client is not None:
        with replacing(client, force=force) as temporary:  # a place that cannot be written is refused before the charge
            temporary.write_text(json.dumps(client_design(loaded), indent=1) + "\n", encoding="utf-8")
            _charge_and_register(loaded, temporary, Path(client).name)
    return designed


def _charge_and_register(survey: Survey, written: Path, name: str) -> None:
    """Charge a survey about the people of a data set, and enter it in the register, once each."""
    dataset = survey.dataset
    if dataset is None or dataset.ledger is None:
        return
    ledger, name_of = Ledger.open(dataset.ledger), f"survey {survey.survey}"
    public = {"fingerprint": survey.fingerprint(), "loss": str(survey.loss())}
    charge = Charge.of_run(survey.loss(), unit=dataset.privacy_unit, name=name_of, public=public)
    paid = ledger.charge(charge, dataset=dataset.dataset, analyst=OWNER, once=True)
    waiting = {line.entry for line in register(ledger, dataset=dataset.dataset) if line.state == NOTHING_REGISTERED}
    record = recorder(
        ledger=ledger, dataset=dataset.dataset, kind="survey", name=name, plan=survey.public(), charges=(paid.entry,)
    )
    if paid.entry in waiting and record is not None:
        record(written)


def randomize_answers(
    survey: Survey | str | Path,
    answers: object,
    *,
    memory: str | Path | None = None,
    out: str | Path | None = None,
    force: bool = False,
) -> dict[str, object] | pl.DataFrame:
    """Turn answers into reports.

    Parameters
    ----------
    answers
        A mapping from question to answer is one person, whose report is returned. A file or a table with one row per
        person and one column per question is for trials: a table of reports.
    memory
        File on the person's own device that keeps the report of one person for repeats.
    out
        Parquet file for the reports of a table.
    """
    loaded = _loaded(survey)
    if isinstance(answers, Mapping):
        return randomize_answer(loaded, answers, memory=None if memory is None else Path(memory))
    kinds: dict[str, str | None] = {
        name: kind_of_values(one.answers.values) if isinstance(one.answers, ValuesDomain) else "number"
        for name, one in loaded.questions.items()
    }
    table = answers if isinstance(answers, Table) else read_declared(answers, kinds)
    reports = randomize_table(loaded, table)
    if out is not None:
        write_reports(loaded, reports, Path(out), force=force)
    return reports


def estimate_survey(
    survey: Survey | str | Path,
    reports: Sequence[str | Path] = (),
    *,
    tallies: Sequence[str | Path] = (),
    engine: str | None = None,
    confidence: float = 0.95,
    copies: int | None = None,
) -> SurveyEstimates:
    """Estimate shares, means and distributions of all people, with intervals.

    Parameters
    ----------
    reports
        Parquet files or JSON lines of reports; with an ``engine`` also folders and patterns of Parquet files.
    tallies
        Counts of reports that :meth:`SurveyEstimates.save_tally` wrote elsewhere.
    engine
        ``duckdb`` or ``spark``, which count in parallel.
    confidence
        Probability that an interval covers.
    copies
        Most reports of one person among ``reports`` that are the same draw, if the survey is memoized.
    """
    loaded, paths = _loaded(survey), [Path(path) for path in reports]
    if engine is not None and paths:
        collection = tally_reports(engine, loaded, parquet_files(paths))
    else:
        collection = Collection(loaded)
        for path in paths:
            collection.add_file(path)
    for tally in tallies:
        collection.merge(_stored(Path(tally)))
    found = collection.estimate(confidence=confidence, copies=copies)
    return SurveyEstimates(survey=loaded, confidence=confidence, questions=tuple(found), collection=collection)


def _loaded(survey: Survey | str | Path) -> Survey:
    return survey if isinstance(survey, Survey) else Survey.load(survey)


def _stored(path: Path) -> dict[str, object]:
    try:
        stored = json.loads(
            read_text_file(path, kind="tally", fix="`sfumato collect estimate --tally FILE` writes one.")
        )
        if isinstance(stored, dict) and isinstance(stored.get("questions"), dict):
            return stored
    except ValueError:
        pass
    raise NotThatFormat(
        f"{path} is not a tally.", fix="`sfumato collect estimate --tally FILE` writes one.", path=str(path)
    )
