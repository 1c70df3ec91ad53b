"""Register of audited tables: one table, one policy, one memory, in the ledger's database.

Answers of a policy other than differential privacy are safe, if at all, only together with all its earlier answers
about the same people. So a table is entered with its policy before the first answer, and what is entered binds every
later session: another policy or other rules, another set of declared columns, and a changed table are refused.

A table is known again by its name, by its file, by its content in any order of rows, or by its people: more than half
of the rows of the smaller table agree in the columns that both tables have and that are not sensitive. Only such
columns are stored row by row; of the whole table a keyed hash is stored.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.errors import LedgerBroken
from sfumato.ledger.ledger import Store, Transaction
from sfumato.ledger.policy_tables import KEEP_POLICY, POLICY_TABLES, file_of

_CHANGED = (
    "Restore the table as it was: answers about both states together disclose whoever was added, removed or changed. A "
    "table of other people needs a data set and a ledger of its own."
)
Cells = npt.NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class _Table:
    """What a table is known again by."""

    dataset: str
    place: str
    policy: str
    content: str
    people: dict[str, Cells]
    """By column that is not sensitive, a keyed hash of each row's value."""
    sensitive: frozenset[str]

    def people_json(self) -> str:
        cells = {name: base64.b64encode(values.tobytes()).decode() for name, values in self.people.items()}
        return json.dumps({"sensitive": sorted(self.sensitive), "cells": cells})


@dataclass(kw_only=True)
class PolicyEntry:
    """The entry of an open table. ``secret`` is drawn once for the table and its policy and stored with it."""

    number: int
    secret: bytes
    _table: _Table
    _asked: bool

    def claim(self, store: Store) -> None:
        """Bind the table to its policy, before the first answer. Refused if another session has bound it otherwise."""
        if not self._asked:
            with store.write() as transaction:
                self.claim_in(transaction)

    def claim_in(self, transaction: Transaction) -> None:
        """The same within a transaction."""
        if not self._asked:
            _refuse_bound(transaction, self._table, own=self.number)
            transaction.query("UPDATE sfumato_policy_tables SET asked = 1 WHERE number = ?", self.number)
            self._asked = True


def register_table(
    store: Store, *, dataset: str, place: object, policy: str, frame: pl.DataFrame, sensitive: Iterable[str]
) -> PolicyEntry:
    """Enter a table, or find its entry. It binds nobody before :meth:`PolicyEntry.claim`.

    ``policy`` is the policy with its parameters and everything declared that its answers depend on, as text.
    """
    with store.write() as transaction:
        transaction.query(POLICY_TABLES)
        key = transaction.query("SELECT secret FROM sfumato_policy_tables ORDER BY number LIMIT 1")
        salt = bytes.fromhex(key[0][0]) if key else os.urandom(32)
        hidden = frozenset(name.lower() for name in sensitive)
        table = _Table(
            dataset=dataset, place=file_of(place), policy=policy, content=_content(frame, salt),
            people={c.lower(): _cells(frame[c], salt) for c in frame.columns if c.lower() not in hidden},
            sensitive=hidden,
        )  # fmt: skip
        _refuse_bound(transaction, table, own=None)
        same = transaction.query(
            "SELECT number, secret, asked FROM sfumato_policy_tables WHERE policy = ? AND content = ? "
            "ORDER BY asked DESC, number", table.policy, table.content,
        )  # fmt: skip
        if same:
            number, secret, asked = same[0]
            return PolicyEntry(number=number, secret=bytes.fromhex(secret), _table=table, _asked=bool(asked))
        number = transaction.query("SELECT coalesce(max(number), 0) FROM sfumato_policy_tables")[0][0] + 1
        secret = salt if not key else os.urandom(32)
        transaction.query(
            "INSERT INTO sfumato_policy_tables VALUES (?, ?, ?, ?, ?, ?, ?, 0)", number, table.dataset, table.place,
            table.policy, table.content, table.people_json(), secret.hex(),
        )  # fmt: skip
    return PolicyEntry(number=number, secret=secret, _table=table, _asked=False)


def same_database(store: Store, entry: PolicyEntry) -> bool:
    """Whether an entry is in this database."""
    with store.write() as transaction:
        transaction.query(POLICY_TABLES)
        return bool(transaction.query("SELECT 1 FROM sfumato_policy_tables WHERE secret = ?", entry.secret.hex()))


def _refuse_bound(transaction: Transaction, table: _Table, *, own: int | None) -> None:
    """Refuse a table of which another state, or which under another policy, was answered about."""
    spent = transaction.query(
        "SELECT 1 FROM sfumato_ledger WHERE kind = 'spend' AND dataset = ? LIMIT 1", table.dataset
    )
    if spent:
        raise LedgerBroken(
            "Earlier answers about this data set were given by differential privacy.",
            fix=f"{KEEP_POLICY}ones is not known.",
        )
    rows = transaction.query(
        "SELECT number, dataset, place, policy, content, people FROM sfumato_policy_tables WHERE asked = 1"
    )
    for number, dataset, place, policy, content, people in rows:
        if number == own or (policy, content) == (table.policy, table.content):
            continue
        named = dataset == table.dataset or (place and place == table.place) or content == table.content
        if not named and not _same_people(table, json.loads(people)):
            continue
        if content != table.content:
            raise LedgerBroken(
                "The table has changed since the first answer about it, or declares other columns, or holds people of "
                "another table that was answered about.",
                fix=_CHANGED,
            )
        raise LedgerBroken(
            "Earlier answers about this table were given by another policy, other rules or other declarations.",
            fix=f"{KEEP_POLICY}ones is not audited.",
        )


def _same_people(table: _Table, stored: dict[str, Any]) -> bool:
    """Whether most rows of the smaller table agree in the columns of both, and a sensitive column is in both."""
    cells = {name: np.frombuffer(base64.b64decode(text), np.uint32) for name, text in stored["cells"].items()}
    common = sorted(set(cells) & set(table.people))
    if not common or not table.sensitive & set(stored["sensitive"]):
        return False
    one, other = (
        Counter(zip(*(side[name].tolist() for name in common), strict=True)) for side in (cells, table.people)
    )
    return 2 * (one & other).total() > min(one.total(), other.total())


def _content(frame: pl.DataFrame, salt: bytes) -> str:
    """A keyed hash of all columns, the same for every order of rows and columns."""
    names = sorted(frame.columns)
    texts = [pl.col(name).cast(pl.String).fill_null("\x1e") for name in names]
    rows = frame.select(pl.concat_str(texts, separator="\x1f").sort()).to_series()
    digest = hashlib.blake2b(json.dumps(names).encode(), key=salt, digest_size=32)
    digest.update("\x1d".join(rows.to_list()).encode())
    return digest.hexdigest()


def _cells(series: pl.Series, salt: bytes) -> Cells:
    def hashed(value: object) -> int:
        text = json.dumps([series.name.lower(), _text(value)]).encode()
        return int.from_bytes(hashlib.blake2b(text, key=salt, digest_size=4).digest())

    found = {value: hashed(value) for value in series.unique().to_list()}
    return np.array([found[value] for value in series.to_list()], np.uint32)


def _text(value: object) -> str | None:
    """A value as text, the same whether it is declared a whole number or a real one."""
    if value is None:
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
