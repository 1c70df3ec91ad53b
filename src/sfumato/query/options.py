"""Options of a query under differential privacy: its cost and its contribution bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypedDict

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import QueryRefused
from sfumato.rationals import Number, rational

FIT_SHARE = Fraction(1, 20)


class QueryOptions(TypedDict, total=False):
    """Options under differential privacy. A query needs ``epsilon``, ``rho``, ``share`` or an ``ERROR`` clause."""

    epsilon: Number | None
    """The cost. With ``ERROR 5%`` in the query: the most it may cost."""
    delta: Number
    """Needed for Gaussian noise and for private group keys; 0 by default."""
    rho: Number | None
    """The cost in zero-concentrated differential privacy, instead of ``epsilon``."""
    share: Number | None
    """The cost as a share of the budget, such as 1/100, instead of ``epsilon``: a hundred such queries fit."""
    rows: int | None
    """Rows of one unit that count within a group, instead of the declared number."""
    groups: int | None
    """Groups in which one unit counts, instead of the declared number."""
    bounding: str | None
    """How contributions are bounded: "sample" or "clip"; chosen by the planner when left out."""
    fit: Number | None
    """Share of the cost that measures how many people the limits cut; 1/20 by default, 0 to leave it out."""


@dataclass(frozen=True, kw_only=True)
class CheckedOptions:
    """The options of a query with their defaults."""

    epsilon: Number | None = None
    delta: Number = 0
    rho: Number | None = None
    share: Number | None = None
    rows: int | None = None
    groups: int | None = None
    bounding: str | None = None
    fit: Number | None = None

    def divided(self, parts: int) -> CheckedOptions:
        """The options of one of several parts, which has an equal part of the cost."""
        epsilon, rho, share = (
            None if whole is None else rational(whole) / parts for whole in (self.epsilon, self.rho, self.share)
        )
        return replace(self, epsilon=epsilon, delta=rational(self.delta) / parts, rho=rho, share=share)

    @property
    def limits(self) -> dict[str, Any]:
        return {"rows": self.rows, "groups": self.groups, "bounding": self.bounding,
                "fit": FIT_SHARE if self.fit is None else self.fit}  # fmt: skip


def check_min_epsilon(cost: PrivacyLoss, min_epsilon: Number | None) -> None:
    """Refuse a query that costs less than the owner allows; a cost in rho is compared as that of a pure epsilon."""
    if min_epsilon is None:
        return
    size = cost.size**2 / 2 if cost.measure is PrivacyMeasure.EPSILON else cost.size
    if size < rational(min_epsilon) ** 2 / 2:
        raise QueryRefused(
            f"A query of this data set costs at least ε = {float(rational(min_epsilon)):g}.",
            fix="Use a larger epsilon, share or rho, or a smaller ERROR.",
        )
