"""The report of a kind of release beside microdata: a page, its sentences, and what outside readers may see of it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sfumato.data.atomic import replacing
from sfumato.evaluation.formatting import Plain
from sfumato.release.folder import private_document
from sfumato.release.public_folder import Leaving, Why, write_public
from sfumato.reports.page import page_html
from sfumato.reports.report_data import Audience


def json_text(document: Mapping[str, object]) -> str:
    """A document for a private folder."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


class KindPage(ABC):
    """How reports of one kind of release are made from the document of its private folder."""

    template: str

    @abstractmethod
    def external(self, document: Plain) -> Plain:
        """The document as outside readers may see it."""

    @abstractmethod
    def sentences(self, shown: Plain) -> tuple[str, ...]:
        """The result in sentences, from a document for owner or reader."""

    def context(self, shown: Plain, *, internal: bool) -> Mapping[str, object]:
        """What the template needs beside the document."""
        return {}

    def why(self, document: Plain) -> Why:
        """Why the external page may leave."""
        return Why.MEASURED

    def html(self, shown: Plain, *, internal: bool) -> str:
        """The page of a document for owner or reader."""
        return page_html(
            self.template,
            document=shown,
            internal=internal,
            sentences=self.sentences(shown),
            **self.context(shown, internal=internal),
        )

    def of_folder(self, release: str | Path, *, audience: Audience = "internal") -> PlainReport:
        """The report of a release, from the private folder beside it."""
        return PlainReport(page=self, document=private_document(Path(release)), audience=audience)


@dataclass(frozen=True, kw_only=True)
class PlainReport:
    """A report whose page is made from a plain document: of graphs, tables and models."""

    page: KindPage
    document: Plain
    """The document of the private folder."""
    audience: Audience = "internal"

    @cached_property
    def shown(self) -> Plain:
        """What the reader may see of the document."""
        return self.document if self.audience == "internal" else self.page.external(self.document)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The result in sentences."""
        return self.page.sentences(self.shown)

    @property
    def why(self) -> Why:
        """Why the external page may leave."""
        return self.page.why(self.document)

    @property
    def html(self) -> str:
        """The page."""
        return self.page.html(self.shown, internal=self.audience == "internal")

    @property
    def json(self) -> str:
        """The document."""
        return json_text(self.shown).rstrip()

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page as one offline HTML file and return its path."""
        if self.audience == "external":
            promise = self.why is not Why.MEASURED
            write_public(path, Leaving(self.html, self.why), promise=promise, force=force)
        else:
            with replacing(path, force=force) as temporary:
                temporary.write_text(self.html, encoding="utf-8", newline="\n")
        return Path(path)
