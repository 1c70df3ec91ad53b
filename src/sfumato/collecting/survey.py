"""Survey files: the questions of a collection, its people and its budget, in YAML.

.. code-block:: yaml

    sfumato: 1
    survey: smoking-2026
    epsilon: 2
    people: 30000
    questions:                    # columns, as in a data set document
      smoker: {domain: {values: [never, former, daily]}}
      income: {domain: {low: 0, high: 200000}, wanted: distribution}

A survey of the people of a data set names its document (``dataset: hospital.yaml``). A question with the name of a
column of that document is about this column, and needs no domain of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, InstanceOf, WithJsonSchema, model_validator

from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.collecting.local_protocol import Epsilon
from sfumato.collecting.longitudinal import Deployment
from sfumato.collecting.number_protocol import NumberProtocol
from sfumato.data.yaml_documents import YamlDocument, document_in, parse_yaml, validated
from sfumato.dataset.column import Column, Kind
from sfumato.dataset.document import Dataset
from sfumato.dataset.domain import RangeDomain, ValuesDomain
from sfumato.dataset.plan import DatasetPlan
from sfumato.dp.loss import PrivacyLoss
from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.registry import registry

_STRICT = ConfigDict(frozen=True, extra="forbid")
_NEARLY_BEST = 1.02
_NO_DOMAIN = "needs `domain: {values: [...]}` or `domain: {low: ..., high: ...}`, which are all answers there are"


class SurveyQuestion(Column):
    """One question: a column whose declared domain is all answers there are.

    A person without an answer needs a value of their own, such as `none`: sending nothing would tell.
    """

    wanted: Literal["mean", "distribution"] = "mean"
    """What is estimated of a number: its mean, or its histogram and quantiles."""
    protocol: str | None = None
    """Protocol by name; the one with the smallest error if left out."""

    @property
    def answers(self) -> ValuesDomain | RangeDomain:
        """All answers there are."""
        domain = self.public_domain
        if not isinstance(domain, ValuesDomain | RangeDomain):
            raise ValueError(_NO_DOMAIN)
        return domain

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as devices write them; none of a number."""
        return self.answers.texts if isinstance(self.answers, ValuesDomain) else ()

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        answers = self.answers
        if isinstance(answers, RangeDomain):
            if self.kind not in (None, Kind.INTEGER, Kind.NUMBER):
                raise ValueError(f"a domain with `low` and `high` is one of numbers, not of the kind {self.kind}")
            if answers.low == answers.high:
                raise ValueError("`low` must be below `high`")
        elif isinstance(self.domain, ValuesDomain) and None in self.domain.values:
            raise ValueError("an empty answer tells who has none: write a value such as `none`")
        elif len(answers.values) < 2 or (isinstance(self.domain, ValuesDomain) and answers.size < self.domain.size):
            raise ValueError("needs at least two values, each once")
        return self


class Repeats(DocumentedModel):
    """How often each person reports."""

    model_config = _STRICT

    per_day: Annotated[int, Field(ge=1)]
    """Reports of a person on one day."""
    days: Annotated[int, Field(ge=1)]
    """Days of the whole collection."""
    memoized: bool
    """Whether a device keeps its question and its report, and sends it again as long as the answer stays the same."""
    answers: Annotated[int, Field(ge=1)] = 1
    """Different answers one person may have over time."""


