"""HTML displays for notebooks: headline, verdicts, the risk picture as inline SVG and tables, without a style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import count

import polars as pl

from sfumato.evaluation.adversaries import adversary_sentence
from sfumato.evaluation.formatting import Plain, attack_label, number, percent
from sfumato.reports.figures import Figure, risk_figure
from sfumato.reports.terminal import advice_lines, limit_lines
from sfumato.reports.text import before_of, measure_label, measure_value

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


def attacks_html(
    attacks: Sequence[Plain],
    *,
    before: Sequence[Plain] = (),
    limits: Sequence[Plain] = (),
    changes: Sequence[Plain] = (),
) -> str:
    """The headline, a line per limit, what to change, the risk picture and the table behind it."""
    head = f"<p><strong>{escape(_headline(attacks))}</strong></p>"
    lines = (limit_lines(limits, attacks).plain, advice_lines(changes).plain)
    head += "".join(f'<p style="white-space:pre-line">{escape(line)}</p>' for line in lines if line)
    figure = risk_figure(attacks, before=before, limits=limits)
    if figure is None:
        rows = [(attack_label(attack), str(attack.get("reason") or "")) for attack in attacks]
        return head + table_html(("attack", "no risk, because"), rows)
    return head + figure_html(figure) + table_html(figure.head, figure.rows)


def _headline(attacks: Sequence[Plain]) -> str:
    """What the adversaries achieve, in a sentence."""
    judged = [attack for attack in attacks if attack.get("risk") is not None]
    if not judged:
        return "No attack has a result, so the risk is not known."
    worst = max(judged, key=lambda attack: float(attack["risk"]))
    return adversary_sentence(attacks) or f"The largest risk is {percent(worst['risk'])} ({attack_label(worst)})."


def measures_html(measures: Sequence[Plain]) -> str:
    """One line per measure, with the names and the values that the terminal shows."""
    rows = [
        (
            measure_label(measure),
            measure_value(measure, measure.get("value")),
            _or_empty(measure, before_of(measure)),
            _or_empty(measure, measure.get("low")),
            _or_empty(measure, measure.get("high")),
            str(measure.get("reason") or ""),
        )
        for measure in measures
    ]
    head = ("measure", "value", "of the original", "low", "high", "reason")
    kept = [0, 1, *(place for place in range(2, len(head)) if any(row[place] for row in rows))]
    return table_html([head[place] for place in kept], [[row[place] for place in kept] for row in rows])


def _or_empty(measure: Plain, value: float | None) -> str:
    return "" if value is None else measure_value(measure, value)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) else "" if value is None else str(value)
