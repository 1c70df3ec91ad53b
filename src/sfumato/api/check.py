"""``sfumato.check``: verify what a release of any kind promises, independently of the code that made it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.api.kind import given, kind_of_release
from sfumato.api.protection import judge_release
from sfumato.api.results import CheckResults
from sfumato.release import Lineage, Release


def check(
    release: object,
    *,
    original: object = None,
    population: object = None,
    recipe: object = None,
    earlier: Sequence[Release | str | Path] = (),
    lineage: Lineage | None = None,
    engine: str = "auto",
    memory: str = "4GB",
) -> CheckResults:
    """Check the privacy models of a release again, with code that is independent of the code that made it.

    Options that do not apply to a kind of release are refused.

    Parameters
    ----------
    release
        The result of :func:`protect`, a release folder of any kind, any file, database URL or frame, or a ``Release``.
    original
        The table the release was made from: the reference distribution of t-closeness and similar models. A failed
        verdict ``derived columns`` then names released columns from which a masked or removed one follows. Of a graph
        or of tables: the recipe or plan that made it.
    population
        The population table, for models such as k-map and delta-presence.
    recipe
        Roles and models, for a release without a manifest.
    earlier
        Earlier releases about the same people. One more verdict per sensitive column says whether all releases
        together leave at least two possible values for everybody; this needs ``original``.
    lineage
        The row map. That of a release folder is taken from its private folder.
    engine, memory
        Where the rows lie: ``auto`` (memory if both files fit, DuckDB otherwise), ``memory``, ``duckdb`` or ``spark``.
        An engine counts where the rows are, within this memory limit. What needs more is "not checked", with the
        reason.

    Returns
    -------
    CheckResults
        One verdict per model: holds, fails, or not checked with the reason. "Not checked" is never "holds".
    """
    kind = kind_of_release(release)
    return judge_release(kind, kind.check, release, given(check, locals()))
