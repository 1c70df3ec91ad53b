"""Budget receipts: proof that a privacy loss was reserved. Mechanisms draw noise only against a receipt."""

from __future__ import annotations

import threading

from sfumato.dp.curve import ZERO
from sfumato.dp.loss import NOTHING, PrivacyLoss, PrivacyMeasure
from sfumato.dp.spending import Draw, ReceiptExchange, RunAccount, Spending
from sfumato.errors import NoReceipt
from sfumato.secret import Permit

UNKEPT_COST = "no ledger: this run's cost is not added to that of others"
"""What is said of a run that was charged to a ledger that is not kept."""
_ISSUER = object()


class Receipt(Permit):
    """Issued by a ledger after the cost is durably written; covers noise up to that cost, once.

    A receipt cannot be constructed, copied or stored by other code. Mechanisms call :meth:`use` before they draw noise
    and open secret values with the receipt.
    """

    __slots__ = ("_curve", "_lock", "_used", "account", "covers", "dataset", "entry", "kept", "ledger", "spent")

    def __init__(
        self, covers: PrivacyLoss, *, dataset: str, entry: int, kept: bool, ledger: str = "",
        account: RunAccount | None = None, issuer: object = None,
    ) -> None:  # fmt: skip
        if issuer is not _ISSUER:
            raise NoReceipt("A receipt is issued by a ledger.", fix="Call `ledger.charge(...)`.")
        super().__init__(f"ledger entry {entry}")
        self.covers = covers
        """The reserved loss."""
        self.ledger = ledger
        """Where the ledger is, for the record of what leaves; empty if it has no place. It is never published."""
        self.dataset = dataset
        """The data set that was charged."""
        self.entry = entry
        """Number of the entry in the ledger."""
        self.kept = kept
        """Whether the ledger outlives the process: only then is the cost added to that of other runs."""
        self.account = account
        """The charge of a run as a whole, for its certificate."""
        self.spent = Spending(covers=covers) if account is None else account.spent
        """What was used of this receipt."""
        self._used = NOTHING
        self._curve = ZERO
        self._lock = threading.Lock()

    @property
    def used(self) -> PrivacyLoss:
        """The loss that mechanisms have used so far."""
        return self._used

    def use(self, loss: PrivacyLoss, draw: Draw | None = None) -> None:
        """Use a part of the receipt for a draw; a loss that it does not cover is refused."""
        self._take(loss, draw)

    def _take(self, loss: PrivacyLoss, used: Draw | Spending | None) -> None:
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
            self.spent.over.append(used)

    def split(self, *parts: PrivacyLoss) -> tuple[Receipt, ...]:
        """One receipt per part; together the parts must not exceed what is left.

        For parts in different measures: epsilon for one mechanism, rho for another.
        """
        made = tuple(self._another(part) for part in parts)
        for part, one in zip(parts, made, strict=True):
            self._take(part, one.spent)
        return made

    def exchanged(self, *losses: PrivacyLoss, exchange: ReceiptExchange) -> tuple[Receipt, ...]:
        """All of an unused receipt, for receipts of other losses.

        For amplification by sampling and for private selection, where single steps hide less than was charged for all
        of them together; ``exchange`` says why. The caller has computed the losses by that theorem.
        """
        if not exchange.theorem:
            raise NoReceipt("An exchange of a receipt needs the theorem that allows it.")
        with self._lock:
            if self._used != NOTHING:
                raise NoReceipt("A receipt that was used cannot be exchanged.")
            self._used = self.covers
        made = tuple(self._another(loss) for loss in losses)
        self.spent.exchange = exchange
        self.spent.over += [one.spent for one in made]
        return made

    def parallel(self, loss: PrivacyLoss, *, parts: int, touched: int) -> tuple[Receipt, ...]:
        """One receipt of ``loss`` for each of ``parts`` disjoint groups; one unit is in ``touched`` of them at most."""
        self.use(loss.times(touched))
        return tuple(self._another(loss) for _ in range(parts))

    def _another(self, covers: PrivacyLoss) -> Receipt:
        return Receipt(
            covers, dataset=self.dataset, entry=self.entry, kept=self.kept, ledger=self.ledger, issuer=_ISSUER
        )

    def _refuse(self, *_: object) -> None:
        raise NoReceipt("A receipt cannot be copied or stored.")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse  # type: ignore[assignment]


def issue(
    covers: PrivacyLoss, *, dataset: str, entry: int, kept: bool = True, ledger: str = "",
    account: RunAccount | None = None,
) -> Receipt:  # fmt: skip
    """A receipt for a cost that was just written. For :mod:`sfumato.ledger` only; a test checks the imports."""
    return Receipt(covers, dataset=dataset, entry=entry, kept=kept, ledger=ledger, account=account, issuer=_ISSUER)


def require(receipt: object, loss: PrivacyLoss, draw: Draw | None = None) -> Receipt:
    """The receipt, after ``loss`` was used from it; anything that is not a receipt is refused."""
    if not isinstance(receipt, Receipt):
        raise NoReceipt("Noise needs a budget receipt.", fix="Charge the cost first: `ledger.charge(...)`.")
    receipt.use(loss, draw)
    return receipt
