"""Design of a survey before anybody is asked: protocol, expected error, loss over time, effect of dishonest clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.collecting.estimates import two_sided
from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.collecting.manipulation import largest_shift
from sfumato.collecting.shuffling import shuffled_epsilon
from sfumato.collecting.survey import Survey

_DELTA = 1e-6
_DISHONEST = 0.01


@dataclass(frozen=True, kw_only=True)
class QuestionDesign:
    """What to expect of one question."""

    question: str
    protocol: str
    people: int
    """Expected number of people who draw this question."""
    bytes_per_report: int
    error: float
    """Half width of the 95 % interval of a share of a rare value, or of the mean in the worst case."""
    unit: str
    """What the error is measured in: `share` or `number`."""
    shift: float
    """Largest change of the estimate by 1 % dishonest clients."""
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class SurveyDesign:
    """The whole survey: its questions and the loss of one person."""

    questions: tuple[QuestionDesign, ...]
    epsilon_per_report: float
    epsilon_per_day: float
    epsilon_in_all: float
    shuffled: tuple[float, float] | None
    """Central (epsilon, delta) of one round if a shuffler is declared."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": {
                "report": self.epsilon_per_report,
                "day": self.epsilon_per_day,
                "all": self.epsilon_in_all,
                "shuffled": None if self.shuffled is None else {"epsilon": self.shuffled[0], "delta": self.shuffled[1]},
            },
            "questions": [vars(question) for question in self.questions],
        }


def design_survey(survey: Survey) -> SurveyDesign:
    """Expected errors and losses of a survey; depends on the survey file alone."""
    people = max(2, survey.people // len(survey.questions))
    designs = []
    for name, protocol in survey.protocols().items():
        listed = isinstance(protocol, FrequencyProtocol)
        scale = people if listed else 1
        designs.append(
            QuestionDesign(
                question=name,
                protocol=protocol.part_name(),
                people=people,
                bytes_per_report=protocol.width if isinstance(protocol, FrequencyProtocol) else 4,
                error=two_sided(0.95) * protocol.variance(people) ** 0.5 / scale,
                unit="share" if listed else "number",
                shift=largest_shift(protocol, dishonest=max(1, round(_DISHONEST * people)), people=people),
                epsilon=float(protocol.loss().size),
            )
        )
    worst = max((protocol.loss() for protocol in survey.protocols().values()), key=lambda loss: loss.size)
    deployment = survey.deployment(worst)
    central = shuffled_epsilon(local=float(worst.size), people=survey.people, delta=_DELTA) if survey.shuffler else None
    return SurveyDesign(
        questions=tuple(designs),
        epsilon_per_report=float(worst.size),
        epsilon_per_day=float(deployment.per_day().size),
        epsilon_in_all=float(deployment.total().size),
        shuffled=None if central is None else (central, _DELTA),
    )
