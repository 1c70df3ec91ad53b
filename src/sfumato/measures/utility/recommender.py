"""Utility of released ratings, baskets and logs for a recommender."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Array, Ints
from sfumato.attacks.normalize import canonical_codes
from sfumato.data.row_codes import positions, sorted_codes
from sfumato.errors import NotApplicable
from sfumato.events.item_sets import distinct_sorted
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.stats import wilson

_TRAINING = 50_000
"""Units that a model is built from, at most."""
_NEIGHBOURS = 1000
"""Most similar units whose items are suggested."""
_ITEMS = 20_000
"""Items that a model may suggest, the most frequent ones."""


class Recommender(Measure):
    """The share of hidden items that a recommender built from the release puts among its first suggestions.

    One item of some people of the original is hidden. A neighbourhood model (items of the 1,000 most similar people,
    rare items count more) is built from the release and suggests ``top`` items for the rest of their items. ``detail``
    has the same for a model built from the original. A model has at most 50,000 people, drawn at random; the people
    asked about are left out where the row map is known. Items that the release generalized or removed cannot be
    suggested; of all others the 20,000 most frequent can.
    """

    about: ClassVar[About] = About.UTILITY
    better = "high"
    label: ClassVar[str] = "hit rate of a recommender"
    percentage: ClassVar[bool] = True
    examples = ({"item": "diagnosis", "person": "zip", "people": 50},)
    reference: ClassVar[str] = (
        "Cremonesi, P., Koren, Y., Turrin, R. (2010). Performance of recommender algorithms on top-n recommendation "
        "tasks. doi:10.1145/1864708.1864721"
    )

    item: str
    """Column with the items: films, products, queries."""
    top: Annotated[int, Field(ge=1, le=1000)] = 10
    """Number of suggestions."""
    people: Annotated[int, Field(ge=10)] = 500
    """Number of people for whom an item is hidden, at most."""
    person: str | None = None
    """Column that identifies a person. Default: the recipe's ``unit``."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        unit = self.person or pair.original.schema.unit
        if unit is None or unit not in pair.release.table.columns:
            raise NotApplicable(
                "A recommender needs several rows per person: no released column is the privacy unit.",
                fix="Declare the column that identifies a person as `unit`, and release it as a pseudonym.",
            )
        pair.release.table.require([self.item])
        original, released = (_Events.of(frame, unit, self.item) for frame in (pair.original.table.frame, pair.masked))
        labels = _frequent(original, released)
        original, released = original.coded(labels), released.coded(labels)
        draw = rng.generator
        count = np.bincount(original.owner)
        several = np.flatnonzero(count > 1)
        if not len(several):
            raise NotApplicable("Nobody has two different items, so none can be hidden.")
        asked = np.sort(draw.choice(several, min(self.people, len(several)), replace=False))
        hidden_row = np.searchsorted(original.owner, asked) + draw.integers(0, count[asked])
        hidden = original.item[hidden_row]
        known = _among(original.owner, asked)
        known[hidden_row] = False
        own = np.searchsorted(asked, original.owner[known])
        profile = _matrix(own, original.item[known], len(asked), len(labels))
        before = self._hits(original.without(asked), profile, hidden, draw)
        if pair.lineage is not None:
            released = released.without(self._same_people(pair, unit, asked))
        after = self._hits(released, profile, hidden, draw)
        low, high = wilson(after, len(asked))
        return MeasureResult(
            measure=self.part_name(),
            value=after / len(asked),
            low=low,
            high=high,
            detail={"before": before / len(asked), "people": len(asked), "top": self.top},
        )

    def _hits(self, events: _Events, profile: Any, hidden: Ints, draw: np.random.Generator) -> int:
        """How many hidden items the model of these events suggests."""
        people = np.flatnonzero(np.bincount(events.owner)) if len(events.owner) else np.empty(0, np.int64)
        if not len(people):
            return 0
        people = np.sort(draw.choice(people, min(_TRAINING, len(people)), replace=False))
        rows = _among(events.owner, people)
        model = _matrix(np.searchsorted(people, events.owner[rows]), events.item[rows], len(people), profile.shape[1])
        support = np.asarray(model.sum(axis=0)).ravel()
        rarity = np.log((1 + len(people)) / (1 + support))
        hits = 0
        for start in range(0, profile.shape[0], 100):
            part = profile[start : start + 100]
            similar = (model @ part.multiply(rarity**2).T.tocsc()).toarray()  # people of the model by people asked
            scores = (model.T @ _largest(similar, _NEIGHBOURS)).toarray().T
            scores[part.nonzero()] = -1.0
            target = hidden[start : start + part.shape[0]]
            own = scores[np.arange(len(target)), target]
            above = (scores > own[:, None]).sum(axis=1)
            hits += int(((own > 0) & (above < self.top)).sum())
        return hits

    @staticmethod
    def _same_people(pair: ReleasePair, unit: str, asked: Ints) -> Ints:
        """Numbers of the released units that are the people asked about."""
        assert pair.lineage is not None
        whose, _ = sorted_codes(pair.original.table.frame[unit])
        known = pair.lineage.rows >= 0
        chosen = np.zeros(len(known), dtype=np.bool_)
        chosen[known] = _among(whose, asked)[pair.lineage.rows[known]]
        pseudonym, _ = sorted_codes(pair.masked[unit])
        return np.unique(pseudonym[chosen])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Events:
    """The distinct items of each person, in order of the person."""

    owner: npt.NDArray[np.int32]
    item: npt.NDArray[np.int32]
    labels: pl.Series

    @classmethod
    def of(cls, frame: pl.DataFrame, unit: str, item: str) -> _Events:
        owner, _ = sorted_codes(frame[unit])
        codes, labels = canonical_codes(frame[item])
        present = (owner >= 0) & (codes >= 0)
        keys = owner * max(1, len(labels))
        keys += codes
        keys = distinct_sorted(keys if present.all() else keys[present])
        owner = keys // max(1, len(labels))
        keys %= max(1, len(labels))
        return cls(owner=owner.astype(np.int32), item=keys.astype(np.int32), labels=labels)

    def coded(self, labels: pl.Series) -> _Events:
        """Only events with one of these labels, numbered by them."""
        code = positions(self.labels, labels).fill_null(-1).cast(pl.Int32).to_numpy()
        item = code[self.item]
        return _Events(owner=self.owner[item >= 0], item=item[item >= 0], labels=labels)

    def without(self, people: Ints) -> _Events:
        kept = ~_among(self.owner, people)
        return _Events(owner=self.owner[kept], item=self.item[kept], labels=self.labels)


def _frequent(*sides: _Events) -> pl.Series:
    """The labels that most people have, both tables taken together."""
    counts = [
        pl.DataFrame({"label": side.labels, "count": np.bincount(side.item, minlength=len(side.labels))})
        for side in sides
    ]
    total = pl.concat(counts).group_by("label").agg(pl.col("count").sum())
    return total.sort("count", "label", descending=[True, False])["label"].head(_ITEMS)


def _largest(values: npt.NDArray[np.float64], count: int) -> Any:
    """A sparse matrix with the largest values of each column; of equal ones at the limit all are kept."""
    from scipy.sparse import csc_matrix

    if len(values) > count:
        limit = np.partition(values, len(values) - count, axis=0)[len(values) - count]
        values = np.where(values >= limit, values, 0.0)
    return csc_matrix(values)


def _among(owner: Array, people: Ints) -> npt.NDArray[np.bool_]:
    """Whether each owner is one of these people."""
    chosen = np.zeros(max(int(owner.max(initial=0)), int(people.max(initial=0))) + 1, dtype=np.bool_)
    chosen[people] = True
    return np.asarray(chosen[owner])


def _matrix(row: Array, column: Array, rows: int, columns: int) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix((np.ones(len(row)), (row, column)), shape=(rows, columns))
