"""BarChart: one number for each name across, or groups of numbers up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.drawing.axes import AxisScale, Words, legend, nice_ticks, x_axis, y_axis
from sfumato.drawing.chart import Chart
from sfumato.drawing.marks import (
    AFTER,
    BEFORE,
    BEFORE_SOFT,
    INK,
    MUTED,
    Drawing,
    label_lines,
    rect,
    rule,
    text,
    text_width,
)

_COLOURS = (AFTER, "#8dbcdc", BEFORE)
_STEP = 22


@dataclass(frozen=True, kw_only=True)
class BarRow:
    """A value, words beside it, and a mark to compare it with."""

    label: str
    value: float
    words: str = ""
    mark: float | None = None
    strong: bool = False
    """Drawn in the colour of a warning."""
    series: str = ""


@dataclass(frozen=True, kw_only=True)
class BarChart(Chart):
    """Horizontal bars with their values behind the end of bar and mark, so nothing strikes a number through."""

    name: ClassVar[str] = "bars"

    rows: tuple[BarRow, ...]
    top: float | None = None
    """Largest value of the axis; the largest of the rows if None."""
    percent: bool = False
    title: str = ""
    whole: bool = False

    def draw(self, width: float) -> Drawing:
        """A row for each bar; bars with the same label form a group."""
        series = list(dict.fromkeys(row.series for row in self.rows if row.series))
        head, above = legend([(name, "", _COLOURS[i % 3]) for i, name in enumerate(series)], 4, width)
        room = min(max((text_width(row.label) for row in self.rows), default=0), 0.42 * width)
        left, behind = room + 12, max((text_width(row.words, 11) for row in self.rows), default=0)
        largest = self.top or max((max(row.value, row.mark or 0) for row in self.rows), default=1.0)
        ticks = nice_ticks(largest, most=4, whole=self.whole)
        high = self.top or ticks[-1]
        scale = AxisScale(low=0, high=high, start=left, end=width - max(behind + 8, 18))
        body, y, last = [], above + 2, ""
        for row in self.rows:
            y += 8 if series and last and row.label != last else 0
            middle, end = y + _STEP / 2, scale(row.value)
            if row.label != last or not series:
                group = sum(other.label == row.label for other in self.rows) if series else 1
                body.append(label_lines(left - 8, middle + (group - 1) * _STEP / 2, row.label, room, most=2))
            colour = _COLOURS[series.index(row.series) % 3] if row.series else BEFORE if row.strong else AFTER
            body.append(rect(left, middle - 7, end - left, 14, colour, corner=1.5))
            if row.mark is not None:
                body.append(rule(scale(row.mark), middle - 9, scale(row.mark), middle + 9, BEFORE, width=3))
            if row.words:
                at = max(end, scale(row.mark) if row.mark is not None else end)
                body.append(text(at + 6, middle + 4, row.words, INK, size=11))
            y, last = y + _STEP, row.label
        said: Words = (lambda tick: f"{100 * tick:.3g} %") if self.percent else (lambda tick: f"{tick:.3g}")
        shown = [tick for tick in ticks if tick <= high + 1e-9]
        axis = "".join(x_axis(scale, shown, said, top=above, bottom=y + 2, title=self.title))
        return Drawing(width=width, height=y + (48 if self.title else 28), body=head + axis + "".join(body))


@dataclass(frozen=True, kw_only=True)
class ColumnRow:
    """A vertical bar with the interval of its value."""

    label: str
    value: float
    when: str = ""
    words: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class ColumnChart(Chart):
    """Vertical bars in groups, ``before`` outlined and ``after`` filled."""

    name: ClassVar[str] = "columns"

    rows: tuple[ColumnRow, ...]
    across: str
    up: str
    percent: bool = False

    def draw(self, width: float) -> Drawing:
        """A group for each label, a bar for each ``when``."""
        whens = list(dict.fromkeys(row.when for row in self.rows))
        labels = list(dict.fromkeys(row.label for row in self.rows))
        looks = {when: (BEFORE_SOFT, BEFORE) if when == "before" else (AFTER, AFTER) for when in whens}
        entries = [(when, looks[when][1], looks[when][0]) for when in whens] if len(whens) > 1 else []
        head, above = legend(entries, 4, width)
        ticks = nice_ticks(1.0 if self.percent else max(row.high or row.value for row in self.rows), most=4)
        said: Words = (lambda tick: f"{100 * tick:.0f} %") if self.percent else (lambda tick: f"{tick:,.4g}")
        left = max(text_width(said(tick)) for tick in ticks) + 14
        top = above + 34
        up = AxisScale(low=ticks[0], high=ticks[-1], start=top + 190, end=top)
        step = (width - left - 8) / max(1, len(labels))
        bar = min(46.0, step * 0.8 / len(whens))
        body = [*y_axis(up, ticks, said, left=left, right=width - 8), text(4, above + 14, self.up, MUTED)]
        for place, label in enumerate(labels):
            middle = left + (place + 0.5) * step
            body.append(text(middle, up.start + 17, label, INK, anchor="middle", size=12 if step > 44 else 10.5))
            for row in (row for row in self.rows if row.label == label and row.value > 0):
                x = middle + (whens.index(row.when) - len(whens) / 2) * bar
                fill, edge = looks[row.when]
                body.append(rect(x + 1, up(row.value), bar - 2, up.start - up(row.value), fill, edge=edge, corner=2))
                if row.low is not None and row.high is not None:
                    body.append(rule(x + bar / 2, up(row.low), x + bar / 2, up(row.high), INK, width=2))
                if row.words and text_width(row.words, 11) <= bar + 8:
                    body.append(text(x + bar / 2, up(row.value) - 5, row.words, INK, anchor="middle", size=11))
        body.append(text((left + width) / 2, up.start + 38, self.across, MUTED, anchor="middle"))
        return Drawing(width=width, height=up.start + 46, body=head + "".join(body))
