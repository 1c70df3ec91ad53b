"""Intersection (composition) attack check: what a planned release and earlier ones disclose together.

Each release may satisfy k-anonymity and l-diversity by itself. An adversary who knows that a person is in two releases
looks the person up in both, and only the sensitive values that occur in both remain. Columns that both publish link
their rows, so that even fewer remain. No parameter of a single release limits this, so it is checked before the next
release.

Reference: Ganta, Kasiviswanathan, Smith (2008), Composition attacks and auxiliary information in data privacy,
doi:10.1145/1401890.1401926.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.attacks.base import View, unperturbed
from sfumato.attacks.candidate_rows import match
from sfumato.attacks.normalize import canonical
from sfumato.data.row_codes import number_rows, positions, value_codes
from sfumato.dataset import Data, Role
from sfumato.errors import BadParameter, NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.release import Release, State, Verdict
from sfumato.release.folder import load_release


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
    rows. Rows of two releases are of one person only if they agree in every other column that both publish, also where
    nobody is expected to know it; the possible values are those that such rows have in common. A column counts as known
    if it is a quasi-identifier of any of the releases. Values must not change between releases: a person whose possible
    values have no overlap is taken not to be in the earlier release.

    Refused where rows may be linked in a way that is not followed: by a column that a release changed, or that only
    some of several releases have.

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
        which = "planned" if number == 0 else f"{number}. earlier"
        if column not in release.table.columns:
            raise NotApplicable(f"The {which} release has no column `{column}`.", column=column)
        if not _unchanged(release, column):
            raise NotApplicable(
                f"A published step of the {which} release changed `{column}`, so its values cannot be compared.",
                column=column,
            )
    known = _known(releases, original)
    links = _linking_columns(releases, original, {column, *known})
    texts = [canonical(release.table.column(column)) for release in releases]
    values = pl.concat(texts).unique().drop_nulls().sort()
    linked = pl.concat([_texts(release, links) for release in releases]) if links else None
    of_link = np.zeros(sum(map(len, texts)), dtype=np.int64) if linked is None else _numbers(linked)
    alike = original.table.frame.group_by(known).agg(pl.len().alias("people #"))
    people = alike["people #"].to_numpy()
    starts = np.cumsum([0, *map(len, texts)])
    with progress.task("looking people up", len(releases)) as tick:
        found = []
        for number, release in enumerate(releases):
            rows = of_link[starts[number] : starts[number + 1]]
            found.append(_possible(release, texts[number], values, rows, alike, column))
            tick(1)
    together = np.stack([one.of_person for one in found], axis=1)
    cases, case = np.unique(together, axis=0, return_inverse=True)
    here, left = np.empty(len(cases), dtype=np.int64), np.empty(len(cases), dtype=np.int64)
    fits = np.zeros(len(cases), dtype=np.bool_)
    for number, sets in enumerate(cases):
        possible = found[0].pairs[sets[0]]
        here[number] = len(np.unique(possible % len(values)))
        for other, which in zip(found[1:], sets[1:], strict=True):
            both = np.intersect1d(possible, other.pairs[which], assume_unique=True)
            # nothing in common: the person is not in that release, or the value changed
            if len(both):
                possible, fits[number] = both, True
        left[number] = len(np.unique(possible % len(values)))
    of = case.reshape(-1)
    before, after, overlap = here[of], left[of], fits[of]
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


def _known(releases: Sequence[Release], original: Data) -> list[str]:
    """The columns that are a quasi-identifier in any of the releases: what is known for one is known for all."""
    declared = [name for release in releases for name in _of_role(release, Role.QUASI)]
    return [name for name in dict.fromkeys((*original.quasi, *declared)) if name in original.columns]


def _of_role(release: Release, role: Role) -> list[str]:
    columns: Mapping[str, Any] = release.manifest.get("columns", {})
    return [name for name, column in columns.items() if column.get("role") == role.value]


def secrets_of(releases: Sequence[Release]) -> list[str]:
    """The columns that are sensitive by the manifest of any of the releases."""
    return list(dict.fromkeys(name for release in releases for name in _of_role(release, Role.SENSITIVE)))


def _linking_columns(releases: Sequence[Release], original: Data, judged: Collection[str]) -> list[str]:
    """The other columns that several releases publish: by equal values there, their rows are linked.

    Refused where rows may be linked in a way that is not followed: by values that a release changed, or by a column
    that only some of several releases have.
    """
    names = [name for release in releases for name in release.table.columns if name not in judged]
    shared = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    followed = [
        name
        for name in shared
        if name in original.columns
        and all(name in release.table.columns and _exact(release, original, name) for release in releases)
    ]
    left = [name for name in shared if name not in followed] + _perturbed(releases, judged)
    if left:
        raise NotApplicable(
            f"Several releases publish {', '.join(f'`{name}`' for name in left)}, by which their rows may be linked, "
            "and not as the same exact values in all of them.",
            fix="Do not release such columns twice.",
            columns=tuple(left),
        )
    return followed


def _perturbed(releases: Sequence[Release], names: Collection[str]) -> list[str]:
    """Columns that several releases publish and one perturbed: their values are near each other and not equal."""
    published = [tuple(name for name in names if name in release.table.columns) for release in releases]
    true = [
        unperturbed(release.manifest.get("steps", ()), shown)
        for release, shown in zip(releases, published, strict=True)
    ]
    several = [name for name in names if sum(name in shown for shown in published) > 1]
    return [
        name
        for name in several
        if any(name in shown and name not in kept for shown, kept in zip(published, true, strict=True))
    ]


def _unchanged(release: Release, name: str) -> bool:
    """Whether no published step of a release is about this column, nor one that does not say what it changed."""
    return not any(
        name in (*step.get("columns", ()), *step.get("levels", ()))
        or ("columns" not in step and not step.get("truthful", False))
        for step in release.manifest.get("steps", ())
    )


def _exact(release: Release, original: Data, name: str) -> bool:
    """Whether a column was released as it is, as far as the manifest and the values show."""
    shown = canonical(release.table.column(name)).unique()
    true = canonical(original.table.column(name)).unique()
    return _unchanged(release, name) and bool(shown.is_in(true, nulls_equal=True).all())


def _texts(release: Release, names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame([canonical(release.table.column(name)).alias(f"c{i}") for i, name in enumerate(names)])


def _numbers(frame: pl.DataFrame) -> Ints:
    return number_rows([value_codes(column)[0] for column in frame])[0].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class _Possible:
    """What each combination of known values may have in one release."""

    of_person: Ints
    """For each combination the number of its set."""
    pairs: list[Ints]
    """The sets: pairs of the values in the linking columns and the sensitive value, each as one number, in order."""


def _possible(
    release: Release, text: pl.Series, values: pl.Series, link: Ints, alike: pl.DataFrame, column: str
) -> _Possible:
    knows = tuple(name for name in alike.columns[:-1] if name in release.table.columns and name != column)
    if not knows:
        raise NotApplicable("A release shares no quasi-identifier with the original or with another release.")
    matched = match(View(release=release, targets=alike.select(knows), knows=knows))
    code = positions(text, values).fill_null(-1).to_numpy()
    every = np.arange(len(values))

    def pairs(rows: Ints) -> Ints:
        filled = rows[code[rows] >= 0]
        # a row without a value may have any
        blank = np.unique(link[rows[code[rows] < 0]])
        open_pairs = (blank[:, None] * len(values) + every).reshape(-1)
        return np.unique(np.concatenate([link[filled] * len(values) + code[filled], open_pairs]))

    of_class: dict[int, Ints] = {}
    sets: dict[bytes, int] = {}
    found: list[Ints] = []
    of_person = np.empty(matched.persons, dtype=np.int64)
    for targets, candidates in matched.candidates():
        classes = np.sort(candidates.classes)
        number = sets.setdefault(classes.tobytes(), len(found))
        if number == len(found):
            for one in classes.tolist():
                if one not in of_class:
                    of_class[one] = pairs(matched.rows(one))
            parts = [of_class[one] for one in classes.tolist()]
            found.append(np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64))
        of_person[matched.person[targets[0]]] = number
    return _Possible(of_person=of_person[matched.person], pairs=found)
