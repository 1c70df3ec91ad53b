"""Every operation of the OpenAPI document with every role: the expected verdict is written down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `server` is not installed")
from test_server_rest import Server

from server_sample import staff
from sfumato.dp.loss import pure
from sfumato.server.roles import AccountRole, Scope

ROLES = {"administrator": "root", "owner": "otto", "analyst": "ada", "auditor": "audra", "nobody": None}
EVERYBODY = frozenset(ROLES) - {"nobody"}
ALLOWED: dict[str, frozenset[str]] = {
    "health": EVERYBODY | {"nobody"},
    "ready": EVERYBODY | {"nobody"},
    "sign_in": EVERYBODY | {"nobody"},
    "read_sign_in": EVERYBODY | {"nobody"},
    **dict.fromkeys(("sign_out", "read_me", "list_my_tokens", "create_my_token"), EVERYBODY),
    "set_password": frozenset(),  # in a browser only
    "revoke_my_token": EVERYBODY,
    "read_question": EVERYBODY,  # and a question of others does not exist
    "read_events": EVERYBODY,
    **dict.fromkeys(("explain", "analyze", "ask", "ask_workload"), frozenset({"analyst"})),
    **dict.fromkeys(("list_questions", "read_result", "cancel"), frozenset({"analyst"})),
    **dict.fromkeys(("read_budget", "request_budget"), frozenset({"analyst"})),
    **dict.fromkeys(("list_datasets", "read_schema", "read_catalog"), frozenset({"analyst", "owner", "auditor"})),
    "metrics": frozenset({"administrator", "auditor"}),
    **dict.fromkeys(("list_users", "list_tokens", "list_groups"), frozenset({"administrator", "owner", "auditor"})),
    **dict.fromkeys(
        ("add_user", "change_user", "make_link", "revoke_token", "add_group", "add_member",
         "remove_member"),
        frozenset({"administrator"}),
    ),
    "list_grants": frozenset({"administrator", "owner", "auditor"}),
    **dict.fromkeys(
        ("register_dataset", "change_dataset", "grant", "revoke_grant", "set_budget", "request_cap"),
        frozenset({"owner"}),
    ),
    **dict.fromkeys(
        ("list_budgets", "read_ledger", "read_loss", "verify_ledger", "audit_questions"),
        frozenset({"owner", "auditor"}),
    ),
    "list_requests": EVERYBODY,  # analysts see their own
    **dict.fromkeys(("approve_request", "reject_request"), frozenset({"owner", "administrator"})),
}  # fmt: skip
"""Roles that an operation is open to."""

BODIES: dict[str, dict[str, Any]] = {
    "sign_in": {"user": "nobody", "password": "wrong"},
    "set_password": {"password": "a long enough secret"},
    "create_my_token": {"scopes": ["ask"], "days": 1},
    "explain": {"sql": "SELECT COUNT(*) FROM patients", "epsilon": "0.1"},
    "ask": {"sql": "SELECT COUNT(*) FROM patients", "epsilon": "0.1"},
    "analyze": {"sql": "SELECT COUNT(*) FROM patients", "epsilon": "0.1"},
    "ask_workload": {"queries": ["SELECT COUNT(*) FROM patients"], "epsilon": "0.1"},
    "request_budget": {"dataset": "hospital", "epsilon": "1", "why": "trial"},
    "add_user": {"name": "new-user", "roles": ["analyst"]},
    "change_user": {"active": True},
    "add_group": {"name": "new-group"},
    "register_dataset": {"metadata": "sfumato: 1"},
    "change_dataset": {"state": "active", "why": "trial"},
    "set_budget": {"dataset": "hospital", "epsilon": "1", "why": "trial"},
    "request_cap": {"dataset": "hospital", "epsilon": "1", "why": "trial"},
}
PLACES = {
    "/datasets/{name}": "hospital", "/users/{name}": "bob", "/groups/{name}": "icu", "{user}": "bob",
    "{holder}": "bob", "{identifier}": "000000000000",
}  # fmt: skip
OWNERS_OWN = {"change_dataset", "grant", "revoke_grant", "set_budget", "request_cap"}
"""The data set belongs to another owner: also forbidden to an owner."""

SCOPES: dict[Scope, frozenset[str]] = {
    Scope.ASK: frozenset({
        "list_datasets", "read_schema", "read_catalog", "explain", "analyze", "ask", "ask_workload", "list_questions",
        "read_result", "cancel", "read_budget", "request_budget",
    }),
    Scope.READ: frozenset({
        "list_users", "list_tokens", "list_groups", "list_grants", "list_budgets", "read_loss", "read_ledger",
        "verify_ledger", "audit_questions", "metrics",
    }),
    Scope.MANAGE: frozenset({
        "list_my_tokens", "create_my_token", "revoke_my_token", "add_user", "change_user", "make_link", "revoke_token",
        "add_group", "add_member", "remove_member", "register_dataset", "change_dataset", "grant", "revoke_grant",
        "set_budget", "request_cap", "approve_request", "reject_request",
    }),
}  # fmt: skip
"""Operations that need a scope. The others are open to everybody who is signed in, and tell only of themselves."""
OPEN = {"health", "ready", "sign_in", "read_sign_in"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("roles"), sign_in_limit="1000/minute")
    with made.client:
        yield made


def operations(server: Server) -> list[tuple[str, str, str]]:
    document = server("GET", "/api/v1/openapi.json", None).json()
    return [
        (item["operationId"], method, path)
        for path, methods in document["paths"].items()
        for method, item in methods.items()
    ]


def address(path: str) -> str:
    for pattern, value in PLACES.items():
        path = path.replace(pattern, pattern.rpartition("/")[0] + ("/" if "/" in pattern else "") + value)
    return path


def test_every_operation_has_a_verdict(server: Server) -> None:
    assert {operation for operation, _, _ in operations(server)} == set(ALLOWED)


@pytest.mark.parametrize("role", ROLES)
def test_operations_by_role(server: Server, role: str) -> None:
    wrong = []
    for operation, method, path in operations(server):
        if role == "nobody":
            expected = {401} if "nobody" not in ALLOWED[operation] else {200, 401}
        elif role not in ALLOWED[operation] or (operation in OWNERS_OWN and role == "owner"):
            expected = {403}
        else:
            expected = {200, 201, 202, 204, 404, 409, 422} | ({401} if operation == "sign_in" else set())
        response = server(method.upper(), address(path), ROLES[role], json=BODIES.get(operation))
        if response.status_code not in expected:
            wrong.append((operation, response.status_code, expected, response.text[:200]))
        if response.status_code >= 400:
            assert set(response.json()["error"]) >= {"code", "message", "fix"}
    assert not wrong


@pytest.fixture(scope="module")
def strangers(server: Server) -> dict[str, dict[str, str]]:
    """Headers of those who are nobody here, or no longer."""
    service = server.service
    for name in ("gone", "late", "left"):
        staff(service, name, *AccountRole)
    made = {name: service.tokens.create(name, scopes=list(Scope), days=1) for name in ("gone", "late", "left")}
    service.tokens.revoke(made["gone"].token.id)
    with service.state.store.write() as transaction:
        old = "2020-01-01T00:00:00.000+00:00"
        transaction.query("UPDATE sfumato_server_tokens SET expires = ? WHERE id = ?", old, made["late"].token.id)
    service.users.set_active("left", False, by="test")
    secret = service.tokens.create("root", scopes=list(Scope), days=1).secret
    given = {
        "a made-up token": f"Bearer {secret[:-1]}{'0' if secret[-1] != '0' else '1'}",
        "a revoked token": f"Bearer {made['gone'].secret}", "an expired token": f"Bearer {made['late'].secret}",
        "a token of an inactive account": f"Bearer {made['left'].secret}", "a token as a password": f"Basic {secret}",
        "no word Bearer": secret,
    }  # fmt: skip
    cookie = {"Cookie": "sfumato-session=0123456789abcdef0123456789abcdef"}
    return {
        "no credential": {},
        "a made-up session": cookie,
        **{name: {"Authorization": one} for name, one in given.items()},
    }


def test_strangers_are_refused_in_every_cell(server: Server, strangers: dict[str, dict[str, str]]) -> None:
    wrong = []
    for operation, method, path in operations(server):
        for name, headers in strangers.items():
            body = BODIES.get(operation)
            response = server(method.upper(), address(path), None, json=body, headers=headers)
            expected = {200} if operation in OPEN else {401}
            expected = {401, 429} if operation == "sign_in" else expected  # the name is locked in the end
            if response.status_code not in expected:
                wrong.append((operation, name, response.status_code))
            if response.status_code >= 400:
                assert "hospital" not in response.text
    assert not wrong


@pytest.mark.parametrize("scope", Scope)
def test_a_token_does_what_its_scope_says_and_no_more(tmp_path: Path, scope: Scope) -> None:
    """The account may do everything, and owns the data set: only the scope of its token decides."""
    server = Server(tmp_path, sign_in_limit="1000/minute")
    service = server.service
    service.users.set_roles("owner", list(AccountRole), by="test")
    service.registered.set_grant("hospital", "owner", True, by="test")
    service.budgets.set_cap(pure(1), dataset="hospital", holder="owner", by="test", why="trial")
    server.tokens["polly"] = service.tokens.create("owner", scopes=[scope], days=1).secret
    with server.client:
        wrong = []
        for operation, method, path in operations(server):
            response = server(method.upper(), address(path), "polly", json=BODIES.get(operation))
            named = {one for one, listed in SCOPES.items() if operation in listed}
            denied = operation == "set_password" or bool(named and scope not in named)
            stronger = operation == "create_my_token"  # a token of scope `ask`, which this one lacks
            if (response.status_code == 403) != (denied or stronger) or response.status_code >= 500:
                wrong.append((operation, response.status_code, response.text[:200]))
        assert not wrong


def test_an_analyst_without_a_grant_sees_what_does_not_exist(server: Server) -> None:
    """Every operation on a data set tells the same about this one and about one that there is not."""
    server.add("sid", "analyst")
    for operation, method, path in operations(server):
        if "/datasets/{name}" in path:
            told = [
                server(method.upper(), address(path).replace("hospital", name), "sid", json=BODIES.get(operation))
                for name in ("hospital", "nowhere")
            ]
            assert told[0].status_code == told[1].status_code >= 400, operation
            assert told[0].json() == told[1].json(), operation


def test_an_auditor_changes_nothing(server: Server) -> None:
    for operation, method, path in operations(server):
        own = operation in ("sign_in", "sign_out") or "my_token" in operation or operation == "set_password"
        if method.upper() != "GET" and not own:
            response = server(method.upper(), address(path), "audra", json=BODIES.get(operation))
            assert response.status_code == 403, operation


def test_an_owner_of_nothing_sees_and_decides_nothing(server: Server) -> None:
    for path in (
        "/api/v1/budgets",
        "/api/v1/datasets",
        "/api/v1/budget/requests",
        "/api/v1/ledger",
        "/api/v1/audit/questions",
    ):
        [listed] = server("GET", path, "otto").json().values()
        assert listed == [], path
    for path in ("grants", "catalog", "schema", "loss"):
        assert server("GET", f"/api/v1/datasets/hospital/{path}", "otto").status_code == 404, path
    wish = {"dataset": "hospital", "epsilon": "100000", "why": "because I can"}
    made = server("POST", "/api/v1/budget/requests", "ada", json=wish).json()["id"]
    for verdict in ("approve", "reject"):
        assert server("POST", f"/api/v1/budget/requests/{made}/{verdict}", "otto").status_code == 404
    assert (
        server("PUT", "/api/v1/budgets", "otto", json={"holder": "ada", "epsilon": "0", "why": "no"}).status_code == 403
    )


def test_nobody_raises_a_cap_without_the_owner_of_the_data_set(server: Server) -> None:
    for name in ("root-2", "root-3"):
        server.add(name, "administrator")
    wish = {"dataset": "hospital", "epsilon": "1000", "why": "the second survey"}
    place = (
        f"/api/v1/budget/requests/{server('POST', '/api/v1/budget/requests', 'ada', json=wish).json()['id']}/approve"
    )
    for name in ("root", "root-2", "root-3"):
        assert server("POST", place, name).json()["state"] == "open"
    assert server("POST", place, "owner").json()["state"] == "approved"


def test_an_administrator_makes_no_tokens_and_a_reset_bars_from_approving(server: Server) -> None:
    body = {"scopes": ["manage"], "days": 1}
    assert server("POST", "/api/v1/users/owner/tokens", "root", json=body).status_code in (404, 405)
    assert server("GET", "/api/v1/me", "owner").json()["reset"] is None
    wish = {"dataset": "hospital", "epsilon": "2000", "why": "the third survey"}
    made = server("POST", "/api/v1/budget/requests", "ada", json=wish).json()["id"]
    assert server("POST", f"/api/v1/budget/requests/{made}/approve", "root").json()["state"] == "open"
    assert server("POST", "/api/v1/users/owner/link", "root").status_code == 201
    refused = server("POST", f"/api/v1/budget/requests/{made}/approve", "owner")
    assert refused.status_code == 403
    assert "less than a day ago" in refused.json()["error"]["message"]
    assert server("GET", "/api/v1/me", "owner").json()["reset"]["by"] == "root"
    events = [entry["about"] for entry in server("GET", "/api/v1/ledger", "audra").json()["entries"]]
    assert any("reset credentials" in about and "owner" in about for about in events)
    fresh = server("POST", "/api/v1/users", "root", json={"name": "root-4", "roles": ["administrator"]})
    assert fresh.status_code == 201
    assert server.service.users.get("root-4").barred
