"""What left about the people of a data set, and the budget that is left: the ledger as its owner reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sfumato.data.read_write import require_file
from sfumato.dataset.document import Dataset
from sfumato.errors import BadParameter
from sfumato.ledger.ledger import Balance, Ledger
from sfumato.ledger.register import RegisterLine, register

__all__ = ["LedgerAccount", "LedgerOverview", "ledger_overview", "open_ledger"]


@dataclass(frozen=True, kw_only=True)
class LedgerAccount:
    """The budget of a data set, of an analyst on it, or of an analyst over all data sets."""

    dataset: str
    analyst: str
    unit: str | None
    """Whose privacy the data set was charged for; None before the first charge."""
    balance: Balance

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        cap, left = self.balance.cap, self.balance.left
        return {
            "dataset": self.dataset,
            "analyst": self.analyst,
            "unit": self.unit,
            "cap": None if cap is None else cap.to_dict(),
            "spent": self.balance.spent.to_dict(),
            "left": None if left is None else left.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class LedgerOverview:
    """Budgets, and everything that left."""

    accounts: tuple[LedgerAccount, ...]
    register: tuple[RegisterLine, ...]

    def to_dict(self) -> dict[str, object]:
        """The document that ``sfumato ledger show --json`` prints."""
        return {
            "accounts": [account.to_dict() for account in self.accounts],
            "register": [line.to_dict() for line in self.register],
        }

    def to_frame(self) -> pl.DataFrame:
        """One row per line of the register, as a Polars data frame."""
        rows = [{**line.to_dict(), "loss": str(line.loss or ""), "verdicts": "; ".join(line.verdicts)}
                for line in self.register]  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)

    def __str__(self) -> str:
        return "\n".join(map(str, self.register)) or "Nothing is registered."


def ledger_overview(where: str | Path) -> LedgerOverview:
    """What left about the people of a data set, and the budget that is left.

    Parameters
    ----------
    where
        A data set document, whose ledger and data set are shown; or a ledger (a SQLite file or a ``postgresql://``
        address), all of whose data sets are shown.

    Returns
    -------
    LedgerOverview
        ``accounts`` and ``register``; ``to_dict`` gives plain data.
    """
    ledger, dataset = open_ledger(where)
    accounts: dict[tuple[str, str], None] = {}
    for entry in ledger.entries():
        if dataset in (None, entry.dataset):
            if entry.kind in ("cap", "spend"):
                accounts[(entry.dataset, entry.analyst)] = None
            if entry.kind == "spend":
                accounts[(entry.dataset, "")] = None
    balances = [
        LedgerAccount(
            dataset=name, analyst=analyst, unit=ledger.unit(name) if name else None,
            balance=ledger.balance(dataset=name, analyst=analyst),
        )
        for name, analyst in sorted(accounts)
    ]  # fmt: skip
    return LedgerOverview(accounts=tuple(balances), register=register(ledger, dataset=dataset))


def open_ledger(where: str | Path) -> tuple[Ledger, str | None]:
    """An existing ledger, or that of a data set document with the name of its data set. Only a cap makes a new one."""
    place, dataset = str(where), None
    if Path(place).suffix.lower() in (".yaml", ".yml"):
        document = Dataset.load(place)
        if document.ledger is None:
            raise BadParameter(f"{place} names no ledger.", fix="Add `ledger: ledger.db`.")
        place, dataset = str(document.ledger), document.dataset
    if "://" not in place:
        require_file(Path(place))
    return Ledger.open(place), dataset
