"""What a charge was spent on: the tree of receipts and draws of a run, as its certificate states it.

Every receipt keeps what was used of it. From that tree follows the certificate of tables, synthetic data and models,
which :mod:`sfumato.proof` checks: each draw with its mechanism and with the rule that bounds what one unit moves. A run
that used a receipt in a way that no rule covers has no certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from sfumato import __version__
from sfumato.dp.loss import PrivacyLoss
from sfumato.proof.certificate import FORMAT, NEIGHBOURS, sealed
from sfumato.proof.rules import MECHANISMS, RUNS
from sfumato.secret import MeasuredNumbers

if TYPE_CHECKING:
    from sfumato.dp.mechanism import Mechanism

Stated: TypeAlias = dict[str, Any]
"""A part of a certificate: plain data."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One use of a receipt by a mechanism."""

    mechanism: Mechanism
    loss: PrivacyLoss
    measured: MeasuredNumbers | None
    """What it measured; None where the caller did not say, so that there is no certificate."""

    def stated(self) -> Stated | None:
        """As a certificate states it; None where there is no rule."""
        name = self.mechanism.part_name()
        if self.measured is None or name not in MECHANISMS or self.measured.kind not in RUNS:
            return None
        numbers = {key: exact(value) for key, value in self.measured.numbers.items()}
        measures = {"kind": self.measured.kind, "rule": RUNS[self.measured.kind][0], "of": self.measured.of, **numbers}
        return {
            "rule": MECHANISMS[name][0], "measures": measures, "noise": stated_noise(self.mechanism),
            "loss": stated_loss(self.loss),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReceiptExchange:
    """The theorem by which all of a receipt became receipts of other losses."""

    theorem: str
    rule: str = ""
    """The number of its rule; empty without one, so that there is no certificate."""
    facts: Mapping[str, Fraction | int] = field(default_factory=dict)


@dataclass(kw_only=True)
class Spending:
    """A receipt, and what was used of it."""

    covers: PrivacyLoss
    over: list[Draw | Spending | None] = field(default_factory=list)
    """None for a use of which nothing is known but its loss."""
    exchange: ReceiptExchange | None = None

    def stated(self) -> Stated | None:
        """As a certificate states it, equal draws in a row once; None where a part of it has no rule."""
        parts: list[Stated] = []
        last: object = None
        for used in list(self.over):
            if isinstance(used, Draw) and used == last:
                parts[-1]["times"] += 1
                continue
            one = None if used is None else used.stated()
            if one is None:
                return None
            parts.append({**one, "times": 1} if isinstance(used, Draw) else one)
            last = used
        node: Stated = {"covers": stated_loss(self.covers), "over": parts}
        if self.exchange is not None:
            if not self.exchange.rule:
                return None
            facts = {name: exact(value) for name, value in self.exchange.facts.items()}
            node["exchange"] = {"rule": self.exchange.rule, **facts}
        return node


@dataclass(kw_only=True)
class RunAccount:
    """The charge of a run as a whole, and what was spent of it."""

    dataset: str
    unit: str
    name: str
    key: str
    """The name of the run and the fingerprint of its public parameters, as the ledger has it."""
    cost: PrivacyLoss
    bounding: str
    """``row``, ``cut`` or ``promised``: who bounds the rows of a unit."""
    rows: int
    by_row: bool
    """Whether draws state the loss of a row, of which the cost is that of ``rows`` rows."""
    entry: Mapping[str, int | str] | None
    """Place in the chain of a ledger; None for one that is not kept."""
    spent: Spending
    sign: Callable[[Stated], Stated] | None = None
    """Signs with the key of the ledger. It stays in the process."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "sign": None}

    def certificate(self) -> Stated | None:
        """The certificate of the run so far; None where a draw has no rule."""
        spent = self.spent.stated()
        if spent is None:
            return None
        run = {
            "name": self.name, "key": self.key, "bounding": self.bounding, "rows": self.rows,
            "loss_of": "row" if self.by_row else "unit", "spent": spent,
        }  # fmt: skip
        whole = sealed({
            "certificate": FORMAT, "dataset": self.dataset, "unit": self.unit, "neighbours": NEIGHBOURS,
            "versions": {"sfumato": __version__},
            "charges": [{"entry": self.entry, "run": run, "loss": stated_loss(self.cost)}],
            "loss": stated_loss(self.cost),
        })  # fmt: skip
        return whole if self.sign is None else self.sign(whole)


def stated_loss(loss: PrivacyLoss) -> dict[str, str | None]:
    """A loss in all numbers that compose."""
    curve = loss.composable()
    return {
        "measure": str(loss.measure), "size": exact(loss.size), "delta": exact(loss.delta), "rho": exact(curve.rho),
        "squared_mu": None if curve.gaussian is None else exact(curve.gaussian), "curve_delta": exact(curve.delta),
    }  # fmt: skip


def stated_noise(mechanism: Mechanism) -> Stated:
    """The mechanism with all its parameters, and those of its sampler."""
    given = {name: plain(getattr(mechanism, name)) for name in type(mechanism).model_fields}
    steps = getattr(mechanism, "steps", None)
    drawn = {} if steps is None else {"drawn": exact(steps())}
    return {**given, "mechanism": mechanism.part_name(), **drawn}


def plain(value: Any) -> Any:
    """A field as plain data: rationals as text, the rest as it is."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return exact(value) if isinstance(value, Fraction) else value


def exact(number: Fraction | int) -> str:
    """A rational as text: decimal, or hexadecimal where Python refuses to write so many digits."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) < 10_000:
        return str(number)
    return f"{number.numerator:#x}/{number.denominator:#x}"
