"""Demo: a query server with two analysts, asked by REST, from Python and by PostgreSQL."""

from __future__ import annotations

import json
import queue
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.demos.base import Demo, Say
from sfumato.demos.private_hospital import patients
from sfumato.dp.loss import pure
from sfumato.errors import OverBudget
from sfumato.extras import missing_extra
from sfumato.progress import SILENT, Progress

if TYPE_CHECKING:
    from sfumato.server.rest.running import RunningServer
    from sfumato.server.service import QueryService

_METADATA = """sfumato: 1
dataset: hospital
ledger: unused.db
person: row
tables:
  patients:
    data: patients.csv
    columns:
      ward: {kind: category, domain: {values: [east, north, south, west]}}
      age: {kind: integer, domain: {low: 0, high: 99}}
      flu: {kind: boolean}
"""
_COUNT = "SELECT COUNT(*) AS n FROM patients WHERE flu"
_WARDS = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward ORDER BY ward"


class ServeDemo(Demo):
    """Query server on a synthetic hospital: two analysts, three ways to ask, one budget that runs out, the ledger.

    The server listens on this machine only and ends with the demo. The noise comes from the operating system's random
    source and differs in every run.
    """

    reference = "Dwork, McSherry, Nissim, Smith (2006), doi:10.1007/11681878_14"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        if find_spec("fastapi") is None:
            raise missing_extra("server", "fastapi", needed_by="The demo of the server")
        from sfumato.server.service import QueryService

        patients(2000).drop("name", "bill").write_csv(folder / "patients.csv")
        (folder / "hospital.yaml").write_text(_METADATA, encoding="utf-8")
        service = QueryService.open(folder / "state")
        tokens = _prepare(service, folder)
        server, thread = _start(service, folder)
        try:
            say(
                f"\n[bold]1. The server[/bold] listens at {server.web}. Two analysts may ask about 2,000 synthetic "
                "patients: Ada within ε = 1, Bob within ε = 0.3. Each has an API token."
            )
            found = self._ask(server, tokens, say)
        finally:
            server.stop()
            thread.join(timeout=60)
        ledger = service.state.ledger
        entries = [entry for entry in ledger.entries() if entry.kind == "spend"]
        say("\n[bold]6. The ledger[/bold] has every charge, in a chain of hashes:")
        for entry in entries:
            say(f"   {entry.number:>3}  {entry.analyst:<5} {entry.cost()}  {entry.hash[:16]}…")
        last = ledger.verify()
        say(f"   The chain verifies. Its last hash is {last[:16]}…")
        return {**found, "charges": len(entries), "last": last}

    def _ask(self, server: RunningServer, tokens: dict[str, str], say: Say) -> dict[str, object]:
        import httpx

        from sfumato.api.connect import connect

        headers = {"Authorization": f"Bearer {tokens['ada']}"}
        body = {"sql": _COUNT, "epsilon": "0.1"}
        raw = httpx.post(f"{server.web}/api/v1/datasets/hospital/ask", json=body, headers=headers).json()
        cell = raw["rows"][0]["n"]
        say(
            f"\n[bold]2. REST.[/bold] Ada posts  {json.dumps(body)}\n"
            f"   → {cell['value']} patients have the flu ({cell['low']:.0f} to {cell['high']:.0f})."
        )
        ada, bob = (connect(server.web, token=tokens[name]) for name in ("ada", "bob"))
        answer = ada.ask(_WARDS, epsilon="0.2")
        say(f"\n[bold]3. Python.[/bold] connect(url, token=...).ask(...):\n{answer}")
        rows = _by_postgres(server, tokens["ada"], say)
        refusal = ""
        bob.ask(_COUNT, epsilon="0.2")
        try:
            bob.ask(_WARDS, epsilon="0.2")
        except OverBudget as error:
            refusal = str(error)
        say(f"\n[bold]5. Bob runs out of budget.[/bold] {refusal}")
        return {"rest": cell["value"], "python": answer.to_dict()["rows"], "postgres": rows, "over_budget": refusal}


def _prepare(service: QueryService, folder: Path) -> dict[str, str]:
    from sfumato.server.roles import AccountRole, Scope

    service.registered.register_file(folder / "hospital.yaml", by="demo")
    tokens = {}
    budgets = {"": "5", "ada": "1", "bob": "0.3"}
    for name, epsilon in budgets.items():
        if name and name not in {user.name for user in service.users.all()}:
            service.users.add(name, roles=[AccountRole.ANALYST], by="demo")
            service.registered.set_grant("hospital", name, True, by="demo")
        if service.state.ledger.balance(dataset="hospital", analyst=name).cap is None:
            service.budgets.set_cap(pure(epsilon), dataset="hospital", holder=name, by="demo", why="demo")
        if name:
            tokens[name] = service.tokens.create(name, scopes=[Scope.ASK], days=1).secret
    return tokens


def _start(service: QueryService, folder: Path) -> tuple[RunningServer, threading.Thread]:
    """Run the server in a thread, on free ports."""
    from sfumato.server.rest.running import run_server
    from sfumato.server.settings import ServerSettings

    settings = ServerSettings(port=0, postgres_port=0, witness=str(folder / "witness.jsonl"))
    started: queue.Queue[RunningServer | Exception] = queue.Queue()

    def serve() -> None:
        try:
            run_server(service, settings, ready=started.put)
        except Exception as failure:
            started.put(failure)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    found = started.get(timeout=60)
    if isinstance(found, Exception):
        raise found
    return found, thread


def _by_postgres(server: RunningServer, token: str, say: Say) -> list[list[object]] | None:
    """Ask by a PostgreSQL driver, where one is installed."""
    if find_spec("psycopg") is None:
        say("\n[bold]4. PostgreSQL.[/bold] The driver psycopg is not installed, so this part is left out.")
        return None
    import psycopg

    place = f"host=127.0.0.1 port={server.postgres_port} dbname=hospital user=ada"
    with psycopg.connect(place, password=token, autocommit=True) as connection:
        connection.execute("SET sfumato.epsilon = 0.1")
        rows = [list(row) for row in connection.execute(_WARDS).fetchall()]
    say(f"\n[bold]4. PostgreSQL.[/bold] psql '{place}', SET sfumato.epsilon = 0.1, then the query: {rows}")
    return rows
