"""Drawing: what a chart shows stands in its SVG, escaped, uncrossed and inside the picture."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from sfumato.drawing import (
    CHARTS,
    BarChart,
    BarRow,
    Cell,
    Cells,
    Chart,
    ColumnChart,
    ColumnRow,
    Dot,
    Intervals,
    Lines,
    Panels,
    Place,
    chart_from_dict,
)
from sfumato.drawing.marks import text_width

HOSTILE = '<b>& "zip"'
LONG = "a column with a name that is much longer than its picture has room for, by far"
CHARTS_TO_DRAW: tuple[Chart, ...] = (
    BarChart(rows=(BarRow(label=HOSTILE, value=0.4, mark=0.9, words="40%"), BarRow(label=LONG, value=0.0, words="0%"))),
    BarChart(rows=tuple(BarRow(label=x, value=0.1, series=y) for x in "ab" for y in ("one", "two")), percent=True),
    ColumnChart(rows=(ColumnRow(label=HOSTILE, value=3, low=2, high=4, words="3"),), across="size", up="people"),
    Cells(rows=(Cell(one=HOSTILE, other=LONG, value=0.3, words="0.30"),), names=(HOSTILE, LONG)),
    Intervals(
        rows=(
            Dot(label=HOSTILE, when="before", risk=0.97, low=0.9, high=1.0, words="97%", baseline=0.1, reference=0.1),
            Dot(label=HOSTILE, when="after", risk=0.2, low=0.1, high=0.3, words="20%", baseline=0.33, limit=0.35),
            Dot(label=LONG, when="after", risk=None, low=None, high=None, words="–"),
        )
    ),
    Lines(rows=(Place(x=1, y=0.5, when="before"), Place(x=9, y=0.9, when="before")), across=HOSTILE, up="share"),
    Panels(
        charts=(
            Lines(rows=(Place(x=0, y=3), Place(x=700, y=20)), across="x", up="y", x_kind="symlog", joined=False),
            Lines(rows=(Place(x=0.1, y=3, low=1, high=4), Place(x=7, y=2, low=1, high=3)), across="x", up="y",
                  x_kind="log", x_ticks=(0.1, 1.0, 10.0)),
        )
    ),
)  # fmt: skip


@pytest.mark.parametrize("width", [360, 780])
@pytest.mark.parametrize("chart", CHARTS_TO_DRAW, ids=lambda chart: type(chart).__name__)
def test_a_chart_is_well_formed_and_stays_inside(chart: Chart, width: int) -> None:
    drawn = chart.draw(width)
    root = ElementTree.fromstring(drawn.svg(ident="one", label=f"{HOSTILE} in words"))
    assert root.get("aria-label") == f"{HOSTILE} in words"
    assert not root.findall(".//b")
    ElementTree.fromstring(drawn.file(title=HOSTILE))
    for rect in root.iter("rect"):
        assert float(rect.get("x", "0")) >= 0
        assert float(rect.get("x", "0")) + float(rect.get("width", "0")) <= drawn.width + 0.1
    for text in root.findall("text"):
        if text.get("transform") is None and text.get("text-anchor") == "end":
            assert float(text.get("x", "0")) - text_width(text.text or "") >= -1, text.text


@pytest.mark.parametrize("chart", [c for c in CHARTS_TO_DRAW if c.name], ids=lambda chart: type(chart).__name__)
def test_the_json_of_a_chart_draws_it_again(chart: Chart) -> None:
    again = chart_from_dict(json.loads(json.dumps(chart.to_dict())))
    assert again == chart
    assert again.draw(500) == chart.draw(500)


def test_every_chart_of_a_report_is_tried() -> None:
    assert {chart.name for chart in CHARTS_TO_DRAW if chart.name} == set(CHARTS)


def spans(svg: str) -> list[tuple[float, float, float]]:
    """Left end, right end and height of each bold number."""
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="start"[^>]*font-weight="600"[^>]*>([^<]+)<', svg)
    return [(float(x), float(x) + text_width(words), float(y) - 4) for x, y, words in found]


def test_no_line_strikes_a_number_through() -> None:
    [chart] = [chart for chart in CHARTS_TO_DRAW if isinstance(chart, Intervals)]
    for width in (360, 780):
        svg = chart.draw(width).body
        lines = re.findall(r'<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" stroke="#(?!e3e6e8)', svg)
        numbers = spans(svg)
        assert len(numbers) == 2
        for left, right, y in numbers:
            for x1, y1, x2, y2 in (tuple(map(float, line)) for line in lines):
                assert x2 < left or x1 > right or max(y1, y2) < y - 6 or min(y1, y2) > y + 6


def test_a_long_name_is_cut_and_still_there() -> None:
    body = BarChart(rows=(BarRow(label="unbroken" * 20, value=1),)).draw(400).body
    assert "…" in body
    assert f"<title>{'unbroken' * 20}</title>" in body
