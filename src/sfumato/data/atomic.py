"""Output that is there whole or not at all.

Everything is written under a temporary name beside its place and renamed when complete. If the disk fills up or
somebody presses Ctrl-C, nothing half-written is left and an earlier output is untouched.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.errors import FileMissing, OutputExists, WriteFailed


def _beside(path: Path) -> Path:
    """A free name in the same folder with the same suffix: renaming is atomic within one file system only."""
    return path.with_name(f".sfumato-{secrets.token_hex(6)}-{path.name}")


def _refuse_existing(path: Path) -> None:
    raise OutputExists(
        f"{path} exists already.", fix="Choose another name, or set `force`.", option="force", path=str(path)
    )


def _need_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileMissing(f"The folder {path.parent} does not exist.", fix="Make it first.", path=str(path.parent))


def _failed(path: Path, failure: OSError) -> WriteFailed:
    reason = failure.strerror or type(failure).__name__
    return WriteFailed(
        f"{path} could not be written: {reason}. Nothing was changed.",
        fix="Free some space or choose another place.",
        path=str(path),
        reason=reason,
    )


def _sync(path: Path) -> None:
    """Force to disk what was written: a rename must not survive a power cut that the content does not."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _put(temporary: Path, place: Path) -> None:
    """Put a file where there is none: a link, unlike a rename, never takes the place of one that appeared meanwhile."""
    try:
        os.link(temporary, place)
    except FileExistsError:
        _refuse_existing(place)
    except OSError:  # a file system without links
        if place.exists():
            _refuse_existing(place)
        os.replace(temporary, place)


@contextmanager
def replacing(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give a temporary name to write to; when the block ends well the file is renamed to ``path``.

    An existing ``path`` is refused unless ``force``. An OSError inside the block (disk full, no permission) becomes
    :class:`~sfumato.errors.WriteFailed`; any exception removes the temporary file and leaves ``path`` as it was.
    """
    place = Path(path)
    if place.is_dir():
        raise WriteFailed(f"{place} is a folder, not a file.", fix="Name a file.", path=str(place))
    if place.exists() and not force:
        _refuse_existing(place)
    _need_parent(place)
    temporary = _beside(place)
    try:
        try:
            yield temporary
            _sync(temporary)
            if force:
                os.replace(temporary, place)
            else:
                _put(temporary, place)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        _sync(place.parent)
    except OSError as failure:
        raise _failed(place, failure) from failure


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold a file for this process alone while the block runs: for reading it, changing it and writing it back.

    The lock is on a file beside it, because :func:`replacing` puts another file in its place. It ends with the process.
    """
    place = Path(path)
    _need_parent(place)
    try:
        number = os.open(place.with_name(f".{place.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as failure:
        raise _failed(place, failure) from failure
    try:
        _lock(number)
        yield
    finally:
        os.close(number)


def _lock(number: int) -> None:
    """Wait until no other process has the lock. Closing the file releases it."""
    if sys.platform == "win32":
        import msvcrt

        while True:
            with suppress(OSError):  # it gives up after ten seconds
                msvcrt.locking(number, msvcrt.LK_LOCK, 1)
                return
    else:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX)


@contextmanager
def replacing_folder(path: str | Path, *, force: bool = False, marker: str | None = None) -> Iterator[Path]:
    """Give a temporary folder to fill; when the block ends well it takes the place of ``path``.

    An existing folder that holds anything is refused unless ``force``; with a ``marker`` (a file name) it is refused
    even then if it lacks that file, so that ``--force`` on somebody's home folder does not erase it.
    """
    place = Path(path)
    if place.is_symlink():
        place = place.resolve()  # the folder is replaced where it lies, and the link to it stays
    refuse_folder(place, force=force, marker=marker)
    temporary, old = _beside(place), _beside(place)
    try:
        try:
            temporary.mkdir()
            yield temporary
            for root, _, files in os.walk(temporary):
                for name in files:
                    _sync(Path(root, name))
                _sync(Path(root))
            _swap(temporary, place, old)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        _sync(place.parent)
    except OSError as failure:
        raise _failed(place, failure) from failure


def refuse_folder(place: Path, *, force: bool = False, marker: str | None = None) -> None:
    """Refuse a folder that :func:`replacing_folder` would refuse: before any work is done, rather than after it."""
    if place.exists() and not place.is_dir():
        raise WriteFailed(f"{place} is a file, not a folder.", fix="Name a folder.", path=str(place))
    if place.is_dir() and any(place.iterdir()):
        if not force:
            _refuse_existing(place)
        if marker is not None and not (place / marker).exists():
            raise OutputExists(
                f"{place} was not written by sfumato (it has no {marker}), so it is not replaced.",
                fix="Choose another folder.",
                path=str(place),
            )
    _need_parent(place)


def _swap(new: Path, place: Path, old: Path) -> None:
    """Put ``new`` in its place; the old folder goes only after the new one is there, and comes back if that fails."""
    if not place.exists():
        os.rename(new, place)
        return
    os.rename(place, old)
    try:
        os.rename(new, place)
    except BaseException:
        os.rename(old, place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def write_secret(path: str | Path, content: bytes | str, *, force: bool = False) -> None:
    """Write a key or a row map so that only its owner can read it (mode 0600 from the first byte on)."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(path, force=force) as temporary:
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(data)


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def path_digest(path: Path) -> str:
    """The SHA-256 of a file, or of the list of a folder's files, one line each as ``sha256sum`` prints it."""
    if path.is_file():
        return sha256(path)
    names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    lines = "".join(f"{sha256(path / name)}  {name}\n" for name in names)
    return hashlib.sha256(lines.encode()).hexdigest()
