"""The risk-utility map of a study as inline SVG: risk across, utility loss up, with intervals and the limit.

Colours are those of the light theme of reports; their style sheet replaces them for the dark theme.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from sfumato.drawing import nice_ticks
from sfumato.drawing.marks import AFTER, BEFORE, GRID, INK, MUTED, PAGE, rule, text
from sfumato.evaluation.formatting import number, percent
from sfumato.studies.frontier import Point, Study

_LETTER = 6.6
"""Width of a letter of a label."""


def risk_utility_map(study: Study, utility: str, *, best: Point | None, width: int = 780, ident: str = "map") -> str:
    """The candidates by risk and by one utility measure, as an SVG element with a text alternative.

    A horizontal line spans the interval of the risk; the bar at its right end is what the limit is compared with. A
    vertical line spans the loss over the seeds. The recommended candidate is a diamond.
    """
    points = [p for p in study.points if p.risk is not None and utility in p.losses]
    limit = study.plan.recipe.limits.risk
    scale = _Scale.of(points, utility, limit, width)
    body = "".join(
        [
            *_axes(scale, utility, study.plan.risk or "worst attack on identity"),
            *([] if limit is None else _limit(scale, limit)),
            *_frontier(scale, points, utility),
            *(mark for point in points for mark in _marks(scale, point, utility, point is best)),
            *_labels(scale, points, utility, best),
        ]
    )
    kind = "narrow" if width < 500 else "wide"
    words = f"{len(points)} candidates by risk and by {utility}; the table below has the numbers"
    return (
        f'<svg id="{ident}" class="{kind}" role="img" aria-label="{escape(words)}" viewBox="0 0 {width} {scale.height}"'
        f' width="{width}" height="{scale.height}" focusable="false" font-size="12">{body}</svg>'
    )


@dataclass(frozen=True, kw_only=True)
class _Scale:
    """Positions of risks and losses in the picture."""

    width: int
    height: int
    left: float
    across: tuple[float, ...]
    up: tuple[float, ...]

    @classmethod
    def of(cls, points: list[Point], utility: str, limit: float | None, width: int) -> _Scale:
        risks = [p.risk_high or 0.0 for p in points] + ([] if limit is None else [limit])
        up = nice_ticks(max((p.losses[utility][2] for p in points), default=1.0))
        left = 16 + 7.0 * max(len(number(tick)) for tick in up)
        height = 420 if width >= 500 else 320
        return cls(width=width, height=height, left=left, across=nice_ticks(max(risks, default=1.0)), up=up)

    def x(self, risk: float) -> float:
        return self.left + (self.width - self.left - 16) * risk / self.across[-1]

    def y(self, loss: float) -> float:
        return self.height - 48 - (self.height - 82) * max(loss, 0.0) / self.up[-1]


def _axes(scale: _Scale, utility: str, risk: str) -> Iterator[str]:
    bottom, right = scale.y(0), scale.x(scale.across[-1])
    for tick in scale.across:
        yield rule(scale.x(tick), scale.y(scale.up[-1]), scale.x(tick), bottom, GRID)
        yield text(scale.x(tick), bottom + 18, percent(tick), MUTED, anchor="middle")
    for tick in scale.up:
        yield rule(scale.left, scale.y(tick), right, scale.y(tick), GRID)
        yield text(scale.left - 8, scale.y(tick) + 4, number(tick), MUTED, anchor="end")
    yield text((scale.left + right) / 2, scale.height - 8, f"risk: {risk}", MUTED, anchor="middle")
    yield text(4, 14, f"utility loss: {utility}", MUTED)


def _limit(scale: _Scale, limit: float) -> Iterator[str]:
    x = scale.x(limit)
    yield rule(x, scale.y(scale.up[-1]) - 8, x, scale.y(0), BEFORE, width=2)
    words = f"limit {percent(limit)}"
    room = x + 6 + _LETTER * len(words) < scale.width
    yield text(x + (4 if room else -4), scale.y(scale.up[-1]) - 2, words, BEFORE, anchor="start" if room else "end")


def _frontier(scale: _Scale, points: list[Point], utility: str) -> Iterator[str]:
    line = [
        f"{scale.x(p.risk or 0):.1f},{scale.y(p.losses[utility][0]):.1f}"
        for p in sorted(points, key=lambda p: p.risk or 0)
        if p.efficient
    ]
    if len(line) > 1:
        yield f'<polyline points="{" ".join(line)}" fill="none" stroke="{MUTED}" stroke-dasharray="4 4"/>'


def _marks(scale: _Scale, point: Point, utility: str, best: bool) -> Iterator[str]:
    assert point.risk is not None
    mean, low, high = point.losses[utility]
    x, y = scale.x(point.risk), scale.y(mean)
    end = scale.x(point.risk_high if point.risk_high is not None else point.risk)
    words = f"{point.candidate.name}: risk {percent(point.risk)}, at most {percent(point.risk_high)}"
    words += f", by {point.risk_by}; loss {number(mean)}" + (f"; {point.remark}" if point.remark else "")
    yield f"<g><title>{escape(words)}</title>"
    yield rule(scale.x(point.risk_low if point.risk_low is not None else point.risk), y, end, y, MUTED)
    yield rule(end, y - 5, end, y + 5, INK, width=2)
    yield rule(x, scale.y(low), x, scale.y(high), MUTED)
    if best:
        yield f'<path d="M{x:.1f} {y - 9:.1f}l9 9l-9 9l-9 -9z" fill="{BEFORE}" stroke="{PAGE}" stroke-width="2"/>'
    else:
        fill = AFTER if point.efficient else "none"
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{fill}" stroke="{AFTER}" stroke-width="1.5"/>'
    yield "</g>"


def _labels(scale: _Scale, points: list[Point], utility: str, best: Point | None) -> Iterator[str]:
    """Names beside the points, the recommended one first, efficient ones next.

    Names without room are left out; the recommended candidate is always marked.
    """
    taken: list[tuple[float, float, float, float]] = []
    for p in points:
        x, y = scale.x(p.risk or 0), scale.y(p.losses[utility][0])
        taken.append((x - 6, y - 6, x + 6, y + 6))
    for point in sorted(points, key=lambda p: (p is not best, not p.efficient, p.risk)):
        name = "recommended" if point is best else point.candidate.name
        long = _LETTER * len(name)
        x, y = scale.x(point.risk or 0), scale.y(point.losses[utility][0])
        places = [(left, base) for base in (y - 6, y + 15, y - 20) for left in (x + 11, x - 11 - long)]
        boxes = [(left, base - 11, left + long, base + 2) for left, base in places]
        inside = [box for box in boxes if box[0] > scale.left and box[2] < scale.width and box[1] > 0]
        free = [box for box in inside if not any(_overlap(box, other) for other in taken)]
        for box in free[:1] or (([*inside, *boxes])[:1] if point is best else []):
            taken.append(box)
            yield text(box[0], box[3] - 2, name, INK, bold=point is best)


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
