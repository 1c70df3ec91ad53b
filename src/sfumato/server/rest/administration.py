"""Operations of administrators, owners and auditors: users, groups, data sets, grants, budgets, ledger."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from sfumato.errors import AccessDenied, NoSuchItem
from sfumato.ledger.loss_history import loss_history
from sfumato.server.datasets import RegisteredDataset
from sfumato.server.rest.context import ContextOf, PersonRoute, ServerContext, Who
from sfumato.server.rest.errors import ERRORS
from sfumato.server.rest.models import Cap, GroupBody, NewUser, Registration, StateChange, UserChange
from sfumato.server.roles import AccountRole, Action, Principal, require

router = APIRouter(prefix="/api/v1", tags=["administration"], responses=ERRORS, route_class=PersonRoute)
Name = Annotated[str, Path(max_length=64)]
Most = Annotated[int, Query(ge=1, le=10_000)]


@router.get("/users", operation_id="list_users")
def list_users(who: Who, context: ContextOf) -> dict[str, Any]:
    """All users."""
    require(who, Action.READ_USERS)
    return {"users": [user.to_dict() for user in context.service.users.all()]}


@router.post("/users", operation_id="add_user", status_code=201)
def add_user(body: NewUser, who: Who, context: ContextOf) -> dict[str, Any]:
    """Add a user, and a one-time link with which they sign in and set a password."""
    require(who, Action.MANAGE_USERS)
    context.service.users.add(body.name, roles=body.roles, by=who.name)
    user = context.service.users.reset(body.name, by=who.name)
    return {**user.to_dict(), "link": f"/sign-in/{context.sessions.make_link(user.name)}"}


@router.patch("/users/{name}", operation_id="change_user")
def change_user(name: Name, body: UserChange, who: Who, context: ContextOf) -> dict[str, Any]:
    """Change the roles of a user, or deactivate them."""
    require(who, Action.MANAGE_USERS)
    if name == who.name:
        raise AccessDenied("Nobody changes their own roles.", fix="Ask another administrator.")
    users = context.service.users
    if body.roles is not None:
        users.set_roles(name, body.roles, by=who.name)
    if body.active is not None:
        users.set_active(name, body.active, by=who.name)
    return users.get(name).to_dict()


@router.post("/users/{name}/link", operation_id="make_link", status_code=201)
def make_link(name: Name, who: Who, context: ContextOf) -> dict[str, Any]:
    """A new one-time link for a user who forgot their password. The user is told, and does not approve for a day."""
    require(who, Action.MANAGE_USERS)
    user = context.service.users.reset(name, by=who.name)
    return {"link": f"/sign-in/{context.sessions.make_link(user.name)}"}


@router.get("/users/{name}/tokens", operation_id="list_tokens")
def list_tokens(name: Name, who: Who, context: ContextOf) -> dict[str, Any]:
    """The tokens of a user, without their secrets."""
    require(who, Action.READ_USERS)
    user = context.service.users.get(name)
    return {"tokens": [token.to_dict() for token in context.service.tokens.of(user.name)]}


@router.delete("/tokens/{identifier}", operation_id="revoke_token")
def revoke_token(identifier: Name, who: Who, context: ContextOf) -> dict[str, Any]:
    """End a token."""
    require(who, Action.MANAGE_USERS)
    return context.service.tokens.revoke(identifier).to_dict()


@router.get("/groups", operation_id="list_groups")
def list_groups(who: Who, context: ContextOf) -> dict[str, Any]:
    """All groups with their members."""
    require(who, Action.READ_USERS)
    return {"groups": {name: list(members) for name, members in context.service.users.groups().items()}}


@router.post("/groups", operation_id="add_group", status_code=201)
def add_group(body: GroupBody, who: Who, context: ContextOf) -> dict[str, Any]:
    """Add a group."""
    require(who, Action.MANAGE_USERS)
    context.service.users.add_group(body.name, by=who.name)
    return {"name": body.name, "members": []}


@router.put("/groups/{name}/members/{user}", operation_id="add_member", status_code=204)
def add_member(name: Name, user: Name, who: Who, context: ContextOf) -> Response:
    """Add a user to a group."""
    require(who, Action.MANAGE_USERS)
    context.service.users.set_member(name, user, True, by=who.name)
    return Response(status_code=204)


@router.delete("/groups/{name}/members/{user}", operation_id="remove_member", status_code=204)
def remove_member(name: Name, user: Name, who: Who, context: ContextOf) -> Response:
    """Remove a user from a group."""
    require(who, Action.MANAGE_USERS)
    context.service.users.set_member(name, user, False, by=who.name)
    return Response(status_code=204)


@router.post("/datasets", operation_id="register_dataset", status_code=201)
def register_dataset(body: Registration, who: Who, context: ContextOf) -> dict[str, Any]:
    """Register a data set, or a new version of an own one. Its files lie in the server's data folder."""
    require(who, Action.MANAGE_DATASETS)
    folder = context.settings.data
    if folder is None:
        raise AccessDenied("This server has no folder for data, so nothing can be registered by request.")
    return context.service.registered.register(body.metadata, base=folder, by=who.name, confined=True).to_dict()


