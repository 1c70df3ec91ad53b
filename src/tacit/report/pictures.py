"""The pictures of a report as Vega-Lite specifications: plain dicts, one function per picture.

The colours are those of the light theme; the report's style sheet repaints exactly these for the dark one. "Before" and
"after" differ in shape as well as in colour (Okabe and Ito's vermilion and blue), so they are told apart in grey too.
Names and labels of the data enter only as data values and titles, never as field names or expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.report.account import ColumnPicture

__all__ = ["AFTER", "BEFORE", "HEAT", "by_column", "class_sizes", "column", "pairs", "risk"]

Spec = dict[str, Any]

INK, MUTED, GRID = "#1c2630", "#56616c", "#e3e6e8"
BEFORE, BEFORE_SOFT, AFTER = "#c4500a", "#f6d3bd", "#0b6aa8"
HEAT = ("#eaf2f8", "#c3dcee", "#8dbcdc", "#4a90c0", "#0f5c93")
"""Five steps of one hue, light to dark."""
HEAT_EDGES = (0.02, 0.05, 0.1, 0.2)
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"

_TWO = {"domain": ["before", "after"], "range": [BEFORE, AFTER]}


def _spec(width: int, height: Any, body: Spec, **rest: Any) -> Spec:
    axis = {"labelColor": MUTED, "titleColor": MUTED, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    axis |= {"gridColor": GRID, "domainColor": GRID, "tickColor": GRID, "ticks": False, "labelPadding": 6, "titlePadding": 10}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "background": None,
        "padding": 4,
        **body,
        **rest,
        "config": {
            "aria": False,
            "font": FONT,
            "view": {"stroke": None},
            "axis": axis,
            "axisY": {"domain": False},
            "legend": {"labelColor": INK, "labelFontSize": 12, "title": None, "orient": "top", "symbolSize": 110},
            "text": {"color": INK, "fontSize": 12},
        },
    }


def risk(pairings: Sequence[Mapping[str, Any]], *, limit: float | None = None, width: int = 640) -> Spec:
    """Share of people each attack succeeds for, before and after, with interval, baseline and limit.

    ``pairings``: rows of label, when ("before" or "after"), risk, low, high, baseline; those without a risk are skipped.
    """
    rows = [row for row in pairings if row.get("risk") is not None]
    x_scale = {"domain": [0, 1], "nice": False}
    x_axis = {"format": ".0%", "title": "share of the people looked for", "tickCount": 5, "grid": True}
    y = {"field": "label", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 210, "labelColor": INK}}
    off = {"field": "when", "type": "nominal", "sort": ["before", "after"]}
    colour = {"field": "when", "type": "nominal", "scale": _TWO, "legend": None}
    both = sorted({row["when"] for row in rows}, reverse=True)
    if len(both) > 1:
        colour = {**colour, "legend": {}}
    shape = {"field": "when", "type": "nominal", "scale": {"domain": ["before", "after"], "range": ["circle", "diamond"]}}
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 7, "opacity": 0.3, "strokeCap": "round"},
            "encoding": {
                "x": {"field": "low", "type": "quantitative", "scale": x_scale, "axis": x_axis},
                "x2": {"field": "high"},
                "color": {**colour, "legend": None},
            },
        },
        {
            "transform": [{"filter": "isValid(datum.baseline)"}],
            "mark": {"type": "tick", "color": MUTED, "thickness": 2, "size": 16},
            "encoding": {"x": {"field": "baseline", "type": "quantitative"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 120, "opacity": 1},
            "encoding": {
                "x": {"field": "risk", "type": "quantitative"},
                "color": colour,
                "shape": {**shape, "legend": {} if len(both) > 1 else None},
            },
        },
        # Words to the left of a dot near the right edge, to the right of it elsewhere.
        _beside(near=True),
        _beside(near=False),
    ]
    for layer in layers:
        layer["encoding"] |= {"y": y, "yOffset": off}
    if limit is not None:
        layers.insert(0, _limit_line(limit, x_scale, x_axis))
    return _spec(width, {"step": 24 if len(both) > 1 else 34}, {"data": {"values": rows}, "layer": layers})


def _beside(*, near: bool) -> Spec:
    return {
        "transform": [{"filter": f"datum.risk {'>' if near else '<='} 0.85"}],
        "mark": {"type": "text", "align": "right" if near else "left", "dx": -12 if near else 12, "fontWeight": 600},
        "encoding": {
            "x": {"field": "low" if near else "high", "type": "quantitative"},
            "text": {"field": "words", "type": "nominal"},
        },
    }


def _limit_line(limit: float, scale: Spec, axis: Spec) -> Spec:
    rule = {"mark": {"type": "rule", "color": INK, "strokeDash": [4, 3], "strokeWidth": 1.25}, "encoding": {}}
    rule["data"] = {"values": [{"limit": limit}]}
    rule["encoding"] = {"x": {"field": "limit", "type": "quantitative", "scale": scale, "axis": axis}}
    return rule


def class_sizes(rows: Sequence[Mapping[str, Any]], *, width: int = 640) -> Spec:
    """Share of records in classes of each size, before and after. ``rows``: size (a label), when, share, words."""
    whens = [when for when in ("before", "after") if any(row["when"] == when for row in rows)]
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    x = {"field": "size", "type": "ordinal", "sort": None, "scale": {"domain": sizes, "paddingInner": 0.25}}
    x |= {"title": "records that look alike (size of the class)", "axis": {"labelAngle": 0, "labelColor": INK}}
    off = {"field": "when", "type": "nominal", "sort": whens}
    y = {"field": "share", "type": "quantitative", "title": "share of records"}
    y |= {"axis": {"format": ".0%", "tickCount": 4}, "scale": {"domain": [0, 1]}}
    bars: Spec = {
        "mark": {"type": "bar", "cornerRadiusEnd": 2, "strokeWidth": 1.25},
        "encoding": {
            "fill": {
                "field": "when",
                "type": "nominal",
                "scale": {"domain": ["before", "after"], "range": [BEFORE_SOFT, AFTER]},
                "legend": {} if len(whens) > 1 else None,
            },
            "stroke": {"field": "when", "type": "nominal", "scale": _TWO, "legend": {} if len(whens) > 1 else None},
        },
    }
    text: Spec = {
        "transform": [{"filter": "datum.share > 0"}],
        "mark": {"type": "text", "dy": -7, "fontSize": 11, "color": INK},
        "encoding": {"text": {"field": "words", "type": "nominal"}},
    }
    for layer in (bars, text):
        layer["encoding"] |= {"x": x, "xOffset": off, "y": y}
    return _spec(width, 220, {"data": {"values": list(rows)}, "layer": [bars, text]})


def column(picture: ColumnPicture, *, width: int = 250) -> Spec:
    """One column: a bar for each value's share in the release, a mark across it for its share in the original."""
    rows = [{"label": _short(bar.label), "before": bar.before, "after": bar.after} for bar in picture.bars]
    y = {"field": "label", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 140, "labelColor": INK}}
    x = {"type": "quantitative", "title": None, "axis": {"format": ".0%", "tickCount": 4}}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "color": AFTER, "height": {"band": 0.62}, "cornerRadiusEnd": 1.5},
            "encoding": {"y": y, "x": {**x, "field": "after"}},
        }
    ]
    if any(bar.before is not None for bar in picture.bars):
        layers.append(
            {
                "mark": {"type": "tick", "color": BEFORE, "thickness": 3, "size": 15},
                "encoding": {"y": y, "x": {**x, "field": "before"}},
            }
        )
    return _spec(width, {"step": 18}, {"data": {"values": rows}, "layer": layers})


