"""Parties in one process, with small tables, for the tests of :mod:`sfumato.parties`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Queue
from typing import Any

import numpy as np
import polars as pl
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.dp.loss import pure
from sfumato.ledger.ledger import Ledger
from sfumato.parties.agreement import Agreement
from sfumato.parties.channels import LocalChannel
from sfumato.parties.coordinator import Coordinator
from sfumato.parties.party import Party
from sfumato.parties.prime_field import Elements, interpolation_weights, weighted_sum
from sfumato.parties.shared_computation import SharedComputation, degree_for
from sfumato.query.session import Session
from sfumato.rationals import Number

WARDS = ("east", "west")
COLUMNS: dict[str, Any] = {
    "person": {"kind": "integer"},
    "ward": {"kind": "category", "domain": {"values": list(WARDS)}},
    "bill": {"kind": "number", "domain": {"low": 0, "high": 100}},
}


def rows(ward: str, people: int, bill: float, *, first: int = 0) -> pl.DataFrame:
    """One row per person."""
    return pl.DataFrame(
        {"person": range(first, first + people), "ward": [ward] * people, "bill": [bill] * people},
        schema_overrides={"person": pl.Int64},
    )


def keys(count: int) -> dict[str, Ed25519PrivateKey]:
    """The same keys in every run."""
    return {f"p{i:03d}": Ed25519PrivateKey.from_private_bytes(i.to_bytes(32, "big")) for i in range(count)}


def agreement(count: int, **changed: Any) -> Agreement:
    document: dict[str, Any] = {
        "sfumato": 1, "federation": "clinics", "parties_per_person": 1, "colluding": 0,
        "parties": {
            name: {"address": f"https://localhost:{9000 + i}", "key": key.public_key().public_bytes_raw().hex()}
            for i, (name, key) in enumerate(keys(count).items())
        },
        "person": "person", "tables": {"visits": {"bounds": {"rows": 1, "groups": 1}, "columns": COLUMNS}},
    }  # fmt: skip
    return Agreement.model_validate(document | changed)


def parties(agreed: Agreement, frames: list[pl.DataFrame], *, budget: Number = 1000) -> dict[str, Party]:
    made = {}
    for (name, key), frame in zip(keys(len(frames)).items(), frames, strict=True):
        ledger = Ledger.open(":memory:")
        ledger.set_cap(pure(budget), dataset=agreed.federation)
        session = Session(agreed.catalog(), {"visits": frame}, ledger=ledger, analyst="-")
        made[name] = Party(name=name, agreement=agreed, session=session, identity=key)
    return made


def copies(agreed: Agreement, count: int, frames: list[pl.DataFrame], *, budget: Number = 1000) -> dict[str, Party]:
    """Many parties that share a few open tables, each with a ledger of its own."""
    few = parties(agreement(len(frames), **_shared(agreed)), frames)
    sessions = [party._session for party in few.values()]
    made = {}
    for place, (name, key) in enumerate(keys(count).items()):
        ledger = Ledger.open(":memory:")
        ledger.set_cap(pure(budget), dataset=agreed.federation)
        session = sessions[place % len(sessions)].for_analyst("-", ledger)
        made[name] = Party(name=name, agreement=agreed, session=session, identity=key)
    return made


def _shared(agreed: Agreement) -> dict[str, Any]:
    return {
        "tables": {
            name: table.model_dump(exclude={"data"}, exclude_unset=True) for name, table in agreed.tables.items()
        }
    }


def coordinator(agreed: Agreement, members: dict[str, Party], analyst: str = "ann") -> Coordinator:
    channels = {name: LocalChannel(party=party, analyst=analyst) for name, party in members.items()}
    return Coordinator(agreement=agreed, channels=channels)


def spent(party: Party) -> float:
    return float(party.ledger.balance(dataset="clinics").spent.size)


def computed_together(
    count: int,
    program: Callable[[SharedComputation, int], Any],
    *,
    heard: Callable[[int, list[bytes]], None] = lambda place, messages: None,
) -> list[Any]:
    """What a program returns at each party, in threads that exchange messages in turn."""
    sent: dict[tuple[int, int], Queue[bytes]] = {pair: Queue() for pair in np.ndindex(count, count)}  # type: ignore[misc]
    returned: list[Any] = [None] * count

    def run(place: int) -> None:
        def exchange(messages: Any) -> list[bytes]:
            for to, message in enumerate(messages):
                sent[place, to].put(message)
            got = [sent[sender, place].get(timeout=60) for sender in range(count)]
            heard(place, got)
            return got

        returned[place] = program(SharedComputation(place=place, parties=count, exchange=exchange), place)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return returned


def opened(shares: list[list[Elements]]) -> list[Elements]:
    """Shared arrays, from the shares of as many parties as it takes."""
    some = range(1, degree_for(len(shares)) + 2)
    weights = interpolation_weights(some)
    return [
        weighted_sum(weights, [np.asarray(part) for part in parts[: len(some)]]) for parts in zip(*shares, strict=True)
    ]
