"""Signed ledger heads: how clients detect that an old ledger was restored.

Every answer carries the number and hash of the ledger's last entry, signed by the server. A client sends the newest
one it has with its next request. If the server's own signature is on a head that its ledger does not contain, entries
are gone: questions are refused until an operator has dealt with it (``sfumato server restore``).
"""

from __future__ import annotations

import hmac
import re

from sfumato.errors import LedgerRolledBack
from sfumato.server.state import ServerState, now, set_setting, setting

__all__ = ["HEADER", "check_head", "refuse_rolled_back", "signed_head"]

HEADER = "Sfumato-Ledger-Head"
_FORM = re.compile(r"(\d{1,18})-([0-9a-f]{64})-([0-9a-f]{64})")
_SETTING = "rolled_back"


def signed_head(state: ServerState) -> str:
    """The ledger's head, signed."""
    number, digest = state.ledger.head()
    return f"{number}-{digest}-{_mac(state, number, digest)}"


def check_head(state: ServerState, head: str) -> None:
    """Note a rollback if a head was signed here and the ledger does not contain it. Other heads are ignored."""
    parts = _FORM.fullmatch(head)
    if parts is None:
        return
    number, digest = int(parts[1]), parts[2]
    if hmac.compare_digest(_mac(state, number, digest), parts[3]) and not state.ledger.holds(number, digest):
        with state.store.write() as transaction:
            if setting(transaction, _SETTING) is None:
                set_setting(transaction, _SETTING, f"{now()} entry {number}")


def refuse_rolled_back(state: ServerState) -> None:
    """Refuse to go on if a rollback was noted."""
    with state.store.read() as transaction:
        noted = setting(transaction, _SETTING)
    if noted:
        raise LedgerRolledBack(
            "The ledger is older than one that was seen before, so nothing is answered.",
            fix="The operator runs `sfumato server verify` and `sfumato server restore`.",
        )


def clear_rolled_back(state: ServerState) -> None:
    """Forget a noted rollback, after the lost charges were entered again."""
    with state.store.write() as transaction:
        transaction.query("DELETE FROM sfumato_server_settings WHERE name = ?", _SETTING)


def _mac(state: ServerState, number: int, digest: str) -> str:
    return hmac.digest(state.secret, f"head {number} {digest}".encode(), "sha256").hex()
