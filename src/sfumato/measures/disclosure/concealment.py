"""k-concealment: the number of released rows a person can have in any complete assignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import match
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.classes import quasi_of
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_EDGES = 200_000_000
"""Pairs of known combination and released class that may be held: about 2 GB."""


class Concealment(Measure):
    """The smallest number of released rows that a person of the release could be.

    The adversary knows the quasi-identifiers of everybody in the original and that each released row is one person's.
    They drop every row that fits a person but leaves another person without a row: what remains are the rows that the
    person has in *some* assignment of all people to rows. The release has k-concealment if the value is at least k.
    That is k-anonymity where all rows of a class look the same, and can be less coarse where every row may show groups
    of its own (local recoding, cell suppression); plain counts of fitting rows overstate what such a release hides.

    Rows that were left out may have been anybody's, and invented rows nobody's. Needs the row map, which is one such
    assignment; where rows do not fit their own people (perturbed values) it does not apply. Exact. Nothing is said
    about sensitive values that all candidate rows share.

    The detail gives the mean number of rows (``average``), the smallest number of rows that merely fit (``fitting``),
    the share of people with one row only (``alone``) and of those with fewer than k (``below``).
    """

    about: ClassVar[About] = About.DISCLOSURE
    better: ClassVar[Literal["low", "high"]] = "high"
    main: ClassVar[str | None] = "k"
    examples = ({}, {"k": 5})
    reference: ClassVar[str] = (
        "Tassa, Mazza, Gionis (2012), k-Concealment: an alternative model of k-type anonymity, Transactions on Data "
        "Privacy 5(1):189-222; Gionis, Mazza, Tassa (2008), k-Anonymization revisited, doi:10.1109/ICDE.2008.4497483"
    )

    k: Annotated[int, Field(ge=2)] | None = None
    """People with fewer rows than this are counted."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        found = fitting_classes(pair, "concealment", progress)
        kept = in_some_assignment(found.known, found.fits, found.person, found.of_row, found.own, len(found.sizes))
        combination = found.person[np.unique(found.own[found.own >= 0])]
        known, weights, persons = found.known, found.sizes[found.fits], int(found.person.max()) + 1
        rows = np.bincount(known[kept], weights=weights[kept], minlength=persons)[combination]
        plain = np.bincount(known, weights=weights, minlength=persons)[combination]
        detail: dict[str, object] = {
            "average": float(rows.mean()),
            "fitting": int(plain.min()),
            "alone": float((rows == 1).mean()),
        }
        if self.k is not None:
            detail |= {"k": self.k, "below": float((rows < self.k).mean())}
        return MeasureResult(measure=self.part_name(), value=float(rows.min()), detail=detail)


@dataclass(frozen=True, kw_only=True)
class FittingClasses:
    """Which classes of equal released rows fit which combination of known values."""

    known: Ints
    """Combination of each pair that fits."""
    fits: Ints
    """Class of each pair that fits."""
    sizes: Ints
    """Rows of each class."""
    person: Ints
    """Combination of each person of the original."""
    of_row: Ints
    """Class of each released row."""
    own: Ints
    """Person of each released row; -1 if it is invented."""


def fitting_classes(pair: ReleasePair, what: str, progress: Progress) -> FittingClasses:
    """All pairs of known combination and released class that fit; refused where values were perturbed."""
    if pair.lineage is None:
        raise NotApplicable("This needs the row map of the release, which only its owner has.")
    names = tuple(name for name in quasi_of(pair.original) if name in pair.release.table.columns)
    if not names:
        raise NotApplicable("The release has none of the quasi-identifiers.")
    view = View(release=pair.release, targets=pair.original.table.frame.select(names), knows=names)
    if view.untouched != names:
        raise NotApplicable("Some quasi-identifiers were perturbed, so rows need not fit the people they belong to.")
    matched = match(view)
    sizes = np.diff(matched.starts)
    of_row = np.empty(len(matched.order), dtype=np.int64)
    of_row[matched.order] = np.repeat(np.arange(len(sizes)), sizes)
    person, fitting = [], []
    with progress.task(what, matched.persons) as tick:
        held = 0
        for people, candidates in matched.candidates():
            number = int(matched.person[people[0]])
            person.append(np.full(len(candidates.classes), number, dtype=np.int64))
            fitting.append(candidates.classes)
            held += len(candidates.classes)
            if held > _EDGES:
                raise NotApplicable(f"More than {_EDGES:,} pairs of a person and a class fit: too many to compare.")
            tick(1)
    return FittingClasses(
        known=np.concatenate(person),
        fits=np.concatenate(fitting),
        sizes=sizes,
        person=matched.person,
        of_row=of_row,
        own=pair.lineage.rows,
    )


def in_some_assignment(
    known: Ints, fits: Ints, person: Ints, of_row: Ints, own: Ints, classes: int
) -> npt.NDArray[np.bool_]:
    """Which pairs (combination, class that fits it) occur in an assignment of everybody to a row.

    People point to the classes that fit them, classes to the people whose rows they hold. A pair lies in an assignment
    exactly if its two ends reach each other: rows can then be passed on in a ring. One more class stands for being left
    out, one more combination for an invented row.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    persons = int(person.max()) + 1
    nobody, nowhere = persons, persons + 1 + classes
    real = own >= 0
    held, holder = of_row[real], person[own[real]]
    if not np.isin(holder * classes + held, known * classes + fits).all():
        raise NotApplicable("Some released rows do not fit the people they belong to: their values were perturbed.")
    gone = np.setdiff1d(np.arange(len(person)), own[real])
    invented = np.unique(of_row[~real])
    edges = [(known, persons + 1 + fits), (persons + 1 + held, holder)]
    if len(gone):
        edges.append((np.arange(persons), np.full(persons, nowhere)))
        edges.append((np.full(len(gone), nowhere), person[gone]))
    if len(invented):
        edges.append((np.full(classes, nobody), persons + 1 + np.arange(classes)))
        edges.append((persons + 1 + invented, np.full(len(invented), nobody)))
    start, end = (np.concatenate(side) for side in zip(*edges, strict=True))
    graph = coo_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(nowhere + 1, nowhere + 1))
    _, ring = connected_components(graph.tocsr(), directed=True, connection="strong")
    return np.asarray(ring[known] == ring[persons + 1 + fits])
