"""The public parameters of a survey that a client in another language needs, such as a web page."""

from __future__ import annotations

from typing import Any

from sfumato.collecting.survey import Survey, SurveyQuestion

_FORMAT = "sfumato-collect/1"


def client_design(survey: Survey) -> dict[str, Any]:
    """Questions, protocols and exact chances (in units of 2**-32) of a survey; depends on the survey file alone.

    >>> survey = Survey.parse("{survey: poll, epsilon: 1, people: 100, questions: {smoker: ['no', 'yes']}}")
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
    if question.low is None or question.high is None:
        return {"values": question.texts()}
    # A device computes with the same two floats as `NumberProtocol`.
    return {"low": float(question.low), "span": float(question.high - question.low)}
