"""Verdict of a privacy model: holds, fails, or not checked. "Not checked" never counts as "holds"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["State", "Verdict"]


class State(StrEnum):
    """The three states of a verdict."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict of a privacy model on a table."""

    model: str
    state: State
    worst: float | int | None = None
    """The worst value over all equivalence classes: smallest size, largest distance, ..."""
    wanted: float | int | None = None
    """The required value."""
    failing: int = 0
    """Number of rows in failing classes."""
    reason: str = ""
    """The reason in words, without data values."""

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
