"""Record linkage by a learned distance: a bound on what one family of distances can link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.features import points
from sfumato.attacks.nearest_neighbours import nearest
from sfumato.attacks.record_linkage._unchanged_columns import apart, blocks
from sfumato.attacks.record_linkage.learned_linkage.competing_rows import CompetingRows, exact_columns
from sfumato.attacks.record_linkage.learned_linkage.distances import Form, matrix_of
from sfumato.attacks.record_linkage.learned_linkage.fit import learn
from sfumato.attacks.record_linkage.learned_linkage.linkage_problem import LinkageProblem
from sfumato.attacks.record_linkage.learned_linkage.milp_weights import proven_weights
from sfumato.deadline import batches, check_deadline, seconds_left, split_deadline
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_NEAR = 256
"""In large releases, the number of nearest rows (by the best weighted mean) that a learned distance chooses among."""
_NUMBERS = 20_000_000
"""Approximate maximum number of feature differences in memory."""
_MAX_WIDTH = 40
"""Maximum number of features per person; a bilinear form has about half the square of it as parameters."""
_DEFAULT_WIDTH = 15
"""Maximum number of features per person in the default battery."""


class LearnedLinkage(Linking):
    """An attacker who knows the rows of some people learns the distance that links them best, and links the others.

    With ``taught: 1`` the distance is learned from the targets themselves. No attacker has this knowledge. The
    solver is a heuristic: a distance of the family that links a little more may exist (``proof`` finds the most that
    weighted means link); other distances and other views of the data may link more. With a smaller share the
    attacker knows the rows of that share of the people, and the risk is measured on the others: the realistic case. The
    families are the weighted mean, ordered weighted averages (OWA), the Choquet integral (with interactions of columns)
    and the symmetric bilinear form (any matrix); Mahalanobis uses the covariance of the differences in known pairs. The
    weights show which columns identify people.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.LEARNING
    pairwise: ClassVar[bool] = True
    main: ClassVar[str] = "distance"
    examples = (
        {"distance": "weighted", "taught": 1.0, "knows": ["height", "income", "rent", "commute"]},
        {"distance": "bilinear", "taught": 0.5, "knows": ["height", "income", "rent", "commute"]},
    )
    reference: ClassVar[str] = (
        "Abril, D., Navarro-Arribas, G., Torra, V. (2012). Improving record linkage with supervised learning for "
        "disclosure risk assessment. Information Fusion 13(4). doi:10.1016/j.inffus.2011.05.001"
    )

    distance: Literal["mahalanobis", "weighted", "owa", "choquet", "bilinear"] = "bilinear"
    """The family of distances."""
    taught: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the people whose rows the attacker knows; 1 learns from the targets themselves."""
    most: Annotated[int, Field(ge=1, le=10_000)] = 500
    """Maximum number of people from whom a distance is learned; with ``taught: 1`` these are the targets."""
    additive: Literal[2] | None = None
    """For the Choquet integral: 2 allows only interactions of two columns; required for more than 8 columns."""
    definite: bool = False
    """For the bilinear form: only positive semidefinite matrices."""
    proof: Annotated[float, Field(ge=0)] = 0.0
    """For the weighted mean: seconds spent on proving optimality by a mixed-integer program."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """All targets known and 30 % known rows, where at least two numbers may have been perturbed."""
        numbers = sum(scenario.release.table.column(name).dtype.is_numeric() for name in scenario.known)
        perturbed = not scenario.steps or set(scenario.known) - set(scenario.unperturbed)
        if numbers < 2 or scenario.synthetic or scenario.release_row is None or not perturbed:
            return ()
        columns = _learnable(scenario, scenario.release_row)
        if len(columns) < 2:
            return ()
        knows = None if columns == scenario.known else columns
        return tuple(cls(taught=share, knows=knows) for share in (1.0, 0.3))

    @property
    def setting(self) -> str:
        """Taught by the targets, or the share of rows that the attacker knows."""
        return "taught by the targets" if self.taught >= 1 else f"{self.taught:.0%} known"

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        if view.known_matches is None:
            raise NotApplicable(
                "Learning a distance needs people whose rows are known.",
                fix="Set `taught`, or use `distance-linkage`.",
            )
        taught, rows = view.known_matches
        if taught.height > self.most:
            chosen = np.sort(rng.child("taught").generator.choice(taught.height, self.most, replace=False))
            taught, rows = taught[chosen], rows[chosen]
        exact = exact_columns(view, taught, rows)
        both = view.targets.select(view.knows).vstack(taught.select(view.knows))
        moved = tuple(name for name in view.knows if name not in exact)
        pair = View(release=view.release, targets=both, knows=moved, transparent=view.transparent)
        together = points(pair, progress=progress)
        in_block, block = blocks(pair, exact)
        targets, known = np.split(together.targets, [view.targets.height])
        own, of_known = np.split(in_block, [view.targets.height])
        if self.distance == "mahalanobis":
            turn = _whitening(known - together.released[rows])
            left, right = apart(targets @ turn, own), apart(together.released @ turn, block)
            near = nearest(left, right, rng.generator, progress, "learned linkage")
            return Guesses.of_rows(near.row, 1 / near.ties, {"taught": len(known)}, tried=len(near.row))
        check_deadline(progress)
        learned = self._learn(known, of_known, CompetingRows.of(together.released, block), rows, rng, progress)
        row, ties = learned.link(targets, own, rng, progress)
        credit = np.zeros(len(together.names))
        np.add.at(credit, [together.names.index(name) for name in together.column], learned.credit)
        detail = {
            "taught": len(known),
            "columns": {name: float(value) for name, value in zip(together.names, credit, strict=True)},
            **learned.detail,
            **({"exact": list(exact)} if exact else {}),
            **_meaning(learned.form, learned.theta, together.column),
        }
        return Guesses.of_rows(row, 1 / np.maximum(ties, 1), detail, tried=len(row))

    def _learn(
        self, known: Floats, block: Ints, released: CompetingRows, rows: Ints, rng: Rng, progress: Progress
    ) -> _LearnedDistance:
        width = known.shape[1]
        if self.distance == "choquet" and self.additive is None and width > 8:
            raise NotApplicable(
                f"A Choquet integral over {width} columns has {2**width - 2} parameters.", fix="Set `additive: 2`."
            )
        if width > _MAX_WIDTH:
            raise NotApplicable(
                f"The known columns have {width} features per person, too many to learn a distance over.",
                fix=f"Name fewer columns with `knows`: at most {_MAX_WIDTH} features, one per value of a category.",
            )
        truth = released.place[rows]
        draw = rng.child("learning").generator
        gap = known - released.points[truth]
        variance = gap.var(axis=0)
        begin = (1 / np.maximum(variance, 1e-9 * variance.max()),) if variance.max() > 0 else ()
        weighted = Form(shape="weighted", width=width)
        last = self.distance == "weighted"
        learned = self._fit(weighted, np.ones(width), known, block, released, truth, begin, draw, progress, relax=last)
        if last:
            return self._proven(learned, progress) if self.proof > 0 else learned
        assert self.distance != "mahalanobis"
        form = Form(shape=self.distance, width=width, additive=self.additive, definite=self.definite)
        starts = [form.from_weights(learned.theta)]
        if self.distance == "bilinear" and len(gap) > 1:  # one person has no covariance
            inverse = np.linalg.pinv(np.atleast_2d(np.cov(gap, rowvar=False)) + 1e-9 * np.eye(width))
            starts.append(inverse[np.triu_indices(width)].astype(np.float64))
        return self._fit(form, learned.theta, known, block, released, truth, tuple(starts), draw, progress)

    def _fit(
        self,
        form: Form,
        weights: Floats,
        known: Floats,
        block: Ints,
        released: CompetingRows,
        truth: Ints,
        starts: tuple[Floats, ...],
        draw: np.random.Generator,
        progress: Progress,
        *,
        relax: bool = True,
    ) -> _LearnedDistance:
        """Fit a distance of the family, among the rows that are nearest by ``weights``."""
        # The same near rows are used for learning and for linking; memory limits their number.
        reach = int(np.clip(_NUMBERS // (len(known) * len(form.plain)), 40, _NEAR))
        pool = released.near(known, block, weights, reach, progress)
        if pool is not None and len(pool) < len(known):
            raise OutOfTime("Stopped: time was up before a distance was learned.", fix="Allow more time.")
        problem = LinkageProblem.of(form, known, released.points, truth, pool=pool)
        check_deadline(progress)
        # Half of the time is for learning, half for linking.
        fit = learn(form, problem, draw, starts=starts, relax=relax, progress=split_deadline(progress, 2))
        return _LearnedDistance(
            form=form,
            theta=fit.theta,
            linked=fit.linked + problem.alone,
            people=len(known),
            problem=problem,
            released=released,
            weights=weights,
            reach=reach,
        )

    def _proven(self, learned: _LearnedDistance, progress: Progress) -> _LearnedDistance:
        seconds = seconds_left(split_deadline(progress, 2), self.proof)
        alone = learned.problem.alone
        proof = proven_weights(learned.problem, known=learned.linked - alone, seconds=seconds)
        if proof is None:
            return learned
        if proof.linked + alone >= learned.linked:
            learned = replace(learned, theta=proof.weights, linked=proof.linked + alone)
        return replace(learned, more={"bound": (proof.bound + alone) / learned.people, "proven": proof.optimal})


@dataclass(frozen=True, kw_only=True)
class _LearnedDistance:
    """A learned distance, and the release to link with."""

    form: Form
    theta: Floats
    linked: int
    """Number of known people that the distance links."""
    people: int
    """Number of known people."""
    problem: LinkageProblem
    released: CompetingRows
    weights: Floats
    """Weights of the weighted mean that selects near rows."""
    reach: int
    """Number of near rows considered per target."""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def credit(self) -> Floats:
        return self.problem.credit(self.form, self.theta)

    @property
    def detail(self) -> dict[str, Any]:
        return {**self.more, "linked_taught": self.linked / self.people}

    def link(self, targets: Floats, block: Ints, rng: Rng, progress: Progress) -> tuple[Ints, Ints]:
        """The nearest row under the learned distance, with ties broken at random."""
        points, order, starts = self.released.points, self.released.order, self.released.starts
        sizes = np.diff(starts)
        draw = rng.child("ties").generator
        row, ties = np.empty(len(targets), dtype=np.int64), np.empty(len(targets), dtype=np.int64)
        every = np.arange(len(points))
        pools = self.released.near(targets, block, self.weights, self.reach, progress)
        count = len(targets) if pools is None else len(pools)
        done = 0
        for part in batches(progress, "learned linkage", count):
            index = part.start
            pool = every if pools is None else pools[index]
            done = part.stop
            if len(pool) == 0:  # no row agrees in the columns that the masking left unchanged
                row[index], ties[index] = -1, 1
                continue
            score = self.form.features(points[pool] - targets[index]) @ self.theta
            best = pool[score == score.min()]
            pick = int(draw.choice(best, p=sizes[best] / sizes[best].sum()))
            row[index] = order[starts[pick] + int(draw.integers(sizes[pick]))]
            ties[index] = sizes[best].sum()
        return row[:done], ties[:done]


def _learnable(scenario: AttackScenario, release_row: Ints) -> tuple[str, ...]:
    """The known columns that a distance is learned over by default: numbers, and categories with few values.

    A category has one feature per value, so numbers come first, and small categories before large ones. Columns that
    the masking left unchanged have no features.
    """
    original = scenario.original.table
    names = tuple(name for name in scenario.known if name in original.columns)
    people = np.flatnonzero(release_row >= 0)
    view = View(release=scenario.release, targets=original.frame, knows=names)
    exact = exact_columns(view, original.frame.select(names)[people], release_row[people])
    width = {
        name: 0 if name in exact else 1 if kind.is_numeric() or kind.is_temporal() else original.column(name).n_unique()
        for name in names
        for kind in (original.column(name).dtype,)
    }
    taken: list[str] = []
    room = _DEFAULT_WIDTH
    for name in sorted(width, key=lambda name: width[name]):
        if width[name] <= room:
            taken.append(name)
            room -= width[name]
    return tuple(name for name in scenario.known if name in taken)


def _whitening(gap: Floats) -> Floats:
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(gap, rowvar=False)))
    if values[-1] <= 0:
        return np.eye(gap.shape[1])
    turn: Floats = vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    return turn


def _meaning(form: Form, theta: Floats, columns: tuple[str, ...]) -> dict[str, object]:
    """The parameters by column names."""
    names = list(dict.fromkeys(columns))
    if len(names) != len(columns):
        names = [f"{name} {number}" for number, name in enumerate(columns)]
    match form.shape:
        case "weighted":
            return {"weights": {name: float(value) for name, value in zip(names, theta / theta.sum(), strict=True)}}
        case "owa":
            return {"ordered weights, largest difference first": [float(value) for value in theta / theta.sum()]}
        case "bilinear":
            matrix = matrix_of(theta, form.width)
            scale = np.abs(np.diag(matrix)).sum() or 1.0
            return {
                "weights": {name: float(value) for name, value in zip(names, np.diag(matrix) / scale, strict=True)},
                "matrix": (matrix / scale).tolist(),
            }
        case "choquet":
            return {"measure": [float(value) for value in theta / np.abs(theta).max()]}
