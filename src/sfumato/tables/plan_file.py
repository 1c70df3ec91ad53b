"""Plans of tables and figures: their base, and the budget of those with a guarantee."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar

import polars as pl
from pydantic import BeforeValidator, ConfigDict

from sfumato.dataset.plan import DatasetPlan, PlannedTable
from sfumato.dp.contribution_bounds import Enforced
from sfumato.dp.loss import PrivacyLoss, concentrated
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.ledger.charge import Charge, charge_run
from sfumato.progress import SILENT, Progress
from sfumato.rationals import rational
from sfumato.release import Verdict
from sfumato.release.guarantee import Guarantee
from sfumato.tables.cross_tab import CrossTab

STRICT = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
_DELTA = Fraction(1, 10**6)


def _weight(value: object) -> Fraction:
    try:
        number = rational(value)  # type: ignore[arg-type]
    except BadParameter:
        raise ValueError("must be a number or a fraction such as 1/3") from None
    if number < 0:
        raise ValueError("must not be negative")
    return number


def _positive(value: object) -> Fraction:
    number = _weight(value)
    if number == 0:
        raise ValueError("must be above 0")
    return number


Weight = Annotated[Fraction, BeforeValidator(_weight)]
"""A share in proportion to the others; none is negative."""
PositiveNumber = Annotated[Fraction, BeforeValidator(_positive)]


@dataclass(frozen=True, kw_only=True)
class PublishedFigures:
    """Tables that a plan publishes, with public facts about them and the verdict on their protection."""

    tables: Mapping[str, pl.DataFrame]
    """The tables by name, which is also that of their file."""
    facts: Mapping[str, object]
    """The method, its parameters and its guarantee, for readers of the tables."""
    verdicts: tuple[Verdict, ...] = ()
    guarantee: Guarantee | None = None
    """The guarantee of differential privacy, if there is one."""
    cross_tabs: tuple[CrossTab, ...] = ()
    """The same figures as cross-tabs, where the plan lists tables of cells."""

    @property
    def frame(self) -> pl.DataFrame:
        """The first table."""
        return next(iter(self.tables.values()))


class ReleaseBudget(DocumentedModel):
    """The privacy budget of a release: the loss of one person."""

    model_config = STRICT

    rho: PositiveNumber
    """Budget in zero-concentrated differential privacy: the loss of a person with all rows that count."""


class PlanFile(DatasetPlan):
    """A plan of tables or figures."""

    release_kind: ClassVar[str] = "tables"

    @abstractmethod
    def run(self, progress: Progress = SILENT) -> PublishedFigures:
        """Publish what the plan lists. Everything that can be refused is refused before a budget is charged."""

    @abstractmethod
    def exact(self) -> Mapping[str, pl.DataFrame]:
        """The same tables without protection, for the owner: columns that name a figure, and its value at the end."""


def row_loss(rho: Fraction, people: PlannedTable) -> PrivacyLoss:
    """The loss of one row, so that a person with all rows that count loses rho.

    Group privacy: rho of a row is k² rho of k rows (Bun, Steinke 2016, Proposition 1.9).
    """
    return concentrated(rho / people.max_rows**2)


def charge_figures(plan: PlanFile, loss: PrivacyLoss, *, what: str, bounds: Enforced | None) -> Receipt:
    """Charge the ledger of the data set for a plan; ``loss`` is that of a row."""
    run = Charge.of_run(loss, unit="row", name=what, public={"plan": plan.public()}, bounds=bounds)
    return charge_run(run, ledger=plan.dataset.ledger, dataset=plan.account)


def figures_guarantee(loss: PrivacyLoss, receipt: Receipt, *, proof: str, bounds: Enforced | None) -> Guarantee:
    """The guarantee of a release; ``loss`` is that of a row."""
    total = loss if bounds is None else loss.for_group(bounds.rows)
    stated = replace(total.at(_DELTA), curve=total.composable())
    if bounds is None:
        return Guarantee(loss=stated, unit="row", proof=proof).charged(receipt)
    proof = f"{proof}; group privacy: {bounds.rows}² times the loss of a row (Bun, Steinke 2016, Proposition 1.9)"
    return Guarantee(loss=stated, unit=bounds.unit, max_rows=bounds.rows, proof=proof).charged(receipt)
