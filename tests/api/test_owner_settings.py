"""What an owner writes in the metadata holds at every door: command line, Python, server and app."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

import sfumato
from server_sample import analyst, token
from sfumato.app.asking import answer as app_answer
from sfumato.app.documents import AskRequest
from sfumato.app.project import RecipeProject
from sfumato.cli import main
from sfumato.dataset.document import Answering, Bounds, Dataset, PublicSource, TableDeclaration
from sfumato.dp.loss import pure
from sfumato.errors import SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.server.rest.application import create_application
from sfumato.server.service import QueryService
from sfumato.server.settings import ServerSettings

METADATA: dict[str, Any] = {
    "sfumato": 1,
    "dataset": "hospital",
    "ledger": "ledger.db",
    "person": "person",
    "tables": {
        "visits": {
            "data": "visits.csv",
            "bounds": {"rows": 3, "groups": 1},
            "columns": {
                "person": {"kind": "integer"},
                "ward": {"kind": "category", "domain": {"values": ["east", "west"]}},
                "bill": {"kind": "integer", "domain": {"low": 0, "high": 100}},
            },
        }
    },
}
WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
BILLS = "SELECT SUM(bill) AS n FROM visits"
JOINED = "SELECT COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward"
Outcome = dict[str, Any]
Door = Callable[[str, str, str], Outcome]


def through_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> Door:
    def ask(who: str, sql: str, epsilon: str) -> Outcome:
        given = ["--epsilon", epsilon] if epsilon else []
        status = main(["query", str(folder / "people.query.yaml"), sql, *given, "--analyst", who, "--json"])
        captured = capsys.readouterr()
        return json.loads(captured.out if status == 0 else captured.out or captured.err)  # type: ignore[no-any-return]

    return ask


def through_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> Door:
    def ask(who: str, sql: str, epsilon: str) -> Outcome:
        session = sfumato.session(folder / "people.query.yaml", analyst=who)
        return session.ask(sql, **_cost(epsilon)).to_dict()

    return _refusals_told(ask)


def through_app(folder: Path, capsys: pytest.CaptureFixture[str]) -> Door:
    project = RecipeProject(folder / "people.query.yaml", "")
    workspace: Any = SimpleNamespace(need=lambda: project)

    def ask(who: str, sql: str, epsilon: str) -> Outcome:
        return app_answer(workspace, AskRequest(sql=sql, analyst=who, epsilon=epsilon or None))

    return _refusals_told(ask)


def through_server(folder: Path, capsys: pytest.CaptureFixture[str]) -> Door:
    service = QueryService.open(folder / "state")
    service.registered.register_file(folder / "people.query.yaml", by="owner")
    tokens = {}
    for name in ("ada", "bob"):
        analyst(service, name, epsilon=100)
        tokens[name] = token(service, name)

    def ask(who: str, sql: str, epsilon: str) -> Outcome:
        application = create_application(service, ServerSettings())
        with TestClient(application, base_url="http://127.0.0.1:8642") as client:
            return client.post(  # type: ignore[no-any-return]
                "/api/v1/datasets/hospital/ask", json={"sql": sql, **_cost(epsilon)},
                headers={"Authorization": f"Bearer {tokens[who]}"},
            ).json()  # fmt: skip

    return ask


def _cost(epsilon: str) -> Any:
    return {"epsilon": epsilon} if epsilon else {}


def _refusals_told(ask: Door) -> Door:
    def told(who: str, sql: str, epsilon: str) -> Outcome:
        try:
            return ask(who, sql, epsilon)
        except SfumatoError as refusal:
            return refusal.to_dict()

    return told


DOORS = (through_command_line, through_python, through_app, through_server)


@pytest.fixture(params=DOORS, ids=lambda door: door.__name__)
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[dict[str, Any]], Door]:
    """One door to the data set, under changed metadata."""

    def made(changes: dict[str, Any]) -> Door:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        rows = {
            "person": [i // 2 for i in range(80)],
            "ward": ["east", "west"] * 40,
            "bill": [i % 90 for i in range(80)],
        }
        pl.DataFrame(rows).write_csv(folder / "visits.csv")
        pl.DataFrame({"ward": ["east", "west"], "side": ["sunny", "shady"]}).write_csv(folder / "wards.csv")
        (folder / "people.query.yaml").write_text(json.dumps({**METADATA, **changes}))
        Ledger.open(folder / "ledger.db").set_cap(pure(100), dataset="hospital")
        return request.param(folder, capsys)  # type: ignore[no-any-return]

    return made


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A change of the metadata that changes what a question gets."""

    changes: dict[str, Any]
    sees: Callable[[Outcome], Any]
    sql: str = WARDS


