"""Dots with intervals: a share for each name before and after, with its baseline and its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.drawing.axes import AxisScale, legend, x_axis
from sfumato.drawing.chart import Chart
from sfumato.drawing.marks import (
    AFTER,
    BEFORE,
    INK,
    MUTED,
    Drawing,
    circle,
    diamond,
    label_lines,
    rect,
    rule,
    text,
    text_width,
)

_SEVERAL = 8
"""More names than this are drawn closer together."""


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A share with its interval. What lies beyond ``reference`` is what was learned."""

    label: str
    when: str
    risk: float | None
    low: float | None
    high: float | None
    words: str
    baseline: float | None = None
    limit: float | None = None
    reference: float | None = None


@dataclass(frozen=True, kw_only=True)
class Intervals(Chart):
    """Shares of targets from 0 to 1; rows without a share are left out."""

    name: ClassVar[str] = "intervals"

    rows: tuple[Dot, ...]
    title: str = "share of the targets"

    def draw(self, width: float) -> Drawing:
        """A group of rows for each label."""
        rows = [row for row in self.rows if row.risk is not None]
        labels = list(dict.fromkeys(row.label for row in rows))
        wide = width > 500
        step = 19 if wide and len(labels) > _SEVERAL else 25
        both = len({row.when for row in rows}) > 1
        entries = [("before", "dot", BEFORE), ("after", "diamond", AFTER)] if both else []
        head, above = legend(entries, 4, width)
        room = min(max((text_width(label) for label in labels), default=0), 270.0 if wide else 118.0)
        left = room + 14
        # Numbers stand to the right of everything in their row, where no line strikes them through.
        behind = max((text_width(row.words) for row in rows), default=0)
        scale = AxisScale(low=0, high=1, start=left, end=width - behind - 22)
        body, y = [], above + 4
        for label in labels:
            group = [row for row in rows if row.label == label]
            high = max(len(group) * step, 20 if wide else 32)
            body.append(label_lines(left - 10, y + high / 2, label, room))
            for place, row in enumerate(group):
                body.append(_row(row, y + (place + 0.5) * high / len(group), scale))
            y += high + 5
        ticks = (0, 0.2, 0.4, 0.6, 0.8, 1) if wide else (0, 0.5, 1)
        axis = "".join(x_axis(scale, ticks, lambda t: f"{100 * t:.0f} %", top=above, bottom=y, title=self.title))
        return Drawing(width=width, height=y + 46, body=head + axis + "".join(body))


def _row(row: Dot, y: float, scale: AxisScale) -> str:
    assert row.risk is not None
    colour = BEFORE if row.when == "before" else AFTER
    low, high = (scale(row.risk if end is None else end) for end in (row.low, row.high))
    marks = [rect(low - 4, y - 4, high - low + 8, 8, colour, corner=4, opacity=0.3)]
    if row.reference is not None and row.risk > row.reference:
        marks.append(rule(scale(row.reference), y, scale(row.risk), y, colour, width=3))
    if row.baseline is not None:
        marks.append(rule(scale(row.baseline), y - 7, scale(row.baseline), y + 7, MUTED, width=2.5))
    if row.limit is not None:
        marks.append(rule(scale(row.limit), y - 11, scale(row.limit), y + 11, INK, width=1.25))
    marks.append((circle if row.when == "before" else diamond)(scale(row.risk), y, 5.5, colour))
    marks.append(text(_behind(row, high, scale), y + 4, row.words, bold=True))
    return "".join(marks)


def _behind(row: Dot, high: float, scale: AxisScale) -> float:
    """Where the number stands: behind the band and the marks that stand in its way."""
    room, start = text_width(row.words) + 4, high + 11
    for mark in sorted(scale(mark) for mark in (row.baseline, row.limit, row.reference) if mark is not None):
        if start - 5 <= mark <= start + room:
            start = mark + 7
    return start
