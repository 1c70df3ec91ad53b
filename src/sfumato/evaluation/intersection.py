"""Intersection (composition) attack check: what a planned release and earlier ones disclose together.

Each release may satisfy k-anonymity and l-diversity by itself. An adversary who knows that a person is in two releases
looks the person up in both, and only the sensitive values that occur in both remain. No parameter of a single release
limits this, so it is checked before the next release.

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
from sfumato.dataset import Data
from sfumato.errors import BadParameter, NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.release import Release, State, Verdict
from sfumato.release.folder import load_release

__all__ = ["IntersectionRisk", "guard_intersection"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class IntersectionRisk:
    """How far several releases together narrow down the sensitive values of people."""

    column: str
    """The sensitive column."""
    people: int
    """People looked up: the rows of the original."""
    overlapping: int
    """Those who may also be in an earlier release."""
    wanted: int
    """Minimum number of values that must stay possible for everyone."""
    before: int
    """People with fewer possible values by the planned release alone."""
    after: int
    """People with fewer possible values by all releases together."""
    known: int
    """People with a single possible value by all releases together."""
    worst: int | None
    """Smallest number of possible values; None if no person overlaps."""

    @property
    def verdict(self) -> Verdict:
        """Holds if every overlapping person has at least the wanted number of possible values."""
        if self.worst is None:
            return Verdict(
                model="intersection",
                state=State.HOLDS,
                wanted=self.wanted,
                reason="No person of the planned release matches a row of an earlier one.",
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
        """Counts, for the data owner only; not for publication."""
        counts = {name: getattr(self, name) for name in ("people", "overlapping", "before", "after", "known", "worst")}
        return {"column": self.column, "wanted": self.wanted, **counts, "holds": self.verdict.holds}


def guard_intersection(
    planned: Release | str | Path,
    earlier: Sequence[Release | str | Path],
    *,
    original: Data,
    l: int,  # noqa: E741 - the field's own letter
    column: str | None = None,
    progress: Progress = SILENT,
) -> tuple[IntersectionRisk, ...]:
    """Check a planned release against earlier ones, for one sensitive column or all.

    Worst-case adversary: they know the true quasi-identifiers of everyone in ``original``, the methods, and that a
    person who matches rows of an earlier release is in it. The candidates of a person in a release are all matching
    rows; the possible values are those that occur among the candidates of every release. Values must not change between
    releases: a person whose possible values have no overlap is taken not to be in the earlier release.

    The check counts possible values, not probabilities: ten values count as ten even if one is nearly certain.
    """
    if l < 2:
        raise BadParameter(f"l must be at least 2, not {l}: a single possible value is a disclosed value.")
    if not earlier:
        raise BadParameter("No earlier release was given.", fix="Name the folders of earlier releases.")
    releases = [item if isinstance(item, Release) else load_release(item) for item in (planned, *earlier)]
    columns = original.sensitive if column is None else (column,)
    if not columns:
        raise NotApplicable(
            "The data has no sensitive column.",
            fix="Give a column the role `sensitive`, or name one.",
        )
    return tuple(_intersect(name, releases, original, l, progress) for name in columns)


def _intersect(
    column: str, releases: list[Release], original: Data, wanted: int, progress: Progress
) -> IntersectionRisk:
    for number, release in enumerate(releases):
        if column not in release.table.columns:
            which = "planned" if number == 0 else f"{number}. earlier"
            raise NotApplicable(f"The {which} release has no column `{column}`.", column=column)
    texts = [canonical(release.table.column(column)) for release in releases]
    values = pl.concat(texts).unique().drop_nulls().sort()
    alike = original.table.frame.group_by(original.quasi).agg(pl.len().alias("people #"))
    people = alike["people #"].to_numpy()
    with progress.task("looking people up", len(releases)) as tick:
        here = left = _possible(releases[0], texts[0], values, alike, column)
        tick(1)
        overlap = np.zeros(len(left), dtype=np.bool_)
        for release, text in zip(releases[1:], texts[1:], strict=True):
            both = left & _possible(release, text, values, alike, column)
            # no common value: the person is not in that release, or the value changed
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
    """(combination, value): whether a person with these quasi-identifiers may have the value."""
    knows = tuple(name for name in alike.columns[:-1] if name in release.table.columns and name != column)
    if not knows:
        raise NotApplicable("A release shares no quasi-identifier with the original.")
    matched = match(View(release=release, targets=alike.select(knows), knows=knows))
    of_row = positions(text, values)
    sizes = np.diff(matched.starts)
    occurs = np.zeros((len(sizes), len(values)), dtype=np.bool_)
    row_class = np.empty(len(of_row), dtype=np.int64)
    row_class[matched.order] = np.repeat(np.arange(len(sizes)), sizes)
    filled = of_row.is_not_null().to_numpy()
    occurs[row_class[filled], of_row.drop_nulls().to_numpy()] = True
    # a row without a value may have any
    occurs[row_class[~filled]] = True
    possible = np.zeros((matched.persons, len(values)), dtype=np.bool_)
    for number, (_, candidates) in enumerate(matched.candidates()):
        if len(candidates.classes):
            possible[number] = occurs[candidates.classes].any(axis=0)
    return np.asarray(possible[matched.person], dtype=np.bool_)
