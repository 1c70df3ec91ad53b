"""What left about the people of a data set, and the budget that is left: the ledger as its owner reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import polars as pl

from sfumato.data.read_write import require_file
from sfumato.dataset.document import Dataset
from sfumato.dp.loss import PrivacyLoss, approximate, concentrated
from sfumato.errors import BadParameter
from sfumato.ledger.composition import BudgetCap, Composition
from sfumato.ledger.ledger import Balance, Entry, Ledger
from sfumato.ledger.parts import DataPart
from sfumato.ledger.register import RegisterLine, register
from sfumato.rationals import Number


@dataclass(frozen=True, kw_only=True)
class LedgerAccount:
    """The budget of a data set, of an analyst on it, or of an analyst over all data sets."""

    dataset: str
    analyst: str
    unit: str | None
    """Whose privacy the account is about; None before the first charge."""
    balance: Balance
    moved_to: str | None = None
    """The ledger that the account has moved to: nothing is charged here any more."""
    parts: Mapping[DataPart, PrivacyLoss] = field(default_factory=dict)
    """What parts of the data set were charged, each beside the charges to the whole; the largest is in ``spent``."""

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
            "delta": None if self.balance.shares is None else self.balance.shares.to_dict(),
            "moved_to": self.moved_to,
            "parts": [
                {"partition": part.partition, "name": part.name, "spent": loss.to_dict()}
                for part, loss in self.parts.items()
            ],
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures do not say: where the delta goes, and where the account is."""
        name = " ".join(part for part in (self.dataset, self.analyst, self.unit and f"({self.unit})") if part)
        cap, shares = self.balance.cap, self.balance.shares
        said = [] if cap is None or shares is None else [f"{name}: of δ = {float(cap.delta):.3g}, {shares}."]
        for partition in dict.fromkeys(part.partition for part in self.parts):
            losses = [f"{part.name} {loss}" for part, loss in self.parts.items() if part.partition == partition]
            said.append(f"{name}: the largest part of {partition.rsplit(' ', 2)[0]} counts: {'; '.join(losses)}.")
        return (*said, *([f"{name}: moved to {self.moved_to}, nothing is charged here."] if self.moved_to else []))


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
    accounts: dict[tuple[str, str, str], None] = {}
    for entry in ledger.entries():
        if dataset in (None, entry.dataset) and entry.kind in ("cap", "spend"):
            unit = entry.unit or (ledger.unit(entry.dataset) or "" if entry.dataset else "")
            accounts[entry.dataset, entry.analyst, unit] = None
            if entry.kind == "spend":
                accounts[entry.dataset, "", unit] = None
    balances = [
        LedgerAccount(
            dataset=name, analyst=analyst, unit=unit or None,
            balance=ledger.balance(dataset=name, analyst=analyst, unit=unit or None),
            moved_to=ledger.moved_to(name) if name and not analyst else None,
            parts=ledger.parts(dataset=name) if name and not analyst else {},
        )
        for name, analyst, unit in sorted(accounts)
    ]  # fmt: skip
    return LedgerOverview(accounts=tuple(balances), register=register(ledger, dataset=dataset))


def set_budget(
    where: str | Path,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
    dataset: str = "",
    analyst: str = "",
    unit: str | None = None,
    composition: Composition | str = Composition.ALL,
    reserve_delta: Number = 0,
    neighbours: Literal["add-or-remove", "replace"] = "add-or-remove",
    by: str = "owner",
    why: str = "",
) -> Entry:
    """Set the privacy budget of a data set or of an analyst. Earlier costs still count.

    Parameters
    ----------
    where
        A data set document, whose data set gets the budget in the ledger that it names; or a ledger (a SQLite file or a
        ``postgresql://`` address), which is made if there is none.
    epsilon, delta, rho
        The budget: epsilon, epsilon with delta, or rho (zero-concentrated), with a delta where costs have one.
    dataset
        The data set that the budget is for. With ``analyst``: that analyst's budget for it.
    analyst
        The analyst that the budget is for. Without a data set: over all data sets.
    unit
        A privacy unit that gets a budget of its own, such as ``edge``; without it, the unit that is charged.
    composition
        For a budget with epsilon and delta, which account keeps it: ``all`` (they share delta), ``sums``, ``gaussian``
        or ``rho`` (it has all of delta). It is chosen before the first charge.
    reserve_delta
        Under ``gaussian`` and ``rho``, the part of delta for costs that have one, such as private keys.
    neighbours
        Which tables the budget compares: with and without one person (``add-or-remove``, as the costs of answers do),
        or with one person ``replace``d by another. The ledger then keeps the budget that implies it by group privacy of
        two: half of epsilon.
    by, why
        Who sets it, and the reason, for the ledger.

    Returns
    -------
    Entry
        The entry of the ledger.
    """
    if (epsilon is None) == (rho is None):
        raise BadParameter("A budget is either an epsilon or a rho.", fix="Give one of them.")
    loss = concentrated(rho, delta) if rho is not None else approximate(epsilon or 0, delta)
    stated = BudgetCap.of(loss, composition=composition, reserve=reserve_delta)
    match neighbours:
        case "add-or-remove":
            cap = stated
        case "replace":
            cap = replace(stated, loss=loss.for_replacement())
            why = "; ".join(filter(None, (why, f"{loss} where one person is replaced by another")))
        case _:
            raise BadParameter("`neighbours` is `add-or-remove` or `replace`.")
    place, named = _place(where)
    name = dataset or ("" if analyst else named or "")
    if not (name or analyst):
        raise BadParameter("A budget needs a data set, an analyst, or both.")
    return Ledger.open(place).set_cap(cap, dataset=name, analyst=analyst, unit=unit, by=by, why=why)


def open_ledger(where: str | Path) -> tuple[Ledger, str | None]:
    """An existing ledger, or that of a data set document with the name of its data set. Only a cap makes a new one."""
    place, dataset = _place(where)
    if "://" not in place:
        require_file(Path(place))
    return Ledger.open(place), dataset


def _place(where: str | Path) -> tuple[str, str | None]:
    """The ledger of a document with its data set, or a ledger itself."""
    if Path(where).suffix.lower() not in (".yaml", ".yml"):
        return str(where), None
    document = Dataset.load(where)
    if document.ledger is None:
        raise BadParameter(f"{where} names no ledger.", fix="Add `ledger: ledger.db`.")
    return str(document.ledger), document.dataset
