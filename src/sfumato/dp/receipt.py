"""Budget receipts: proof that a privacy loss was reserved. Mechanisms draw noise only against a receipt."""

from __future__ import annotations

import threading

from sfumato.dp.curve import NO_CURVE
from sfumato.dp.loss import NOTHING, PrivacyLoss, PrivacyMeasure
from sfumato.errors import NoReceipt
from sfumato.secret import Permit

__all__ = ["Receipt", "issue", "require"]

_ISSUER = object()


class Receipt(Permit):
    """Issued by a ledger after the cost is durably written; covers noise up to that cost, once.

    A receipt cannot be constructed, copied or stored by other code. Mechanisms call :meth:`use` before they draw noise
    and open secret values with the receipt.
    """

    __slots__ = ("_curve", "_lock", "_used", "covers", "entry")

    def __init__(self, covers: PrivacyLoss, *, entry: int, issuer: object = None) -> None:
        if issuer is not _ISSUER:
            raise NoReceipt("A receipt is issued by a ledger.", fix="Call `ledger.reserve(...)`.")
        super().__init__(f"ledger entry {entry}")
        self.covers = covers
        """The reserved loss."""
        self.entry = entry
        """Number of the entry in the ledger."""
        self._used = NOTHING
        self._curve = NO_CURVE
        self._lock = threading.Lock()

    @property
    def used(self) -> PrivacyLoss:
        """The loss that mechanisms have used so far."""
        return self._used

    def use(self, loss: PrivacyLoss) -> None:
        """Use a part of the receipt; a loss that it does not cover is refused."""
        with self._lock:
            # Convert to rho before adding: the sum of squares is smaller than the square of the sum.
            total = self._used + (loss.to(PrivacyMeasure.RHO) if self.covers.measure is PrivacyMeasure.RHO else loss)
            if not total <= self.covers:
                raise NoReceipt(f"The receipt covers {self.covers}; {self._used} is used and {loss} was requested.")
            if self.covers.curve is not None:
                curve = self._curve + loss.composable()
                if not curve.within(self.covers.curve):
                    raise NoReceipt(f"The receipt covers {self.covers}, but not the composition of all draws.")
                self._curve = curve
            self._used = total

    def split(self, *parts: PrivacyLoss) -> tuple[Receipt, ...]:
        """One receipt per part; together the parts must not exceed what is left.

        For parts in different measures: epsilon for one mechanism, rho for another.
        """
        for part in parts:
            self.use(part)
        return tuple(Receipt(part, entry=self.entry, issuer=_ISSUER) for part in parts)

    def parallel(self, loss: PrivacyLoss, *, parts: int, touched: int) -> tuple[Receipt, ...]:
        """One receipt of ``loss`` for each of ``parts`` disjoint groups; one unit is in ``touched`` of them at most."""
        self.use(loss.times(touched))
        return tuple(Receipt(loss, entry=self.entry, issuer=_ISSUER) for _ in range(parts))

    def _refuse(self, *_: object) -> None:
        raise NoReceipt("A receipt cannot be copied or stored.")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse  # type: ignore[assignment]


def issue(covers: PrivacyLoss, *, entry: int) -> Receipt:
    """A receipt for a cost that was just written. For ledgers only."""
    return Receipt(covers, entry=entry, issuer=_ISSUER)


def require(receipt: object, loss: PrivacyLoss) -> Receipt:
    """The receipt, after ``loss`` was used from it; anything that is not a receipt is refused."""
    if not isinstance(receipt, Receipt):
        raise NoReceipt("Noise needs a budget receipt.", fix="Reserve the cost first: `ledger.reserve(...)`.")
    receipt.use(loss)
    return receipt
