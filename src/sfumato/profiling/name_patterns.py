"""Most detectors are alike: words in the name, a form of the values, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.profiling.facts import Facts
from sfumato.profiling.finding import Finding
from sfumato.schema import Kind, Role

__all__ = ["Clue"]

_FITS = 0.5
"""With a telling name, half of the values are enough."""


@dataclass(frozen=True, kw_only=True)
class Clue:
    """Recognizes columns by name, by content, or by both; content never by a single value but by its share."""

    title: str
    role: Role
    words: tuple[str, ...] = ()
    """Phrases that a name may hold."""
    pattern: str | None = None
    """The form of a value."""
    values: frozenset[str] | None = None
    """The values there can be, in lower case, with spaces for ``-_.``."""
    check: Callable[[str], bool] | None = None
    """A check digit or the like, for values of the right form."""
    alone: float | None = None
    """Share of fitting values from which content alone is enough; None: the name must say it too."""
    alone_pattern: str | None = None
    """A stricter form for that case."""
    least: int = 1
    """Content alone needs at least this many different values."""
    most: int | None = None
    """Content alone needs at most this many different values."""
    spread: float = 0.0
    """Different values per row that are needed at least."""
    kinds: frozenset[Kind] = frozenset(Kind)
    """Kinds of columns that can be it."""
    hierarchy: Mapping[str, Any] | None = None
    bands: bool = False
    """Numbers that measure something, so that bands make sense."""
    hipaa: str | None = None
    register: bool = False
    remark: str = ""

    def __call__(self, facts: Facts) -> Finding | None:
        if facts.kind not in self.kinds or facts.spread < self.spread:
            return None
        said = facts.says(*self.words)
        share = self._share(facts, self.pattern)
        if self.values is not None and facts.coded:
            share = None  # codes for words: the name alone must do
        if said is not None and share is None:
            return self._finding(0.75, f"the name says {self.title}")
        if said is not None and share is not None:
            if share >= _FITS:
                return self._finding(0.95, f"the name says {self.title}; {share:.0%} of the values look like it")
            return self._finding(0.6, f"the name says {self.title}, though only {share:.0%} of the values look like it")
        if self.alone is None or share is None:
            return None
        if self.alone_pattern is not None:
            share = self._share(facts, self.alone_pattern) or 0.0
        few = facts.distinct < self.least or (self.most is not None and facts.distinct > self.most)
        if share < self.alone or few:
            return None
        checked = " and pass its check" if self.check is not None else ""
        return self._finding(0.8, f"{share:.0%} of the values look like {self.title}{checked}")

    def _share(self, facts: Facts, pattern: str | None) -> float | None:
        if self.values is not None:
            return facts.share_in(self.values)
        return facts.share(pattern, self.check) if pattern is not None else None

    def _finding(self, confidence: float, reason: str) -> Finding:
        return Finding(
            detector=self.title,
            role=self.role,
            reason=reason + (f"; {self.remark}" if self.remark else ""),
            confidence=confidence,
            hierarchy=self.hierarchy,
            bands=self.bands,
            hipaa=self.hipaa,
            register=self.register,
        )
