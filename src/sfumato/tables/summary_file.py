"""A plan of summary statistics: means, variances, totals and regression coefficients, without or with a guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field, model_validator

from sfumato.data import read
from sfumato.data.declared import kind_of_values, read_declared
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.field_docs import DocumentedModel
from sfumato.release import State, Verdict
from sfumato.tables.cells import check_amounts
from sfumato.tables.plan_file import STRICT, PlanFile, ReleaseBudget
from sfumato.tables.summary_attack import DisclosedSums, disclosed_sums
from sfumato.tables.summary_statistics import (
    PublicInterval,
    SummaryFigure,
    exact_groups,
    exact_regression,
    group_name,
    private_groups,
    private_regression,
)

__all__ = ["PublishedStatistics", "Statistic", "SummaryFile"]

Mask = npt.NDArray[np.bool_]
_MOST_GROUPS = 100_000
_MOST_ATTACKED, _MOST_MARKS = 2_000, 10**9
_WIDEST = 10**6
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


class PublicDomain(DocumentedModel):
    """What is public about a column: the bounds of a number, or all values of a category."""

    model_config = STRICT

    low: float | None = None
    high: float | None = None
    values: tuple[Any, ...] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.values is None) == (self.low is None or self.high is None):
            raise ValueError("a domain is either {values: [...]} or {low: ..., high: ...}")
        return self


@dataclass(frozen=True, kw_only=True)
class PublishedStatistics:
    """All figures, and a public account of their protection."""

    frame: pl.DataFrame
    """One line per figure: ``statistic`` (its number in the plan), ``of``, ``group``, ``figure``, ``value``,
    ``deviation``."""
    account: Mapping[str, Any]
    holds: bool
    """Whether the verdict of the account holds."""


class SummaryFile(PlanFile):
    """Summary statistics of a file, protected by a threshold or by differential privacy."""

    statistics: Annotated[tuple[Statistic, ...], Field(min_length=1)]
    """The statistics to publish."""
    threshold: Annotated[int, Field(ge=3)] | None = None
    """Without a guarantee: the smallest number of people behind a figure, and of people more than coefficients."""
    budget: ReleaseBudget | None = None
    """With differential privacy: the budget, divided equally among the statistics."""
    columns: dict[str, PublicDomain] = {}
    """With differential privacy: the public domain of every column."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.threshold is None) == (self.budget is None):
            raise ValueError("needs either `threshold` (no guarantee) or `budget` (differential privacy)")
        if len(set(self.statistics)) < len(self.statistics):
            raise ValueError("a statistic is listed twice")
        if self.budget is not None:
            for one in self.statistics:
                for name in (one.of, *one.on):
                    if name not in self.columns or self.columns[name].values is not None:
                        raise ValueError(f"`columns` must declare low and high of `{name}`")
                for name in one.by:
                    if name not in self.columns or self.columns[name].values is None:
                        raise ValueError(f"`columns` must list the values of `{name}`")
        return self

    def placed(self, folder: Path) -> Self:
        plan = super().placed(folder)
        return plan if self.budget is None else plan.model_copy(update={"budget": self.budget.placed(folder)})

    def run(self) -> PublishedStatistics:
        """Calculate and protect. Everything that can be refused is refused before a budget is charged."""
        self._check_domains()
        if self.budget is not None:
            return self._private()
        frame = read(self.data).frame
        self._check(frame)
        return self._exact(frame)

    def _check(self, frame: pl.DataFrame) -> None:
        for one in self.statistics:
            for name in (one.of, *one.by, *one.on):
                if name not in frame.columns:
                    raise UnknownColumn(f"The data have no column `{name}`.", column=name)
                if frame[name].null_count():
                    raise BadParameter(f"Column `{name}` has missing values.", fix="Fill them or remove the rows.")
            for name in (one.of, *one.on):
                if not frame[name].dtype.is_numeric() or not frame[name].cast(pl.Float64).is_finite().all():
                    raise BadParameter(f"Column `{name}` must hold finite numbers.")

    def _check_domains(self) -> None:
        for name, domain in self.columns.items():
            if domain.low is not None and domain.high is not None:
                PublicInterval(low=domain.low, high=domain.high)
            elif len(set(domain.values or ())) != len(domain.values or ()):
                raise BadParameter(f"`{name}` lists a value twice.")
        if self.budget is not None:
            if any(prod(len(self.columns[n].values or ()) for n in one.by) > _MOST_GROUPS for one in self.statistics):
                raise BadParameter(f"A statistic has more than {_MOST_GROUPS:,} groups.", fix="Use fewer columns.")
            if self.budget.rho < Fraction(len(self.statistics), _WIDEST**2):
                raise BadParameter(
                    "rho is too small for anything: noise would hide a million people.", fix="Use a larger rho."
                )

    def _private(self) -> PublishedStatistics:
        assert self.budget is not None
        used = dict.fromkeys(name for one in self.statistics for name in (one.of, *one.by, *one.on))
        values = {name: self.columns[name].values for name in used}
        kinds = {name: "number" if own is None else kind_of_values(own) for name, own in values.items()}
        frame = read_declared(self.data, kinds).frame
        receipt = self.budget.charge(self, what="summary statistics")
        share, found = self.budget.rho / len(self.statistics), []
        for one in self.statistics:
            bounds = self._interval(one.of)
            if one.on:
                on = {name: self._interval(name) for name in one.on}
                found.append(private_regression(frame, one.of, on, bounds, rho=share, receipt=receipt))
            else:
                by = {name: self.columns[name].values or () for name in one.by}
                found.append(private_groups(frame, one.of, by, bounds, rho=share, receipt=receipt))
        guarantee = self.budget.guarantee(receipt)
        verdict = Verdict(model="differential-privacy", state=State.HOLDS)
        return self._published(found, {"guarantee": guarantee}, verdict)

    def _interval(self, name: str) -> PublicInterval:
        low, high = self.columns[name].low, self.columns[name].high
        assert low is not None
        assert high is not None
        return PublicInterval(low=low, high=high)

    def _exact(self, frame: pl.DataFrame) -> PublishedStatistics:
        assert self.threshold is not None
        for name in dict.fromkeys(name for one in self.statistics for name in (one.of, *one.on)):
            check_amounts(frame, name)
        shown, hidden, disclosed = _suppressed(frame, self.statistics, self.threshold)
        found = []
        for number, one in enumerate(self.statistics):
            if one.on:
                enough = frame.height >= len(one.on) + 1 + self.threshold
                figures = exact_regression(frame, one.of, one.on) if enough else []
                found.append(figures or [SummaryFigure(group="", name=n, value=None) for n in (*one.on, "intercept")])
            else:
                found.append(exact_groups(frame, one.of, one.by, frozenset(hidden[number])))
        failing = sum(part.people + part.cells + part.differences + sum(part.hidden) for part in disclosed)
        verdict = Verdict(
            model="threshold",
            state=State.FAILS if failing else State.HOLDS,
            worst=failing,
            wanted=0,
            reason="published figures determine the values of people or of groups below the threshold"
            if failing
            else "",
        )
        account = {
            "threshold": self.threshold,
            "groups": sum(len(part) for part in shown),
            "suppressed": sum(len(part) for part in hidden),
            "people_disclosed": sum(part.people for part in disclosed),
        }
        return self._published(found, account, verdict)

    def _published(
        self, found: list[list[SummaryFigure]], account: dict[str, Any], verdict: Verdict
    ) -> PublishedStatistics:
        lines = [
            (number, one.of, figure.group, figure.name, figure.value, figure.deviation)
            for number, (one, figures) in enumerate(zip(self.statistics, found, strict=True), start=1)
            for figure in figures
        ]
        kinds = {"statistic": pl.Int64, "of": pl.String, "group": pl.String, "figure": pl.String,
                 "value": pl.Float64, "deviation": pl.Float64}  # fmt: skip
        return PublishedStatistics(
            frame=pl.DataFrame(lines, schema=kinds, orient="row"),
            account={**account, "verdict": verdict.to_dict()},
            holds=verdict.holds,
        )


