"""Survey files: the questions of a collection, its people and its budget, in YAML."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.collecting.local_protocol import Epsilon
from sfumato.collecting.longitudinal import Deployment
from sfumato.collecting.number_protocol import Bound, NumberProtocol
from sfumato.data.yaml_documents import load_document, parse_yaml, validated
from sfumato.dp.loss import PrivacyLoss
from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.registry import registry

_STRICT = ConfigDict(frozen=True, extra="forbid")
_NEARLY_BEST = 1.02


def _listed(value: object) -> object:
    return {"values": value} if isinstance(value, list) else value


class SurveyQuestion(DocumentedModel):
    """One question: a list of values, or a number between two bounds."""

    model_config = _STRICT

    values: tuple[str | int | bool, ...] | None = None
    """All answers there are. A person without an answer needs a value of their own, such as `none`."""
    low: Bound | None = None
    """Public lower bound of a number."""
    high: Bound | None = None
    """Public upper bound of a number."""
    wanted: Literal["mean", "distribution"] = "mean"
    """What is estimated of a number: its mean, or its histogram and quantiles."""
    protocol: str | None = None
    """Protocol by name; the one with the smallest error if left out."""

    def texts(self) -> list[str]:
        """The values as devices write them."""
        return [str(value).lower() if isinstance(value, bool) else str(value) for value in self.values or ()]

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.values is None) == (self.low is None and self.high is None):
            raise ValueError("needs either `values`, or `low` and `high`")
        if self.values is None and (self.low is None or self.high is None):
            raise ValueError("needs both `low` and `high`")
        if self.values is not None and (len(self.values) < 2 or len(set(map(str, self.values))) < len(self.values)):
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

    survey: str
    """Public name of the survey."""
    epsilon: Epsilon
    """Privacy loss of one report, which is all that a person sends at one time."""
    people: Annotated[int, Field(ge=2)]
    """Expected number of people."""
    questions: dict[str, Annotated[SurveyQuestion, BeforeValidator(_listed)]]
    """The questions by name."""
    repeats: Repeats | None = None
    """Repeated collection; one report per person if left out."""
    shuffler: bool = False
    """Whether a shuffler that the collector does not control removes who sent which report."""

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if not self.questions:
            raise ValueError("needs at least one question")
        return self

    @classmethod
    def load(cls, path: str | Path) -> Survey:
        """Read a survey file; all problems in one error, with their lines."""
        survey = load_document(cls, path, kind="survey", fix="Write one as docs/collecting.md shows.")
        survey.protocols()
        return survey

    @classmethod
    def parse(cls, text: str, *, source: str = "survey") -> Survey:
        """A survey from YAML text."""
        survey = validated(cls, parse_yaml(text, source=source))
        survey.protocols()
        return survey

    def fingerprint(self) -> str:
        """Identifies what devices and collector must agree on; reports of another survey are refused."""
        agreed = self.model_dump(mode="json", include={"survey", "epsilon", "questions"})
        return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()[:16]

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
        kind = "number-protocol" if question.values is None else "frequency-protocol"
        parameters: dict[str, Any] = {"epsilon": self.epsilon}
        if question.values is None:
            parameters |= {"low": question.low, "high": question.high}
        else:
            parameters |= {"values": len(question.values)}
        if question.protocol is not None:
            if "salt" in registry(kind).get(question.protocol).model_fields:
                raise BadParameter(
                    f"{name}: `{question.protocol}` is for domains without a list of values.",
                    fix="Leave `protocol` out.",
                )
            return registry(kind).get(question.protocol).build(parameters)  # type: ignore[return-value]
        if question.wanted == "distribution" and question.values is None:
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


def _smallest_error(candidates: list[Any]) -> Any:
    """The protocol with the smallest variance; among those within 2 % of it the one with the smallest reports."""
    best = min(candidate.variance(1000) for candidate in candidates)
    near = [candidate for candidate in candidates if candidate.variance(1000) <= _NEARLY_BEST * best]
    return min(near, key=lambda candidate: getattr(candidate, "width", 0))
