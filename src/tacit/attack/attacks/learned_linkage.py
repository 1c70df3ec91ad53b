"""Linkage by the distance that links best: the worst case of distance-based re-identification."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tacit.attack.attack import Discloses, Guesses, Linking, View
from tacit.attack.features import points
from tacit.attack.learning import Form, Lesson, Problem, learn, matrix_of
from tacit.attack.nearest import distinct_points, nearest
from tacit.attack.proven import proven_weights
from tacit.errors import NotApplicable
from tacit.progress import SILENT, Progress
from tacit.rng import Rng

__all__ = ["LearnedLinkage"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_PEOPLE = 1000
"""From how many people at most a distance is learned; more change little and cost much."""
_NEAR = 256
"""In large releases, how many plainly nearest rows a learned distance chooses among."""


class LearnedLinkage(Linking):
    """Somebody who knows whose rows some are learns the distance that links best, and links the others with it.

    With ``taught: 1`` the distance is learned from the very people it is tried on: nobody has this knowledge, but no
    distance of the family links more, which makes it the worst case. With a smaller share the intruder knows the rows
    of that share of people, and the risk is measured on the rest: the realistic intruder. The families are the
    weighted mean, ordered weights (OWA), the Choquet integral (columns may interact) and the symmetric bilinear form
    (any matrix); Mahalanobis uses the covariance of the differences of those taught. The weights tell which columns
    give people away.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    pairwise: ClassVar[bool] = True
    main: ClassVar[str] = "distance"
    examples: ClassVar = (
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
    """Share of the people whose rows the intruder knows; 1 learns from the targets themselves (the worst case)."""
    additive: Literal[2] | None = None
    """For the Choquet integral: 2 allows interactions of two columns only; needed above 8 columns."""
    definite: bool = False
    """For the bilinear form: only matrices that give no negative distance."""
    proof: Annotated[float, Field(ge=0)] = 0.0
    """For the weighted mean: seconds spent on proving the optimum by a mixed-integer program."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        if view.taught is None:
            raise NotApplicable(
                "A distance can only be learned from people whose rows are known.",
                fix="Set `taught`, or use `distance-linkage`.",
            )
        both = view.targets.select(view.knows).vstack(view.taught[0].select(view.knows))
        together = points(View(release=view.release, targets=both, knows=view.knows, transparent=view.transparent))
        targets, known = together.targets[: view.targets.height], together.targets[view.targets.height :]
        released, rows = together.released, view.taught[1]
        if len(known) > _PEOPLE:
            chosen = np.sort(rng.child("taught").generator.choice(len(known), _PEOPLE, replace=False))
            known, rows = known[chosen], rows[chosen]
        detail: dict[str, Any] = {"taught": len(known)}
        with progress.task("learning a distance", 2) as tick:
            if self.distance == "mahalanobis":
                turn = _whitening(known - released[rows])
                near = nearest(targets @ turn, released @ turn, rng.generator)
                tick(2)
                return Guesses.of_rows(near.row, 1 / near.ties, detail)
            form, lesson, more = self._lesson(known, released, rows, rng)
            detail.update(more)
            tick(1)
            row, ties = _link(form, lesson.theta, targets, released, rng)
            tick(1)
        return Guesses.of_rows(row, 1 / ties, {**detail, **_meaning(form, lesson.theta, together.column)})

    def _lesson(self, known: Floats, released: Floats, rows: Ints, rng: Rng) -> tuple[Form, Lesson, dict[str, Any]]:
        width = known.shape[1]
        if self.distance == "choquet" and self.additive is None and width > 8:
            raise NotApplicable(
                f"A Choquet integral over {width} columns has {2**width - 2} parameters.", fix="Set `additive: 2`."
            )
        distinct, order, starts = distinct_points(released)
        place = np.empty(len(released), dtype=np.int64)
        place[order] = np.repeat(np.arange(len(distinct)), np.diff(starts))
        truth = place[rows]
        draw = rng.child("learning").generator
        gap = known - released[rows]
        simple = Form(shape="weighted", width=width)
        problem = Problem.of(simple, known, distinct, truth)
        spread = np.maximum(gap.var(axis=0), 1e-9 * max(1e-300, float(gap.var(axis=0).max())))
        lesson = learn(simple, problem, draw, starts=(1 / spread,))
        more: dict[str, Any] = {}
        if self.distance == "weighted":
            if self.proof > 0:
                proof = proven_weights(problem, known=lesson.linked, seconds=self.proof)
                if proof is not None:
                    more = {"bound": proof.bound / problem.people, "proven": proof.optimal}
                    if proof.linked >= lesson.linked:
                        lesson = Lesson(theta=proof.weights, linked=proof.linked)
            return simple, lesson, {**more, "linked_taught": lesson.linked / problem.people}
        assert self.distance != "mahalanobis"
        form = Form(shape=self.distance, width=width, additive=self.additive, definite=self.definite)
        problem = Problem.of(form, known, distinct, truth)
        begin = [form.from_weights(lesson.theta)]
        if self.distance == "bilinear":
            inverse = np.linalg.pinv(np.atleast_2d(np.cov(gap, rowvar=False)) + 1e-9 * np.eye(width))
            begin.append(inverse[np.triu_indices(width)].astype(np.float64))
        lesson = learn(form, problem, draw, starts=tuple(begin))
        return form, lesson, {"linked_taught": lesson.linked / problem.people}


def _whitening(gap: Floats) -> Floats:
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(gap, rowvar=False)))
    if values[-1] <= 0:
        return np.eye(gap.shape[1])
    turn: Floats = vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    return turn


def _link(form: Form, theta: Floats, targets: Floats, released: Floats, rng: Rng) -> tuple[Ints, Ints]:
    """The nearest row under the learned distance; equally near ones are chosen among at random."""
    if form.shape == "weighted":
        scale = np.sqrt(np.maximum(theta, 0))
        near = nearest(targets * scale, released * scale, rng.generator)
        return near.row, near.ties
    distinct, order, starts = distinct_points(released)
    sizes = np.diff(starts)
    draw = rng.child("ties").generator
    row, ties = np.empty(len(targets), dtype=np.int64), np.empty(len(targets), dtype=np.int64)
    for index, person in enumerate(targets):
        gap = distinct - person
        pool = np.arange(len(distinct))
        if len(distinct) > 4 * _NEAR:
            pool = np.argpartition((gap * gap).sum(axis=1), _NEAR)[:_NEAR]
        score = form.features(gap[pool]) @ theta
        best = pool[score == score.min()]
        chance = sizes[best] / sizes[best].sum()
        pick = int(draw.choice(best, p=chance))
        row[index] = order[starts[pick] + int(draw.integers(sizes[pick]))]
        ties[index] = sizes[best].sum()
    return row, ties


def _meaning(form: Form, theta: Floats, columns: tuple[str, ...]) -> dict[str, Any]:
    """The parameters in words of columns: which of them give people away."""
    names = list(dict.fromkeys(columns))
    if len(names) != len(columns):
        names = [f"{name} {number}" for number, name in enumerate(columns)]
    match form.shape:
        case "weighted":
            share = theta / theta.sum()
            return {"weights": {name: float(value) for name, value in zip(names, share, strict=True)}}
        case "owa":
            return {"ordered weights, largest difference first": [float(value) for value in theta / theta.sum()]}
        case "bilinear":
            matrix = matrix_of(theta, form.width)
            scale = np.abs(np.diag(matrix)).sum() or 1.0
            return {
                "weights": {name: float(value) for name, value in zip(names, np.diag(matrix) / scale, strict=True)},
                "matrix": (matrix / scale).tolist(),
            }
        case _:
            return {"measure": [float(value) for value in theta / np.abs(theta).max()]}
