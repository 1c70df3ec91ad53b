"""``sfumato.report``: write the report of a release as one offline HTML file."""

from __future__ import annotations

import json
from pathlib import Path

from sfumato.api.protection import Protection
from sfumato.data.atomic import replacing
from sfumato.errors import BadParameter, FileMissing, NotThatFormat
from sfumato.release.folder import private_folder
from sfumato.reports import Audience, ReportData, write_report

__all__ = ["load_report", "report"]


def report(
    release: Protection | str | Path,
    *,
    out: str | Path = "report.html",
    audience: Audience = "internal",
    force: bool = False,
) -> Path:
    """Write the report of a release as one offline HTML file.

    Parameters
    ----------
    release
        The result of :func:`protect`, or a release folder with its private folder beside it.
    out
        The file to write. It must lie outside the release folder, whose manifest names every file.
    audience
        ``internal``: everything, for the owner. ``external``: no count, share or row number of the original.
    force
        Replace ``out`` if it exists.

    Returns
    -------
    Path
        The file that was written.
    """
    target = Path(out)
    if not isinstance(release, Protection) and target.resolve().is_relative_to(Path(release).resolve()):
        raise BadParameter(
            f"{target} lies in the release folder, whose manifest names every file.",
            fix="Name a file outside the release with --out.",
        )
    data = release.report_data if isinstance(release, Protection) else load_report(Path(release))
    with replacing(target, force=force) as temporary:
        write_report(data, temporary, audience=audience)
    return target


def load_report(release: Path) -> ReportData:
    """The report data from the private folder beside a release."""
    file = private_folder(release) / "report.json"
    if not file.is_file():
        raise FileMissing(f"There is no {file}.", fix="Reports are made from the private folder beside the release.")
    try:
        return ReportData.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise NotThatFormat(f"{file} is not the report of a release.", fix="Make the release again.") from None
