"""Findings of detectors, and the identifier classes of HIPAA Safe Harbor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sfumato.dataset import Kind, Role
from sfumato.profiling.detectors.facts import Facts

HIPAA: Mapping[str, str] = {
    "A": "names",
    "B": "geographic subdivisions smaller than a state",
    "C": "dates (except year) directly related to an individual, and ages over 89",
    "D": "telephone numbers",
    "E": "fax numbers",
    "F": "electronic mail addresses",
    "G": "social security numbers",
    "H": "medical record numbers",
    "I": "health plan beneficiary numbers",
    "J": "account numbers",
    "K": "certificate and license numbers",
    "L": "vehicle identifiers and serial numbers, including license plates",
    "M": "device identifiers and serial numbers",
    "N": "web addresses (URLs)",
    "O": "internet protocol (IP) addresses",
    "P": "biometric identifiers",
    "Q": "full-face photographs and comparable images",
    "R": "any other unique identifying number, characteristic or code",
}
"""The identifier classes of 45 CFR 164.514(b)(2)(i), by paragraph letter."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A proposed role for one column, with the reason."""

    detector: str
    """What was recognized, for example "a date of birth"."""
    role: Role
    reason: str
    confidence: float
    """Between 0 and 1. The finding with the highest confidence is proposed."""
    kind: Kind | None = None
    """The kind to declare; None keeps the kind of the file."""
    hierarchy: Mapping[str, object] | None = None
    bands: bool = False
    """Whether the values are measurements, for which intervals make sense."""
    hipaa: str | None = None
    """Letter of the Safe Harbor class, a key of :data:`HIPAA`."""
    register: bool = False
    """Whether external registers contain it: voter lists, address books, social networks."""


Detector = Callable[[Facts], Finding | None]
"""A pure function from the facts of a column to a finding, or to None."""
