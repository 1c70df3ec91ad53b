"""A line of totals under a spreadsheet, which would be released as a person."""

from __future__ import annotations

import polars as pl

_WORDS = frozenset({
    "total", "totals", "totale", "totali", "totaux", "totaal", "totales", "sum",
    "sums", "subtotal", "average", "mean", "gesamt", "summe", "insgesamt", "somme",
    "suma", "somma", "soma", "razem", "celkem", "summa", "yhteensä", "итого",
})  # fmt: skip
"""Words that stand beside totals, in the languages of the statistical offices of Europe."""
_SHORTEST = 3
"""Fewest rows above a total."""


def total_in(frame: pl.DataFrame) -> str | None:
    """Why the last row is probably a total and no person; None if nothing says so.

    It is one if a cell holds a word for a total that no other row of the column holds, or if a number is the sum of
    all numbers above it in a row that is otherwise empty.

    >>> total_in(pl.DataFrame({"name": ["Ann", "Bo", "Cy", "Total"], "visits": [1, 2, 3, 6]}))
    '`name` holds a word for a total'
    >>> total_in(pl.DataFrame({"name": ["Ann", "Bo", "Cy", None], "visits": [1, 2, 3, 6]}))
    '`visits` is the sum of the rows above, and no other cell is filled'
    """
    if frame.height <= _SHORTEST:
        return None
    for column in frame.iter_columns():
        if column.dtype == pl.String:
            words = column.str.strip_chars(" :*=").str.to_lowercase().str.split(" ").list.first()
            if words[-1] in _WORDS and not (words[:-1] == words[-1]).any():
                return f"`{column.name}` holds a word for a total"
    filled = [column for column in frame.iter_columns() if column[-1] is not None]
    sums = [column for column in filled if column.dtype.is_numeric() and _is_sum(column)]
    if sums and len(sums) == len(filled) < frame.width:
        return f"`{sums[0].name}` is the sum of the rows above, and no other cell is filled"
    return None


def _is_sum(column: pl.Series) -> bool:
    above, last = column[:-1].drop_nulls().cast(pl.Float64), float(column[-1])
    return len(above) >= _SHORTEST and last != 0 and abs(float(above.sum()) - last) <= 1e-9 * abs(last)
