"""The outcome of an attack: counts per arm, and the risk estimated from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Discloses
from sfumato.stats import wilson


@dataclass(frozen=True, kw_only=True)
class Arm:
    """Number of correct guesses (hits) in a number of trials.

    Hits are a fraction where an attack chooses at random among equally good guesses: the expected number.
    """

    hits: float
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials:
            raise ValueError(f"{self.hits} hits in {self.trials} trials")

    @property
    def rate(self) -> float:
        return self.hits / self.trials


@dataclass(frozen=True, kw_only=True)
class Risk:
    """Estimated share of correct guesses with its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results of one attack.

    ``main`` is the attack; ``baseline`` an adversary without the release (a random row, the most frequent value);
    ``control`` the same attack on people who are not in the release, which shows what is inferred from statistics
    rather than from the person's own record.
    """

    attack: str
    discloses: Discloses
    main: Arm
    baseline: Arm | None
    """None if time was up before it could be run."""
    control: Arm | None = None
    claims: int = 0
    """Number of targets for whom the attack made a guess."""
    certain: int = 0
    """Number of guesses that the attack considered certain: only one candidate."""
    certain_hits: int = 0
    knows: tuple[str, ...] = ()
    secret: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    threat: str = ""
    """The threat model in one sentence."""
    any_columns: bool = False
    """Whether the adversary knows columns that the owner did not declare: those that disclose most."""
    counts: Literal["people", "rows"] = "people"
    """What a target is. Rows are no people where a person has several."""
    setting: str = ""
    """A few words that distinguish this configuration from others of the same attack."""
    planned: int | None = None
    """Planned number of targets; more than were processed if time was up."""
    without: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Column attribution: for each known column the risk, with its interval, if the attacker does not know it."""
    one_to_one: bool = False
    """Whether targets compete for rows, so that a wrong row for one target is often a wrong row for another too."""
    computed: bool = False
    """Whether the risk was computed over all rows instead of sampled; its interval is then a point."""
    truth: str = "row map"
    """How correct guesses were determined."""
    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    """Original rows of the targets. Confidential, as are ``hit`` and ``confidence``."""
    hit: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0, np.float64), repr=False)
    """The probability that the guess about each target was correct."""
    confidence: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0, np.float64), repr=False)

    @property
    def stopped(self) -> bool:
        """Whether time was up before all targets were processed. The processed ones are a random sample."""
        return self.planned is not None and self.planned > self.main.trials

    def riskiest(self, count: int = 10) -> list[dict[str, object]]:
        """The targets found with the highest confidence: original row (from 0) and confidence. Confidential."""
        order = np.lexsort((self.rows, -self.confidence))
        chosen = order[self.hit[order] > 0][:count]
        return [{"row": int(self.rows[i]), "confidence": float(self.confidence[i])} for i in chosen]

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """One entry of the ``attacks`` list: risk with interval, the other arms, and the configuration."""
        main = risk(self, level)
        base = self.baseline.rate if self.baseline is not None else None
        control = self.control.rate if self.control is not None else None
        return {
            "attack": self.attack,
            **({"setting": self.setting} if self.setting else {}),
            "discloses": str(self.discloses),
            "risk": main.value,
            "low": main.low,
            "high": main.high,
            "baseline": base,
            "control": control,
            "excess": None
            if self.discloses is Discloses.ATTRIBUTE and control is None
            else excess(main.value, max(base or 0.0, control or 0.0)),
            "tried": self.main.trials,
            **({"stopped": True, "planned": self.planned} if self.stopped else {}),
            "hits": whole(self.main.hits),
            "claims": self.claims,
            "precision": self.main.hits / self.claims if self.claims else None,
            "certain": self.certain,
            "certain_hits": self.certain_hits,
            "level": level,
            "knows": list(self.knows),
            **({"any_columns": True} if self.any_columns else {}),
            **({"counts": self.counts} if self.counts != "people" else {}),
            **({"secret": self.secret} if self.secret is not None else {}),
            "truth": self.truth,
            "threat": self.threat,
            **({"parameters": dict(self.parameters)} if self.parameters else {}),
            **({"detail": dict(self.detail)} if self.detail else {}),
            **({"without": {name: dict(left) for name, left in self.without.items()}} if self.without else {}),
        }


def whole(hits: float) -> int | float:
    """A whole number as an integer, an expected number to three decimals.

    >>> whole(31.0), whole(10 / 3)
    (31, 3.333)
    """
    return int(hits) if hits == int(hits) else round(hits, 3)


def excess(value: float, reference: float) -> float:
    """Risk in excess of a reference, as a share of the largest possible excess: 0 is none, 1 is all.

    >>> excess(0.75, 0.5), excess(0.2, 0.4), excess(1.0, 1.0)
    (0.5, 0.0, 0.0)
    """
    return max(0.0, (value - reference) / (1 - reference)) if reference < 1 else 0.0


def risk(outcome: Outcome, level: float = 0.95) -> Risk:
    """The share of correct guesses with its Wilson interval.

    In a one-to-one assignment, misses come at least in pairs: two targets exchange their rows. The variance of the
    share is then up to twice that of independent targets, by a factor of about one plus the share.
    """
    if outcome.computed:
        return Risk(value=outcome.main.rate, low=outcome.main.rate, high=outcome.main.rate)
    effect = 1 + outcome.main.rate if outcome.one_to_one else 1.0
    low, high = wilson(outcome.main.hits / effect, max(1.0, outcome.main.trials / effect), level)
    return Risk(value=outcome.main.rate, low=low, high=high)
