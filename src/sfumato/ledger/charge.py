"""Charge: what a run or a question costs, whose privacy it is about, and how contributions were bounded.

Everything that draws noise is charged by :meth:`sfumato.ledger.Ledger.charge`; runs as a whole (tables, models,
synthetic data, item counts, graph statistics) by :func:`charge_run`, which also serves runs without a ledger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.dp.contribution_bounds import Bounds, Enforced
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.dp.spending import RunAccount, Spending
from sfumato.errors import BadParameter, UnitsDiffer
from sfumato.ledger.exact_budget import cost_amount
from sfumato.ledger.parts import DataPart

if TYPE_CHECKING:
    from sfumato.dp.receipt import Receipt
    from sfumato.ledger.entries import Entry
    from sfumato.ledger.ledger import Ledger

OWNER = "owner"
"""Whom runs of the data's owner are charged to."""
RUN = "run:"
"""Before the fingerprint of a run as a whole, whose result is registered when it leaves."""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A cost that is written to the ledger before anything is computed.

    >>> from sfumato.dp.loss import pure
    >>> Charge(loss=pure(1), unit="row", what="number of patients").cost(PrivacyMeasure.EPSILON)
    Loss(epsilon=1)
    """

    loss: PrivacyLoss
    """The loss of one ``unit``, which mechanisms may use."""
    unit: str
    """Whose privacy the loss is about: ``row``, ``edge``, ``node``, or the columns that identify a person."""
    what: str
    """What is computed, in words or as the analyst wrote it. The owner can read it later."""
    key: str = ""
    """Fingerprint of what is computed; ``what`` if left out. The ledger shows it instead of ``what``."""
    bounds: Bounds | None = None
    """How much of one person was used. None: the loss is about the unit itself, however much it contributes."""
    in_rho: PrivacyLoss | None = None
    """The loss for a budget in rho, where it is another."""
    plan: str = ""
    """SHA-256 of the plan of an answer, as its certificate states it; empty where there is no certificate."""
    part: DataPart | None = None
    """The part of the data set that alone is read; None for the whole. Only where every row is a person."""

    def __post_init__(self) -> None:
        if not self.unit:
            raise BadParameter(
                "a charge needs the privacy unit.", fix="For example `row`, or the column of the person."
            )
        if not self.key:
            object.__setattr__(self, "key", self.what)
        if self.part is not None and self.unit != "row":
            raise UnitsDiffer(
                f"Parts are disjoint sets of rows, and a `{self.unit}` may have rows in several.",
                fix="Charge the whole data set.",
            )
        if self.bounds is None or self.unit == self.bounds.unit:
            return
        if self.unit != "row":
            raise UnitsDiffer(f"The bound is about `{self.bounds.unit}`, and the loss about `{self.unit}`.")
        if not isinstance(self.bounds, Enforced):
            raise BadParameter(
                f"A loss about rows is one about `{self.bounds.unit}` only where the run cuts at the bound.",
                fix="Cut with `bound_rows` before the charge.",
            )

    @classmethod
    def of_run(
        cls, loss: PrivacyLoss, *, unit: str, name: str, public: Mapping[str, object], bounds: Bounds | None = None,
        in_rho: PrivacyLoss | None = None,
    ) -> Charge:  # fmt: skip
        """The charge of a run as a whole; ``public`` are its public parameters."""
        what = json.dumps({"run": name, **public}, sort_keys=True, default=str)
        key = f"{RUN}{name} {hashlib.sha256(what.encode()).hexdigest()[:16]}"
        return cls(loss=loss, unit=unit, what=what, key=key, bounds=bounds, in_rho=in_rho)

    def of_unit(self, measure: PrivacyMeasure) -> PrivacyLoss:
        """What mechanisms may use for one ``unit``, for a budget in a measure."""
        return self.in_rho if self.in_rho is not None and measure is PrivacyMeasure.RHO else self.loss

    def cost(self, measure: PrivacyMeasure) -> PrivacyLoss:
        """What is charged to a budget in a measure: for :attr:`charged_unit`.

        A run about rows that cut every person at k rows is charged for k rows at once, by group privacy.
        """
        loss = self.of_unit(measure)
        return loss.for_group(self.bounds.rows) if self.bounds is not None and self._converted else loss

    @property
    def charged_unit(self) -> str:
        """The unit that the ledger is charged for."""
        return self.bounds.unit if self.bounds is not None and self._converted else self.unit

    @property
    def _converted(self) -> bool:
        return self.bounds is not None and self.unit != self.bounds.unit

    def account(self, measure: PrivacyMeasure, *, dataset: str, unit: str, entry: Entry | None) -> RunAccount | None:
        """What the certificate of a run as a whole is made from; None for what is no run. ``unit`` is the account's."""
        if not self.key.startswith(RUN):
            return None
        place: dict[str, int | str] | None = None
        if entry is not None:
            place = {"number": entry.number, "previous": entry.previous, "hash": entry.hash}
        bounding = "row" if self.bounds is None else "cut" if isinstance(self.bounds, Enforced) else "promised"
        return RunAccount(
            dataset=dataset, unit=unit, name=self.key.removeprefix(RUN).rpartition(" ")[0], key=self.key,
            cost=self.cost(measure), bounding=bounding, rows=1 if self.bounds is None else self.bounds.rows,
            by_row=self._converted, entry=place, spent=Spending(covers=self.of_unit(measure)),
        )  # fmt: skip


def charge_run(charge: Charge, *, ledger: Ledger | str | Path | None, dataset: str | None) -> Receipt:
    """Charge a run to the ledger that its owner names, or to one that ends with the run.

    Where no ledger is named, the run has an account of its own, whose cap is the cost; the receipt says that the cost
    is not added to that of other runs (:attr:`~sfumato.dp.receipt.Receipt.kept`), and so do reports.

    >>> from sfumato.dp.loss import concentrated
    >>> run = Charge.of_run(concentrated("1/3"), unit="row", name="tables", public={})
    >>> paid = charge_run(run, ledger=None, dataset=None)
    >>> paid.covers, paid.kept
    (Loss(rho=1/3), False)
    """
    from sfumato.ledger.ledger import Ledger

    if (ledger is None) != (dataset is None):
        raise BadParameter("`ledger` and `dataset` belong together: name the data set that is charged.")
    if ledger is not None:
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        return book.charge(charge, dataset=dataset or "", analyst=OWNER)
    alone = replace(charge, in_rho=None)
    cost = alone.cost(charge.loss.measure)
    book = Ledger.unkept()
    book.set_cap(cost_amount(cost).loss(cost.measure), dataset="run")  # as the ledger counts it
    return book.charge(alone, dataset="run", analyst=OWNER)
