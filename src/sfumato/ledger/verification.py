"""Verification of a ledger: every hash, number, cost and running total is computed again from the entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from sfumato.errors import LedgerBroken
from sfumato.ledger.accounts import Account, accounts_of, charge_of, groups_of, part_of, plan_of, totals_json
from sfumato.ledger.entries import START, Entry
from sfumato.ledger.exact_budget import Amount, cost_amount
from sfumato.ledger.parts import PartCharge

_Totals: TypeAlias = dict[tuple[Account, str], Amount]
"""Of each account: its total, and what it was charged for parts, by their names in the index."""


def verify_entries(entries: Iterable[Entry], index: set[tuple[str, int]], *, last: str | None = None) -> str:
    """Check a chain of entries, and their index, and return the last hash; ``last`` must be in the chain."""
    previous, seen = START, last is None or last == START
    totals: _Totals = {}
    named: set[tuple[str, int]] = set()
    for number, entry in enumerate(entries, start=1):
        if entry.number != number or entry.previous != previous or entry.digest() != entry.hash:
            raise LedgerBroken(
                f"Entry {entry.number} does not follow from the one before it.",
                fix="Compare with an export or a backup. No later entry can be trusted.",
                number=entry.number,
            )
        if entry.kind == "spend":
            _check_totals(entry, totals)
            part = part_of(entry.totals)
            names = [*groups_of(entry.totals), *(() if part is None else part.index)]
            named |= {(name, entry.number) for name in names}
        previous = entry.hash
        seen = seen or previous == last
    if not seen:
        raise LedgerBroken("The earlier hash is not in the chain: entries were removed or replaced.")
    if named != index:
        raise LedgerBroken("The index of groups and parts does not fit the entries of the ledger.")
    return previous


def _check_totals(entry: Entry, totals: _Totals) -> None:
    """Add the charge of an entry to the totals so far, and compare with those of the entry."""
    groups, charge = groups_of(entry.totals), charge_of(entry.totals)
    if charge != cost_amount(entry.stated(charge.curve)):
        raise LedgerBroken(f"Entry {entry.number} has another cost than it states.", number=entry.number)
    accounts = accounts_of(entry.dataset, entry.analyst, entry.unit, groups)
    charges = [charge] * len(accounts)
    part, of_part = part_of(entry.totals), None
    if part is not None:
        _, whole, own = part.index
        before = [[totals.get((account, name), Amount()) for account in accounts] for name in (own, whole)]
        of_part = PartCharge.of(part, charges, *before)
        totals |= {(account, own): one for account, one in zip(accounts, of_part.totals, strict=True)}
        totals |= {(account, whole): one for account, one in zip(accounts, of_part.largest, strict=True)}
        charges = list(of_part.growth)
    for account, growth in zip(accounts, charges, strict=True):
        totals[account, ""] = totals.get((account, ""), Amount()) + growth
    expected = [totals[account, ""] for account in accounts]
    if totals_json(expected, groups, charge, plan_of(entry.totals), of_part) != entry.totals:
        raise LedgerBroken(f"Entry {entry.number} has a wrong running total.", number=entry.number)
