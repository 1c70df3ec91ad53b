"""A query service on a small hospital behind a PostgreSQL endpoint, which runs in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from server_sample import analyst, token
from sfumato.dp.loss import pure
from sfumato.server.postgres.endpoint import PostgresEndpoint
from sfumato.server.service import QueryService

METADATA = """sfumato: 1
dataset: {dataset}
ledger: unused.db
answering: {{policy: {policy}}}
person: row
tables:
  patients:
    data: patients.csv
    columns:
      name: {{kind: category}}
      ward: {{kind: category, domain: {{values: [east, north, south, west]}}}}
      age: {{kind: integer, domain: {{low: 0, high: 99}}}}
      flu: {{kind: boolean}}
      bill: {{role: sensitive, kind: number, domain: {{low: 0, high: 2000}}}}
      born: {{kind: date}}
public:
  sides: {{data: sides.csv, key: [ward]}}
"""
WARDS = ("east", "north", "south", "west")
PEOPLE = 400


def register_hospital(
    service: QueryService, folder: Path, dataset: str = "hospital", policy: str = "differential-privacy"
) -> None:
    """400 patients, 100 in each ward; a public table of wards."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = range(PEOPLE)
    pl.DataFrame(
        {
            "name": [f"person {i}" for i in rows], "ward": [WARDS[i % 4] for i in rows], "age": [i % 90 for i in rows],
            "flu": [i % 5 == 0 for i in rows], "bill": [float(i) for i in rows],
            "born": [f"19{10 + i % 90}-01-01" for i in rows],
        }
    ).write_csv(folder / "patients.csv")  # fmt: skip
    pl.DataFrame({"ward": WARDS, "side": ["sunny", "shady", "sunny", "shady"]}).write_csv(folder / "sides.csv")
    path = folder / f"{dataset}.yaml"
    path.write_text(METADATA.format(dataset=dataset, policy=policy))
    service.registered.register_file(path, by="owner")
    service.budgets.set_cap(pure(1000), dataset=dataset, holder="", by="owner", why="trial")


@dataclass(frozen=True, kw_only=True)
class Served:
    """A running endpoint."""

    service: QueryService
    endpoint: PostgresEndpoint
    port: int
    token: str
    """Of the analyst ``alice``, who has an epsilon of 100."""

    def url(self, *, user: str = "alice", password: str = "", dataset: str = "hospital", epsilon: str = "1") -> str:
        options = f"&options=-c%20sfumato.epsilon%3D{epsilon}" if epsilon else ""
        secret = password or self.token
        return f"postgresql://{user}:{secret}@127.0.0.1:{self.port}/{dataset}?sslmode=prefer{options}"

    def spent(self, user: str = "alice", dataset: str = "hospital") -> Any:
        """What the analyst has paid, in epsilon."""
        return self.service.state.ledger.balance(dataset=dataset, analyst=user).spent.size


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[Served]:
    """An endpoint on a free port, stopped at the end."""
    service = QueryService.open(folder / "state")
    register_hospital(service, folder / "data")
    register_hospital(service, folder / "other", "secret-study")
    analyst(service, "alice", epsilon=100)
    analyst(service, "bob", epsilon=100)
    with running(service, **options) as endpoint:
        yield Served(service=service, endpoint=endpoint, port=endpoint.port, token=token(service, "alice"))


@contextmanager
def running(service: QueryService, **options: Any) -> Iterator[PostgresEndpoint]:
    """An endpoint in a thread with an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    endpoint = PostgresEndpoint(service, port=0, **options)
    asyncio.run_coroutine_threadsafe(endpoint.start(), loop).result(10)
    try:
        yield endpoint
    finally:
        asyncio.run_coroutine_threadsafe(endpoint.stop(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
