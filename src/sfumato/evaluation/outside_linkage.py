"""Linkage of an outside file to a release without the original: candidates per person, and expected right matches.

Nobody can look up which matches are right. The number is estimated under stated assumptions:

| estimate | assumption |
|---|---|
| everybody is in the release | each person's row is among the rows that fit |
| self-linkage | outside people who are not in the release fit as many rows as a released record fits others |
| population | the release is a simple random sample of a population of known size |

Self-linkage (the default) compares the numbers of fitting rows with two distributions that the release itself gives:
for somebody in it, the sizes of its equivalence classes; for somebody else, the sizes without the record itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import Match, match
from sfumato.attacks.recoding import ColumnReading
from sfumato.attacks.value_coverage import read_column
from sfumato.deadline import batches
from sfumato.errors import BadParameter, NotApplicable
from sfumato.measures.disclosure._population import individual_risk
from sfumato.progress import SILENT, Progress
from sfumato.release import Release
from sfumato.stats import wilson

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

CANDIDATE_BANDS = ((1, 1), (2, 4), (5, 9), (10, 49), (50, None))
"""Numbers of fitting rows that tables group people by."""
_SURE = 0.95
_SAME = 0.9
_SAME_CODING = 0.5
_LEAST_ALONE = 0.05
"""With a smaller share of unique records, somebody who is not in the release can hardly be told from a member."""


@dataclass(frozen=True, kw_only=True)
class MembershipEstimate:
    """Estimate of which outside people are in the release."""

    member: Floats
    """For each person the estimated probability of being in the release."""
    at_least: Floats
    """The same at the lower end of the 95 % interval of the share; 0 where nothing can be estimated."""
    share: float
    """The estimated share of outside people who are in the release."""
    estimated: bool
    """False if nearly everybody would find a row: all whom a row fits are then taken to be in the release."""


@dataclass(frozen=True, kw_only=True)
class OutsideLinkage:
    """What an outside file finds in a release. Rows are counted from 0; everything here is confidential."""

    knows: tuple[str, ...]
    released_rows: int
    fitting: Ints
    """For each outside person the number of released rows that fit."""
    chance: Floats
    """For each person in the release the probability that the most specific row that fits is theirs; 0 if none fits.

    All rows that fit count, each with its weight: ranges overlap, so a specific row is not the only possibility.
    """
    membership: MembershipEstimate
    in_population: float | None
    """Expected number of right matches if the release is a random sample of a population of known size."""
    tells: Mapping[str, Mapping[str, int]]
    """For each sensitive column the number of people whose candidates all have one value, and nearly all."""
    candidates: pl.DataFrame
    """Outside row, released row, probability, and the sensitive values of the released row."""
    candidates_left_out: int
    """People whose candidates are not listed, because too many rows fit."""
    readings: tuple[ColumnReading, ...] = ()
    """Known columns whose values are released in another coding, and how these were matched."""

    @property
    def people(self) -> int:
        return len(self.fitting)

    @cached_property
    def probability(self) -> Floats:
        """For each person the probability that the most specific row that fits is theirs."""
        return self.membership.member * self.chance

    @property
    def fit_one_row(self) -> int:
        """People whom exactly one released row fits. That the row is theirs is not certain."""
        return int((self.fitting == 1).sum())

    @cached_property
    def surely_right(self) -> Flags:
        """Whose best match is right with a probability of at least 95 %, at the lower end of the estimate."""
        return np.asarray(self.membership.at_least * self.chance >= _SURE)

    @property
    def expected(self) -> float:
        """Expected number of right matches, calibrated by self-linkage."""
        return fsum(self.probability)

    @property
    def expected_if_inside(self) -> float:
        """Expected number of right matches if everybody whom a row fits is in the release."""
        return fsum(self.chance)

    def bands(self) -> Iterator[dict[str, object]]:
        """People by the number of fitting rows."""
        for low, high in ((0, 0), *CANDIDATE_BANDS):
            chosen = (self.fitting >= low) & (self.fitting <= (high if high is not None else self.released_rows))
            yield {
                "from": low, "to": high, "people": int(chosen.sum()), "expected": fsum(self.probability[chosen]),
                "surely_right": int(self.surely_right[chosen].sum()),
            }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The document that ``sfumato attack --json`` prints without an original. Rows are counted from 1."""
        return {
            "knows": list(self.knows),
            "released_rows": self.released_rows,
            "people": self.people,
            "people_with_candidates": int((self.fitting > 0).sum()),
            "fit_one_row": self.fit_one_row,
            "surely_right": int(self.surely_right.sum()),
            "estimated_share_in_release": self.membership.share,
            "membership_estimated": self.membership.estimated,
            "expected_right_matches": {
                "self_linkage": self.expected,
                "everybody_in_release": self.expected_if_inside,
                **({"population": self.in_population} if self.in_population is not None else {}),
            },
            "candidates": list(self.bands()),
            "tells": {name: dict(counts) for name, counts in self.tells.items()},
            "candidates_left_out": self.candidates_left_out,
            "readings": [reading.to_dict() for reading in self.readings],
            "persons": [
                {"row": row + 1, "candidates": int(fitting), "probability": float(chance)}
                for row, (fitting, chance) in enumerate(zip(self.fitting, self.probability, strict=True))
            ],
        }


