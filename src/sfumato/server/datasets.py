"""Registered data sets: documents in versions, states, grants, and the open tables.

The text of the document is stored when it is registered, so that editing the file changes nothing until a new version
is registered. Budgets live in the server's ledger alone: registration moves the account of the ledger that the file
names. What was charged there is carried over, and from then on it is closed, or each of the two would allow the cap.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from sfumato.data.url import is_url
from sfumato.data.yaml_documents import parse_yaml, read_text_file
from sfumato.dataset.document import Dataset
from sfumato.errors import AccessDenied, BadParameter, Conflict, InvalidRecipe, NoSuchItem, SfumatoError
from sfumato.ledger.ledger import UNKEPT, Ledger, Transaction
from sfumato.query.open_session import open_ledger, open_session
from sfumato.query.session import Session
from sfumato.server.roles import AccountRole, Action, Principal, require
from sfumato.server.state import FILE, ServerState, now
from sfumato.server.users import check_name, find_user


class DatasetState(StrEnum):
    """Whether questions are answered."""

    ACTIVE = "active"
    FROZEN = "frozen"
    """No new question is answered; answers that an analyst paid for can be read again."""
    RETIRED = "retired"
    """For analysts it does not exist. Its name and its charges stay."""


@dataclass(frozen=True, kw_only=True)
class RegisteredDataset:
    """One registered data set."""

    name: str
    state: DatasetState
    owner: str
    version: int
    policy: str
    """Name of the policy that answers."""

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "state": str(self.state), "owner": self.owner, "version": self.version,
                "policy": self.policy}  # fmt: skip


class Datasets:
    """The data sets of a server."""

    def __init__(
        self, state: ServerState, *, response_interval: float | None = None, engine: str | None = None
    ) -> None:
        self._state, self._response_interval, self._engine = state, response_interval, engine
        self._open: dict[tuple[str, int], Session] = {}
        self._lock = threading.Lock()

    def register_file(self, path: Path, *, by: str) -> RegisteredDataset:
        """Register a document, or a new version of its data set. For those with access to the machine."""
        text = read_text_file(path, kind="data set document", fix="`sfumato init FILE` writes one.")
        return self.register(text, base=path.resolve().parent, by=by, source=path.name)

    def register(
        self, text: str, *, base: Path, by: str, source: str = "data set document", confined: bool = False
    ) -> RegisteredDataset:
        """Register the text of a document, or a new version of its data set.

        ``confined`` is for requests over the network: only files below ``base`` can then be named, and neither a
        database nor a ledger. Errors name files as the request does.
        """
        if confined:
            _check_confined(text, source, base)
            try:
                return self._register(text, base=base, by=by, source=source, confined=True)
            except SfumatoError as refusal:
                refusal.message = refusal.message.replace(f"{base}{os.sep}", "")
                for problem in refusal.problems if isinstance(refusal, InvalidRecipe) else ():
                    problem.message = problem.message.replace(f"{base}{os.sep}", "")
                raise
        return self._register(text, base=base, by=by, source=source, confined=False)

    def _register(self, text: str, *, base: Path, by: str, source: str, confined: bool) -> RegisteredDataset:
        document = Dataset.parse(text, source=source, base=base)
        name = check_name(document.dataset, what="a data set")
        session = self._start(document)  # refuses what could not be answered
        with self._state.store.read() as transaction:
            self._refuse_taken(transaction, name, by if confined else None)
        self._take_over(document)  # before the first question can be answered here
        with self._state.store.write() as transaction:
            rows = self._refuse_taken(transaction, name, by if confined else None)
            latest = transaction.query(
                "SELECT metadata, base FROM sfumato_server_dataset_versions WHERE dataset = ? "
                "ORDER BY number DESC LIMIT 1",
                name,
            )
            same = latest == [(text, str(base))]
            version = rows[0][2] if same else (rows[0][2] if rows else 0) + 1
            if not rows:
                transaction.query(
                    "INSERT INTO sfumato_server_datasets (name, state, owner, version, created) "
                    "VALUES (?, 'active', ?, ?, ?)",
                    name, by, version, now(),
                )  # fmt: skip
            if not same:
                transaction.query(
                    "INSERT INTO sfumato_server_dataset_versions (dataset, number, metadata, base, by_name, at) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    name, version, text, str(base), by, now(),
                )  # fmt: skip
                transaction.query("UPDATE sfumato_server_datasets SET version = ? WHERE name = ?", version, name)
        if not same:
            self._record("register data set", by, name, version=version)
        with self._lock:
            self._open[name, version] = session
        return self.get(name)

    def get(self, name: str) -> RegisteredDataset:
        """A data set by name."""
        for dataset in self._listed("WHERE name = ?", name):
            return dataset
        raise _unknown()

    def all(self) -> tuple[RegisteredDataset, ...]:
        """All data sets, by name."""
        return self._listed("")

    def granted(self, principal: Principal) -> tuple[RegisteredDataset, ...]:
        """The data sets that an analyst may ask."""
        holders = principal.accounts
        return self._listed(f"WHERE state <> 'retired' AND {_granted_to(holders)}", *holders)

    def visible(self, principal: Principal, *, name: str | None = None) -> tuple[RegisteredDataset, ...]:
        """The data sets that exist for a principal: all for those who run or audit the server, their own for owners.

        With ``name``, the one of that name.
        """
        named, values = ("", ()) if name is None else ("AND name = ?", (name,))
        if principal.roles & {AccountRole.AUDITOR, AccountRole.ADMINISTRATOR} and principal.may(Action.READ_DATASETS):
            return self._listed(f"WHERE 1 = 1 {named}", *values)
        holders = principal.accounts
        exist = f"owner = ? OR (state <> 'retired' AND {_granted_to(holders)})"
        return self._listed(f"WHERE ({exist}) {named}", principal.name, *holders, *values)

    def _listed(self, where: str, *values: str) -> tuple[RegisteredDataset, ...]:
        with self._state.store.read() as transaction:
            rows = transaction.query(
                f"SELECT name, state, owner, version FROM sfumato_server_datasets {where} ORDER BY name", *values
            )
        return tuple(self._described(row) for row in rows)

    def for_question(self, principal: Principal, name: str) -> RegisteredDataset:
        """The data set, if the principal may ask it; otherwise it does not exist for them."""
        require(principal, Action.ASK)
        holders = principal.accounts
        for dataset in self._listed(
            f"WHERE name = ? AND state <> 'retired' AND {_granted_to(holders)}", name, *holders
        ):
            return dataset
        raise _unknown()

    def for_schema(self, principal: Principal, name: str) -> RegisteredDataset:
        """The data set, if the principal may read its public schema."""
        require(principal, Action.SCHEMA)
        for dataset in self.visible(principal, name=name):
            return dataset
        raise _unknown()

    def set_state(self, name: str, state: DatasetState, *, by: str, why: str) -> RegisteredDataset:
        """Freeze, reactivate or retire a data set. A retired one stays retired."""
        if self.get(name).state is DatasetState.RETIRED:
            raise Conflict(f"The data set `{name}` is retired.", fix="Register the data under a new name.")
        with self._state.store.write() as transaction:
            transaction.query("UPDATE sfumato_server_datasets SET state = ? WHERE name = ?", str(state), name)
        self._record(f"set state {state}", by, name, why=why)
        return self.get(name)

    def set_grant(self, name: str, holder: str, allowed: bool, *, by: str) -> None:
        """Let a user, or a group given as ``@name``, ask a data set, or no longer."""
        self.get(name)
        with self._state.store.write() as transaction:
            if holder.startswith("@"):
                known = transaction.query("SELECT 1 FROM sfumato_server_groups WHERE name = ?", holder[1:])
            else:
                known = [(1,)] if find_user(transaction, holder) else []
            if not known:
                raise NoSuchItem(f"There is no user or group `{holder}`.")
            transaction.query("DELETE FROM sfumato_server_grants WHERE dataset = ? AND holder = ?", name, holder)
            if allowed:
                transaction.query(
                    "INSERT INTO sfumato_server_grants (dataset, holder, by_name, at) VALUES (?, ?, ?, ?)",
                    name, holder, by, now(),
                )  # fmt: skip
        self._record("grant" if allowed else "revoke grant", by, name, holder=holder)

    def grants(self, name: str) -> tuple[str, ...]:
        """Users and groups that may ask a data set."""
        with self._state.store.read() as transaction:
            rows = transaction.query("SELECT holder FROM sfumato_server_grants WHERE dataset = ? ORDER BY holder", name)
        return tuple(row[0] for row in rows)

    def session(self, dataset: RegisteredDataset) -> Session:
        """The open tables of the present version, shared by all analysts."""
        key = dataset.name, dataset.version
        with self._lock:
            if key not in self._open:
                document = self.document(dataset)
                self._open = {known: session for known, session in self._open.items() if known[0] != dataset.name}
                self._open[key] = self._start(document)
            return self._open[key]

    def close(self, dataset: RegisteredDataset) -> None:
        """Forget the open tables; the next question opens them again."""
        with self._lock:
            self._open.pop((dataset.name, dataset.version), None)

    def document(self, dataset: RegisteredDataset) -> Dataset:
        """The registered document of the present version."""
        with self._state.store.read() as transaction:
            [(text, base)] = transaction.query(
                "SELECT metadata, base FROM sfumato_server_dataset_versions WHERE dataset = ? AND number = ?",
                dataset.name,
                dataset.version,
            )
        return Dataset.parse(text, source=dataset.name, base=Path(base))

    def _start(self, document: Dataset) -> Session:
        policy = document.answering.policy
        session = open_session(
            document,
            analyst="server",
            ledger=self._state.ledger,
            engine=None if policy is not None else self._engine,
            response_interval=self._response_interval,
        )
        if policy is not None:
            session.move_memory_from(open_ledger(document))
        return session

    def _described(self, row: tuple[Any, ...]) -> RegisteredDataset:
        name, state, owner, version = row
        dataset = RegisteredDataset(name=name, state=DatasetState(state), owner=owner, version=version, policy="")
        with self._lock:
            session = self._open.get((name, version))
        policy = session.policy if session is not None else self.document(dataset).answering.policy
        title = "differential-privacy" if policy is None else policy.part_name()
        return RegisteredDataset(name=name, state=dataset.state, owner=owner, version=version, policy=title)

    def _refuse_taken(self, transaction: Transaction, name: str, owner: str | None) -> list[tuple[Any, ...]]:
        """Refuse a name that takes no new versions, or not of this owner; returns state, owner and version."""
        rows = transaction.query("SELECT state, owner, version FROM sfumato_server_datasets WHERE name = ?", name)
        if rows and (rows[0][0] != DatasetState.ACTIVE or (owner is not None and rows[0][1] != owner)):
            raise Conflict(
                f"The data set `{name}` is {rows[0][0]} and of another owner, or does not take new versions.",
                fix="Use another name.",
            )
        return rows

    def _take_over(self, document: Dataset) -> None:
        """Close the account of the file's ledger, charge here what it was charged, and take its cap over.

        In this order: a crash in between leaves an account closed, and the next registration carries it over. The
        entry that closed it names it, so that it is carried over once.
        """
        place, name, ledger = document.ledger, document.dataset, self._state.ledger
        if document.answering.policy is not None or place in (None, UNKEPT) or self._is_own(place):
            return
        earlier = Ledger.open(place)
        closed = earlier.move(dataset=name, to=self._state.name)
        first = earlier.unit(name)
        for unit in earlier.units(name) or (None,):
            own = None if unit == first else unit
            cap, about = earlier.cap(dataset=name, unit=unit), f"earlier ledger {closed.hash} {unit or ''}".strip()
            if cap is not None and ledger.cap(dataset=name, unit=own) is None:
                ledger.set_cap(cap, dataset=name, unit=own, by="server", why="cap of the earlier ledger")
            spent = earlier.total(dataset=name, unit=unit)
            if unit is not None and spent.size and ledger.paid(dataset=name, analyst="earlier", query=about) is None:
                ledger.carry_over(spent, dataset=name, analyst="earlier", unit=unit, about=about)

    def _is_own(self, place: str) -> bool:
        """Whether a ledger is the server's own database."""
        where = self._state.where
        if isinstance(where, str) or "://" in place:
            return str(where) == place
        return (where / FILE).resolve() == Path(place).resolve()

    def _record(self, what: str, by: str, dataset: str, **facts: object) -> None:
        about = json.dumps({"event": what, "by": by, **facts}, ensure_ascii=False)
        self._state.ledger.record_event(about, dataset=dataset)


