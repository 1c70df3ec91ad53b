"""The judgement of a privacy model: holds, fails, or was not checked. "Not checked" is never "holds"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["State", "Verdict"]


class State(StrEnum):
    """The three states of a judgement."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a model says of a table."""

    model: str
    state: State
    worst: float | int | None = None
    """The worst value of the model's own quantity over all classes: smallest class, largest distance, ..."""
    wanted: float | int | None = None
    """The value it had to reach."""
    failing: int = 0
    """How many rows lie in classes that fail."""
    reason: str = ""
    """In words, without any value of the data."""

    @property
    def holds(self) -> bool:
        return self.state is State.HOLDS

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "state": str(self.state),
            "worst": self.worst,
            "wanted": self.wanted,
            "failing": self.failing,
            "reason": self.reason,
        }
