"""The proof that budget was reserved. Noise cannot be drawn without one, nor for more than it covers."""

from __future__ import annotations

import threading

from sfumato.dp.loss import NOTHING, PrivacyLoss, PrivacyMeasure
from sfumato.errors import NoReceipt
from sfumato.secret import Permit

__all__ = ["Receipt", "issue", "require"]

_SEAL = object()


class Receipt(Permit):
    """Issued by a ledger after the cost was durably written; good for noise up to that cost, once.

    A receipt cannot be made by hand, copied or stored. Mechanisms call :meth:`use` before they draw, and opening a
    sealed value needs the receipt itself.
    """

    __slots__ = ("_lock", "_used", "covers", "entry")

    def __init__(self, covers: PrivacyLoss, *, entry: int, seal: object = None) -> None:
        if seal is not _SEAL:
            raise NoReceipt("A receipt is issued by a ledger.", fix="Call `ledger.reserve(...)`.")
        super().__init__(f"ledger entry {entry}")
        self.covers = covers
        """What was reserved."""
        self.entry = entry
        """Number of the ledger's entry."""
        self._used = NOTHING
        self._lock = threading.Lock()

    @property
    def used(self) -> PrivacyLoss:
        """What mechanisms have drawn on it so far."""
        return self._used

    def use(self, loss: PrivacyLoss) -> None:
        """Draw on the receipt; refuse what it does not cover."""
        with self._lock:
            # In rho, several pure losses add up to less than the square of their sum: convert first, then add.
            total = self._used + (loss.to(PrivacyMeasure.RHO) if self.covers.measure is PrivacyMeasure.RHO else loss)
            if not total <= self.covers:
                raise NoReceipt(f"The receipt covers {self.covers}; {self._used} is used and {loss} was asked for.")
            self._used = total

    def split(self, *parts: PrivacyLoss) -> tuple[Receipt, ...]:
        """Receipts for parts of this one, each good for its own part; together they may not exceed what is left.

        Needed where parts are stated in different measures: epsilon for one mechanism, rho for another.
        """
        for part in parts:
            self.use(part)
        return tuple(Receipt(part, entry=self.entry, seal=_SEAL) for part in parts)

    def parallel(self, loss: PrivacyLoss, *, parts: int, touched: int) -> tuple[Receipt, ...]:
        """A receipt of ``loss`` for each of ``parts`` disjoint groups, of which one unit is in ``touched`` at most."""
        self.use(loss.times(touched))
        return tuple(Receipt(loss, entry=self.entry, seal=_SEAL) for _ in range(parts))

    def _refuse(self, *_: object) -> None:
        raise NoReceipt("A receipt can be neither copied nor stored.")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse  # type: ignore[assignment]


def issue(covers: PrivacyLoss, *, entry: int) -> Receipt:
    """For ledgers only: a receipt for a cost that has just been written."""
    return Receipt(covers, entry=entry, seal=_SEAL)


def require(receipt: object, loss: PrivacyLoss) -> Receipt:
    """The receipt, drawn on by ``loss``; anything else is refused."""
    if not isinstance(receipt, Receipt):
        raise NoReceipt("Noise needs a budget receipt.", fix="Reserve the cost first: `ledger.reserve(...)`.")
    receipt.use(loss)
    return receipt
