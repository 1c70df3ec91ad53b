"""k-confusion: the largest probability that a released row belongs to a person, over all assignments."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.disclosure.concealment import FittingClasses, fitting_classes, in_some_assignment
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

Flags = npt.NDArray[np.bool_]

_WORK = 30_000_000
"""States times people of one group that are counted exactly: some seconds."""


class Confusion(Measure):
    """One over the largest probability of a released row to belong to a person: a release of value k has k-confusion.

    The adversary knows the quasi-identifiers of everybody in the release and takes all assignments of these people to
    rows that fit as equally likely. k-confusion asks that no row belongs to anybody with a probability above 1/k.
    k-concealment asks only for k rows that are possible: one of them may be far more likely than the others. Rows of a
    k-anonymous release are equal, so that both values are k; rows need not be equal for either.

    Exact: assignments are counted in groups of people and rows that can be exchanged. Not computed where a group with
    different rows is too large, where people were perturbed or have several rows, and where rows were invented. Nothing
    is said about sensitive values that all candidate rows share.

    The detail gives the largest probability (``largest``), the smallest number of possible rows (``concealment``) and
    the share of people with a probability above 1/k (``below``).
    """

    about: ClassVar[About] = About.DISCLOSURE
    better: ClassVar[Literal["low", "high"]] = "high"
    main: ClassVar[str | None] = "k"
    examples = ({}, {"k": 5})
    reference: ClassVar[str] = (
        "Stokes, Torra (2011), Reidentification and k-anonymity: a model for disclosure risk in graphs, "
        "arXiv:1112.1978 (defines n-confusion)"
    )

    k: Annotated[int, Field(ge=2)] | None = None
    """People with a row of probability above 1/k are counted."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        found = fitting_classes(pair, "confusion", progress)
        if (found.own < 0).any() or len(np.unique(found.own)) < len(found.own):
            raise NotApplicable("Some rows were invented, or people have several rows.")
        largest, possible = _judged(found)
        detail: dict[str, object] = {"largest": float(largest.max()), "concealment": int(possible.min())}
        if self.k is not None:
            detail |= {"k": self.k, "below": float((largest > 1 / self.k + 1e-9).mean())}
        return MeasureResult(measure=self.part_name(), value=float(1 / largest.max()), detail=detail)


def _judged(found: FittingClasses) -> tuple[npt.NDArray[np.float64], Ints]:
    """For each released person the largest probability of a row, and the number of possible rows."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, person = np.unique(found.person[found.own], return_inverse=True)
    position = np.full(int(found.person.max()) + 1, -1)
    position[found.person[found.own]] = person
    here = position[found.known] >= 0
    known, fits, classes = position[found.known[here]], found.fits[here], len(found.sizes)
    kept = in_some_assignment(known, fits, person, found.of_row, np.arange(len(person)), classes)
    known, fits = known[kept], fits[kept]
    persons = int(person.max()) + 1
    size = persons + classes
    graph = coo_array((np.ones(len(known), dtype=np.int8), (known, persons + fits)), shape=(size, size))
    _, group = connected_components(graph.tocsr(), directed=False)
    held = np.bincount(person, minlength=persons)
    largest = np.zeros(persons)
    for number in np.unique(group[:persons]):
        people = np.flatnonzero(group[:persons] == number)
        rows = np.flatnonzero(group[persons:] == number)
        inside = group[known] == number
        allowed = np.zeros((len(people), len(rows)), dtype=np.bool_)
        allowed[np.searchsorted(people, known[inside]), np.searchsorted(rows, fits[inside])] = True
        largest[people] = _probabilities(allowed, held[people], found.sizes[rows])
    possible = np.bincount(known, weights=found.sizes[fits], minlength=persons).astype(np.int64)
    return largest[person], possible[person]


def _probabilities(allowed: Flags, people: Ints, rows: Ints) -> npt.NDArray[np.float64]:
    """Largest probability of a single row for each combination of a group: ``people`` of each combination, ``rows`` of
    each class, and which class fits which combination."""
    if allowed.all():
        return np.full(len(people), 1 / rows.sum())
    shape = tuple((rows + 1).tolist())
    if float(np.prod(np.array(shape, dtype=float))) * people.sum() * len(people) > _WORK:
        raise NotApplicable("A group of exchangeable rows is too large to count its assignments exactly.")
    largest = np.zeros(len(people))
    for one in range(len(people)):
        # Ways to place everybody except one person of this combination; the row that is left is that person's.
        ways = np.zeros(shape)
        ways[tuple(length - 1 for length in shape)] = 1.0
        for other, count in enumerate(people.tolist()):
            for _ in range(count - (other == one)):
                ways = _placed(ways, np.flatnonzero(allowed[other]))
        left = np.array([ways[tuple(int(axis == c) for axis in range(len(rows)))] for c in range(len(rows))])
        left *= allowed[one]
        largest[one] = (left / left.sum() / rows).max()
    return largest


def _placed(ways: npt.NDArray[np.float64], classes: Ints) -> npt.NDArray[np.float64]:
    """Ways by numbers of free rows after one more person took a row of one of these classes."""
    after = np.zeros_like(ways)
    for axis in classes.tolist():
        to = [slice(None)] * ways.ndim
        source = [slice(None)] * ways.ndim
        to[axis], source[axis] = slice(None, -1), slice(1, None)
        after[tuple(to)] += ways[tuple(source)]
    after /= after.max()
    return after
