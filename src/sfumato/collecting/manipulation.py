"""Manipulation: how far dishonest clients can move an estimate.

A client that sends any report it likes moves the estimated count of a value by up to (1 - q) / (p - q), far more than
the 1 that a false answer moves it. The smaller epsilon, the larger the effect (Cheu, Smith, Ullman 2021).
"""

from __future__ import annotations

from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.collecting.number_protocol import NumberProtocol
from sfumato.errors import BadParameter


def largest_shift(protocol: FrequencyProtocol | NumberProtocol, *, dishonest: int, people: int) -> float:
    """Largest change of an estimated share (or mean) by ``dishonest`` of ``people`` clients who choose their reports.

    The change is against the same clients answering honestly with a value that others have not (a number at the far
    end). No report can do more: a report supports a value or it does not.

    >>> from sfumato.collecting import GeneralizedRandomizedResponse
    >>> protocol = GeneralizedRandomizedResponse(epsilon="1.0986122886681098", values=2)
    >>> round(largest_shift(protocol, dishonest=10, people=1000), 4)
    0.015
    """
    if not 0 <= dishonest <= people or people < 1:
        raise BadParameter("`dishonest` must lie in 0 .. people.")
    if isinstance(protocol, FrequencyProtocol):
        p, q = (float(chance) for chance in protocol.probabilities())
        return dishonest * (1 - q) / (p - q) / people
    reach = protocol.numbers(protocol.extreme_reports())
    return dishonest * float(max(reach.max() - float(protocol.low), float(protocol.high) - reach.min())) / people
