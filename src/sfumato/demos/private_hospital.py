"""A synthetic hospital data set with a query session, for demos and examples."""

from __future__ import annotations

import polars as pl

from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema, ValuesDomain
from sfumato.dp.loss import approximate, pure
from sfumato.ledger.ledger import Ledger
from sfumato.query.plan.catalog import Catalog, PrivateTable, PublicTable
from sfumato.query.session import Session
from sfumato.rationals import Number
from sfumato.rng import Rng

_WARDS = ("east", "north", "south", "west")


def patients(people: int) -> pl.DataFrame:
    """Synthetic patients. The first is called Chandler and has the flu."""
    draw = Rng(1).child("demo").generator
    age = draw.integers(0, 100, people)
    return pl.DataFrame(
        {
            "name": ["Chandler", *(f"person {i}" for i in range(1, people))],
            "ward": [_WARDS[i] for i in draw.integers(0, 4, people)],
            "age": age,
            "flu": [True, *(draw.random(people - 1) < 0.1 + 0.002 * age[1:])],
            "bill": (draw.gamma(2.0, 150.0, people)).round(2),
        }
    )


def flu(*, people: int = 1000, budget: Number = 3, delta: Number = 0, ledger: Ledger | None = None) -> Session:
    """A query session on the synthetic hospital with its own budget. Each row is one person."""
    columns = {
        "name": Column(role=Role.IDENTIFIER, kind=Kind.CATEGORY),
        "ward": Column(role=Role.QUASI, kind=Kind.CATEGORY, domain=ValuesDomain(values=_WARDS)),
        "age": Column(role=Role.QUASI, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=99)),
        "flu": Column(role=Role.SENSITIVE, kind=Kind.BOOLEAN),
        "bill": Column(role=Role.SENSITIVE, kind=Kind.NUMBER, domain=RangeDomain(low=0, high=2000)),
    }
    sides = pl.DataFrame({"ward": list(_WARDS), "side": ["sunny", "shady", "sunny", "shady"]})
    catalog = Catalog(
        dataset="hospital",
        private={"patients": PrivateTable(name="patients", schema=Schema(columns=columns))},
        public={"sides": PublicTable(name="sides", frame=sides, key=("ward",))},
    )
    accounts = ledger if ledger is not None else Ledger.unkept()
    accounts.set_cap(approximate(budget, delta) if delta else pure(budget), dataset="hospital")
    return Session(catalog, {"patients": patients(people)}, ledger=accounts, analyst="analyst")
