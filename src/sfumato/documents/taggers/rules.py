"""Rules that find identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sfumato.documents.tagger import Tagger
from sfumato.documents.text_findings import TextFinding, find_identifiers


class RulesTagger(Tagger):
    """Patterns, check digits, lists of names and the words around: nothing is learned, nothing is downloaded.

    For English text with US and common European formats. `docs/text.md` has the recall by kind of identifier.
    """

    examples = ({},)
    reference: ClassVar[str] = (
        "Neamatullah et al.: Automated de-identification of free-text medical records (2008), "
        "doi:10.1186/1472-6947-8-32"
    )

    def find(self, texts: Sequence[str]) -> list[list[TextFinding]]:
        return [find_identifiers(text) for text in texts]
