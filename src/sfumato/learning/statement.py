"""Privacy statement: what a fitted model promises, to whom, and which inputs were declared public."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import exp
from statistics import NormalDist
from typing import Any

from sfumato.dp.receipt import UNKEPT_COST

__all__ = ["PrivacyStatement"]


@dataclass(frozen=True, kw_only=True)
class PrivacyStatement:
    """The differential privacy guarantee of a fitted model and of everything computed from it."""

    epsilon: float
    delta: float
    mu: float | None
    """The same guarantee in Gaussian differential privacy: noise hides one unit as well as one draw of N(0, 1) hides a
    shift of ``mu``. None where the proof is of another kind."""
    max_rows: int
    """The largest number of rows of one person."""
    public: tuple[str, ...]
    """Parameters that are published as they are and must not have been derived from the data."""
    entry: int | None = None
    """The entry of the ledger that was charged; None if no ledger was given."""
    dataset: str | None = None
    """The data set of the ledger that was charged."""
    unit: str = "row"
    """``row``, or the column that identifies a person."""
    neighbours: str = "add or remove all rows of one unit"
    proof: str = (
        "normal noise rounded to a grid (Balle, Wang 2018, Theorem 8; rounding is post-processing) on sums of clipped "
        "integers; adaptive composition in Gaussian differential privacy (Dong, Roth, Su 2022, doi:10.1111/rssb.12454)"
    )

    @property
    def membership_bound(self) -> float:
        """The largest expected accuracy of any attacker who guesses whether a person is in the data, at even odds.

        (exp(epsilon) + delta) / (exp(epsilon) + 1) (Kairouz, Oh, Viswanath 2015, doi:10.1109/TIT.2017.2685505), and the
        normal distribution function at mu/2 for Gaussian differential privacy (Dong, Roth, Su 2022).
        """
        general = (1 + self.delta * exp(-self.epsilon)) / (1 + exp(-self.epsilon))
        return general if self.mu is None else min(general, NormalDist().cdf(self.mu / 2))

    def to_dict(self) -> dict[str, Any]:
        """The statement as plain data."""
        return {**asdict(self), "public": list(self.public)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> PrivacyStatement:
        """The statement that :meth:`to_dict` wrote."""
        return cls(**{**plain, "public": tuple(plain["public"])})

    def __str__(self) -> str:
        rows = f", of which a person has at most {self.max_rows}" if self.max_rows > 1 else ""
        charged = f"entry {self.entry} of the ledger" if self.entry is not None else UNKEPT_COST
        return (
            f"({self.epsilon:g}, {self.delta:g})-differential privacy for one {self.unit}{rows} "
            f"({self.neighbours}); {charged}."
        )
