"""Which versions made a release."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from sfumato import __version__

__all__ = ["versions"]

_LIBRARIES = ("numpy", "polars", "duckdb", "scipy", "numba", "pydantic")


def versions() -> dict[str, str]:
    """sfumato, Python and the libraries that compute; one that is not installed is left out."""
    found = {"sfumato": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
