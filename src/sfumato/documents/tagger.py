"""The contract of a tagger: one class per tagger in ``documents/taggers``, or in another package by an entry point.

A tagger finds identifiers in texts. A statistical model is a tagger of another package, registered by an entry point
of the group ``sfumato.tagger``; sfumato ships rules only, because no model installs from a package registry.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from sfumato.documents.text_findings import TextFinding
from sfumato.errors import BadParameter
from sfumato.params import Part
from sfumato.registry import registry


class Tagger(Part):
    """Finds identifiers in texts. What several taggers find is united."""

    suffix = "Tagger"

    @abstractmethod
    def find(self, texts: Sequence[str]) -> list[list[TextFinding]]:
        """For each text its findings, in any order; they may overlap."""


def tag(names: Sequence[str], texts: Sequence[str]) -> list[list[TextFinding]]:
    """What all these taggers find in each text. A finding that is not where it says is refused."""
    found: list[list[TextFinding]] = [[] for _ in texts]
    for name in names:
        tagger = registry("tagger").get(name).build({})
        assert isinstance(tagger, Tagger)
        results = tagger.find(texts)
        if len(results) != len(texts):
            raise BadParameter(f"The tagger `{name}` returned {len(results)} lists for {len(texts)} texts.")
        for own, more, text in zip(found, results, texts, strict=True):
            if any(text[one.start : one.end] != one.text or not one.text.strip() or one.kind == "term" for one in more):
                raise BadParameter(
                    f"The tagger `{name}` reports a finding that is empty, no identifier, or elsewhere in the text.",
                    fix="Check it with `sfumato.testing.check_tagger`.",
                )
            own.extend(more)
    return found
