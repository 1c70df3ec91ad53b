"""A plan of summary statistics: means, variances, totals and regression coefficients, without or with a guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Annotated, Self

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from sfumato.arrays import Floats, Ints, Mask
from sfumato.dp.contribution_bounds import bound_table
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.field_docs import DocumentedModel
from sfumato.progress import SILENT, Progress
from sfumato.release import State, Verdict
from sfumato.tables.cells import check_amounts
from sfumato.tables.plan import NO_DOMINANCE_RULE
from sfumato.tables.plan_file import (
    STRICT,
    PlanFile,
    PublishedFigures,
    ReleaseBudget,
    charge_figures,
    figures_guarantee,
    row_loss,
)
from sfumato.tables.summary_attack import DisclosedSums, disclosed_sums, leverage_points
from sfumato.tables.summary_disclosure import GroupRules
from sfumato.tables.summary_statistics import (
    SummaryFigure,
    exact_groups,
    exact_regression,
    group_name,
    private_groups,
    private_regression,
)

_MOST_GROUPS = 100_000
_MOST_ATTACKED, _MOST_MARKS = 2_000, 10**9
_WIDEST = 10**6
_PROOF = (
    "discrete Gaussian noise (Canonne, Kamath, Steinke 2020, doi:10.48550/arXiv.2004.00010) on sums of values that are "
    "clipped to public intervals; composition in zero-concentrated differential privacy (Bun, Steinke 2016)"
)
"""Largest standard deviation of the noise of a count, about."""


class Statistic(DocumentedModel):
    """Count, total, mean and variance of a column by groups, or its regression on other columns."""

    model_config = STRICT

    of: str
    """A column of numbers."""
    by: tuple[str, ...] = ()
    """Columns that form groups; none for all rows."""
    on: tuple[str, ...] = ()
    """Regressors: columns of numbers. Coefficients are published instead of count, total, mean and variance."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.by and self.on:
            raise ValueError("a statistic has either `by` (groups) or `on` (a regression)")
        if len(set(self.by)) < len(self.by) or len(set(self.on)) < len(self.on):
            raise ValueError("a statistic lists a column twice")
        return self


