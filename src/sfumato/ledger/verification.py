"""Verification of a ledger: every hash, number, cost and running total is computed again from the entries."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.errors import LedgerBroken
from sfumato.ledger.accounts import Account, accounts_of, charge_of, groups_of, plan_of, totals_json
from sfumato.ledger.entries import START, Entry
from sfumato.ledger.exact_budget import Amount, cost_amount

__all__ = ["verify_entries"]


def verify_entries(entries: Iterable[Entry], groups: set[tuple[str, int]], *, last: str | None = None) -> str:
    """Check a chain of entries, and the index of groups, and return the last hash; ``last`` must be in the chain."""
    previous, seen = START, last is None or last == START
    totals: dict[Account, Amount] = {}
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
            named |= {(name, entry.number) for name in groups_of(entry.totals)}
        previous = entry.hash
        seen = seen or previous == last
    if not seen:
        raise LedgerBroken("The earlier hash is not in the chain: entries were removed or replaced.")
    if named != groups:
        raise LedgerBroken("The index of groups does not fit the entries of the ledger.")
    return previous


def _check_totals(entry: Entry, totals: dict[Account, Amount]) -> None:
    """Add the charge of an entry to the totals so far, and compare with those of the entry."""
    groups, charge, expected = groups_of(entry.totals), charge_of(entry.totals), []
    if charge != cost_amount(entry.stated(charge.curve)):
        raise LedgerBroken(f"Entry {entry.number} has another cost than it states.", number=entry.number)
    for account in accounts_of(entry.dataset, entry.analyst, entry.unit, groups):
        free = not account.analyst and entry.repeats
        totals[account] = totals.get(account, Amount()) + (Amount() if free else charge)
        expected.append(totals[account])
    if totals_json(expected, groups, charge, plan_of(entry.totals)) != entry.totals:
        raise LedgerBroken(f"Entry {entry.number} has a wrong running total.", number=entry.number)
