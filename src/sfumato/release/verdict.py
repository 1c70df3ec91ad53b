"""Verdict of a privacy model: holds, fails, or not checked. "Not checked" never counts as "holds"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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
    column: str | None = None
    """The column that the model is about, for models about one column: a sensitive one, or a repeated identifier."""
    exact: bool = False
    """Whether it compares the release with the original. Beside a promise of differential privacy, such a verdict is
    for the owner alone: neither the public folder nor the success of the release may depend on it."""

    @classmethod
    def not_checked(cls, model: str, reason: str, *, column: str | None = None) -> Verdict:
        """The verdict of a model that could not be evaluated."""
        return cls(model=model, state=State.NOT_CHECKED, reason=reason, column=column)

    @classmethod
    def of_classes(
        cls,
        model: str,
        *,
        failed: int,
        classes: int,
        failing: int,
        rows: int,
        together: bool,
        worst: float | int | None,
        wanted: float | int | None,
        column: str | None = None,
    ) -> Verdict:
        """The verdict on equivalence classes: ``failed`` of them fail by themselves, which have ``failing`` rows.

        ``together`` says whether all classes meet the condition as a whole; if only that fails, all ``rows`` do.
        """
        holds, reason = together and not failed, ""
        if failed:
            reason = f"{failed} of {classes} equivalence classes fail."
        elif not together:
            failing, reason = rows, "Every equivalence class passes, but not all of them together."
        state = State.HOLDS if holds else State.FAILS
        return cls(model=model, state=state, worst=worst, wanted=wanted, failing=failing, reason=reason, column=column)

    @property
    def holds(self) -> bool:
        return self.state is State.HOLDS

    @property
    def words(self) -> str:
        """The verdict in words, with its reason.

        >>> Verdict.not_checked("k-anonymity", "The release has no row.").words
        'k-anonymity not checked: The release has no row'
        """
        return f"{self.model} {self.state}" + (f": {self.reason.rstrip('.')}" if self.reason else "")

    def public(self) -> dict[str, Any]:
        """What a manifest says of the verdict: no count and no reason."""
        column = {"column": self.column} if self.column is not None else {}
        return {"model": self.model, **column, "state": str(self.state), "wanted": self.wanted}

    def to_dict(self) -> dict[str, Any]:
        worst = None if self.worst is None or not math.isfinite(self.worst) else self.worst  # JSON has no infinity
        figures = {**self.public(), "worst": worst, "failing": self.failing, "reason": self.reason}
        return {**figures, "exact": True} if self.exact else figures
