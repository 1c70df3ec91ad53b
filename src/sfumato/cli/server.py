"""Manage a query server: users, tokens, data sets, budgets, backups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import NUMBER, CommandGroup, emit_json, json_option, note, typed_path
from sfumato.cli.serve import operator

if TYPE_CHECKING:
    from sfumato.server.service import QueryService
    from sfumato.server.settings import ServerSettings

PERSON = "operator"


_ROLES = ("administrator", "owner", "analyst", "auditor")
_SCOPES = ("ask", "read", "manage")
_PERIODS = ("lifetime", "year", "month", "question")


@click.group("server", cls=CommandGroup)
@click.option("--state", default=None, help="Folder of the state (sfumato-state by default), or postgresql:// address.")
@click.option("--config", type=typed_path, default=None, help="Settings file (server.yaml) of the server.")
@click.pass_context
def command(context: click.Context, state: str | None, config: Path | None) -> None:
    """Manage the state of a query server, on its machine. The server may run at the same time."""
    from sfumato.server.settings import load_settings

    context.obj = load_settings(config, given={"state": state})


def _service(settings: ServerSettings) -> QueryService:
    from sfumato.errors import FileMissing
    from sfumato.server.service import QueryService

    if "://" not in settings.state and not Path(settings.state).is_dir():
        raise FileMissing(
            f"There is no state in `{settings.state}`.", fix="Start `sfumato serve` first, or use --state."
        )
    return QueryService.open(settings.state)


@command.group("user")
def user() -> None:
    """Users and groups."""


@user.command("add")
@click.argument("name")
@click.option("--role", "roles", type=click.Choice(_ROLES), multiple=True, help="A role; analyst if left out.")
@click.option("--dataset", default=None, help="Data set that the analyst may ask, within --epsilon.")
@click.option("--epsilon", type=NUMBER, default=None, help="Budget of the analyst on the data set.")
@click.option("--delta", type=NUMBER, default="0", show_default=True, help="Budget for the sum of all deltas.")
@click.option("--days", type=float, default=90, show_default=True, help="How long the first token is valid.")
@click.pass_obj
def add_user(
    settings: ServerSettings,
    name: str,
    roles: tuple[str, ...],
    dataset: str | None,
    epsilon: str | None,
    delta: str,
    days: float,
) -> None:
    """Add a user and print a token, which is shown once."""
    from sfumato.server.budgets import stated_cap
    from sfumato.server.roles import AccountRole, Scope

    if dataset is not None and epsilon is None:
        raise click.UsageError("--dataset needs --epsilon: budgets have no default.")
    service = _service(settings)
    if dataset is not None:
        service.registered.get(dataset)
    given = [AccountRole(role) for role in roles or ("analyst",)]
    service.users.add(name, roles=given, by=operator())
    if dataset is not None:
        service.registered.set_grant(dataset, name, True, by=operator())
        loss = stated_cap(epsilon, None, delta)
        service.budgets.set_cap(loss, dataset=dataset, holder=name, by=operator(), why="first budget")
    scopes = [Scope.ASK] if given == [AccountRole.ANALYST] else list(Scope)
    click.echo(service.tokens.create(name, scopes=scopes, days=days, label="first token").secret)
    service.users.reset(name, by=operator())
    note(f"User {name}. The token is shown once; it is the password for psql and SFUMATO_TOKEN for Python.")


@user.command("list")
@json_option
@click.pass_obj
def list_users(settings: ServerSettings, as_json: bool) -> None:
    """List the users."""
    users = _service(settings).users.all()
    if as_json:
        emit_json({"users": [one.to_dict() for one in users]})
        return
    for one in users:
        click.echo(f"{one.name:<20} {', '.join(sorted(one.roles)):<30} {'active' if one.active else 'inactive'}")


@user.command("link")
@click.argument("name")
@click.pass_obj
def make_link(settings: ServerSettings, name: str) -> None:
    """Print a one-time sign-in link, to be appended to the web address."""
    from sfumato.server.account_sessions import AccountSessions

    service = _service(settings)
    click.echo(f"/sign-in/{AccountSessions(service.state).make_link(service.users.reset(name, by=operator()).name)}")


@user.command("deactivate")
@click.argument("name")
@click.pass_obj
def deactivate(settings: ServerSettings, name: str) -> None:
    """End all access of a user. Their charges stay."""
    _service(settings).users.set_active(name, False, by=operator())


@user.command("group")
@click.argument("group")
@click.argument("names", nargs=-1)
@click.pass_obj
def group(settings: ServerSettings, group: str, names: tuple[str, ...]) -> None:
    """Add a group if there is none of that name, and add users to it."""
    users = _service(settings).users
    if group not in users.groups():
        users.add_group(group, by=operator())
    for name in names:
        users.set_member(group, name, True, by=operator())


@command.group("token")
def token() -> None:
    """API tokens."""


@token.command("create")
@click.argument("name")
@click.option("--scope", "scopes", type=click.Choice(_SCOPES), multiple=True, default=("ask",), show_default=True)
@click.option("--days", type=float, default=90, show_default=True, help="How long it is valid.")
@click.option("--label", default="", help="What it is for.")
@click.pass_obj
def create_token(settings: ServerSettings, name: str, scopes: tuple[str, ...], days: float, label: str) -> None:
    """Make a token for a user; it is shown once."""
    from sfumato.server.roles import Scope

    service = _service(settings)
    made = service.tokens.create(name, scopes=map(Scope, scopes), days=days, label=label)
    service.users.reset(name, by=operator())
    click.echo(made.secret)
    note(f"Token {made.token.id}, valid until {made.token.expires[:10]}.")


@token.command("list")
@click.argument("name")
@click.pass_obj
def list_tokens(settings: ServerSettings, name: str) -> None:
    """List the tokens of a user, without their secrets."""
    for one in _service(settings).tokens.of(name):
        state = f"revoked {one.revoked[:10]}" if one.revoked else f"until {one.expires[:10]}"
        click.echo(f"{one.id}  {','.join(sorted(one.scopes)):<16} {state:<20} {one.last_used[:10]:<12} {one.label}")


@token.command("revoke")
@click.argument("identifier")
@click.pass_obj
def revoke_token(settings: ServerSettings, identifier: str) -> None:
    """End a token."""
    _service(settings).tokens.revoke(identifier)


@command.group("dataset")
def dataset() -> None:
    """Registered data sets."""


@dataset.command("register")
@click.argument("document", type=typed_path)
@click.option("--owner", default="admin", show_default=True, help="User who owns the data set.")
@click.pass_obj
def register(settings: ServerSettings, document: Path, owner: str) -> None:
    """Register a data set document, or a new version of its data set."""
    service = _service(settings)
    found = service.registered.register_file(document, by=service.users.get(owner).name)
    click.echo(f"{found.name} version {found.version}")


@dataset.command("list")
@json_option
@click.pass_obj
def list_datasets(settings: ServerSettings, as_json: bool) -> None:
    """List the data sets with the users and groups that may ask them."""
    registered = _service(settings).registered
    rows = [{**one.to_dict(), "grants": list(registered.grants(one.name))} for one in registered.all()]
    if as_json:
        emit_json({"datasets": rows})
        return
    for row in rows:
        click.echo(f"{row['name']:<20} {row['state']:<8} version {row['version']}  {', '.join(row['grants'])}")  # type: ignore[arg-type]


@dataset.command("grant")
@click.argument("name")
@click.argument("holder")
@click.option("--revoke", is_flag=True, help="Take the grant away.")
@click.pass_obj
def grant(settings: ServerSettings, name: str, holder: str, revoke: bool) -> None:
    """Let the user HOLDER, or the group @HOLDER, ask a data set."""
    _service(settings).registered.set_grant(name, holder, not revoke, by=operator())


@dataset.command("set")
@click.argument("name")
@click.argument("state", type=click.Choice(("active", "frozen", "retired")))
@click.option("--why", required=True, help="Reason, for the ledger.")
@click.pass_obj
def set_state(settings: ServerSettings, name: str, state: str, why: str) -> None:
    """Freeze, reactivate or retire a data set."""
    from sfumato.server.datasets import DatasetState

    _service(settings).registered.set_state(name, DatasetState(state), by=operator(), why=why)


@command.group("budget")
def budget() -> None:
    """Budgets: caps and requests for higher ones."""


@budget.command("set")
@click.option("--dataset", default="", help="Data set; all data sets if left out.")
@click.option("--holder", default="", help="Analyst, or a group as @NAME; the data set itself if left out.")
@click.option("--period", type=click.Choice(_PERIODS), default="lifetime", show_default=True, help="What is capped.")
@click.option("--epsilon", type=NUMBER, default=None, help="Budget as epsilon.")
@click.option("--rho", type=NUMBER, default=None, help="Budget as rho.")
@click.option("--delta", type=NUMBER, default="0", show_default=True, help="Budget for the sum of all deltas.")
@click.option("--why", required=True, help="Reason, for the ledger.")
@click.option("--request", "as_request", is_flag=True, help="Ask for it: a higher cap needs two other people.")
@click.pass_obj
def set_budget(
    settings: ServerSettings, dataset: str, holder: str, period: str, epsilon: str | None, rho: str | None,
    delta: str, why: str, as_request: bool,
) -> None:  # fmt: skip
    """Set a first cap, or a lower one. A higher one is requested and approved by two other people."""
    from sfumato.ledger.accounts import Period
    from sfumato.server.budgets import stated_cap

    service, loss = _service(settings), stated_cap(epsilon, rho, delta)
    kind = Period[period.upper()]
    if as_request:
        made = service.budgets.request(loss, dataset=dataset, holder=holder, by=operator(), why=why, period=kind)
        click.echo(made.id)
        return
    entry = service.budgets.set_cap(loss, dataset=dataset, holder=holder, by=operator(), why=why, period=kind)
    click.echo(f"Entry {entry.number}: {loss}.")


@budget.command("show")
@json_option
@click.pass_obj
def show_budgets(settings: ServerSettings, as_json: bool) -> None:
    """Show all caps, what is spent, and the loss accumulated since the beginning."""
    budgets = _service(settings).budgets
    rows = [one for account in budgets.accounts()
            for one in budgets.balances(dataset=account[0], holder=account[1])]  # fmt: skip
    if as_json:
        emit_json({"budgets": [one.to_dict() for one in rows]})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("data set", "holder", "period", "cap", "left", "since the beginning", box=None, pad_edge=False)
    for one in rows:
        table.add_row(one.dataset or "(all)", one.holder or "(all)", one.period.name.lower(), str(one.cap or "none"),
                      str(one.left if one.left is not None else ""), str(one.since_beginning))  # fmt: skip
    Console(highlight=False).print(table)


@budget.command("requests")
@click.pass_obj
def show_requests(settings: ServerSettings) -> None:
    """List requests for budget."""
    for one in _service(settings).budgets.requests():
        account = f"{one.dataset or '(all)'} {one.holder or '(all)'}"
        click.echo(f"{one.id}  {one.state:<9} {account}: {one.cap} by {one.by}, approved by {', '.join(one.approvals)}")


@budget.command("approve")
@click.argument("identifier")
@click.pass_obj
def approve(settings: ServerSettings, identifier: str) -> None:
    """Approve a request. The second person's approval sets the cap."""
    click.echo(_service(settings).budgets.approve(identifier, by=operator()).state)


