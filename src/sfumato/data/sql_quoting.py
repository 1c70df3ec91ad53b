"""SQL quoting of names and text, by doubling the quotation mark: DuckDB and PostgreSQL."""

from __future__ import annotations

from pathlib import Path


def quoted_name(name: str) -> str:
    """A quoted identifier, for a table or column of any name.

    >>> quoted_name('my "table"')
    '"my ""table\"""'
    """
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str | Path) -> str:
    """A string literal.

    >>> quoted_text("o'hara.csv")
    "'o''hara.csv'"
    """
    return "'" + str(text).replace("'", "''") + "'"