def _code(outcome: Outcome) -> Any:
    return outcome.get("error", {}).get("code")


def _noise(outcome: Outcome) -> Any:
    return outcome["explanation"]["noise"][0]["error"] if "explanation" in outcome else None


def _table(**changes: Any) -> dict[str, Any]:
    return {"tables": {"visits": {**METADATA["tables"]["visits"], **changes}}}


_COLUMNS = METADATA["tables"]["visits"]["columns"]
PROBES = {
    "min_epsilon": Probe(changes={"answering": {"min_epsilon": 0.5}}, sees=_code),
    "policy": Probe(changes={"answering": {"policy": {"size-control": 5}}, "person": "row"}, sees=_code),
    "public": Probe(changes={"public": {"wards": {"data": "wards.csv", "key": ["ward"]}}}, sees=_code,
                    sql=JOINED),
    "person": Probe(changes={"person": "row"}, sees=_noise),
    "rows": Probe(changes=_table(bounds={"rows": 7, "groups": 1}), sees=_noise),
    "groups": Probe(changes=_table(bounds={"rows": 3, "groups": 2}), sees=_noise),
    "role": Probe(changes=_table(columns={**_COLUMNS, "bill": {**_COLUMNS["bill"], "role": "drop"}}), sees=_code,
                  sql=BILLS),
    "columns": Probe(changes=_table(columns={**_COLUMNS, "bill": {"kind": "integer"}}), sees=_code,
                     sql=BILLS),
}  # fmt: skip
NO_LIMITS = {
    "sfumato": "version of the language",
    "dataset": "a name",
    "ledger": "a place; the server has its own",
    "version": "names the state of a database",
    "tables": "probed by its own fields",
    "data": "a place",
    "typical_groups": "helps the planner; every bound stays",
    "answering": "probed by its own fields",
    "bounds": "probed by its own fields",
    "key": "unique by declaration; tests/dataset",
    "links": "whose a row is; tests/dataset",
    "parts": "which account is charged, not what is answered; tests/ledger/test_parts.py",
}


def test_every_field_is_probed_or_limits_nothing() -> None:
    known = PROBES.keys() | NO_LIMITS.keys() | {"repeated_queries", "response_interval"}
    models = (Dataset, TableDeclaration, Bounds, Answering, PublicSource)
    assert known - {"role"} == {field for model in models for field in model.model_fields}


@pytest.mark.parametrize("field", PROBES)
def test_the_owners_word_holds_at_every_door(field: str, opened: Callable[[dict[str, Any]], Door]) -> None:
    probe = PROBES[field]
    plain, changed = (probe.sees(opened(changes)("ada", probe.sql, "0.25")) for changes in ({}, probe.changes))
    assert plain != changed


def test_a_charged_repeat_is_charged_at_every_door(opened: Callable[[dict[str, Any]], Door]) -> None:
    """On a server repeats are always charged; elsewhere they are free unless the owner says otherwise."""
    door = opened({"answering": {"repeated_queries": "charged"}})
    first, other, again = (door(who, WARDS, "0.25") for who in ("ada", "bob", "ada"))
    assert (first["cached"], other["cached"], again["cached"]) == (False, False, True)
    assert first["rows"] == other["rows"] == again["rows"]


@pytest.mark.parametrize("epsilon", ["30", "60"], ids=["answered", "refused"])
def test_a_charged_repeat_moves_what_the_analyst_sees_as_a_new_query_does(
    epsilon: str, opened: Callable[[dict[str, Any]], Door]
) -> None:
    """The cap is 100: what is left of it, or that it is used up, does not tell which of the two ada asked."""
    seen = []
    for asked_before in (WARDS, WARDS.replace("GROUP", "WHERE bill > 5 GROUP")):
        door = opened({"answering": {"repeated_queries": "charged"}})
        assert "error" not in door("ada", asked_before, epsilon)
        bob = door("bob", WARDS, epsilon)
        seen.append({name: bob.get(name) for name in ("error", "cached", "loss", "remaining")})
    assert seen[0] == seen[1]
    assert (seen[0]["error"] is None) == (epsilon == "30")


def test_sessions_of_documents_are_opened_in_one_place() -> None:
    """A door that builds its own session forgets the next field; the others here have no document."""
    package = Path(sfumato.__file__).parent
    building = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        if re.search(r"(return|=) Session\(", file.read_text())
    }
    without = {"demos/private_hospital.py", "attacks/query/_evaluate.py", "testing/installation.py"}
    assert building == {"query/open_session.py", *without}
