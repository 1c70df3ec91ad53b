"""HTML displays for notebooks: tables and the risk picture as inline SVG, without a style sheet of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import count
from typing import Any

import polars as pl

from sfumato.evaluation.formatting import number
from sfumato.reports.figures import Figure, risk_figure

__all__ = ["attacks_html", "figure_html", "frame_html", "table_html"]

Plain = Mapping[str, Any]
_numbers = count(1)
_LIGHT = "background:#fff;color:#1c2630;padding:.5rem;max-width:50rem"
"""Pictures are drawn for a light page; notebooks may be dark."""


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of text; every cell is escaped."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def frame_html(frame: pl.DataFrame) -> str:
    """A result frame without its empty columns."""
    kept = [name for name in frame.columns if frame[name].null_count() < frame.height]
    return table_html(kept, [[_cell(value) for value in row] for row in frame.select(kept).iter_rows()])


def figure_html(figure: Figure) -> str:
    """A picture with its caption. The identifier is new each time: a notebook may show the same picture twice."""
    ident = f"sfumato-{figure.name}-{next(_numbers)}"
    svg = figure.chart.draw(figure.width).svg(ident=ident, label=figure.alternative)
    return f'<figure style="{_LIGHT}">{svg}<figcaption>{escape(figure.caption)}</figcaption></figure>'


def attacks_html(attacks: Sequence[Plain], *, before: Sequence[Plain] = (), limits: Sequence[Plain] = ()) -> str:
    """The risk picture and the table behind it."""
    figure = risk_figure(attacks, before=before, limits=limits)
    if figure is None:
        rows = [(str(attack.get("attack")), str(attack.get("reason") or "")) for attack in attacks]
        return table_html(("attack", "no risk, because"), rows)
    return figure_html(figure) + table_html(figure.head, figure.rows)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) else "" if value is None else str(value)
