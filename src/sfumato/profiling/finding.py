"""What a detector says of a column, and the classes of HIPAA's Safe Harbor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.profiling.facts import Facts
from sfumato.schema import Kind, Role

__all__ = ["HIPAA", "Detector", "Finding"]

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
"""The identifiers of 45 CFR 164.514(b)(2)(i), by the letter of their paragraph."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A proposal for one column with its reason."""

    detector: str
    """What was recognized, in words."""
    role: Role
    reason: str
    confidence: float
    """Between 0 and 1; the most confident detector is the one that speaks."""
    kind: Kind | None = None
    """The kind to declare; None leaves it as found in the file."""
    hierarchy: Mapping[str, Any] | None = None
    bands: bool = False
    """Numbers that measure something: bands of them make sense."""
    hipaa: str | None = None
    """Letter of the Safe Harbor class, a key of :data:`HIPAA`."""
    register: bool = False
    """Stands in registers that others can get: voter lists, address books, social networks."""


Detector = Callable[[Facts], Finding | None]
"""A pure function: the facts of a column in, a finding or nothing out."""
