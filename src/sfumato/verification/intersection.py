"""The intersection guard: what a planned release and earlier ones give away together about people who are in both.

Each release on its own may hide a person among k rows with l sensitive values. Whoever knows that the person is in two
releases looks the person up in both, and only the sensitive values that occur in both places remain. No parameter of
the single releases limits that; it has to be looked at before the next one leaves.

Reference: Ganta, Kasiviswanathan, Smith (2008), Composition attacks and auxiliary information in data privacy,
doi:10.1145/1401890.1401926.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import match
from sfumato.attacks.normalize import canonical
from sfumato.data.row_codes import positions
from sfumato.errors import BadParameter, NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.release import Release, State, Verdict
from sfumato.release.folder import load_release
from sfumato.schema import Dataset

__all__ = ["IntersectionRisk", "guard_intersection"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class IntersectionRisk:
    """How far the sensitive values of people are narrowed down by looking them up in several releases."""

    column: str
    """The sensitive column."""
    people: int
    """People looked up: the rows of the original."""
    overlapping: int
    """Of them, those who may be in an earlier release as well."""
    wanted: int
    """Values that must stay possible for everybody."""
    before: int
    """People for whom fewer stay possible by the planned release alone."""
    after: int
    """People for whom fewer stay possible once all releases are put together."""
    known: int
    """People for whom a single value is left after that."""
    worst: int | None
    """Fewest values left for anybody; None when nobody overlaps."""

    @property
    def verdict(self) -> Verdict:
        """Holds when nobody who overlaps has fewer than the wanted values left."""
        if self.worst is None:
            return Verdict(
                model="intersection",
                state=State.HOLDS,
                wanted=self.wanted,
                reason="Nobody of the planned release fits a row of an earlier one.",
            )
        holds = self.worst >= self.wanted
        reason = (
            ""
            if holds
            else f"`{self.column}`: {self.after} of {self.overlapping} people who may be in an earlier release have "
            f"fewer than {self.wanted} values left, {self.known} of them one; this release alone: {self.before}."
        )
        return Verdict(
            model="intersection",
            state=State.HOLDS if holds else State.FAILS,
            worst=self.worst,
            wanted=self.wanted,
            failing=self.after,
            reason=reason,
        )

    def to_dict(self) -> dict[str, object]:
        """Counts only, for the owner of the data: they are not for publication."""
        counts = {name: getattr(self, name) for name in ("people", "overlapping", "before", "after", "known", "worst")}
        return {"column": self.column, "wanted": self.wanted, **counts, "holds": self.verdict.holds}


def guard_intersection(
    planned: Release | str | Path,
    earlier: Sequence[Release | str | Path],
    *,
    original: Dataset,
    l: int,  # noqa: E741 - the field's own letter
    column: str | None = None,
    progress: Progress = SILENT,
) -> tuple[IntersectionRisk, ...]:
    """Judge a planned release against earlier ones, for one sensitive column or all.

    The intruder is the worst case: knows the true quasi-identifiers of everybody in ``original``, knows the methods,
    and knows that a person who fits rows of an earlier release is in it. A person's candidates in a release are all
    rows that may be the person's; the values left are those that occur among the candidates of every release. Values
    must not change between releases: someone whose values have nothing in common is taken not to overlap.

    It counts possibilities, not probabilities: ten values left of which one is nearly certain count as ten.
    """
    if l < 2:
        raise BadParameter(f"l must be at least 2, not {l}: one value left is a value known.")
    if not earlier:
        raise BadParameter("No earlier release was named.", fix="Name the folders of earlier releases.")
    releases = [item if isinstance(item, Release) else load_release(item) for item in (planned, *earlier)]
    columns = original.sensitive if column is None else (column,)
    if not columns:
        raise NotApplicable(
            "The data has no sensitive column, so nothing can be narrowed down.",
            fix="Give a column the role `sensitive`, or name one.",
        )
    return tuple(_intersect(name, releases, original, l, progress) for name in columns)


def _intersect(
    column: str, releases: list[Release], original: Dataset, wanted: int, progress: Progress
) -> IntersectionRisk:
    for number, release in enumerate(releases):
        if column not in release.table.columns:
            which = "planned" if number == 0 else f"{number}. earlier"
            raise NotApplicable(f"The {which} release has no column `{column}`.", column=column)
    spelled = [canonical(release.table.column(column)) for release in releases]
    values = pl.concat(spelled).unique().drop_nulls().sort()
    alike = original.table.frame.group_by(original.quasi).agg(pl.len().alias("people #"))
    people = alike["people #"].to_numpy()
    with progress.task("looking people up", len(releases)) as tick:
        here = left = _possible(releases[0], spelled[0], values, alike, column)
        tick(1)
        overlap = np.zeros(len(left), dtype=np.bool_)
        for release, text in zip(releases[1:], spelled[1:], strict=True):
            both = left & _possible(release, text, values, alike, column)
            # nothing in common: the person was not in that release, or the value has changed
            fits: Mask = np.asarray(both.any(axis=1), dtype=np.bool_)
            left = np.asarray(np.where(fits[:, None], both, left), dtype=np.bool_)
            overlap |= fits
            tick(1)
    before, after = here.sum(axis=1), left.sum(axis=1)
    return IntersectionRisk(
        column=column,
        people=int(people.sum()),
        overlapping=int(people[overlap].sum()),
        wanted=wanted,
        before=int(people[overlap & (before < wanted)].sum()),
        after=int(people[overlap & (after < wanted)].sum()),
        known=int(people[overlap & (after == 1)].sum()),
        worst=int(after[overlap].min()) if overlap.any() else None,
    )


def _possible(release: Release, text: pl.Series, values: pl.Series, alike: pl.DataFrame, column: str) -> Mask:
    """(combination, value): whether somebody with these quasi-identifiers may hold the value."""
    knows = tuple(name for name in alike.columns[:-1] if name in release.table.columns and name != column)
    if not knows:
        raise NotApplicable("A release shares no quasi-identifier with the original, so nobody can be looked up in it.")
    matched = match(View(release=release, targets=alike.select(knows), knows=knows))
    of_row = positions(text, values)
    sizes = np.diff(matched.starts)
    occurs = np.zeros((len(sizes), len(values)), dtype=np.bool_)
    row_class = np.empty(len(of_row), dtype=np.int64)
    row_class[matched.order] = np.repeat(np.arange(len(sizes)), sizes)
    filled = of_row.is_not_null().to_numpy()
    occurs[row_class[filled], of_row.drop_nulls().to_numpy()] = True
    # a row whose value was left out may hold any
    occurs[row_class[~filled]] = True
    possible = np.zeros((matched.persons, len(values)), dtype=np.bool_)
    for number, (_, candidates) in enumerate(matched.candidates()):
        if len(candidates.classes):
            possible[number] = occurs[candidates.classes].any(axis=0)
    return np.asarray(possible[matched.person], dtype=np.bool_)
