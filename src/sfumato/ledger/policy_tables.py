"""Tables that other policies answered about: refused to differential privacy, whose loss says nothing of those answers.

The register is written by the policies themselves; it is read here, so that a data set that they answered about stays
refused where they are not installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sfumato.data.url import file_and_options
from sfumato.engines.choice import is_address
from sfumato.errors import LedgerBroken
from sfumato.ledger.ledger import Store

POLICY_TABLES = (
    "CREATE TABLE IF NOT EXISTS sfumato_policy_tables (number INTEGER PRIMARY KEY, dataset TEXT NOT NULL, "
    "place TEXT NOT NULL, policy TEXT NOT NULL, content TEXT NOT NULL, people TEXT NOT NULL, secret TEXT NOT NULL, "
    "asked INTEGER NOT NULL)"
)
"""Tables that a policy other than differential privacy answered about, each with its policy."""
KEEP_POLICY = "Use the metadata that the first answer was given under: what others disclose together with the earlier "


def refuse_registered(store: Store, *, dataset: str, places: Iterable[object]) -> None:
    """Refuse differential privacy for a table that another policy has answered about: by its name or its file."""
    with store.write() as transaction:
        transaction.query(POLICY_TABLES)
        bound = transaction.query("SELECT dataset, place FROM sfumato_policy_tables WHERE asked = 1")
    files = {file_of(place) for place in places} - {""}
    if any(name == dataset or place in files for name, place in bound):
        raise LedgerBroken(
            "Earlier answers about this table were given by another policy than differential privacy.",
            fix=f"{KEEP_POLICY}ones is not known.",
        )


def file_of(source: object) -> str:
    """The file of a table; empty for frames and databases."""
    if isinstance(source, Path) or (isinstance(source, str) and not is_address(source)):
        return str(Path(file_and_options(source)[0]).resolve())  # whatever dialect is declared
    return ""
