"""Generalization of terms in texts by a taxonomy: towns to regions, diagnoses to groups, professions to sectors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sfumato.dataset.hierarchies.file import FileHierarchy
from sfumato.documents.text_findings import TextFinding
from sfumato.errors import BadParameter

_WORD = re.compile(r"[^\W_]+")
_OLDEST = 90
"""Ages from here on are one band (HIPAA Safe Harbor)."""


@dataclass(frozen=True, kw_only=True)
class TextTaxonomy:
    """Terms of one or more words, each with its labels from fine to coarse.

    >>> regions = TextTaxonomy(terms={"new oakdale": ("the north",), "marlow": ("the south",)})
    >>> [(found.text, found.kind) for found in regions.find("From New Oakdale to Marlow.")]
    [('New Oakdale', 'term'), ('Marlow', 'term')]
    >>> regions.label("MARLOW", 1)
    'the south'
    """

    terms: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, path: Path) -> TextTaxonomy:
        """Read a hierarchy file: a term, then its label at each level; a last label ``*`` for all is left out."""
        rows = FileHierarchy(path=path).public()["table"]["rows"]
        terms = {
            _folded(str(row[0])): tuple(str(label) for label in row[1:] if label is not None and label != "*")
            for row in rows
        }
        if not any(terms.values()):
            raise BadParameter(
                f"The taxonomy {path.name} has no labels.",
                fix="Each line is a term and its labels, from fine to coarse: `Springfield;the north;*`.",
            )
        return cls(terms=terms)

    @cached_property
    def _longest(self) -> int:
        return max((term.count(" ") + 1 for term in self.terms), default=0)

    def labels(self, term: str) -> tuple[str, ...]:
        """All labels of a term, from fine to coarse; none if it is not in the taxonomy."""
        return self.terms.get(_folded(term), ())

    def label(self, term: str, level: int) -> str:
        """The label at a level; the coarsest if there are fewer levels."""
        labels = self.labels(term)
        return labels[min(level, len(labels)) - 1]

    def find(self, text: str) -> Iterator[TextFinding]:
        """The terms in a text as whole words, in any case; the longest where several start at one word."""
        words = list(_WORD.finditer(text))
        at = 0
        while at < len(words):
            for count in range(min(self._longest, len(words) - at), 0, -1):
                start, end = words[at].start(), words[at + count - 1].end()
                if self.labels(text[start:end]):
                    yield TextFinding(start=start, end=end, kind="term", text=text[start:end])
                    at += count - 1
                    break
            at += 1


def age_band(age: int, width: int) -> str:
    """The band of an age; from 90 on there is one band.

    >>> age_band(58, 10), age_band(93, 5)
    ('50-59', '90 or older')
    """
    if age >= _OLDEST:
        return f"{_OLDEST} or older"
    low = age // width * width
    return f"{low}-{min(low + width, _OLDEST) - 1}"


def _folded(term: str) -> str:
    return " ".join(word.lower() for word in _WORD.findall(term))