def _granted_to(holders: Sequence[str]) -> str:
    marks = ", ".join("?" * len(holders))
    return f"name IN (SELECT dataset FROM sfumato_server_grants WHERE holder IN ({marks}))"


def _unknown() -> NoSuchItem:
    return NoSuchItem("There is no such data set.", fix="List the data sets that you may ask.")


def _check_confined(text: str, source: str, base: Path) -> None:
    """Refuse files outside of a folder, databases and ledgers: an owner must not reach the rest of the machine.

    The plain document is checked before anything opens a file that it names. Every text in it counts as a place,
    whatever its key is: which keys name files is known to many parts, and a new one would be missed here.
    """
    plain = parse_yaml(text, source=source).value
    if not isinstance(plain, dict) or not ("tables" in plain or "columns" in plain):
        raise BadParameter("a request contains the data set document itself.", fix="Write its tables and columns.")
    if Dataset.named_file(plain, base=base) is not None:
        raise BadParameter("a request contains the data set document itself, and names no other one.")
    if "ledger" in plain:
        raise BadParameter("`ledger` cannot be set by request: the server keeps the budget.", fix="Remove `ledger`.")
    for place in _texts(plain):
        if is_url(place):
            raise AccessDenied("A database can be registered on the server's machine only.")
        if "\0" in place or not (base / place).resolve().is_relative_to(base.resolve()):
            raise BadParameter("a file of the data set lies outside of the server's data folder.")


def _texts(plain: object) -> Iterator[str]:
    """Every text in a document, keys included."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, dict | list):
        for value in (*plain, *plain.values()) if isinstance(plain, dict) else plain:
            yield from _texts(value)
