"""``sfumato.report``: write the report of a release of any kind as one offline HTML file."""

from __future__ import annotations

from pathlib import Path

from sfumato.api.kind import ReportPage, kind_of_release
from sfumato.api.protection import Protection
from sfumato.errors import BadParameter
from sfumato.reports import Audience


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
            fix="Name a file outside the release: `out`.",
            option="out",
        )
    return report_page(release, audience=audience).save(target, force=force)


def report_page(release: Protection | str | Path, *, audience: Audience = "internal") -> ReportPage:
    """The report of a release for one audience, as a page and as JSON."""
    if isinstance(release, Protection):
        return release.report(audience=audience)
    return kind_of_release(release).report(release, audience=audience)
