"""Word lists of the detectors: one word per line, in lower case."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["word_list"]


@cache
def word_list(name: str) -> frozenset[str]:
    """The words of one list.

    >>> "maria" in word_list("given_names")
    True
    """
    return frozenset(files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8").splitlines())