class Survey(DocumentedModel):
    """A collection under local differential privacy. Each person answers one question, drawn by their own device."""

    model_config = _STRICT

    sfumato: Literal[1] = 1
    """Version of the document's language."""
    survey: str
    """Public name of the survey."""
    dataset: Annotated[InstanceOf[Dataset] | None, WithJsonSchema({"type": "string"})] = None
    """The document of the data set whose people are asked, relative to this file. With a ledger there, the loss of the
    survey is charged and the survey is registered when its parameters are written for devices."""
    table: str | None = None
    """The table of the data set whose columns are asked about; the table of people if left out."""
    epsilon: Epsilon
    """Privacy loss of one report, which is all that a person sends at one time."""
    people: Annotated[int, Field(ge=2)]
    """Expected number of people."""
    questions: Annotated[dict[str, SurveyQuestion], Field(min_length=1)]
    """The questions by name. Those about columns of the data set may be listed without anything else."""
    repeats: Repeats | None = None
    """Repeated collection; one report per person if left out."""
    shuffler: bool = False
    """Whether a shuffler that the collector does not control removes who sent which report."""

    @classmethod
    def load(cls, path: str | Path) -> Survey:
        """Read a survey file; all problems in one error, with their lines."""
        document = document_in(path, kind="survey", fix="Write one as docs/collecting.md shows.")
        return cls._from_document(document, base=Path(path).parent)

    @classmethod
    def parse(cls, text: str, *, source: str = "survey", base: Path | None = None) -> Survey:
        """A survey from YAML text; ``base`` is the folder that the name of a data set document starts from."""
        return cls._from_document(parse_yaml(text, source=source), base=base)

    @classmethod
    def _from_document(cls, document: YamlDocument, *, base: Path | None) -> Survey:
        plain = document.value
        if isinstance(plain, dict) and isinstance(plain.get("dataset"), str) and "questions" in plain:
            dataset = Dataset.load(Path(base or "", plain["dataset"]))
            asked = _of_columns(plain["questions"], dataset, plain.get("table"))
            document = replace(document, value={**plain, "dataset": dataset, "questions": asked})
        survey = validated(cls, document, base=base)
        survey.protocols()
        return survey

    def fingerprint(self) -> str:
        """Identifies what devices and collector must agree on; reports of another survey are refused."""
        questions = {
            name: {"answers": self.questions[name].answers.model_dump(mode="json"), "protocol": protocol.part_name()}
            for name, protocol in self.protocols().items()
        }
        agreed = {"survey": self.survey, "epsilon": str(self.epsilon), "questions": questions}
        return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()[:16]

    def public(self) -> dict[str, object]:
        """The survey as plain data, with the name of the data set instead of its document."""
        plan = self.model_dump(mode="json", exclude={"dataset"}, exclude_defaults=True)
        return {**plan, **({} if self.dataset is None else {"dataset": self.dataset.dataset})}

    @property
    def reports_of_one(self) -> int:
        """Most reports of one person."""
        return 1 if self.repeats is None else self.repeats.per_day * self.repeats.days

    @property
    def copies(self) -> int:
        """Most reports of one person that are the same draw: all of a memoized survey."""
        return self.reports_of_one if self.repeats is not None and self.repeats.memoized else 1

    def protocols(self) -> dict[str, FrequencyProtocol | NumberProtocol]:
        """The protocol of each question: the one that is named, or the one with the smallest error."""
        return {name: self._protocol(name, question) for name, question in self.questions.items()}

    def _protocol(self, name: str, question: SurveyQuestion) -> FrequencyProtocol | NumberProtocol:
        answers, parameters = question.answers, dict[str, object](epsilon=self.epsilon)
        if isinstance(answers, RangeDomain):
            kind = "number-protocol"
            parameters |= {"low": answers.low, "high": answers.high}
        else:
            kind = "frequency-protocol"
            parameters |= {"values": answers.size}
        if question.protocol is not None:
            if "salt" in registry(kind).get(question.protocol).model_fields:
                raise BadParameter(
                    f"{name}: `{question.protocol}` is for domains without a list of values.",
                    fix="Leave `protocol` out.",
                )
            return registry(kind).get(question.protocol).build(parameters)  # type: ignore[return-value]
        if question.wanted == "distribution" and isinstance(answers, RangeDomain):
            return registry(kind).get("square-wave").build(parameters)  # type: ignore[return-value]
        candidates = [
            part.build(parameters)
            for part in registry(kind)
            if all(n in parameters for n, field in part.model_fields.items() if field.is_required())
        ]
        best: FrequencyProtocol | NumberProtocol = _smallest_error(candidates)
        return best

    def loss(self) -> PrivacyLoss:
        """Loss of one person in the whole collection: the largest report, as often as it is drawn anew."""
        worst = max((protocol.loss() for protocol in self.protocols().values()), key=lambda loss: loss.size)
        return self.deployment(worst).total()

    def deployment(self, loss: PrivacyLoss) -> Deployment:
        """The repeats of this survey for one report of that loss."""
        repeats = self.repeats or Repeats(per_day=1, days=1, memoized=False)
        return Deployment(
            loss=loss,
            reports_per_day=repeats.per_day,
            days=repeats.days,
            memoized=repeats.memoized,
            answers=repeats.answers,
        )


def _of_columns(questions: object, dataset: Dataset, table: object) -> object:
    """The questions with what the data set declares of the columns they are about, as far as they do not say it."""
    listed = dict.fromkeys(questions) if isinstance(questions, list) else questions
    if not isinstance(listed, Mapping):
        return questions
    people = DatasetPlan(dataset=dataset, table=table if isinstance(table, str) else None).people
    found: dict[str, object] = {}
    for name, written in listed.items():
        own = {} if written is None else written
        if isinstance(own, Mapping) and not {"domain", "kind"} & set(own):
            column = people.column(name)
            own = {**{key: getattr(column, key) for key in column.model_fields_set}, **own}
        found[name] = own
    return found


def _smallest_error(candidates: list[Any]) -> Any:
    """The protocol with the smallest variance; among those within 2 % of it the one with the smallest reports."""
    best = min(candidate.variance(1000) for candidate in candidates)
    near = [candidate for candidate in candidates if candidate.variance(1000) <= _NEARLY_BEST * best]
    return min(near, key=lambda candidate: getattr(candidate, "width", 0))
