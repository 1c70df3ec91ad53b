"""The collector's side of a survey: add up reports from files or a stream, merge tallies, estimate."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.collecting.device import NUMBER_TYPE, SURVEY_KEY
from sfumato.collecting.estimates import FrequencyEstimate, MeanEstimate, NumberTally, Tally
from sfumato.collecting.frequency_protocol import FrequencyProtocol, Reports
from sfumato.collecting.survey import Survey
from sfumato.data.read_write import require_file
from sfumato.errors import BadParameter, NotThatFormat

_ROWS = 1 << 18
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, kw_only=True)
class QuestionEstimate:
    """Estimates of one question: of a list of values, or of a number."""

    question: str
    protocol: str
    reports: int
    people: int
    """The fewest people that the reports can be of."""
    frequencies: FrequencyEstimate | None = None
    mean: MeanEstimate | None = None
    quantiles: tuple[tuple[float, float, float, float], ...] = ()
    """Chance, estimate, low and high."""
    histogram: tuple[float, ...] = ()


class Collection:
    """Tallies of all questions of a survey; collections of parts of the reports can be merged.

    >>> smoker = "smoker: {domain: {values: ['no', 'yes']}}"
    >>> survey = Survey.parse(f"{{survey: poll, epsilon: 1, people: 100, questions: {{{smoker}}}}}")
    >>> Collection(survey).reports
    0
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self._protocols = survey.protocols()
        self._tallies: dict[str, Tally | NumberTally] = {}

    @property
    def reports(self) -> int:
        """Number of reports counted so far."""
        return sum(tally.reports for tally in self._tallies.values())

    def add(self, question: str, reports: list[bytes]) -> None:
        """Count reports of one question."""
        width = self._width(question)
        if any(len(report) != width for report in reports):
            raise BadParameter(f"Reports of {question} have {width} bytes; some have another length.")
        self._add(question, np.frombuffer(b"".join(reports), np.uint8).reshape(-1, width))

    def _width(self, question: str) -> int:
        if question not in self._protocols:
            raise BadParameter("A report is about a question that the survey does not ask.")
        protocol = self._protocols[question]
        return protocol.width if isinstance(protocol, FrequencyProtocol) else np.dtype(NUMBER_TYPE).itemsize

    def _add(self, question: str, reports: Reports) -> None:
        protocol = self._protocols[question]
        if len(reports) == 0:
            return
        if isinstance(protocol, FrequencyProtocol):
            self._merge(question, protocol.tally(reports))
        else:
            self._merge(question, protocol.tally(np.ascontiguousarray(reports).view(NUMBER_TYPE).ravel()))

    def _merge(self, question: str, tally: Tally | NumberTally) -> None:
        known = self._tallies.get(question)
        self._tallies[question] = tally if known is None else known + tally  # type: ignore[operator]

    def add_file(self, path: Path) -> None:
        """Count the reports of a Parquet file (columns `question`, `report`) or of JSON lines, in parts."""
        require_file(path)
        if path.suffix == ".parquet":
            self._add_parquet(path)
        else:
            for question, reports in _json_lines(path, self.survey):
                self.add(question, reports)

    def _add_parquet(self, path: Path) -> None:
        file = self._checked(path)
        for batch in file.iter_batches(batch_size=_ROWS, columns=["question", "report"]):
            self.add_batch(batch)

    def _checked(self, path: Path) -> Any:
        """The open Parquet file of reports of this survey; any other file is refused."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            file = pq.ParquetFile(path)
        except pa.ArrowInvalid:
            raise NotThatFormat(f"{path} is not a Parquet file.", path=str(path)) from None
        if not {"question", "report"} <= set(file.schema_arrow.names):
            raise NotThatFormat(f"{path} has no columns `question` and `report`.", path=str(path))
        stated = (file.schema_arrow.metadata or {}).get(SURVEY_KEY, b"")
        if stated.decode() != self.survey.fingerprint():
            raise BadParameter(f"{path} holds reports of another survey, or of another version of it.")
        return file

    def check_file(self, path: Path) -> None:
        """Refuse a file that holds no reports of this survey, from its footer alone."""
        require_file(path)
        self._checked(path).close()

    def add_batch(self, batch: Any) -> None:
        """Count the reports of an Arrow record batch with the columns `question` and `report`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        asked = batch.column(0)
        for question in pc.unique(asked).to_pylist():
            width = self._width(question)
            rows = batch.column(1).filter(pc.equal(asked, question)).cast(pa.large_binary())
            if rows.null_count or not pc.all(pc.equal(pc.binary_length(rows), width)).as_py():
                raise BadParameter(f"Reports of {question} have {width} bytes; some have another length.")
            start = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset]
            data = np.frombuffer(rows.buffers()[2], np.uint8)[start : start + width * len(rows)]
            self._add(question, data.reshape(-1, width))

    def merge(self, stored: dict[str, Any]) -> None:
        """Add a tally that :meth:`to_dict` wrote on another machine."""
        if stored.get("survey") != self.survey.fingerprint():
            raise BadParameter("The tally belongs to another survey, or to another version of it.")
        for question, tally in stored["questions"].items():
            numeric = "squares" in tally
            self._merge(question, NumberTally.from_dict(tally) if numeric else Tally.from_dict(tally))

    def to_dict(self) -> dict[str, object]:
        """The tallies as plain data: what one collector sends to another."""
        questions = {question: tally.to_dict() for question, tally in self._tallies.items()}
        return {"survey": self.survey.fingerprint(), "questions": questions}

    def estimate(self, *, confidence: float = 0.95, copies: int | None = None) -> list[QuestionEstimate]:
        """Estimates of every question that has at least two reports.

        ``copies`` is the most often that one draw is among the reports; by default what the survey allows, which is 1
        unless it is memoized. A single day of a memoized survey with one report a day has 1.
        """
        most = self.survey.copies if copies is None else copies
        if not 1 <= most <= self.survey.copies:
            raise BadParameter(f"One draw is among the reports 1 to {self.survey.copies} times by the survey.")
        estimates = []
        for question, tally in self._tallies.items():
            protocol = self._protocols[question]
            shared: dict[str, Any] = {
                "question": question,
                "protocol": protocol.part_name(),
                "reports": tally.reports,
                "people": -(-tally.reports // most),
            }
            if isinstance(protocol, FrequencyProtocol):
                assert isinstance(tally, Tally)
                shared["frequencies"] = protocol.estimate(tally, confidence=confidence, copies=most)
            else:
                assert isinstance(tally, NumberTally)
                shared["mean"] = protocol.mean(tally, confidence=confidence, copies=most)
                found = protocol.quantiles(tally, _QUANTILES, confidence=confidence, copies=most)
                if found is not None:
                    shared["quantiles"] = tuple(zip(_QUANTILES, *(part.tolist() for part in found), strict=True))
                histogram = protocol.histogram(tally)
                if histogram is not None:
                    shared["histogram"] = tuple(histogram.tolist())
            estimates.append(QuestionEstimate(**shared))
        return sorted(estimates, key=lambda estimate: list(self.survey.questions).index(estimate.question))


def _json_lines(path: Path, survey: Survey) -> Iterator[tuple[str, list[bytes]]]:
    waiting: dict[str, list[bytes]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                report = json.loads(line)
                question, payload = str(report["question"]), base64.b64decode(report["report"], validate=True)
                same = report["survey"] == survey.fingerprint()
            except (ValueError, KeyError, TypeError, binascii.Error):
                raise NotThatFormat(f"{path}, line {number}: this is not a report.", path=str(path)) from None
            if not same:
                raise BadParameter(f"{path}, line {number}: a report of another survey, or of another version of it.")
            waiting.setdefault(question, []).append(payload)
            if len(waiting[question]) >= _ROWS:
                yield question, waiting.pop(question)
    yield from waiting.items()
