"""A plan of TopDown tables in a file: areas, columns, tables to publish, budget and constraints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Literal, Self

import polars as pl
from pydantic import Field, model_validator

from sfumato.data.source import Source
from sfumato.dataset.domain import Value
from sfumato.dp.contribution_bounds import bound_table
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.field_docs import DocumentedModel
from sfumato.progress import SILENT, Progress
from sfumato.tables.geography import Geography
from sfumato.tables.hierarchical_tables import HierarchicalTables
from sfumato.tables.plan_file import (
    STRICT,
    PlanFile,
    PublishedFigures,
    ReleaseBudget,
    Weight,
    charge_figures,
    figures_guarantee,
    row_loss,
)
from sfumato.tables.topdown import check_data, topdown
from sfumato.tables.topdown_plan import CENSUS_2020_LEVELS, AreaBound, TopDownPlan


class AreaFile(DocumentedModel):
    """The public list of areas."""

    model_config = STRICT

    data: Source
    """A file, relative to the plan: one row per smallest area, with a column per level and one per bound."""
    levels: Annotated[tuple[str, ...], Field(min_length=1)]
    """The levels, from the largest areas to the smallest."""


class QueryShare(DocumentedModel):
    """A marginal that is measured in every area."""

    model_config = STRICT

    by: tuple[str, ...] = ()
    """Columns; none for the number of people."""
    share: Weight
    """Its part of a level's budget, in proportion to the others."""


class TableSpec(DocumentedModel):
    """A table to publish. Tables cost nothing: all come from the same private counts."""

    model_config = STRICT

    level: str | None = None
    """The areas; default: the whole."""
    by: tuple[str, ...] = ()
    """Columns of the table; none for the number of people."""


class BoundSpec(DocumentedModel):
    """A public bound, as in :class:`~sfumato.tables.topdown_plan.AreaBound`."""

    model_config = STRICT

    where: dict[str, Value]
    at_least: str | None = None
    at_most: str | None = None