def _suppressed(
    frame: pl.DataFrame, statistics: tuple[Statistic, ...], threshold: int
) -> tuple[list[dict[str, Mask]], list[dict[str, Mask]], list[DisclosedSums]]:
    """Published and suppressed groups of each statistic, and what readers can still calculate of each column.

    Small groups are suppressed, then the smallest other group of the same statistic as long as a suppressed one can be
    calculated.
    """
    groups = sum(frame.select(one.by).unique().height if one.by else 1 for one in statistics if not one.on)
    if groups > _MOST_ATTACKED or groups * frame.height > _MOST_MARKS:
        raise BadParameter(
            f"The attack covers at most {_MOST_ATTACKED:,} groups, and a billion groups times rows.",
            fix="Use fewer or coarser groups, or a budget instead of a threshold.",
        )
    shown = [{} if one.on else _groups(frame, one.by) for one in statistics]
    hidden: list[dict[str, Mask]] = [{} for _ in statistics]
    for own, gone in zip(shown, hidden, strict=True):
        for name in [name for name, rows in own.items() if rows.sum() < threshold]:
            gone[name] = own.pop(name)
    disclosed = []
    for column in dict.fromkeys(one.of for one in statistics):
        about = [number for number, one in enumerate(statistics) if one.of == column]
        while True:
            found = _attack(frame, statistics, about, shown, hidden, threshold)
            owners = [number for number in about for _ in hidden[number]]
            again = next((n for n, known in zip(owners, found.hidden, strict=True) if known and shown[n]), None)
            if again is None:
                break
            smallest = min(shown[again], key=lambda name: int(shown[again][name].sum()))
            hidden[again][smallest] = shown[again].pop(smallest)
        disclosed.append(found)
    return shown, hidden, disclosed


def _attack(
    frame: pl.DataFrame, statistics: tuple[Statistic, ...], about: list[int], shown: list[dict[str, Mask]],
    hidden: list[dict[str, Mask]], threshold: int,
) -> DisclosedSums:  # fmt: skip
    regressors = [
        frame[name].cast(pl.Float64).to_numpy()
        for number in about
        if frame.height >= len(statistics[number].on) + 1 + threshold
        for name in statistics[number].on
    ]
    constant = [np.ones(frame.height, dtype=np.bool_)] if regressors else []
    return disclosed_sums(
        [*constant, *(rows for number in about for rows in shown[number].values())],
        regressors=regressors,
        hidden=[rows for number in about for rows in hidden[number].values()],
        threshold=threshold,
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