def _own(context: ServerContext, who: Principal, name: str) -> RegisteredDataset:
    """A data set of the principal."""
    dataset = context.service.registered.get(name)
    if dataset.owner != who.name:
        raise AccessDenied("Only the owner of the data set does this.")
    return dataset


@router.patch("/datasets/{name}", operation_id="change_dataset")
def change_dataset(name: Name, body: StateChange, who: Who, context: ContextOf) -> dict[str, Any]:
    """Freeze, reactivate or retire a data set."""
    require(who, Action.MANAGE_DATASETS)
    _own(context, who, name)
    return context.service.registered.set_state(name, body.state, by=who.name, why=body.why).to_dict()


@router.get("/datasets/{name}/grants", operation_id="list_grants")
def list_grants(name: Name, who: Who, context: ContextOf) -> dict[str, Any]:
    """Users and groups that may ask a data set."""
    require(who, Action.READ_DATASETS)
    if not context.service.registered.visible(who, name=name):
        raise NoSuchItem("There is no such data set.")
    return {"grants": list(context.service.registered.grants(name))}


@router.put("/datasets/{name}/grants/{holder}", operation_id="grant", status_code=204)
def grant(name: Name, holder: Name, who: Who, context: ContextOf) -> Response:
    """Let a user, or a group as ``@name``, ask a data set. They need a budget as well."""
    require(who, Action.MANAGE_DATASETS)
    _own(context, who, name)
    context.service.registered.set_grant(name, holder, True, by=who.name)
    return Response(status_code=204)


@router.delete("/datasets/{name}/grants/{holder}", operation_id="revoke_grant", status_code=204)
def revoke_grant(name: Name, holder: Name, who: Who, context: ContextOf) -> Response:
    """No longer let a user or a group ask a data set."""
    require(who, Action.MANAGE_DATASETS)
    _own(context, who, name)
    context.service.registered.set_grant(name, holder, False, by=who.name)
    return Response(status_code=204)


@router.get("/budgets", operation_id="list_budgets")
def list_budgets(who: Who, context: ContextOf) -> dict[str, Any]:
    """Caps with what is spent and the loss accumulated: all for auditors, those of their data sets for owners."""
    require(who, Action.READ_LEDGER)
    budgets, names = context.service.budgets, _sees(context, who)
    found = [balance for dataset, holder in budgets.accounts() if names is None or dataset in names
             for balance in budgets.balances(dataset=dataset, holder=holder)]  # fmt: skip
    return {"budgets": [balance.to_dict() for balance in found]}


@router.put("/budgets", operation_id="set_budget")
def set_budget(body: Cap, who: Who, context: ContextOf) -> dict[str, Any]:
    """Set a first cap, or a lower one. A higher one needs a request that two people approve."""
    require(who, Action.MANAGE_BUDGETS)
    _check_account(context, who, body)
    entry = context.service.budgets.set_cap(
        body.loss(), dataset=body.dataset, holder=body.holder, by=who.name, why=body.why, period=body.kind()
    )
    return {"entry": entry.number}


@router.post("/budgets/requests", operation_id="request_cap", status_code=201)
def request_cap(body: Cap, who: Who, context: ContextOf) -> dict[str, Any]:
    """Ask for a higher cap of any account. Two other people must approve it."""
    require(who, Action.MANAGE_BUDGETS)
    _check_account(context, who, body)
    request = context.service.budgets.request(
        body.loss(), dataset=body.dataset, holder=body.holder, by=who.name, why=body.why, period=body.kind()
    )
    return request.to_dict()


