"""DuckDB in this process: the one place that opens it.

By itself DuckDB writes rows that do not fit the memory into `.tmp` of the folder the process runs in, readable for
everybody and left behind when the process is killed; it installs and loads extensions over the network when a statement
mentions one; and a statement can read every file and Python variable. None of that holds here.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.data.sql_quoting import quoted_text
from sfumato.errors import BadParameter

if TYPE_CHECKING:
    import duckdb

_PREFIX = "sfumato-spill-"


@contextmanager
def open_duckdb(
    *,
    memory: str | None = None,
    threads: int | None = None,
    spills: bool = True,
    temporary: Path | None = None,
    files: Sequence[Path] = (),
    folder: Path | None = None,
    attached: Path | None = None,
    writable: bool = False,
    ordered: bool = True,
    locked: bool = True,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to an empty database in memory that reaches the named ``files`` and nothing else.

    ``attached`` is a DuckDB file, in use as ``source``; ``folder`` holds intermediate tables. Rows that do not fit the
    ``memory`` go into a folder of mode 700 below ``temporary`` (or the system's temporary folder), which is removed at
    the end, and after a process that was killed by the next one; a connection that does not spill fails instead.
    Settings cannot be changed afterwards unless ``locked`` is off: the caller then locks them.
    """
    import duckdb

    with ExitStack() as stack:
        spill = str(stack.enter_context(_spill_folder(temporary))) if spills else ""
        connection = stack.enter_context(duckdb.connect(":memory:", config={"temp_directory": spill}))
        run = connection.execute
        run("SET TimeZone = 'UTC'")  # not the machine's: times with a zone are read as those of UTC everywhere
        for off in ("python_enable_replacements", "autoinstall_known_extensions", "autoload_known_extensions"):
            run(f"SET {off} = false")
        if memory is not None:
            try:
                run("SET memory_limit = ?", [memory])
            except duckdb.Error:
                raise BadParameter(f"`{memory}` is no amount of memory.", fix="Write it like 4GB or 512MiB.") from None
        if threads is not None:
            run(f"SET threads = {int(threads)}")
        run(f"SET preserve_insertion_order = {str(ordered).lower()}")
        if attached is not None:
            run(f"ATTACH {quoted_text(attached)} AS source{'' if writable else ' (READ_ONLY)'}")
            run("USE source")
        if folder is not None:
            run(f"SET allowed_directories = [{quoted_text(folder)}]")
        run(f"SET allowed_paths = [{', '.join(map(quoted_text, files))}]")
        run("SET enable_external_access = false")
        if locked:
            run("SET lock_configuration = true")
        yield connection


@contextmanager
def _spill_folder(parent: Path | None) -> Iterator[Path]:
    """A folder of mode 700 that is removed at the end, and held by a lock as long as this process lives."""
    parent = Path(parent or tempfile.gettempdir())
    _remove_abandoned(parent, os.getpid())
    while True:
        folder = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent, ignore_cleanup_errors=True)
        held = _lock(Path(folder.name))
        if Path(folder.name).is_dir():  # nobody took it for abandoned before it was locked
            break
    try:
        with folder as name:
            yield Path(name)
    finally:
        if held is not None:
            os.close(held)


@lru_cache(maxsize=16)
def _remove_abandoned(parent: Path, process: int) -> None:
    """Remove the spill folders of processes that were killed; once for each process."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if (held := _lock(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)


def _lock(folder: Path) -> int | None:
    """A descriptor that locks a folder until it is closed or its process ends; None if it is held, or cannot be."""
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # a system without such locks: nothing is abandoned there
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