@budget.command("reject")
@click.argument("identifier")
@click.pass_obj
def reject(settings: ServerSettings, identifier: str) -> None:
    """Reject a request."""
    click.echo(_service(settings).budgets.reject(identifier, by=operator()).state)


@command.command("backup")
@click.argument("out", type=typed_path)
@click.pass_obj
def backup(settings: ServerSettings, out: Path) -> None:
    """Copy the state to the file OUT, while the server runs, and print the last hash of its ledger."""
    from sfumato.server.backup import back_up

    click.echo(back_up(_service(settings).state, out))


@command.command("restore")
@click.argument("backup_file", type=typed_path, required=False)
@click.option(
    "--witness", default=None, help="Witness: a file or a postgresql:// address; that of the settings if left out."
)
@click.option(
    "--without-witness", default=None, metavar="REASON", help="Restore without the witness; the reason is entered."
)
@click.option("--keep-tokens", is_flag=True, help="Keep tokens; those revoked since the backup are valid again.")
@click.pass_obj
def restore_backup(
    settings: ServerSettings, backup_file: Path | None, witness: str | None, without_witness: str | None,
    keep_tokens: bool,
) -> None:  # fmt: skip
    """Replace the state by a backup and charge again what was charged since. Stop the server first.

    Without BACKUP_FILE, the state has been restored by other means, for example by pg_restore, and is charged again.
    """
    from sfumato.server.backup import restore

    charged = restore(
        settings.state, backup_file, witness=witness or settings.witness, by=operator(), without=without_witness,
        keep_tokens=keep_tokens,
    )  # fmt: skip
    for (name, analyst), loss in sorted(charged.items()):
        click.echo(f"Charged again: {name}, {analyst}: {loss}")
    note("Restored. All browser sessions ended" + (".", ", and all tokens.")[not keep_tokens])


@command.command("verify")
@click.option("--last", default=None, help="A hash printed earlier, which must still be in the chain.")
@click.option(
    "--witness", default=None, help="Witness: a file or a postgresql:// address; that of the settings if left out."
)
@click.pass_obj
def verify_state(settings: ServerSettings, last: str | None, witness: str | None) -> None:
    """Verify the ledger's chain and totals, and that it is not an old copy. Print the last hash."""
    from sfumato.server.backup import verify
    from sfumato.server.witness import witness_store

    state = _service(settings).state
    click.echo(verify(state, witness_store(state, witness or settings.witness), last=last))
