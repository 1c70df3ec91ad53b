"""Detectors by column name and value pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sfumato.dataset import Kind, Role
from sfumato.profiling.detectors.facts import Facts
from sfumato.profiling.detectors.finding import Finding

_FITS = 0.5
"""Share of matching values that confirms a match by name."""


@dataclass(frozen=True, kw_only=True)
class Clue:
    """A detector that matches words in the column name, the share of values with a given form, or both."""

    title: str
    role: Role
    words: tuple[str, ...] = ()
    """Phrases to look for in the column name."""
    pattern: str | None = None
    """Regular expression that a value must match as a whole."""
    values: frozenset[str] | None = None
    """The possible values, in lower case, with spaces instead of ``-_.``."""
    check: Callable[[str], bool] | None = None
    """A further test, for example of a check digit, for values that match."""
    alone: float | None = None
    """Share of matching values that suffices without a matching name; None: the name must match."""
    alone_pattern: str | None = None
    """A stricter pattern for that case."""
    alone_some: str | None = None
    """A form that in that case at least a tenth of the values must have."""
    least: int = 1
    """Without a matching name, at least this many distinct values are required."""
    most: int | None = None
    """Without a matching name, at most this many distinct values are allowed."""
    spread: float = 0.0
    """Least number of distinct values per row."""
    kinds: frozenset[Kind] = frozenset(Kind)
    """Kinds of columns to consider."""
    hierarchy: Mapping[str, object] | None = None
    bands: bool = False
    """Whether the values are measurements, for which intervals make sense."""
    hipaa: str | None = None
    register: bool = False
    remark: str = ""

    def __call__(self, facts: Facts) -> Finding | None:
        if facts.kind not in self.kinds or facts.spread < self.spread:
            return None
        phrase = facts.says(*self.words)
        share = self._share(facts, self.pattern)
        if self.values is not None and facts.coded:
            share = None  # unlabelled codes: only the name can match
        if phrase is not None and self.values is not None and facts.distinct <= 2:
            share = None  # a dummy such as `black`: yes and no
        if phrase is not None and share is None:
            return self._finding(0.75, f"the name says {self.title}")
        if phrase is not None and share is not None:
            if share >= _FITS:
                return self._finding(0.95, f"the name says {self.title}; {share:.0%} of the values look like it")
            return self._finding(0.6, f"the name says {self.title}, though only {share:.0%} of the values look like it")
        if self.alone is None or share is None:
            return None
        if self.alone_pattern is not None:
            share = self._share(facts, self.alone_pattern) or 0.0
        if self.alone_some is not None and (self._share(facts, self.alone_some) or 0.0) < 0.1:
            return None
        few = facts.distinct < self.least or (self.most is not None and facts.distinct > self.most)
        if share < self.alone or few:
            return None
        checked = " and pass its check" if self.check is not None else ""
        # Below every name of an identifier: values of a column `patient` may have the form of something else.
        confidence = 0.8 if self.role is Role.IDENTIFIER else 0.58
        return self._finding(confidence, f"{share:.0%} of the values look like {self.title}{checked}")

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
