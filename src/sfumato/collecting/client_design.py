"""The public parameters of a survey that a client in another language needs, such as a web page."""

from __future__ import annotations

from typing import Any

from sfumato.collecting.survey import Survey, SurveyQuestion
from sfumato.dataset.domain import ValuesDomain
from sfumato.rationals import rational

_FORMAT = "sfumato-collect/1"


def client_design(survey: Survey) -> dict[str, object]:
    """Questions, protocols and exact chances (in units of 2**-32) of a survey; depends on the survey file alone.

    >>> smoker = "smoker: {domain: {values: ['no', 'yes']}}"
    >>> survey = Survey.parse(f"{{survey: poll, epsilon: 1, people: 100, questions: {{{smoker}}}}}")
    >>> client_design(survey)["questions"][0]["parameters"]
    {'values': 2, 'keep': 3139872686}
    """
    memoized = survey.repeats is not None and survey.repeats.memoized
    return {
        "format": _FORMAT,
        "survey": survey.survey,
        "fingerprint": survey.fingerprint(),
        "epsilon": float(survey.epsilon),
        "memoized": memoized,
        "answers": survey.repeats.answers if survey.repeats is not None and memoized else None,
        "reports": survey.reports_of_one,
        "questions": [
            {
                "name": name,
                "protocol": protocol.part_name(),
                **_domain(survey.questions[name]),
                "parameters": protocol.client_parameters(),
            }
            for name, protocol in survey.protocols().items()
        ],
    }


def _domain(question: SurveyQuestion) -> dict[str, Any]:
    answers = question.answers
    if isinstance(answers, ValuesDomain):
        return {"values": list(answers.texts)}
    # A device computes with the same two floats as `NumberProtocol`.
    return {"low": answers.low, "span": float(rational(answers.high) - rational(answers.low))}
