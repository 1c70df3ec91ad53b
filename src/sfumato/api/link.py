"""``sfumato.link``: link an outside file to a release without the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sfumato.api.results import as_text
from sfumato.data import Table, read
from sfumato.data.atomic import write_secret
from sfumato.dataset import Schema
from sfumato.deadline import stopping
from sfumato.errors import BadParameter, ColumnsDiffer
from sfumato.evaluation.outside_linkage import OutsideLinkage, link_outside_file
from sfumato.progress import SILENT, Progress
from sfumato.release import Release
from sfumato.release.folder import load_release
from sfumato.wording import did_you_mean


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LinkResult:
    """What an outside file finds in a release. Confidential: it may identify people."""

    linkage: OutsideLinkage

    def to_frame(self) -> pl.DataFrame:
        """One row per candidate: outside row, released row (both from 1), probability, sensitive values."""
        return self.linkage.candidates

    def to_dict(self) -> dict[str, object]:
        """The document that ``sfumato attack --json`` prints without an original."""
        return self.linkage.to_dict()

    def save_candidates(self, path: str | Path) -> None:
        """Write the candidates as CSV, readable by its owner only. An existing file is never replaced."""
        write_secret(path, self.linkage.candidates.write_csv())

    def save_report(self, path: str | Path) -> None:
        """Write the report as one offline HTML file, readable by its owner only. An existing file is never replaced."""
        from sfumato.reports.outside import outside_html

        write_secret(path, outside_html(self.to_dict()))

    def __repr__(self) -> str:
        found = self.linkage
        counts = f"{found.people:,} outside people, {found.fit_one_row:,} fit one row"
        return f"<LinkResult: {counts}, {found.expected:.1f} expected right>"

    def __str__(self) -> str:
        from sfumato.reports.outside import print_outside

        return as_text(lambda console: print_outside(self.to_dict(), console))

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def link(
    release: object,
    auxiliary: object,
    *,
    knows: Sequence[str] | None = None,
    secrets: Sequence[str] = (),
    schema: Schema | None = None,
    rename: Mapping[str, str] | None = None,
    population: int | None = None,
    candidates: int = 20,
    seconds: float | None = None,
    progress: Progress = SILENT,
) -> LinkResult:
    """Link an outside file to a release without the original, and estimate how many matches are right.

    Parameters
    ----------
    release
        A release folder, any file, database URL or frame, or a ``Release``.
    auxiliary, rename
        The file about people from outside, and its columns that the release calls otherwise
        (``{their name: our name}``).
    knows
        The columns to link on. The quasi-identifiers if left out, or, where no roles are declared, all columns that
        both files have.
    secrets
        Columns of the release that an attacker wants to learn. The sensitive columns if left out.
    schema
        The roles of the columns of a release without a manifest, such as ``recipe.schema``.
    population
        The number of people from whom the released records were drawn, if it is known.
    candidates
        List the candidates of people whom at most this many rows fit.
    seconds
        Stop with an error after this time.

    Returns
    -------
    LinkResult
        Numbers of fitting rows, the expected number of right matches, and the candidates.

    Examples
    --------
    >>> import polars as pl
    >>> released = pl.DataFrame({"zip": ["A", "A", "B"], "age": [30, 30, 41], "ill": ["no", "yes", "no"]})
    >>> voters = pl.DataFrame({"name": ["Ann", "Bob"], "zip": ["B", "D"], "age": [41, 30]})
    >>> found = link(released, voters, knows=["zip", "age"], secrets=["ill"])
    >>> found.linkage.fitting.tolist(), found.linkage.fit_one_row
    ([1, 0], 1)
    """
    progress = stopping(progress, seconds)
    opened = release if isinstance(release, Release) else load_release(release)
    outside = outside_table(auxiliary, rename or {})
    declared = opened.manifest.get("columns") or {}
    common = [name for name in opened.table.columns if name in outside.columns]
    roles = {name: str(column.get("role")) for name, column in declared.items()}
    if schema is not None and not roles:
        roles = {name: str(column.role) for name, column in schema.columns.items() if name in opened.table.columns}
    known = list(knows) if knows else [name for name in common if roles.get(name, "quasi") == "quasi"]
    for name in known:
        for place, columns in (("outside file", outside.columns), ("release", opened.table.columns)):
            if name not in columns:
                raise ColumnsDiffer(
                    f"`knows` names column `{name}`, which the {place} does not have.",
                    fix=did_you_mean(name, columns),
                    column=name,
                )
    if not known:
        raise ColumnsDiffer(
            "The outside file and the release have no column in common to link on.",
            fix="Name the columns with `knows`, or map them with `rename`.",
        )
    sensitive = list(secrets) or [name for name, role in roles.items() if role == "sensitive" and name not in known]
    opened.table.require(sensitive)
    if overlap := sorted(set(known) & set(sensitive)):
        raise BadParameter(f"`{overlap[0]}` cannot be both known to the attacker and inferred.", column=overlap[0])
    linkage = link_outside_file(
        opened,
        outside.frame,
        knows=known,
        secrets=[name for name in sensitive if name in opened.table.columns],
        population=population,
        most=candidates,
        progress=progress,
    )
    return LinkResult(linkage=linkage)


def outside_table(auxiliary: object, rename: Mapping[str, str]) -> Table:
    """The outside file with the column names of the release."""
    table = read(auxiliary)
    table.require(tuple(rename))
    kept = [name for name in table.columns if name in rename or name not in rename.values()]
    return table.with_frame(table.frame.select(kept).rename(dict(rename)))
