"""Whether a new model may be published after a change of the data, and what to change if it may not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sfumato.errors import NotComparable
from sfumato.integral.encoding import Encoding
from sfumato.integral.explanations import Explanations, explain, explain_groups
from sfumato.integral.learner import Learner
from sfumato.integral.local_search import explain_nearby
from sfumato.integral.masked_learner import MicroaggregatedLearner
from sfumato.integral.modification import ChangeKind
from sfumato.integral.records import Records
from sfumato.progress import SILENT, Progress
from sfumato.release.standing import Standing, judge
from sfumato.release.verdict import State, Verdict
from sfumato.rng import Rng

GROUPS = "group"
"""Considered instead of single records: the deletion of everybody with the same value of one column."""
_BATCHES = (2, 5, 10, 20, 50)
_TRIALS, _ENOUGH_TRIALS = 20, 16
_GROUP_SIZES = (3, 5, 10, 25)
_MOST_MASKED = 2000
"""Largest table that is microaggregated again after every deletion."""


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A change after which the model may be published, and its cost in accuracy."""

    change: str
    score: float
    """Score of the new model after the change."""
    detail: str

    def to_dict(self) -> dict[str, Any]:
        return {"change": self.change, "score": self.score, "detail": self.detail}


@dataclass(frozen=True, kw_only=True, eq=False)
class Publication:
    """The decision about a new model. For the owner of the data only."""

    verdict: Verdict
    explanations: Explanations
    disclosed: tuple[str, ...]
    """Sensitive columns of which the two models tell a value of a changed record."""
    reason: str

    @property
    def standing(self) -> Standing:
        """Whether the new model may be published; a disclosed secret is a condition that fails."""
        return judge([self.verdict.state, *([State.FAILS] if self.disclosed else ())], limited=True).standing

    @property
    def publish(self) -> bool:
        return self.standing is Standing.PUBLISH

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain data. Values of records are not part of it."""
        found = self.explanations
        return {
            "standing": str(self.standing),
            "publish": self.publish,
            "reason": self.reason,
            "verdict": self.verdict.to_dict(),
            "unchanged": found.unchanged,
            "minimal_modifications": found.ways,
            "people": found.people,
            "people_in_all": found.people_in_all,
            "considered": found.considered,
            "complete": found.complete,
            "refits": found.refits,
            "shared_columns": sorted(found.shared()),
            "disclosed_secrets": list(self.disclosed),
        }


_Attempt = Callable[[Learner, Records], tuple[Publication, float]]
"""Erase the people from some records: the decision about the new model, and its score."""


def decide_publication(
    learner: Learner,
    records: Records,
    old: bytes,
    new: bytes,
    *,
    k: int,
    size: int = 1,
    kinds: Iterable[str] = (ChangeKind.DELETION,),
    known: Sequence[int] = (),
    secrets: Sequence[str] = (),
    max_refits: int = 1_000_000,
    progress: Progress = SILENT,
) -> Publication:
    """Decide whether ``new`` may be published after ``old``: k minimal modifications, nobody in all of them.

    ``secrets`` are columns that the pair must not tell about: if every minimal modification changes a record with the
    same code of a sensitive column, the model must not be published either.
    """
    if learner.fit(records, records.counts) != old:
        raise NotComparable(
            "The old model is not the one that this algorithm learns from the original table.",
            fix="Pass the table that the old model was learned from.",
        )
    if GROUPS in set(kinds):
        found = explain_groups(learner, records, new, known=known)
    else:
        found = explain(
            learner, records, new, size=size, kinds=kinds, known=known, max_refits=max_refits, progress=progress
        )
    verdict = found.verdict(k)
    disclosed = tuple(name for name in found.shared() if name in set(secrets))
    reason = verdict.reason
    if verdict.holds and disclosed:
        columns = ", ".join(f"`{name}`" for name in disclosed)
        reason = f"All minimal modifications change a record with the same value of {columns}: attribute disclosure."
    return Publication(verdict=verdict, explanations=found, disclosed=disclosed, reason=reason)


def suggest_changes(
    learner: Learner,
    frame: pl.DataFrame,
    encoding: Encoding,
    erased: Sequence[int],
    *,
    k: int,
    size: int = 1,
    known: Sequence[int] = (),
    secrets: Sequence[str] = (),
    seed: int = 0,
    max_refits: int = 100_000,
) -> Iterator[Suggestion]:
    """Changes after which the deletion of these rows may be published: batch deletions, mask first, coarser model.

    Each change is tried on the data; only those that work are returned.
    """

    def attempt(other: Learner, records: Records) -> tuple[Publication, float]:
        old, new = other.fit(records, records.counts), other.fit(records, records.without(erased))
        decision = decide_publication(
            other, records, old, new, k=k, size=size, known=known, secrets=secrets, max_refits=max_refits
        )
        return decision, other.score(new, records)

    plain = Records.of(frame, encoding)
    batch = _batch(learner, plain, erased, k=k, known=known, secrets=secrets, rng=Rng(seed))
    if batch is not None:
        yield batch
    bins = max((len(column.edges) + 1 for column in encoding.features if column.edges is not None), default=1)
    for factor in range(2, bins // 2 + 1):
        decision, score = attempt(learner, Records.of(frame, encoding.coarser(factor)))
        if decision.publish:
            if kept := max((len(one.edges) + 1 for one in encoding.coarser(factor).features if one.edges), default=0):
                text = f"Mask first: recode every numeric column to {kept} bins, then learn both models."
                yield Suggestion(change=text, score=score, detail=decision.reason)
            break
    masked = _microaggregated(learner, frame, encoding, attempt)
    if masked is not None:
        yield masked
    for other in learner.coarser():
        decision, score = attempt(other, plain)
        if decision.publish:
            text = f"Publish a coarser model: {other.part_name()} with {_difference(learner, other)}."
            yield Suggestion(change=text, score=score, detail=decision.reason)
            break


def _microaggregated(learner: Learner, frame: pl.DataFrame, encoding: Encoding, attempt: _Attempt) -> Suggestion | None:
    """The weakest microaggregation after which the deletion may be published; for tables of up to 2,000 records."""
    if frame.height > _MOST_MASKED or all(one.categories is not None for one in encoding.features):
        return None
    for group in _GROUP_SIZES:
        if 2 * group > frame.height:
            return None
        other = MicroaggregatedLearner.of(learner, encoding, frame, group=group)
        decision, score = attempt(other, other.records(frame))
        if decision.publish:
            text = f"Mask first: microaggregate every numeric column in groups of {group}, then learn both models."
            return Suggestion(change=text, score=score, detail=decision.reason)
    return None


def _batch(
    learner: Learner,
    records: Records,
    erased: Sequence[int],
    *,
    k: int,
    known: Sequence[int],
    secrets: Sequence[str],
    rng: Rng,
) -> Suggestion | None:
    """The smallest batch of deletions that works for most random batches with the people to erase."""
    blocked = {*erased, *known}
    others = [row for row in range(len(records)) if row not in blocked]
    generator = rng.child("batches").generator
    for size in _BATCHES:
        more = size - len(erased)
        if more < 1 or more > len(others):
            continue
        scores = []
        for _ in range(_TRIALS):
            batch = [*erased, *(int(row) for row in generator.choice(others, more, replace=False))]
            found = explain_nearby(learner, records, batch, known=known, enough=k)
            if found.verdict(k).holds and not set(found.shared()) & set(secrets):
                scores.append(learner.score(learner.fit(records, records.without(batch)), records))
        if len(scores) >= _ENOUGH_TRIALS:
            return Suggestion(
                change=f"Wait until {size} deletions have come together and publish one model for all of them.",
                score=sum(scores) / len(scores),
                detail=f"The verdict held for {len(scores)} of {_TRIALS} random batches.",
            )
    return None


def _difference(learner: Learner, other: Learner) -> str:
    fields = type(learner).model_fields
    changed = [name for name in fields if getattr(learner, name) != getattr(other, name)]
    return ", ".join(f"{name} {getattr(other, name):g}" for name in changed)
