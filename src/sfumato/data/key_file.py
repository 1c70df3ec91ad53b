"""Key files: a secret key in hexadecimal digits, in a file that only its owner can read."""

from __future__ import annotations

from pathlib import Path

from sfumato.data.atomic import write_secret
from sfumato.errors import BadParameter, FileMissing
from sfumato.secret import Permit, SecretValue

Key = SecretValue[bytes] | bytes | str | Path
"""A key, its bytes, or the file it is in."""

_LEAST = 16
"""Smallest number of bytes of a key: 128 bits cannot be searched."""


def as_key(key: Key | None) -> SecretValue[bytes] | None:
    """The key itself; None stays None."""
    if key is None or isinstance(key, SecretValue):
        return key
    if not isinstance(key, bytes):
        return load_key(key)
    if len(key) < _LEAST:
        raise BadParameter(f"A key has at least {_LEAST} bytes.", fix="Leave it out; a key is then generated.")
    return SecretValue(key)


def load_key(path: str | Path) -> SecretValue[bytes]:
    """The key in a file that :func:`write_key` wrote."""
    try:
        key = bytes.fromhex(Path(path).read_text(encoding="ascii").strip())
    except FileNotFoundError:
        raise FileMissing(f"There is no key file {path}.", path=str(path)) from None
    except (ValueError, UnicodeDecodeError):
        key = b""
    except OSError:
        raise FileMissing(f"The key file {path} cannot be read.", fix="Check its permissions.") from None
    if len(key) < _LEAST:
        raise BadParameter(
            f"{path} does not hold a key of at least {2 * _LEAST} hexadecimal digits.",
            fix="Name a file that sfumato wrote, or none; a key is then generated.",
        )
    return SecretValue(key)


def write_key(path: str | Path, key: SecretValue[bytes]) -> None:
    """Write a key to a new file with mode 0600."""
    write_secret(path, key.open(Permit("writing a key file")).hex() + "\n")
