"""Pieces of sentences for messages: numbers with nouns, articles, the nearest known name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def counted(count: int, noun: str) -> str:
    """A number with its noun, for messages.

    >>> counted(1, "row"), counted(1733, "row"), counted(0, "value"), counted(2, "class")
    ('1 row', '1,733 rows', '0 values', '2 classes')
    """
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def with_article(noun: str) -> str:
    """A noun with its indefinite article, for messages.

    >>> with_article("excel file"), with_article("csv file"), with_article("attack")
    ('an excel file', 'a csv file', 'an attack')
    """
    return f"an {noun}" if noun[:1].lower() in "aeio" else f"a {noun}"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A fix for an unknown name: the nearest known name, and the first twenty known names.

    >>> did_you_mean("ags", ["age", "sex"])
    'Did you mean `age`? Known: age, sex.'
    >>> did_you_mean("x", ["age", "age"])
    'Known: age.'
    """
    names = sorted(set(known))
    near = get_close_matches(given, names, n=1, cutoff=0.6)
    hint = f"Did you mean `{near[0]}`? " if near else ""
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"{hint}Known: {shown or 'none'}."
