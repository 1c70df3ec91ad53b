"""The report of a release as an object: shown in a notebook, saved as one HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from sfumato.reports.page import report_html, report_json, write_report
from sfumato.reports.report_data import Audience, ReportData
from sfumato.reports.text import judgement, summary


@dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """The report of a release for one audience. A notebook shows the whole page."""

    data: ReportData
    audience: Audience = "internal"

    @property
    def html(self) -> str:
        """The page as text."""
        return report_html(self.data, self.audience)

    @property
    def json(self) -> str:
        """The JSON report, with the same figures."""
        return report_json(self.data, self.audience)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page as one offline HTML file and return its path."""
        write_report(self.data, path, audience=self.audience, force=force)
        return Path(path)

    def __repr__(self) -> str:
        return f"<Report: {self._visible.title}, {self.audience}, {judgement(self._visible).standing}>"

    def __str__(self) -> str:
        """The title and the summary in words."""
        return "\n".join((self._visible.title, *summary(self._visible)))

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its style sheet must not change the notebook."""
        frame = "width:100%;height:45rem;border:1px solid #c9cfd4;border-radius:.5rem;background:#fff"
        return f'<iframe sandbox="" srcdoc="{escape(self.html)}" style="{frame}" title="{escape(repr(self))}"></iframe>'

    @property
    def _visible(self) -> ReportData:
        return self.data.for_audience(self.audience)
