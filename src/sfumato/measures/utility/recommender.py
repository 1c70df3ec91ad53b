"""Utility of released ratings, baskets and logs for a recommender."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.evaluation.intervals import wilson
from sfumato.attacks.normalize import canonical
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["Recommender"]

_TRAINING = 50_000
"""Units that a model is built from, at most."""
_ITEMS = 20_000
"""Items that a model may suggest, the most frequent ones."""


class Recommender(Measure):
    """The share of hidden items that a recommender built from the release puts among its first suggestions.

    One item of some people of the original is hidden. A neighbourhood model (items of similar people, rare items count
    more) is built from the release and suggests ``top`` items for the rest of their items. ``detail`` has the same for
    a model built from the original. The people asked about are left out of both models where the row map is known.
    Items that the release generalized or removed cannot be suggested; of all others the 20,000 most frequent can.
    """

    about: ClassVar[About] = About.UTILITY
    better = "high"
    label: ClassVar[str] = "hit rate of a recommender"
    percentage: ClassVar[bool] = True
    examples: ClassVar = ({"item": "diagnosis", "person": "zip", "people": 50},)
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

    def of(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        unit = self.person or pair.original.schema.unit
        if unit is None or unit not in pair.release.table.columns:
            raise NotApplicable(
                "A recommender needs several rows per person: no released column is the privacy unit.",
                fix="Declare the column that identifies a person as `unit`, and release it as a pseudonym.",
            )
        pair.release.table.require([self.item])
        original = _events(pair.original.table.frame, unit, self.item)
        released = _events(pair.masked, unit, self.item)
        frequent = (
            pl.concat([original["item"], released["item"]])
            .value_counts(sort=True)
            .sort("count", "item", descending=[True, False])
        )
        labels = frequent["item"].head(_ITEMS)
        original, released = (side.filter(pl.col("item").is_in(labels.implode())) for side in (original, released))
        code = {label: number for number, label in enumerate(labels.to_list())}
        owner, item = _codes(original, code)
        draw = rng.generator
        several = np.flatnonzero(np.bincount(owner) > 1)
        if not len(several):
            raise NotApplicable("Nobody has two different items, so none can be hidden.")
        asked = np.sort(draw.choice(several, min(self.people, len(several)), replace=False))
        order = draw.permutation(len(owner))
        hidden_row = np.array([order[at] for at in _first(owner[order], asked)])
        hidden = item[hidden_row]
        known = np.isin(owner, asked)
        known[hidden_row] = False
        profile = _matrix(np.searchsorted(asked, owner[known]), item[known], len(asked), len(code))
        before = self._hits(~np.isin(owner, asked), owner, item, profile, hidden, len(code), draw)
        release_owner, release_item = _codes(released, code)
        kept = np.ones(len(release_owner), dtype=np.bool_)
        if pair.lineage is not None:
            kept = ~np.isin(release_owner, self._same_people(pair, unit, asked))
        after = self._hits(kept, release_owner, release_item, profile, hidden, len(code), draw)
        low, high = wilson(after, len(asked))
        return MeasureResult(
            measure=self.part_name(),
            value=after / len(asked),
            low=low,
            high=high,
            detail={"before": before / len(asked), "people": len(asked), "top": self.top},
        )

    def _hits(
        self,
        rows: npt.NDArray[np.bool_],
        owner: npt.NDArray[np.int64],
        item: npt.NDArray[np.int64],
        profile: Any,
        hidden: npt.NDArray[np.int64],
        items: int,
        draw: np.random.Generator,
    ) -> int:
        """How many hidden items the model of these rows suggests."""
        people = np.unique(owner[rows])
        if not len(people):
            return 0
        people = np.sort(draw.choice(people, min(_TRAINING, len(people)), replace=False))
        rows = rows & np.isin(owner, people)
        model = _matrix(np.searchsorted(people, owner[rows]), item[rows], len(people), items)
        support = np.asarray(model.sum(axis=0)).ravel()
        rarity = np.log((1 + len(people)) / (1 + support))
        hits = 0
        for start in range(0, profile.shape[0], 100):
            part = profile[start : start + 100]
            similar = model @ part.multiply(rarity**2).T.tocsc()  # people of the model by people asked
            scores = np.asarray((model.T @ similar).todense()).T
            scores[part.nonzero()] = -1.0
            target = hidden[start : start + part.shape[0]]
            own = scores[np.arange(len(target)), target]
            above = (scores > own[:, None]).sum(axis=1)
            hits += int(((own > 0) & (above < self.top)).sum())
        return hits

    @staticmethod
    def _same_people(pair: ReleasePair, unit: str, asked: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Numbers of the released units that are the people asked about."""
        assert pair.lineage is not None
        whose = pair.original.table.frame[unit].rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
        pseudonym = pair.masked[unit].rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
        known = pair.lineage.rows >= 0
        chosen = np.isin(whose[pair.lineage.rows[known]], asked)
        return np.unique(pseudonym[known][chosen])


def _events(frame: pl.DataFrame, unit: str, item: str) -> pl.DataFrame:
    whose = frame[unit].rank("dense").cast(pl.Int64).fill_null(0) - 1
    return pl.DataFrame({"owner": whose, "item": canonical(frame[item])}).drop_nulls().unique(maintain_order=True)


def _codes(events: pl.DataFrame, code: dict[str, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    item = events["item"].replace_strict(code, return_dtype=pl.Int64)
    return events["owner"].to_numpy().astype(np.int64), item.to_numpy().astype(np.int64)


def _first(owner: npt.NDArray[np.int64], people: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The first position of each person."""
    order = np.argsort(owner, kind="stable")
    return order[np.searchsorted(owner[order], people)]


def _matrix(row: npt.NDArray[np.int64], column: npt.NDArray[np.int64], rows: int, columns: int) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix((np.ones(len(row)), (row, column)), shape=(rows, columns))
