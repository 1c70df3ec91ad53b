"""The report of released microdata, from the private folder beside the release."""

from __future__ import annotations

from pathlib import Path

from sfumato.errors import NotThatFormat
from sfumato.release.folder import PRIVATE, private_document, private_folder
from sfumato.reports import Audience, Report, ReportData


def report_microdata(release: str | Path, *, audience: Audience = "internal") -> Report:
    """The report of a release folder for one audience."""
    return Report(data=load_report(Path(release)), audience=audience)


def load_report(release: Path) -> ReportData:
    """The report data from the private folder beside a release."""
    try:
        return ReportData.from_dict(private_document(release))
    except (ValueError, TypeError, KeyError, AttributeError):
        file = private_folder(release) / PRIVATE
        raise NotThatFormat(f"{file} is not the report of a release.", fix="Make the release again.") from None