def link_outside_file(
    release: Release,
    outside: pl.DataFrame,
    *,
    knows: Sequence[str],
    secrets: Sequence[str] = (),
    population: int | None = None,
    most: int = 20,
    progress: Progress = SILENT,
) -> OutsideLinkage:
    """Link every person of an outside file to the rows of a release that fit the known columns.

    ``most`` is the largest number of candidates that is listed for a person. Only true values can be looked up: columns
    that a published step perturbed are not used. ``population`` is the number of people the release was drawn from.
    """
    if population is not None and population < release.table.rows:
        raise BadParameter(
            f"A population of {population:,} cannot contain the {release.table.rows:,} released records.",
            fix="Give the number of people from whom the records were drawn.",
        )
    readings = () if release.manifest.get("steps") is not None else _readings(outside, release, knows)
    view = View(
        release=release,
        targets=outside.select(knows),
        knows=tuple(knows),
        blanks_unknown=True,
        recodings={reading.column: reading.recoding for reading in readings if reading.recoding is not None},
    )
    matched = match(view)
    sizes = np.diff(matched.starts)
    people = outside.height
    fitting, chance = np.zeros(people, dtype=np.int64), np.zeros(people)
    listed: list[tuple[Ints, Ints, Floats]] = []
    values = {name: _codes(release.table.column(name), matched) for name in secrets}
    tells = {name: {"one value": 0, "nearly one value": 0} for name in secrets}
    left_out = 0
    done = 0
    steps = batches(progress, "linking", matched.persons)
    for part, (targets, candidates) in zip(steps, matched.candidates(), strict=False):
        done = part.stop
        count = int(candidates.sizes.sum())
        fitting[targets] = count
        if not count:
            continue
        chance[targets] = candidates.weight.max() / candidates.total
        for name, codes in values.items():
            share = _largest_share(codes, candidates.classes)
            tells[name]["one value"] += len(targets) * (share == 1.0)
            tells[name]["nearly one value"] += len(targets) * (share >= _SAME)
        if count > most:
            left_out += len(targets)
            continue
        rows = np.concatenate([matched.rows(number) for number in candidates.classes])
        weight = np.repeat(candidates.weight / candidates.total, candidates.sizes)
        listed += [(np.full(len(rows), target), rows, weight) for target in targets]
    if done < matched.persons:
        raise NotApplicable("Stopped: time was up before everybody was linked.", fix="Allow more time.")
    own = sizes[_class_of(matched)]
    membership = estimate_membership(fitting, own)
    in_population = None
    if population is not None:
        found = fitting[fitting > 0]
        risk = individual_risk(found, found.astype(np.float64) * (population / release.table.rows))
        in_population = float(fsum(risk))
    return OutsideLinkage(
        knows=tuple(knows),
        released_rows=release.table.rows,
        fitting=fitting,
        chance=chance,
        membership=membership,
        in_population=in_population,
        tells=tells,
        candidates=_table(listed, membership.member, release, secrets),
        candidates_left_out=left_out,
        readings=readings,
    )


def _readings(outside: pl.DataFrame, release: Release, knows: Sequence[str]) -> tuple[ColumnReading, ...]:
    """The columns in which most outside people have a value that is not released: another coding, not other people."""
    found = [read_column(outside.get_column(name), release.table.column(name)) for name in knows]
    return tuple(reading for reading in found if reading.occurs < _SAME_CODING)


