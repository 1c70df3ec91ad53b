"""A plan of classical tables: which tables to publish from a file, and how they are protected."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Self

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.progress import SILENT, Progress
from sfumato.release import State, Verdict
from sfumato.tables.cells import VALUE, TableCells, tabulate
from sfumato.tables.controlled_rounding import round_table
from sfumato.tables.cross_tab import CONFIDENTIAL, CrossTab, cross_tab
from sfumato.tables.interval_audit import PublishedTable
from sfumato.tables.plan_file import STRICT, PlanFile, PublishedFigures
from sfumato.tables.sensitivity import ProtectionLevels, SensitivityRules
from sfumato.tables.suppression import SuppressedTable, suppress

NO_DOMINANCE_RULE = (
    "not checked whether a sum is mostly that of one contributor: the plan has neither `p_percent` nor `dominance`"
)


class Rules(DocumentedModel):
    """Rules for sensitive cells, as in :class:`~sfumato.tables.sensitivity.SensitivityRules`."""

    model_config = STRICT

    threshold: Annotated[int, Field(ge=2)] | None = None
    """The smallest number of contributors that may be published."""
    dominance: tuple[Annotated[int, Field(ge=1, le=5)], Annotated[float, Field(gt=0, lt=100)]] | None = None
    """[n, k]: sensitive if the n largest contributions are more than k percent of the cell."""
    p_percent: Annotated[float, Field(gt=0, le=100)] | None = None
    """Sensitive if the largest contribution can be estimated to within p percent of it."""
    margin: Annotated[float, Field(gt=0, le=1)] = 0.1
    """For sums with too few contributors: how far the interval reaches, as a share of the value."""
    zero: Annotated[float, Field(gt=0, lt=1e15)] | None = None
    """For sensitive cells with the sum 0: how far the interval reaches above it."""
    insiders: bool = True
    """Protect cells also from every single contributor, who knows the own contributions to all cells."""

    @property
    def dominated(self) -> bool:
        """Whether a rule looks at the size of single contributions."""
        return self.dominance is not None or self.p_percent is not None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.threshold is None and not self.dominated:
            raise ValueError("needs `threshold`, `dominance` or `p_percent`")
        return self


class TablePlan(PlanFile):
    """Tables of counts or sums with all margins, protected by cell suppression or controlled rounding."""

    tables: Annotated[tuple[tuple[str | tuple[str, ...], ...], ...], Field(min_length=1)]
    """The dimensions of each table: columns, or lists of nested columns from the largest areas to the smallest."""
    missing: Annotated[str, Field(min_length=1)] | None = None
    """The category of missing values in the columns of tables, such as ``unknown``. Columns with gaps are refused
    without it."""
    value: str | None = None
    """A column of non-negative amounts to sum. Default: rows are counted."""
    sensitive: Rules | None = None
    """Suppress cells that these rules find, and others until every interval is wide enough."""
    round: Annotated[int, Field(ge=2, le=1000)] | None = None
    """Round all cells to multiples of this base instead."""
    effort: Annotated[int, Field(ge=1, le=100_000)] = 50
    """Limit of the exact search, in rounds; a heuristic's result is used after it."""

    @model_validator(mode="after")
    def _one_method(self) -> Self:
        if (self.sensitive is None) == (self.round is None):
            raise ValueError("needs either `sensitive` (cell suppression) or `round` (controlled rounding)")
        for table in self.tables:
            names = _named(table)
            if len(set(names)) < len(names):
                raise ValueError("a table lists a column twice")
        return self

    def run(self, progress: Progress = SILENT) -> PublishedFigures:
        """Tabulate and protect."""
        cells = self._cells()
        if self.round is not None:
            rounded = round_table(cells, base=self.round, effort=self.effort)
            facts = {
                "method": "controlled-rounding",
                "base": self.round,
                "zero_restricted": rounded.zero_restricted,
                "optimal": rounded.optimal,
                "cells": len(cells.keys),
            }
            frame = rounded.frame()
            return PublishedFigures(tables={"tables": frame}, facts=facts, cross_tabs=self._cross_tabs(cells, frame))
        assert self.sensitive is not None
        done = suppress(cells, self._levels(cells), effort=self.effort)
        facts = {
            "method": "cell-suppression",
            "unit": self.people.unit or "row",
            "rules": self.sensitive.model_dump(mode="json", exclude_none=True),
            "values": "counts" if self.value is None else "sums",
            "cells": len(cells.keys),
            "suppressed": int(done.suppressed.sum()),
            "optimal": done.optimal,
        }
        frame = done.frame()
        return PublishedFigures(
            tables={"tables": frame}, facts=facts, verdicts=(self._verdict(done),),
            cross_tabs=self._cross_tabs(cells, frame, done.statuses),
        )  # fmt: skip

    def exact(self) -> Mapping[str, pl.DataFrame]:
        cells = self._cells()
        return {"tables": cells.frame(value=cells.values)}

    def judge_published(self, published: PublishedTable) -> Verdict:
        """The verdict on suppressed tables that were published by this plan, from the original cells."""
        cells = self._cells()
        shown = dict(zip(published.keys, published.values, strict=True))
        keys = [tuple(sorted(key)) for key in cells.keys]
        if self.sensitive is None or set(keys) != set(shown):
            raise BadParameter("The release has not the tables of this plan.", fix="Name the plan that made it.")
        values = np.array([shown[key] for key in keys])
        suppressed = np.isnan(values)
        if not np.allclose(values[~suppressed], cells.values[~suppressed]):
            raise BadParameter("The published cells are not those of the plan.", fix="Name the plan that made them.")
        levels = self._levels(cells)
        return self._verdict(SuppressedTable(cells=cells, levels=levels, suppressed=suppressed, cost=0.0, bound=0.0))

    def _levels(self, cells: TableCells) -> ProtectionLevels:
        assert self.sensitive is not None
        return SensitivityRules(**self.sensitive.model_dump()).apply(cells)

    def _verdict(self, done: SuppressedTable) -> Verdict:
        """That of the intervals; not checked if no rule looks at the contributions to a sum."""
        assert self.sensitive is not None
        verdict = done.verdict
        if verdict.holds and self.value is not None and not self.sensitive.dominated:
            return replace(verdict, state=State.NOT_CHECKED, reason=NO_DOMINANCE_RULE)
        return verdict

    def _cross_tabs(
        self, cells: TableCells, published: pl.DataFrame, statuses: tuple[str, ...] | None = None
    ) -> tuple[CrossTab, ...]:
        """Every listed table as a cross-tab of the published lines."""
        shown = [CONFIDENTIAL if value is None else value for value in published[VALUE]]
        by_cell = dict(zip(cells.keys, shown, strict=True))
        marks = None if statuses is None else dict(zip(cells.keys, statuses, strict=True))
        return tuple(cross_tab(table, by_cell, marks) for table in self.tables)

    def _cells(self) -> TableCells:
        people = self.people
        for name in (*(name for table in self.tables for name in _named(table)), *filter(None, [self.value])):
            people.column(name)
        frame = people.stored()
        if self.missing is not None:
            frame = _with_category(frame, {name for table in self.tables for name in _named(table)}, self.missing)
        return tabulate(frame, self.tables, value=self.value, unit=people.unit)


def _with_category(frame: pl.DataFrame, names: Collection[str], label: str) -> pl.DataFrame:
    """The table with missing values as a category of their own; refused if it is a value of such a column already."""
    text = frame.with_columns(pl.col(name).cast(pl.String) for name in names)
    taken = sorted(name for name in names if bool((text[name] == label).any()))
    if taken:
        raise BadParameter(
            f"`missing` names a value that column `{taken[0]}` has already.", fix="Choose another word for the gaps."
        )
    return text.with_columns(pl.col(name).fill_null(label) for name in names)


def _named(table: tuple[str | tuple[str, ...], ...]) -> list[str]:
    """The columns of a table."""
    return [name for part in table for name in ((part,) if isinstance(part, str) else part)]
