"""Serve data sets to analysts over REST and PostgreSQL."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import NUMBER, note, typed_path

if TYPE_CHECKING:
    from sfumato.server.rest.running import RunningServer
    from sfumato.server.service import QueryService

PERSON = "operator"


@click.command("serve")
@click.argument("datasets", type=typed_path, nargs=-1)
@click.option("--state", default=None, help="Folder of the state, or a postgresql:// address.")
@click.option("--config", type=typed_path, default=None, help="Settings file (server.yaml).")
@click.option("--host", default=None, help="Address to listen on; 127.0.0.1 by default.")
@click.option("--port", type=int, default=None, help="Port of the web address; 8642 by default, 0 for any.")
@click.option("--postgres-port", type=int, default=None, help="PostgreSQL port; 5642 by default, 0 any, -1 none.")
@click.option("--epsilon", type=NUMBER, default=None, help="Budget of data sets that have none yet, as epsilon.")
@click.option("--delta", type=NUMBER, default="0", help="Budget of data sets that have none yet, as delta.")
@click.option("--without-witness", default=None, metavar="REASON", help="Begin a new witness; the reason is entered.")
def command(
    datasets: tuple[Path, ...], epsilon: str | None, delta: str, config: Path | None, without_witness: str | None,
    **given: Any,
) -> None:  # fmt: skip
    """Serve the data sets that the documents DATASETS describe, until it is interrupted.

    The state (ledger, accounts, questions) is kept in a folder. The first start prints a one-time link for the first
    administrator. Settings come from the options, then SFUMATO_SERVER_* variables, then the settings file.
    """
    from sfumato.server.logs import log_json
    from sfumato.server.rest.running import run_server
    from sfumato.server.service import QueryService
    from sfumato.server.settings import load_settings

    settings = load_settings(config, given=given)
    service = QueryService.open(
        settings.state, response_interval=settings.response_interval or None, engine=settings.engine
    )
    first = first_administrator(service)
    for path in datasets:
        _register(service, path, epsilon, delta)
    log_json()
    run_server(
        service, settings, ready=lambda running: _tell(running, first, _state_options(config, given["state"])),
        without_witness=without_witness, by=operator(),
    )  # fmt: skip


def first_administrator(service: QueryService) -> str | None:
    """The name of the first administrator, who is made if there are no users; None once they have a password."""
    from sfumato.server.roles import AccountRole

    name = "admin"
    if not service.users.all():
        service.users.add(name, roles=[AccountRole.ADMINISTRATOR, AccountRole.OWNER], by=operator())
    with service.state.store.read() as transaction:
        rows = transaction.query("SELECT password FROM sfumato_server_users WHERE name = ?", name)
    return name if rows and not rows[0][0] else None


def operator() -> str:
    """How the person at the machine is named in the ledger."""
    return f"operator {getpass.getuser()}"


def _register(service: QueryService, path: Path, epsilon: str | None, delta: str) -> None:
    from sfumato.server.budgets import stated_cap

    dataset = service.registered.register_file(path, by="admin")
    note(f"Data set {dataset.name}, version {dataset.version}, policy {dataset.policy}.")
    capped = service.state.ledger.balance(dataset=dataset.name).cap is not None
    if dataset.policy != "differential-privacy" or capped:
        return
    if epsilon is None:
        note(f"{dataset.name} has no budget yet: use --epsilon, or `sfumato server budget set`.")
        return
    loss = stated_cap(epsilon, None, delta)
    service.budgets.set_cap(loss, dataset=dataset.name, holder="", by=operator(), why="first budget")


def _state_options(config: Path | None, state: str | None) -> str:
    """The options with which `sfumato server` finds the state that was given here. A password is not repeated."""
    from sfumato.server.settings import PREFIX

    variable = f"{PREFIX}STATE"
    words = [] if config is None else ["--config", quote(str(config))]
    if state is not None:
        words += ["--state", quote(state)]
    elif variable in os.environ:
        words += ["--state", f'"${variable}"' if "://" in os.environ[variable] else quote(os.environ[variable])]
    return "".join(f"{word} " for word in words)


def _tell(running: RunningServer, first: str | None, options: str) -> None:
    from sfumato.server.account_sessions import AccountSessions

    click.echo(f"Web:         {running.web}")
    if first is not None:
        link = AccountSessions(running.service.state).make_link(first)
        click.echo(f"Sign in:     {running.web}/sign-in/{link}   (user {first}, works once, within 30 minutes)")
    name = next((dataset.name for dataset in running.service.registered.all()), "DATASET")
    if running.postgres_port is not None:
        place = f"host={running.postgres_host} port={running.postgres_port} dbname={name} user=NAME"
        click.echo(f"PostgreSQL:  psql '{place}'   (the password is a token)")
    click.echo(f"Add an analyst:  sfumato server {options}user add NAME --dataset {name} --epsilon 1")
