"""Possible worlds: how many assignments of values to people agree with all answers that were given.

Counted are the people in at least one answered query whose value the adversary does not know. The number is exact for
small sets of answers. Otherwise it is a lower bound: people in exactly the same answers can exchange their values.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10

_WRITTEN = 10**15
"""From here on, only the order of magnitude is written."""


@dataclass(frozen=True, kw_only=True)
class Worlds:
    """The number of possible worlds, or a lower bound of it. For the owner: a bound depends on the true values."""

    log10: float
    exact: bool
    number: int | None = None
    """The number or bound itself, where it is below 10^15."""

    @classmethod
    def of(cls, number: int, *, exact: bool) -> Worlds:
        """From a whole number of any size."""
        return cls(log10=log10(number), exact=exact, number=number if number < _WRITTEN else None)

    def __str__(self) -> str:
        if self.number is not None:
            return f"{'' if self.exact else 'at least '}{self.number:,}"
        if self.exact:
            return f"about 10^{round(self.log10)}"
        return f"at least 10^{floor(self.log10 * (1 - 1e-9))}"  # the logarithm of a bound is rounded down

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {"text": str(self), "number": self.number, "log10": self.log10, "exact": self.exact}