def _check_account(context: ServerContext, who: Principal, body: Cap) -> None:
    if body.dataset:
        _own(context, who, body.dataset)
    elif not any(dataset.owner == who.name for dataset in context.service.registered.all()):
        raise AccessDenied("Only the owner of a data set does this.")
    holder = body.holder
    known = {f"@{name}" for name in context.service.users.groups()} | {u.name for u in context.service.users.all()}
    if holder and holder not in known:
        raise NoSuchItem(f"There is no user or group `{holder}`.")


@router.get("/budget/requests", operation_id="list_requests")
def list_requests(who: Who, context: ContextOf) -> dict[str, Any]:
    """Requests for budget: all for administrators and auditors, about their data sets for owners, and one's own."""
    if not (who.may(Action.APPROVE_BUDGET) or who.may(Action.READ_LEDGER)):
        require(who, Action.REQUEST_BUDGET)
    names = None if AccountRole.ADMINISTRATOR in who.roles else _sees(context, who)
    found = context.service.budgets.requests()
    return {"requests": [r.to_dict() for r in found if names is None or r.dataset in names or r.by == who.name]}


def _decides(context: ServerContext, who: Principal, identifier: str) -> None:
    """Requests are decided by administrators and the owner of that data set, with credentials they made themselves."""
    require(who, Action.APPROVE_BUDGET)
    request = context.service.budgets.get(identifier)
    names = None if AccountRole.ADMINISTRATOR in who.roles else _sees(context, who)
    if names is not None and request.dataset not in names:
        raise NoSuchItem("There is no such request.")
    if context.service.users.get(who.name).barred:
        raise AccessDenied(
            "Somebody else gave you a link or a token less than a day ago, so you cannot approve yet.",
            fix="Set a password, make your own tokens, and approve tomorrow.",
        )


@router.post("/budget/requests/{identifier}/approve", operation_id="approve_request")
def approve_request(identifier: Name, who: Who, context: ContextOf) -> dict[str, Any]:
    """Approve a request. The second approval sets the cap, if the owner of the data set is among those who agree."""
    _decides(context, who, identifier)
    return context.service.budgets.approve(identifier, by=who.name).to_dict()


@router.post("/budget/requests/{identifier}/reject", operation_id="reject_request")
def reject_request(identifier: Name, who: Who, context: ContextOf) -> dict[str, Any]:
    """Reject a request."""
    _decides(context, who, identifier)
    return context.service.budgets.reject(identifier, by=who.name).to_dict()


def _sees(context: ServerContext, who: Principal) -> set[str] | None:
    """Names of the data sets whose records a principal reads; None for all."""
    if AccountRole.AUDITOR in who.roles:
        return None
    return {dataset.name for dataset in context.service.registered.all() if dataset.owner == who.name}


@router.get("/datasets/{name}/loss", operation_id="read_loss")
def read_loss(name: Name, who: Who, context: ContextOf) -> dict[str, Any]:
    """The loss of a data set accumulated over time: after every charge and every new cap, at most 500 of them."""
    require(who, Action.READ_LEDGER)
    names = _sees(context, who)
    if names is not None and name not in names:
        raise NoSuchItem("There is no such data set.")
    context.service.registered.get(name)
    history = loss_history(context.service.state.ledger, dataset=name)
    return {"dataset": name, "points": [point.to_dict() for point in history]}


@router.get("/ledger", operation_id="read_ledger")
def read_ledger(
    who: Who, context: ContextOf, after: Annotated[int, Query(ge=0, le=2**53)] = 0, most: Most = 1000
) -> dict[str, Any]:
    """Entries of the ledger, in order: all for auditors, those of their data sets for owners."""
    require(who, Action.READ_LEDGER)
    names = _sees(context, who)
    entries = (e for e in context.service.state.ledger.entries_after(after) if names is None or e.dataset in names)
    return {"entries": [entry.to_dict() for entry, _ in zip(entries, range(most), strict=False)]}


@router.get("/ledger/verify", operation_id="verify_ledger")
def verify_ledger(who: Who, context: ContextOf) -> dict[str, Any]:
    """Check every hash and total of the ledger."""
    require(who, Action.READ_LEDGER)
    return {"verified": True, "last": context.service.state.ledger.verify()}


@router.get("/audit/questions", operation_id="audit_questions")
def audit_questions(who: Who, context: ContextOf, most: Most = 100) -> dict[str, Any]:
    """The newest questions of all analysts, with their texts: all for auditors, about their data sets for owners."""
    require(who, Action.READ_QUESTIONS)
    names = _sees(context, who)
    found = context.service.log.latest(most=most)
    return {"questions": [q.audited() for q in found if names is None or q.dataset in names]}
