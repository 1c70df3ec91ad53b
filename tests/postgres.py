"""A throw-away PostgreSQL server for tests, where its programs are installed; tests that need it skip otherwise."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["postgresql"]


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl: on the path, or where Debian and Fedora put them."""
    found = shutil.which("pg_ctl")
    real = [Path(found).resolve().parent] if found else []
    folders = real + [Path(name) for name in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    folders += [Path("/usr/pgsql/bin"), Path("/usr/local/pgsql/bin")]
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


def _as_owner(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root: root hands over to the user ``postgres``."""
    return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else command


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of an empty database ``postgres`` on a server of its own, stopped and removed at the end."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and pg_ctl are not installed on this machine")
    pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
    if os.getuid() == 0 and (shutil.which("runuser") is None or not _user_exists("postgres")):
        pytest.skip("running as root without a user `postgres` to run the server")
    folder = Path(tempfile.mkdtemp(prefix="tacit-pg-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    data = folder / "data"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quick = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c full_page_writes=off"
    start = [
        str(programs / "pg_ctl"),
        "-D",
        str(data),
        "-l",
        str(folder / "log"),
        "-o",
        quick,
        "-w",
        "-t",
        "60",
        "start",
    ]
    initialize = [str(programs / "initdb"), "-D", str(data), "-U", "tester", "--auth=trust", "-E", "UTF8", "--no-sync"]
    try:
        for command in (initialize, start):
            done = subprocess.run(_as_owner(command), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if done.returncode:
                pytest.skip(f"PostgreSQL could not be started: {done.stderr.decode(errors='replace')[-300:]}")
        yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        stop = [str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"]
        subprocess.run(_as_owner(stop), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user_exists(name: str) -> bool:
    import pwd

    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
