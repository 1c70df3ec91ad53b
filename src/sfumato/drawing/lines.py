"""Lines and points on two numeric axes, and several such pictures side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from sfumato.drawing.axes import AxisScale, Words, legend, nice_ticks, x_axis, y_axis
from sfumato.drawing.chart import Chart
from sfumato.drawing.marks import AFTER, BEFORE, INK, MUTED, Drawing, circle, path, rule, text, text_width

_COLOURS = ("#c4500a", "#0b6aa8", "#56616c", "#8dbcdc", "#1c2630")
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 2")
Kind = Literal["linear", "log", "symlog"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A point, with the interval of its height if there is one."""

    x: float
    y: float
    when: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Lines(Chart):
    """Points of one or several series, joined or not."""

    name: ClassVar[str] = "lines"

    rows: tuple[Place, ...]
    across: str
    up: str
    percent: bool = False
    joined: bool = True
    x_ticks: tuple[float, ...] = ()
    y_ticks: tuple[float, ...] = ()
    x_ends: tuple[float, ...] = ()
    """Ends of the horizontal axis; the outer ticks if empty."""
    x_kind: Kind = "linear"
    y_kind: Kind = "linear"
    diagonal: bool = False
    """A dashed line where both axes have the same value."""
    x_guide: float | None = None
    y_guide: float | None = None
    title: str = ""

    def draw(self, width: float) -> Drawing:
        """Series differ in colour and dash."""
        series = list(dict.fromkeys(row.when for row in self.rows))
        colours = {when: _colour(when, i) for i, when in enumerate(series)}
        heading = text(4, 16, self.title, INK, bold=True) if self.title else ""
        first = 24.0 if self.title else 0.0
        entries = [(when, "line", colours[when]) for when in series] if len(series) > 1 else []
        head, above = legend(entries, 4, width)
        top = first + above + 30
        said: Words = (lambda tick: f"{100 * tick:.0f} %") if self.percent else (lambda tick: f"{tick:,.4g}")
        y_ticks = self.y_ticks or nice_ticks(1.0 if self.percent else max(r.y for r in self.rows), most=4)
        x_ticks = self.x_ticks or _whole_ticks([row.x for row in self.rows])
        left = max(text_width(said(tick)) for tick in y_ticks) + 14
        ends = self.x_ends or (x_ticks[0], x_ticks[-1])
        across = AxisScale(low=ends[0], high=ends[1], start=left, end=width - 24, kind=self.x_kind)
        up = AxisScale(low=y_ticks[0], high=y_ticks[-1], start=top + 210, end=top, kind=self.y_kind)
        body = [
            *y_axis(up, y_ticks, said, left=left, right=across.end),
            *x_axis(across, x_ticks, lambda t: f"{t:,.4g}", top=top, bottom=up.start, title=self.across),
            text(4, first + above + 14, self.up, MUTED),
        ]
        if self.diagonal:
            body.append(rule(across(ends[0]), up(y_ticks[0]), across(ends[1]), up(y_ticks[-1]), MUTED, dash="4 4"))
        if self.x_guide is not None:
            body.append(rule(across(self.x_guide), top, across(self.x_guide), up.start, MUTED, dash="2 3"))
        if self.y_guide is not None:
            body.append(rule(left, up(self.y_guide), across.end, up(self.y_guide), MUTED, dash="4 4"))
        for place, when in enumerate(series):
            own = [row for row in self.rows if row.when == when]
            dash = _DASHES[place % len(_DASHES)] if len(series) > 1 else ""
            body.append(self._series(own, across, up, colours[when], dash))
        shifted = f'<g transform="translate(0 {first:g})">{head}</g>' if head else ""
        return Drawing(width=width, height=up.start + 46, body=heading + shifted + "".join(body))

    def _series(self, rows: Sequence[Place], across: AxisScale, up: AxisScale, colour: str, dash: str) -> str:
        at = [(across(row.x), up(row.y)) for row in rows]
        band = [(across(r.x), up(r.low), up(r.high)) for r in rows if r.low is not None and r.high is not None]
        drawn = ""
        if len(band) > 1:
            edge = [f"{x:.1f},{low:.1f}" for x, low, _ in band] + [f"{x:.1f},{top:.1f}" for x, _, top in band[::-1]]
            drawn += f'<polygon points="{" ".join(edge)}" fill="{colour}" opacity="0.18"/>'
        if self.joined and len(at) > 1:
            steps = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
            drawn += path(steps, colour, width=2, dash=dash)
        return drawn + "".join(circle(x, y, 3.5, colour) for x, y in at)


@dataclass(frozen=True, kw_only=True)
class Panels(Chart):
    """Pictures side by side."""

    charts: tuple[Lines, ...]

    def draw(self, width: float) -> Drawing:
        """Each has the same share of the width."""
        each = width / len(self.charts)
        drawn = [chart.draw(each - 12) for chart in self.charts]
        body = "".join(f'<g transform="translate({i * each:g} 0)">{one.body}</g>' for i, one in enumerate(drawn))
        return Drawing(width=width, height=max(one.height for one in drawn), body=body)


def _colour(when: str, place: int) -> str:
    return {"before": BEFORE, "after": AFTER}.get(when, _COLOURS[place % len(_COLOURS)] if when else AFTER)


def _whole_ticks(values: Sequence[float]) -> tuple[float, ...]:
    return nice_ticks(max(values), low=min(values), whole=True)
