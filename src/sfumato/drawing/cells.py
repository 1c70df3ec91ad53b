"""Heat map: a triangle of cells, one for each pair of names."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import ClassVar

from sfumato.drawing.chart import Chart
from sfumato.drawing.marks import HEAT, ON_DARK, ON_LIGHT, PAGE, Drawing, cut, label_lines, rect, text, text_width

_EDGES = (0.02, 0.05, 0.1, 0.2)
"""Where the steps of colour begin; the last two are dark."""
_HIGH = 34


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The value of a pair."""

    one: str
    other: str
    value: float
    words: str


@dataclass(frozen=True, kw_only=True)
class Cells(Chart):
    """All pairs of ``names``; a cell that is missing stays empty."""

    name: ClassVar[str] = "cells"

    rows: tuple[Cell, ...]
    names: tuple[str, ...]

    def draw(self, width: float) -> Drawing:
        """The later name of a pair to the left, the earlier one below. Many names need more than ``width``."""
        across, down = self.names[:-1], self.names[1:]
        room = min(max((text_width(name) for name in down), default=0), 150.0)
        left, slant = room + 14, min(max((text_width(name) for name in across), default=0), 130.0)
        step = max(40.0, min(90.0, (width - left - 30) / max(1, len(across))))
        body = [label_lines(left - 8, (i + 0.5) * _HIGH, name, room) for i, name in enumerate(down)]
        for row in self.rows:
            x, y = left + across.index(row.one) * step, down.index(row.other) * _HIGH
            strength = bisect_right(_EDGES, row.value)
            body.append(rect(x, y, step, _HIGH, HEAT[strength], edge=PAGE))
            ink = ON_DARK if strength > 2 else ON_LIGHT
            body.append(text(x + step / 2, y + 21, row.words, ink, anchor="middle", size=11, halo=False))
        bottom = len(down) * _HIGH
        for i, name in enumerate(across):
            x, said = left + (i + 0.6) * step, cut(name, 130)
            body.append(text(x, bottom + 16, said, anchor="end", turned=-35, whole=name))
        return Drawing(width=left + len(across) * step + 10, height=bottom + 24 + 0.58 * slant, body="".join(body))