def estimate_membership(fitting: Ints, own: Ints) -> MembershipEstimate:
    """For each outside person the probability of being in the release, and the estimated share of all.

    ``fitting`` is the number of rows that fit each person, ``own`` the size of the class of each released record. A
    record of the release fits ``own`` rows; somebody else like it would fit ``own - 1`` (Good and Turing's estimate).
    The share of people whom no row fits therefore estimates how many are not in the release. Where nearly everybody
    would find a row, as in a k-anonymous release, nothing can be estimated and all are taken to be in the release.

    The lower end takes every frequency at the end of its 95 % interval that speaks against membership: of people whom
    no row fits, of unique records, and of records that fit as many rows as the person.

    >>> own = np.array([1, 1, 1, 1, 2, 2])
    >>> found = estimate_membership(np.array([1, 1, 0, 0]), own)
    >>> found.member.round(2).tolist(), round(found.share, 2), found.at_least.tolist()
    ([0.4, 0.4, 0.0, 0.0], 0.25, [0.0, 0.0, 0.0, 0.0])
    """
    if len(fitting) == 0 or len(own) == 0:
        return MembershipEstimate(
            member=np.zeros(len(fitting)), at_least=np.zeros(len(fitting)), share=0.0, estimated=False
        )
    nobody, alone = int((fitting == 0).sum()), int((own == 1).sum())
    if alone < _LEAST_ALONE * len(own):
        inside = np.where(fitting > 0, 1.0, 0.0)
        return MembershipEstimate(
            member=inside, at_least=np.zeros(len(fitting)), share=1.0 - nobody / len(fitting), estimated=False
        )
    share = max(0.0, 1.0 - nobody / len(fitting) / (alone / len(own)))
    lowest = max(0.0, 1.0 - wilson(nobody, len(fitting))[1] / wilson(alone, len(own))[0])
    # Sizes are pooled in bands that double, because each single large size is rare.
    inside, outside = (np.bincount(_band(sizes), minlength=64) for sizes in (own, own - 1))
    ends = [np.array([wilson(int(count), len(own)) for count in counts]) for counts in (inside, outside)]
    place = _band(fitting)
    # A number of rows that no record has tells nothing.
    member = np.where((inside + outside)[place] > 0, _bayes(share, inside[place], outside[place]), share)
    at_least = _bayes(lowest, ends[0][place, 0], ends[1][place, 1])
    return MembershipEstimate(
        member=np.where(fitting > 0, member, 0.0), at_least=np.where(fitting > 0, at_least, 0.0),
        share=share, estimated=True,
    )  # fmt: skip


def _bayes(share: float, inside: Floats | Ints, outside: Floats | Ints) -> Floats:
    """The probability of being in the release by Bayes' rule, from the share of all and both likelihoods."""
    likely, total = share * inside, share * inside + (1 - share) * outside
    return np.asarray(np.divide(likely, total, out=np.zeros(len(total)), where=total > 0))


def _band(sizes: Ints) -> Ints:
    """0, 1, 2, 3 to 4, 5 to 8, and so on."""
    return np.where(sizes > 0, np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64) + 1, 0)


def _class_of(matched: Match) -> Ints:
    numbers = np.empty(len(matched.order), dtype=np.int64)
    numbers[matched.order] = np.repeat(np.arange(len(matched.starts) - 1), np.diff(matched.starts))
    return numbers


def _codes(values: pl.Series, matched: Match) -> list[dict[object, int]]:
    """For each equivalence class how often it contains each sensitive value."""
    frame = pl.DataFrame({"class": _class_of(matched), "value": values}).group_by("class", "value").len()
    counts: list[dict[object, int]] = [{} for _ in range(len(matched.starts) - 1)]
    for number, value, count in frame.iter_rows():
        counts[number][value] = count
    return counts


def _largest_share(codes: Sequence[Mapping[object, int]], classes: Ints) -> float:
    total: dict[object, int] = {}
    for number in classes:
        for value, count in codes[number].items():
            total[value] = total.get(value, 0) + count
    present = {value: count for value, count in total.items() if value is not None}
    return max(present.values(), default=0) / max(1, sum(total.values()))


def _table(
    listed: Sequence[tuple[Ints, Ints, Floats]], member: Floats, release: Release, secrets: Sequence[str]
) -> pl.DataFrame:
    person, row, weight = (
        (np.concatenate([entry[place] for entry in listed]) if listed else np.empty(0)) for place in range(3)
    )
    person, row = person.astype(np.int64), row.astype(np.int64)
    frame = pl.DataFrame(
        {
            "outside_row": person + 1,
            "released_row": row + 1,
            "probability": (weight * member[person]).astype(np.float64),
        }
    )
    shown = release.table.frame.select(pl.col(name).gather(row) for name in secrets)
    return pl.concat([frame, shown], how="horizontal").sort("outside_row", "probability", descending=[False, True])