def _short(label: str, most: int = 24) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def pairs(rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, width: int = 520) -> Spec:
    """How far each pair of columns moved, as a triangle of cells. ``rows``: one, other, value, words."""
    step = max(34, min(72, width // max(1, len(names) - 1)))
    x = {"field": "one", "type": "nominal", "sort": None, "title": None, "scale": {"domain": list(names[:-1])}}
    x |= {"axis": {"orient": "bottom", "labelAngle": -35, "labelColor": INK, "labelLimit": 120, "grid": False}}
    y = {"field": "other", "type": "nominal", "sort": None, "title": None, "scale": {"domain": list(names[1:])}}
    y |= {"axis": {"labelColor": INK, "labelLimit": 140, "grid": False}}
    heat = {"type": "threshold", "domain": list(HEAT_EDGES), "range": list(HEAT)}
    cells: Spec = {
        "mark": {"type": "rect", "stroke": "#ffffff", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": {"field": "value", "type": "quantitative", "scale": heat, "legend": None}},
    }
    dark = {"condition": {"test": f"datum.value >= {HEAT_EDGES[2]}", "value": "#fffffe"}, "value": "#1c2631"}
    text: Spec = {
        "mark": {"type": "text", "fontSize": 11},
        "encoding": {"x": x, "y": y, "text": {"field": "words", "type": "nominal"}, "color": dark},
    }
    spec = _spec({"step": step}, {"step": 30}, {"data": {"values": list(rows)}, "layer": [cells, text]})  # type: ignore[arg-type]
    return spec


def by_column(rows: Sequence[Mapping[str, Any]], *, width: int = 250) -> Spec:
    """One number per column as bars. ``rows``: label, value, words."""
    y = {"field": "label", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 140, "labelColor": INK}}
    x = {"field": "value", "type": "quantitative", "title": None, "scale": {"domain": [0, 1]}}
    x |= {"axis": {"tickCount": 4, "format": ".2~f"}}
    bars = {"mark": {"type": "bar", "color": AFTER, "height": {"band": 0.62}, "cornerRadiusEnd": 1.5}}
    text = {"mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 11}}
    layers = [
        {**bars, "encoding": {"y": y, "x": x}},
        {**text, "encoding": {"y": y, "x": x, "text": {"field": "words", "type": "nominal"}}},
    ]
    return _spec(width, {"step": 20}, {"data": {"values": [{**r, "label": _short(r["label"])} for r in rows]}, "layer": layers})
