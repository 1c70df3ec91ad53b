"""Versions of the software that made a release."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from sfumato import __version__

_LIBRARIES = ("numpy", "polars", "duckdb", "scipy", "numba", "pydantic")


def versions() -> dict[str, str]:
    """Versions of sfumato, Python and the numerical libraries that are installed."""
    installed = {"sfumato": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed
