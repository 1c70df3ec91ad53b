"""The report of released microdata, from the private folder beside the release."""

from __future__ import annotations

import json
from pathlib import Path

from sfumato.errors import FileMissing, NotThatFormat
from sfumato.release.folder import PRIVATE, private_folder
from sfumato.reports import Audience, Report, ReportData


def report_microdata(release: str | Path, *, audience: Audience = "internal") -> Report:
    """The report of a release folder for one audience."""
    return Report(data=load_report(Path(release)), audience=audience)


def load_report(release: Path) -> ReportData:
    """The report data from the private folder beside a release."""
    file = private_folder(release) / PRIVATE
    if not file.is_file():
        raise FileMissing(f"There is no {file}.", fix="Reports are made from the private folder beside the release.")
    try:
        return ReportData.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise NotThatFormat(f"{file} is not the report of a release.", fix="Make the release again.") from None