class TopDownFile(PlanFile):
    """TopDown tables of a hierarchy of areas."""

    budget: ReleaseBudget
    """The privacy budget; there is no default."""
    areas: AreaFile
    """The public list of areas."""
    by: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns, whose values the data set declares; tables are refined in this order."""
    levels: Literal["census-2020"] | tuple[Weight, ...]
    """Parts of the budget from the whole to the smallest areas, in proportion to each other."""
    queries: Annotated[tuple[QueryShare, ...], Field(min_length=1)]
    """What is measured in every area."""
    tables: Annotated[tuple[TableSpec, ...], Field(min_length=1)]
    """The tables to publish."""
    exact_totals: str | None = None
    """The lowest level whose numbers of people are published exactly. They are not protected."""
    impossible: tuple[dict[str, tuple[Value, ...]], ...] = ()
    """Combinations of values that nobody has."""
    area_bounds: tuple[BoundSpec, ...] = ()
    """Public bounds of the smallest areas."""
    microdata: bool = False
    """Also write one row per person with exactly these tables."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.levels != "census-2020" and sum(self.levels) == 0:
            raise ValueError("`levels` have no share above 0")
        if sum(query.share for query in self.queries) == 0:
            raise ValueError("`queries` have no share above 0")
        if len({query.by for query in self.queries}) < len(self.queries):
            raise ValueError("a query is listed twice")
        named = [*self.areas.levels, *self.by]
        if len(set(named)) < len(named) or "count" in named:
            raise ValueError("levels and columns need different names, and none may be called `count`")
        lists = [*(query.by for query in self.queries), *(table.by for table in self.tables)]
        if any(len(set(names)) < len(names) for names in lists):
            raise ValueError("a table or query lists a column twice")
        return self

    def plan(self) -> TopDownPlan:
        """The plan with the budget of a row, and with shares that add up to 1."""
        total = sum((query.share for query in self.queries), Fraction(0))
        levels = CENSUS_2020_LEVELS
        if self.levels != "census-2020":
            whole = sum(self.levels, Fraction(0))
            levels = tuple(level / whole for level in self.levels)
        return TopDownPlan(
            columns={name: self.people.values(name).values for name in self.by},
            rho=row_loss(self.budget.rho, self.people).size,
            levels=levels,
            queries={query.by: query.share / total for query in self.queries},
            exact_totals=self.exact_totals,
            impossible=self.impossible,
            bounds=tuple(AreaBound(**bound.model_dump()) for bound in self.area_bounds),
        )

    def run(self, progress: Progress = SILENT) -> PublishedFigures:
        """Check everything, charge the ledger, and publish."""
        plan = self.plan()
        for table in self.tables:
            unknown = [name for name in table.by if name not in self.by]
            if unknown or table.level not in (None, *self.areas.levels):
                raise UnknownColumn(f"A table names `{unknown[0] if unknown else table.level}`, which is not declared.")
        names = self._names()
        if len(set(names)) < len(names) or "microdata" in names:
            raise BadParameter("Two tables would have the same file name.", fix="List every table once.")
        geography = Geography(frame=self._areas(), levels=self.areas.levels)
        smallest = self.areas.levels[-1]
        people, cut = bound_table(self.people.frame([*self.by, smallest]), self.people)
        check_data(people, geography, plan)
        receipt = charge_figures(self, plan.loss, what="topdown", bounds=cut)
        done = topdown(people, geography, plan, receipt=receipt, progress=progress)
        guarantee = figures_guarantee(plan.loss, receipt, proof=_PROOF, bounds=cut)
        if plan.exact_totals is not None:
            exact = (*guarantee.not_covered, f"the totals of every {plan.exact_totals}, which are published exactly")
            same = f"{guarantee.neighbours}, if the total of every {plan.exact_totals} stays as it is"
            guarantee = replace(guarantee, not_covered=exact, neighbours=same)
        tables = {name: done.table(t.level, *t.by) for name, t in zip(names, self.tables, strict=True)}
        if self.microdata:
            tables["microdata"] = done.microdata().select(*self.areas.levels, *self.by)
        return PublishedFigures(
            tables=tables,
            facts={"method": "topdown", **_public(done)},
            verdicts=(guarantee.verdict(wanted=guarantee.epsilon),),
            guarantee=guarantee,
        )

    def exact(self) -> Mapping[str, pl.DataFrame]:
        smallest = self.areas.levels[-1]
        areas = self._areas().select(pl.col(name).cast(pl.String) for name in self.areas.levels)
        people = self.people.frame([*self.by, smallest], unit=False).with_columns(pl.col(smallest).cast(pl.String))
        listed = people.join(areas, on=smallest)
        named = {name: [*filter(None, [t.level]), *t.by] for name, t in zip(self._names(), self.tables, strict=True)}
        return {
            name: listed.group_by(by).len("count") if by else listed.select(count=pl.len())
            for name, by in named.items()
        }

    def _names(self) -> list[str]:
        """The name of every table."""
        return [re.sub(r"[^\w-]+", "_", "-".join([table.level or "all", *table.by])) for table in self.tables]

    def _areas(self) -> pl.DataFrame:
        listed = self.areas.data.read().frame
        for name in self.areas.levels:
            if name not in listed.columns:
                raise UnknownColumn(f"The list of areas has no column `{name}`.", column=name)
        return listed


_PROOF = (
    "discrete Gaussian noise (Canonne, Kamath, Steinke 2020, doi:10.48550/arXiv.2004.00010) on counts at every level; "
    "composition in zero-concentrated differential privacy; constraints by post-processing (Abowd et al. 2022, "
    "doi:10.1162/99608f92.529e3cb9)"
)


def _public(done: HierarchicalTables) -> dict[str, object]:
    """What readers of the tables need to know."""
    plan = done.plan
    return {
        "exact_totals": plan.exact_totals,
        "bounds": [dict(bound.where) for bound in plan.bounds],
        "noise_deviation": {
            ", ".join(query) or "total": [None if v is None else round(float(v) ** 0.5, 3) for v in variances]
            for query, variances in (
                (q, [plan.variance(level, q) for level in range(len(plan.levels))]) for q in plan.queries
            )
        },
        "relaxed": done.relaxed,
        "unsolved": done.unsolved,
    }
