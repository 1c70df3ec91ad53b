"""Result hiding: change as few cells as possible so that named results no longer come out."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal, Self, assert_never

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from sfumato.dataset import Data
from sfumato.errors import BadParameter, ExtraMissing, NotApplicable
from sfumato.masking.base import Context, Step
from sfumato.masking.item_sets import Item, ItemSet, frequent_item_sets, item_rows, least_count
from sfumato.masking.models.result_privacy import ResultPrivacy, check_thresholds
from sfumato.masking.results import Accuracy, Correlation, HiddenResult, ItemsTogether, RuleResult, comes_out
from sfumato.masking.search.exchange_values import lower_accuracy, lower_correlation
from sfumato.masking.search.hide_item_sets import (
    HiddenSet,
    ItemProgram,
    RemovedItems,
    border_removal,
    exact_removal,
)
from sfumato.release import Change

_ROUNDS = 5
_MOST_WATCHED = 300
"""Other frequent item sets that are watched while items are removed."""


class HideResults(Step):
    """Hide results: change as few cells as possible until named association rules, item sets and others disappear.

    Hides the ``results`` of this step and those of all ``result-privacy`` models of the recipe. For rules and item
    sets, items are taken out of rows: true becomes false, 1 becomes 0, and another value becomes a random other value
    of its column (``by: change``) or is emptied (``by: blank``). The smallest number of cells is found exactly by
    CP-SAT where the problem is small enough (extra ``audit``), else a border-based heuristic is used; the private
    outcome says which. For a correlation or the accuracy of a classifier, values of one column are exchanged between
    rows, which keeps the distribution of every column.

    Which results were hidden is not published; support and confidence are. It hides these results from this algorithm
    only, and it does not protect people: an earlier version of the data shows what was hidden.
    """

    protection = "result-driven"
    report_phrase = "changed in some records, to hide a result"
    simulable = False
    stronger = {"support": "less", "confidence": "less"}
    exempt = {"differs by seed": "Results that do not come out need no change, and exchanges are not random."}
    examples = (
        {"results": [{"together": {"sex": "F", "diagnosis": "none"}}], "support": 0.1, "search": "border"},
        {
            "results": [
                {"if": {"sex": "M"}, "then": {"diagnosis": "none"}},
                {"correlation": ["income", "rent"], "at_most": 0.3},
            ],
            "support": 0.05, "confidence": 0.3, "by": "blank", "search": "border",
        },
    )  # fmt: skip
    reference = (
        "Verykios, Elmagarmid, Bertino, Saygin, Dasseni (2004), doi:10.1109/TKDE.2004.1269668; Gkoulalas-Divanis, "
        "Verykios (2009), Exact knowledge hiding, doi:10.1109/TKDE.2008.199; Sun, Yu (2005), A border-based approach "
        "for hiding sensitive frequent itemsets, doi:10.1109/ICDM.2005.2"
    )

    results: tuple[HiddenResult, ...] = ()
    """Results to hide besides those of the ``result-privacy`` models of the recipe; the same form as there."""
    support: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of rows from which the algorithm reports an item set or rule."""
    confidence: Annotated[float, Field(gt=0, le=1)] | None = None
    """Confidence from which the algorithm reports a rule."""
    by: Literal["change", "blank"] = "change"
    """Whether an item that is taken out of a row becomes another value or an empty cell. An empty cell tells that
    something was hidden there."""
    search: Literal["auto", "exact", "border"] = "auto"
    """``exact``: the smallest change, by CP-SAT. ``border``: the heuristic. ``auto``: exact if it fits."""
    first: Literal["cells", "results"] = "cells"
    """What is minimized first: the number of changed cells, or the number of other frequent item sets that are lost."""
    longest: Annotated[int, Field(ge=2, le=4)] = 3
    """Number of items of the largest other item sets that are watched."""

    @model_validator(mode="after")
    def _thresholds(self) -> Self:
        check_thresholds(self.results, self.support, self.confidence)
        return self

    def public(self) -> dict[str, Any]:
        return {name: value for name, value in super().public().items() if name != "results"}

    def apply(self, data: Data, context: Context) -> Change:
        tasks = [task for task in (self, *context.models) if isinstance(task, HideResults | ResultPrivacy)]
        tasks = [task for task in tasks if task.results]
        if not tasks:
            raise BadParameter(
                "hide-results: no result is named.",
                fix="Add the model `result-privacy` to the recipe, or name `results` here.",
            )
        for task in tasks:
            for result in task.results:
                data.table.require(result.columns)
        frame, exact, lost = data.table.frame, True, 0
        for round_ in range(_ROUNDS):
            if not any(_coming_out(task, frame) for task in tasks):
                break
            random = context.rng.child(round_).generator
            for task in tasks:
                frame = _exchanged(task, frame, random)
                frame, outcome = self._without_items(task, frame, data, random)
                exact, lost = exact and (outcome is None or outcome.optimal), lost + (outcome.lost if outcome else 0)
        else:
            raise NotApplicable(
                "hide-results: hiding one of the results brings out another.", fix="Name fewer results in one step."
            )
        changed = [name for name in frame.columns if not frame[name].equals(data.table.column(name), null_equal=True)]
        cells = {name: int((frame[name].ne_missing(data.table.column(name))).sum()) for name in changed}
        thresholds = {
            name: min(values)
            for name in ("support", "confidence")
            if (values := [v for task in tasks if (v := getattr(task, name)) is not None])
        }
        return Change(
            table=data.table.with_frame(frame),
            public={"columns": changed, **thresholds},
            private={
                "cells": sum(cells.values()),
                "cells_by_column": cells,
                "optimal": exact and not any(isinstance(r, Accuracy | Correlation) for t in tasks for r in t.results),
                "lost_item_sets": lost,
            },
        )

    def _without_items(
        self, task: HideResults | ResultPrivacy, frame: pl.DataFrame, data: Data, random: np.random.Generator
    ) -> tuple[pl.DataFrame, RemovedItems | None]:
        """The table after the rules and item sets of a task were hidden."""
        wanted = [result for result in task.results if isinstance(result, RuleResult | ItemsTogether)]
        if not wanted or task.support is None:
            return frame, None
        sensitive = {one.items for one in wanted}
        items = sorted(frozenset().union(*sensitive), key=str)
        watched = self._watched(frame, sensitive, items, data, task.support)
        order = [*items, *sorted(frozenset().union(*watched) - {*items}, key=str)]
        place = {item: number for number, item in enumerate(order)}
        program = ItemProgram(
            matrix=np.column_stack([item_rows(frame, item) for item in order]),
            hidden=tuple(
                HiddenSet(
                    items=frozenset(place[i] for i in one.items),
                    antecedent=frozenset(place[i] for i in one.antecedent) if isinstance(one, RuleResult) else None,
                )
                for one in wanted
            ),
            least=least_count(task.support, frame.height),
            confidence=Fraction(str(task.confidence)) if task.confidence is not None else None,
            watched=tuple(frozenset(place[i] for i in one) for one in watched),
            first=self.first,
        )
        outcome = self._removal(program, random)
        gone = program.matrix & ~outcome.kept
        for number, item in enumerate(items):
            if gone[:, number].any():
                frame = frame.with_columns(self._emptied(frame, item, gone[:, number], items, random))
        return frame, outcome

    def _watched(
        self, frame: pl.DataFrame, sensitive: set[ItemSet], items: list[Item], data: Data, support: float
    ) -> list[ItemSet]:
        """Frequent item sets that share an item with the hidden ones and contain none of them; the strongest first."""
        columns = [name for name in frame.columns if name not in data.identifiers]
        spelled = {(name, str(value)): (name, value) for name, value in items}
        found = []
        for one, count in frequent_item_sets(frame, columns, support=support, longest=self.longest).items():
            own = frozenset(spelled.get((name, str(value)), (name, value)) for name, value in one)
            if own & {*items} and not any(hidden <= own for hidden in sensitive):
                found.append((own, count))
        return [one for one, _ in sorted(found, key=lambda entry: (-entry[1], str(sorted(entry[0], key=str))))][
            :_MOST_WATCHED
        ]

    def _removal(self, program: ItemProgram, random: np.random.Generator) -> RemovedItems:
        if self.search == "border":
            return border_removal(program, random)
        try:
            outcome = exact_removal(program, random)
        except ExtraMissing:
            if self.search == "exact":
                raise
            outcome = None
        if outcome is None and self.search == "exact":
            raise NotApplicable(
                "hide-results: the exact program is too large for the solver.",
                fix="Use `search: auto`, which falls back on the border heuristic.",
            )
        return outcome or border_removal(program, random)

    def _emptied(
        self, frame: pl.DataFrame, item: Item, gone: Any, items: list[Item], random: np.random.Generator
    ) -> pl.Series:
        """A column without an item in some rows. A new value is never another item that is to be hidden."""
        name = item[0]
        column, rows = frame.get_column(name), np.flatnonzero(gone)
        hidden = np.zeros(frame.height, dtype=np.bool_)
        for other in items:
            if other[0] == name:
                hidden |= item_rows(frame, other)
        if column.dtype == pl.Boolean:
            pool = pl.Series([False, True]).filter(~np.isin([False, True], column.filter(pl.Series(hidden)).to_numpy()))
        elif column.dtype.is_integer() and set(column.drop_nulls().unique()) <= {0, 1}:
            pool = pl.Series([0], dtype=column.dtype) if item[1] == 1 else pl.Series([1], dtype=column.dtype)
        else:
            pool = column.filter(pl.Series(~hidden)).drop_nulls()
        if self.by == "blank" or not len(pool):
            new = column.clear(n=len(rows))
        else:
            new = pool.gather(random.integers(0, len(pool), len(rows)))
        return column.scatter(rows, new) if new.null_count() == 0 else _blanked(column, gone)


def _blanked(column: pl.Series, gone: Any) -> pl.Series:
    kept = pl.Series(~gone)
    return pl.select(pl.when(kept).then(column).otherwise(None).alias(column.name)).to_series()


def _coming_out(task: HideResults | ResultPrivacy, frame: pl.DataFrame) -> bool:
    return any(comes_out(one, frame, support=task.support, confidence=task.confidence) for one in task.results)


def _exchanged(task: HideResults | ResultPrivacy, frame: pl.DataFrame, random: np.random.Generator) -> pl.DataFrame:
    for one in task.results:
        match one:
            case Correlation():
                frame = lower_correlation(frame, one)
            case Accuracy():
                frame = lower_accuracy(frame, one, random)
            case RuleResult() | ItemsTogether():  # hidden before, by taking out items
                pass
            case _:
                assert_never(one)
    return frame