class SummaryFile(PlanFile):
    """Summary statistics of a file, protected by a threshold or by differential privacy."""

    statistics: Annotated[tuple[Statistic, ...], Field(min_length=1)]
    """The statistics to publish."""
    threshold: Annotated[int, Field(ge=3)] | None = None
    """Without a guarantee: the smallest number of people behind a figure, and of people more than coefficients."""
    dominance: tuple[Annotated[int, Field(ge=1, le=5)], Annotated[float, Field(gt=0, lt=100)]] | None = None
    """[n, k]: without a guarantee, the n largest contributions of people are at most k percent of a total."""
    p_percent: Annotated[float, Field(gt=0, le=100)] | None = None
    """Without a guarantee: nobody estimates the largest contribution to within p percent of it."""
    budget: ReleaseBudget | None = None
    """With differential privacy: the budget, divided equally among the statistics."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.threshold is None) == (self.budget is None):
            raise ValueError("needs either `threshold` (no guarantee) or `budget` (differential privacy)")
        if self.budget is not None and (self.dominance or self.p_percent):
            raise ValueError("with a `budget` there are no `dominance` and `p_percent`")
        if len(set(self.statistics)) < len(self.statistics):
            raise ValueError("a statistic is listed twice")
        return self

    def run(self, progress: Progress = SILENT) -> PublishedFigures:
        """Calculate and protect. Everything that can be refused is refused before a budget is charged."""
        if self.budget is not None:
            return self._private(self.budget.rho)
        frame = self.people.stored()
        self._check(frame)
        return self._exact(frame)

    def exact(self) -> Mapping[str, pl.DataFrame]:
        names = list(dict.fromkeys(name for one in self.statistics for name in (one.of, *one.by, *one.on)))
        frame = self.people.stored() if self.budget is None else self.people.frame(names, unit=False)
        found = []
        for one in self.statistics:
            rows, nothing = frame.drop_nulls([one.of, *one.by, *one.on]), frozenset[str]()
            exact = exact_regression(rows, one.of, one.on) if one.on else exact_groups(rows, one.of, one.by, nothing)
            found.append(exact)
        return {"statistics": self._lines(found).drop("deviation")}

    def _check(self, frame: pl.DataFrame) -> None:
        for one in self.statistics:
            for name in (one.of, *one.by, *one.on):
                self.people.column(name)
                if name not in frame.columns:
                    raise UnknownColumn(f"The data have no column `{name}`.", column=name)
                if frame[name].null_count():
                    raise BadParameter(f"Column `{name}` has missing values.", fix="Fill them or remove the rows.")
            for name in (one.of, *one.on):
                check_amounts(frame, name)
        unit = self.people.unit
        if unit is not None and (unit not in frame.columns or frame[unit].null_count()):
            raise BadParameter(f"Column `{unit}` has missing values.", fix="Give every row a person.")

    def _private(self, rho: Fraction) -> PublishedFigures:
        people = self.people
        numbers = {n: people.range(n) for one in self.statistics for n in (one.of, *one.on)}
        groups = {name: people.values(name) for one in self.statistics for name in one.by}
        if any(prod(groups[name].size for name in one.by) > _MOST_GROUPS for one in self.statistics):
            raise BadParameter(f"A statistic has more than {_MOST_GROUPS:,} groups.", fix="Use fewer columns.")
        loss = row_loss(rho, people)
        if loss.size < Fraction(len(self.statistics), _WIDEST**2):
            raise BadParameter("rho is too small: the noise of a count would exceed 10^6.", fix="Use a larger rho.")
        frame, cut = bound_table(people.frame({**numbers, **groups}), people)
        receipt = charge_figures(self, loss, what="summary statistics", bounds=cut)
        share, found = loss.size / len(self.statistics), []
        for one in self.statistics:
            if one.on:
                on = {name: numbers[name] for name in one.on}
                found.append(private_regression(frame, one.of, on, numbers[one.of], rho=share, receipt=receipt))
            else:
                by = {name: groups[name] for name in one.by}
                found.append(private_groups(frame, one.of, by, numbers[one.of], rho=share, receipt=receipt))
        guarantee = figures_guarantee(loss, receipt, proof=_PROOF, bounds=cut)
        verdict = guarantee.verdict(wanted=guarantee.epsilon)
        return replace(self._published(found, {}, verdict), guarantee=guarantee)

    def _exact(self, frame: pl.DataFrame) -> PublishedFigures:
        assert self.threshold is not None
        rules = GroupRules(threshold=self.threshold, dominance=self.dominance, p_percent=self.p_percent)
        unit = self.people.unit
        who = np.arange(frame.height) if unit is None else frame[unit].rank("dense").to_numpy()
        people = _People(frame=frame, units=who.astype(np.int64), rules=rules, statistics=self.statistics)
        shown, hidden, disclosed = people.suppressed()
        found = []
        for number, one in enumerate(self.statistics):
            if one.on:
                figures = exact_regression(frame, one.of, one.on) if people.enough(one) else []
                found.append(figures or [SummaryFigure(group="", name=n, value=None) for n in (*one.on, "intercept")])
            else:
                found.append(exact_groups(frame, one.of, one.by, frozenset(hidden[number])))
        columns = list(dict.fromkeys(one.of for one in self.statistics))
        told = [people.told(column, part) for column, part in zip(columns, disclosed, strict=True)]
        single = len(
            frozenset[int]().union(*(part.persons for part in disclosed), *map(people.leverage_points, columns))
        )
        failing = sum(part.cells + part.differences + sum(part.hidden) for part in disclosed) + single + sum(told)
        amounts = [column for column in columns if frame[column].n_unique() > 3]
        state, reason = State.HOLDS, ""
        if failing:
            state, reason = State.FAILS, "published figures determine values of people or of groups below the threshold"
        elif amounts and not rules.dominated:
            state, reason = State.NOT_CHECKED, NO_DOMINANCE_RULE
        verdict = Verdict(model="threshold", state=state, worst=failing, wanted=0, reason=reason)
        facts: dict[str, object] = {
            "threshold": self.threshold,
            "unit": unit or "row",
            **({} if self.dominance is None else {"dominance": list(self.dominance)}),
            **({} if self.p_percent is None else {"p_percent": self.p_percent}),
            "groups": sum(len(part) for part in shown),
            "suppressed": sum(len(part) for part in hidden),
            "people_disclosed": single,
        }
        return self._published(found, facts, verdict)

    def _published(
        self, found: list[list[SummaryFigure]], facts: dict[str, object], verdict: Verdict
    ) -> PublishedFigures:
        return PublishedFigures(tables={"statistics": self._lines(found)}, facts=facts, verdicts=(verdict,))

    def _lines(self, found: list[list[SummaryFigure]]) -> pl.DataFrame:
        """One line per figure; ``statistic`` is its number in the plan."""
        lines = [
            (number, one.of, figure.group, figure.name, figure.value, figure.deviation)
            for number, (one, figures) in enumerate(zip(self.statistics, found, strict=True), start=1)
            for figure in figures
        ]
        kinds = {"statistic": pl.Int64, "of": pl.String, "group": pl.String, "figure": pl.String,
                 "value": pl.Float64, "deviation": pl.Float64}  # fmt: skip
        return pl.DataFrame(lines, schema=kinds, orient="row")


@dataclass(frozen=True, kw_only=True)
class _People:
    """The people behind the rows, and what exact figures disclose about them."""

    frame: pl.DataFrame
    units: Ints
    rules: GroupRules
    statistics: tuple[Statistic, ...]

    def suppressed(self) -> tuple[list[dict[str, Mask]], list[dict[str, Mask]], list[DisclosedSums]]:
        """Published and suppressed groups of each statistic, and what can still be calculated of each column.

        Groups that break a rule are suppressed, then the smallest other group of the same statistic as long as a
        suppressed one can be calculated.
        """
        frame, statistics = self.frame, self.statistics
        groups = sum(frame.select(one.by).unique().height if one.by else 1 for one in statistics if not one.on)
        if groups > _MOST_ATTACKED or groups * frame.height > _MOST_MARKS:
            raise BadParameter(
                f"The attack covers at most {_MOST_ATTACKED:,} groups, and a billion groups times rows.",
                fix="Use fewer or coarser groups, or a budget instead of a threshold.",
            )
        shown = [{} if one.on else _groups(frame, one.by) for one in statistics]
        hidden: list[dict[str, Mask]] = [{} for _ in statistics]
        for one, own, gone in zip(statistics, shown, hidden, strict=True):
            for name in [name for name, rows in own.items() if self.broken(one.of, np.flatnonzero(rows))]:
                gone[name] = own.pop(name)
        disclosed = []
        for column in dict.fromkeys(one.of for one in statistics):
            about = [number for number, one in enumerate(statistics) if one.of == column]
            while True:
                found = self._attack(column, about, shown, hidden)
                owners = [number for number in about for _ in hidden[number]]
                again = next((n for n, known in zip(owners, found.hidden, strict=True) if known and shown[n]), None)
                if again is None:
                    break
                smallest = min(shown[again], key=lambda name: int(shown[again][name].sum()))
                hidden[again][smallest] = shown[again].pop(smallest)
            disclosed.append(found)
        return shown, hidden, disclosed

    def broken(self, column: str, rows: Ints, *, variance: bool = True) -> bool:
        """Whether the figures of a set of rows disclose values of a column."""
        values = self.frame[column].cast(pl.Float64).to_numpy()
        distinct = self.frame[column].n_unique()
        return self.rules.broken(values[rows], self.units[rows], distinct=distinct, variance=variance)

    def enough(self, one: Statistic) -> bool:
        """Whether a regression has enough people more than coefficients."""
        return len(np.unique(self.units)) >= len(one.on) + 1 + self.rules.threshold

    def regressors(self, column: str) -> list[Floats]:
        """The regressors of all published regressions of a column."""
        names = [n for one in self.statistics if one.of == column and one.on and self.enough(one) for n in one.on]
        return [self.frame[name].cast(pl.Float64).to_numpy() for name in dict.fromkeys(names)]

    def leverage_points(self, column: str) -> frozenset[int]:
        """People whose values follow closely from the coefficients of a column."""
        regressors = self.regressors(column)
        return leverage_points(regressors, self.units, threshold=self.rules.threshold) if regressors else frozenset()

    def told(self, column: str, found: DisclosedSums) -> int:
        """Sets of enough people about whom a total tells too much: all rows for a regression, and differences."""
        everybody = bool(self.regressors(column)) and self.broken(column, np.arange(self.frame.height), variance=False)
        return everybody + sum(self.broken(column, rows) for rows in found.determined)

    def _attack(
        self, column: str, about: list[int], shown: list[dict[str, Mask]], hidden: list[dict[str, Mask]]
    ) -> DisclosedSums:
        regressors = self.regressors(column)
        constant = [np.ones(self.frame.height, dtype=np.bool_)] if regressors else []
        return disclosed_sums(
            [*constant, *(rows for number in about for rows in shown[number].values())],
            regressors=regressors,
            units=self.units,
            hidden=[rows for number in about for rows in hidden[number].values()],
            threshold=self.rules.threshold,
        )


def _groups(frame: pl.DataFrame, by: tuple[str, ...]) -> dict[str, Mask]:
    """The rows of every group."""
    if not by:
        return {"": np.ones(frame.height, dtype=np.bool_)}
    found = {}
    for values in frame.select(by).unique().sort(by).iter_rows():
        rows = np.ones(frame.height, dtype=np.bool_)
        for name, value in zip(by, values, strict=True):
            rows &= (frame[name] == value).to_numpy()
        found[group_name(by, values)] = rows
    return found
