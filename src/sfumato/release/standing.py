"""Standing of a release: publish, not met, or not judged, with the words of a verdict for every reader.

A verdict and a limit have one of three states (:class:`~sfumato.release.verdict.State`). All of them together give the
standing. This is the only place that combines states and puts them into words; commands, reports, tables, models and
studies read them from here.

| states | standing |
|---|---|
| one fails | not met |
| none fails, one was not checked | not judged |
| nothing was checked, or there is no limit on risk | not judged |
| all hold, and there is a limit on risk or a promise of differential privacy | publish |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sfumato.release.verdict import State


class Standing(StrEnum):
    """Whether a release may be published, as far as it was judged."""

    PUBLISH = "publish"
    NOT_MET = "not met"
    NOT_JUDGED = "not judged"

    @property
    def label(self) -> str:
        """The standing as a label of a line or a heading.

        >>> Standing.NOT_JUDGED.label
        'Not judged'
        """
        return self.capitalize()

    def line(self, place: str) -> str:
        """The line of a command that says what may leave, or where it was written.

        >>> Standing.NOT_JUDGED.line("out/")
        'Not judged:    out/'
        """
        return f"{self.label + ':':<15}{place}"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The standing of a release and the reason for it in a sentence."""

    standing: Standing
    sentence: str

    @property
    def publish(self) -> bool:
        return self.standing is Standing.PUBLISH


def judge(states: Iterable[State], *, limited: bool, promised: bool = False) -> Judgement:
    """The standing from the states of all verdicts and limits that decide.

    ``limited`` says whether there is a limit on risk, or another condition that suffices for publication. Without one,
    there are figures and no judgement on them. ``promised`` says whether the release promises differential privacy;
    ``states`` are then those of verdicts that do not compare with the original.
    """
    states = tuple(states)
    if State.FAILS in states:
        sentence = "At least one privacy model or limit is not met. Do not publish the release."
        return Judgement(standing=Standing.NOT_MET, sentence=sentence)
    if State.NOT_CHECKED in states:
        sentence = "Not every privacy model and limit was checked. Do not publish the release before they are."
        return Judgement(standing=Standing.NOT_JUDGED, sentence=sentence)
    if promised:
        sentence = (
            "The guarantee of differential privacy holds whatever an attacker knows. Comparisons with the original are "
            "for the owner and decide nothing."
        )
        return Judgement(standing=Standing.PUBLISH, sentence=sentence)
    if limited:
        return Judgement(standing=Standing.PUBLISH, sentence="All privacy models and limits are met.")
    sentence = "No limit on risk was set: there are figures, and no judgement on them. Set `limits: {risk: ...}`."
    return Judgement(standing=Standing.NOT_JUDGED, sentence=sentence)


def judge_entries(
    verdicts: Iterable[Mapping[str, Any]], limits: Iterable[Mapping[str, Any]] = (), *, promised: bool = False
) -> Judgement:
    """The same for entries of the lists ``verdicts`` and ``limits`` of a document.

    Beside a promise of differential privacy, neither limits nor verdicts that compare with the original decide:
    whether the release appears would tell their outcome.
    """
    states = [State(str(entry["state"])) for entry in verdicts if not (promised and entry.get("exact"))]
    limits = () if promised else tuple(limits)
    states += [limit_state(entry.get("met")) for entry in limits]
    return judge(states, limited=any(entry.get("limit") == "risk" for entry in limits), promised=promised)


def limit_state(met: bool | None) -> State:
    """The state of a limit; None means that it could not be judged."""
    return State.NOT_CHECKED if met is None else State.HOLDS if met else State.FAILS


def limit_words(state: State) -> str:
    """A limit is met or not met where a model holds or fails.

    >>> [limit_words(state) for state in State]
    ['met', 'not met', 'not checked']
    """
    return {State.HOLDS: "met", State.FAILS: "not met", State.NOT_CHECKED: "not checked"}[state]
