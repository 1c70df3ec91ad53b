"""Pictures of a report as Vega-Lite specifications: plain dictionaries, one function per picture.

The colours are those of the light theme; the style sheet replaces them for the dark theme. "Before" and "after" differ
in shape as well as in colour (Okabe and Ito's vermilion and blue), so they can be distinguished in grey. Names and
labels of the data enter only as data values and titles, never as field names or expressions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.reports.report_data import ColumnPicture

__all__ = ["AFTER", "BEFORE", "HEAT", "base_spec", "by_column", "class_sizes", "column", "curve", "pairs", "risk"]

Spec = dict[str, Any]

INK, MUTED, GRID = "#1c2630", "#56616c", "#e3e6e8"
BEFORE, BEFORE_SOFT, AFTER = "#c4500a", "#f6d3bd", "#0b6aa8"
HEAT = ("#eaf2f8", "#c3dcee", "#8dbcdc", "#2b77aa", "#0f5c93")
"""Five steps of one hue, light to dark."""
ON_LIGHT, ON_DARK = "#1c2631", "#fffffe"
"""Text in light and dark cells; one shade off the others so that the dark theme can replace them alone."""
HEAT_EDGES = (0.02, 0.05, 0.1, 0.2)
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"

_APART = {"labelOverlap": "greedy", "labelSeparation": 10}
"""Overlapping axis labels are omitted."""
_TWO = {"domain": ["before", "after"], "range": [BEFORE, AFTER]}


def _extent(labels: Sequence[str], limit: int) -> int:
    """Room for the longest label in a wide typeface, which the reader's may be."""
    return min(round(7.4 * max(map(len, labels), default=0)), round(1.12 * limit)) + 8


def _labels(labels: Sequence[str], limit: int) -> Spec:
    return {"labelLimit": limit, "labelColor": INK, "minExtent": _extent(labels, limit)}


def base_spec(width: int, height: Any, body: Spec, **rest: Any) -> Spec:
    """A specification with the size, the typeface and the colours of all pictures."""
    axis: Spec = {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }
    axis |= {
        "gridColor": GRID,
        "domainColor": GRID,
        "tickColor": GRID,
        "ticks": False,
        "labelPadding": 6,
        "titlePadding": 10,
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "background": None,
        "padding": 4,
        "autosize": {"type": "fit-x", "contains": "padding"},
        **body,
        **rest,
        "config": {
            "aria": False,
            "font": FONT,
            "view": {"stroke": None},
            "axis": axis,
            "axisY": {"domain": False},
            "legend": {
                "labelColor": INK,
                "labelFontSize": 12,
                "title": None,
                "orient": "top",
                "symbolSize": 110,
                "symbolOpacity": 1,
            },
            "text": {"color": INK, "fontSize": 12},
        },
    }


def risk(rows: Sequence[Mapping[str, Any]], *, width: int = 760) -> Spec:
    """Share of people each attack succeeds for, before and after, with interval, baseline and limit.

    ``rows``: label, when ("before" or "after"), risk, low, high, baseline, limit (or None), words, and reference for
    attacks that are judged by what they learn beyond it; those without a risk are skipped.
    """
    rows = [row for row in rows if row.get("risk") is not None]
    both = len({row["when"] for row in rows}) > 1
    tight = width > 500 and len({row["label"] for row in rows}) > _SEVERAL
    limit = 280 if width > 500 else 124
    y: Spec = {"field": "label", "type": "nominal", "sort": None, "title": None, "scale": {"paddingInner": 0.25}}
    y |= {"axis": _labels([row["label"] for row in rows], limit)}
    if width <= 500:  # long labels take two lines rather than the picture's room
        y["axis"] |= {"labelExpr": "split(datum.label, regexp('[:,] '))", "minExtent": round(1.12 * limit)}
    off: Spec = {"field": "when", "type": "nominal", "sort": ["before", "after"], "scale": {"paddingOuter": 0.1}}
    x_axis: Spec = {"format": ".0%", "title": "share of the targets", "grid": True}
    x_axis |= {"values": [0, 0.2, 0.4, 0.6, 0.8, 1] if width > 500 else [0, 0.5, 1]}
    x_scale = {"domain": [0, 1], "nice": False}
    colour: Spec = {"field": "when", "type": "nominal", "scale": _TWO} | ({} if both else {"legend": None})
    shape: Spec = {
        "field": "when",
        "type": "nominal",
        "scale": {"domain": ["before", "after"], "range": ["circle", "diamond"]},
    }
    shape |= {} if both else {"legend": None}
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 8, "opacity": 0.3, "strokeCap": "round"},
            "encoding": {
                "x": {"field": "low", "type": "quantitative", "scale": x_scale, "axis": x_axis},
                "x2": {"field": "high"},
                "color": colour,
            },
        },
        {  # what was learned beyond the reference
            "transform": [{"filter": "isValid(datum.reference) && datum.risk > datum.reference"}],
            "mark": {"type": "rule", "strokeWidth": 3},
            "encoding": {
                "x": {"field": "reference", "type": "quantitative"},
                "x2": {"field": "risk"},
                "color": colour,
            },
        },
        _tick("baseline", color=MUTED, thickness=2.5, size=14),
        _tick("limit", color=INK, thickness=1.25, size=18 if tight else 26),
        {
            "mark": {"type": "point", "filled": True, "size": 130, "opacity": 1},
            "encoding": {"x": {"field": "risk", "type": "quantitative"}, "color": colour, "shape": shape},
        },
        # Words to the left of a dot near the right edge, to the right of it elsewhere.
        _beside(width, near=True),
        _beside(width, near=False),
    ]
    for layer in layers:
        layer["encoding"] |= {"y": y, "yOffset": off}
    return base_spec(width, {"step": 17 if tight else 25, "for": "offset"}, {"data": {"values": rows}, "layer": layers})


_SEVERAL = 8
"""More attacks than this are drawn closer together."""
_MARKS = ("baseline", "limit")
"""Marks that a label must not cover."""


def _tick(field: str, **look: Any) -> Spec:
    return {
        "transform": [{"filter": f"isValid(datum.{field})"}],
        "mark": {"type": "tick", "opacity": 1, **look},
        "encoding": {"x": {"field": field, "type": "quantitative"}},
    }


def _beside(width: int, *, near: bool) -> Spec:
    ends = {"align": "right", "dx": -13} if near else {"align": "left", "dx": 13}
    room = round(60 / (width - 150), 3)  # what the words take of the axis; they step over a mark that stands in the way
    marks = [f"isValid(datum.{mark}) && abs(datum.{mark} - datum.high) < {room} ? datum.{mark} : 0" for mark in _MARKS]
    farthest = f"max(datum.high, {', '.join(marks)})"
    return {
        "transform": [
            {"filter": f"datum.risk {'>' if near else '<='} 0.8"},
            {"calculate": "datum.low" if near else farthest, "as": "edge"},
        ],
        "mark": {"type": "text", **ends, "fontWeight": 600},
        "encoding": {"x": {"field": "edge", "type": "quantitative"}, "text": {"field": "words", "type": "nominal"}},
    }


def class_sizes(rows: Sequence[Mapping[str, Any]], *, width: int = 760) -> Spec:
    """Share of records by class size, before and after. ``rows``: size (a label), when, share, words."""
    whens = [when for when in ("before", "after") if any(row["when"] == when for row in rows)]
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    x: Spec = {"field": "size", "type": "ordinal", "sort": None, "scale": {"domain": sizes, "paddingInner": 0.25}}
    x |= {
        "title": "size of the equivalence class",
        "axis": {"labelAngle": 0 if width > 500 else -40, "labelColor": INK},
    }
    off: Spec = {"field": "when", "type": "nominal", "sort": whens}
    y: Spec = {"field": "share", "type": "quantitative", "title": "share of records"}
    y |= {"axis": {"format": ".0%", "tickCount": 4}, "scale": {"domain": [0, 1]}}
    bars: Spec = {
        "transform": [{"filter": "datum.share > 0"}],
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
    return base_spec(width, 220, {"data": {"values": list(rows)}, "layer": [bars, text]})


def column(picture: ColumnPicture, *, width: int = 400) -> Spec:
    """One column: a bar for each value's share in the release, a mark across it for its share in the original."""
    labels = _distinct([_short(bar.label) for bar in picture.bars])
    rows = [{"label": n, "before": bar.before, "after": bar.after} for n, bar in zip(labels, picture.bars, strict=True)]
    y: Spec = {"field": "label", "type": "nominal", "sort": None, "title": None}
    y |= {"axis": _labels(labels, 140)}
    x: Spec = {"type": "quantitative", "title": None, "axis": {"format": "~%", "tickCount": 4, **_APART}}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "color": AFTER, "height": {"band": 0.62}, "cornerRadiusEnd": 1.5},
            "encoding": {"y": y, "x": {**x, "field": "after"}},
        }
    ]
    if any(bar.before is not None for bar in picture.bars):
        layers.append(
            {
                "mark": {"type": "tick", "color": BEFORE, "thickness": 3, "size": 15, "opacity": 1},
                "encoding": {"y": y, "x": {**x, "field": "before"}},
            }
        )
    return base_spec(width, {"step": 18}, {"data": {"values": rows}, "layer": layers})


def _short(label: str, most: int = 24) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def _distinct(labels: Sequence[str]) -> list[str]:
    """Number labels that were cut to the same text: their bars would overlap otherwise."""
    seen: Counter[str] = Counter()
    numbered: list[str] = []
    for label in labels:
        seen[label] += 1
        numbered.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return numbered


def pairs(rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, width: int = 600) -> Spec:
    """Distance of each pair of columns as a triangle of cells. ``rows``: one, other, value, words."""
    step = max(38, min(90, width // max(1, len(names) - 1)))
    x: Spec = {"field": "one", "type": "nominal", "sort": None, "title": None, "scale": {"domain": list(names[:-1])}}
    x |= {"axis": {"orient": "bottom", "labelAngle": -35, "labelColor": INK, "labelLimit": 120, "grid": False}}
    y: Spec = {"field": "other", "type": "nominal", "sort": None, "title": None, "scale": {"domain": list(names[1:])}}
    y |= {"axis": {**_labels(names, 140), "grid": False}}
    heat: Spec = {"type": "threshold", "domain": list(HEAT_EDGES), "range": list(HEAT)}
    cells: Spec = {
        "mark": {"type": "rect", "stroke": "#ffffff", "strokeWidth": 2},
        "encoding": {
            "x": x,
            "y": y,
            "color": {"field": "value", "type": "quantitative", "scale": heat, "legend": None},
        },
    }
    dark = {"condition": {"test": f"datum.value >= {HEAT_EDGES[2]}", "value": ON_DARK}, "value": ON_LIGHT}
    text: Spec = {
        "mark": {"type": "text", "fontSize": 11},
        "encoding": {"x": x, "y": y, "text": {"field": "words", "type": "nominal"}, "color": dark},
    }
    body: Spec = {"data": {"values": list(rows)}, "layer": [cells, text]}
    return {**base_spec(0, {"step": 34}, body), "width": {"step": step}, "autosize": {"type": "pad"}}


def by_column(rows: Sequence[Mapping[str, Any]], *, width: int = 400) -> Spec:
    """One number per column as bars. ``rows``: label, value, words."""
    rows = [{**row, "label": _short(row["label"])} for row in rows]
    y: Spec = {"field": "label", "type": "nominal", "sort": None, "title": None}
    y |= {"axis": _labels([row["label"] for row in rows], 140)}
    x: Spec = {"field": "value", "type": "quantitative", "title": None, "scale": {"domain": [0, 1]}}
    x |= {"axis": {"tickCount": 4, "format": ".2~f", **_APART}}
    bars: Spec = {"mark": {"type": "bar", "color": AFTER, "height": {"band": 0.62}, "cornerRadiusEnd": 1.5}}
    text: Spec = {"mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 11}}
    layers = [
        {**bars, "encoding": {"y": y, "x": x}},
        {**text, "encoding": {"y": y, "x": x, "text": {"field": "words", "type": "nominal"}}},
    ]
    return base_spec(width, {"step": 20}, {"data": {"values": rows}, "layer": layers})


def curve(rows: Sequence[Mapping[str, Any]], *, width: int = 400) -> Spec:
    """A share by the number of known events, before and after. ``rows``: events, when, share."""
    whens = list(dict.fromkeys(row["when"] for row in rows))
    x: Spec = {"field": "events", "type": "quantitative", "title": "events known to the attacker"}
    x |= {"axis": {"tickMinStep": 1, "format": "d", **_APART}}
    y: Spec = {"field": "share", "type": "quantitative", "title": "share of people who are unique"}
    y |= {"axis": {"format": ".0%", "tickCount": 4}, "scale": {"domain": [0, 1]}}
    colour: Spec = {"field": "when", "type": "nominal", "scale": _TWO, "legend": {} if len(whens) > 1 else None}
    lines: Spec = {"mark": {"type": "line", "point": {"size": 45, "filled": True}, "strokeWidth": 2}}
    return base_spec(
        width, 220, {"data": {"values": list(rows)}, **lines, "encoding": {"x": x, "y": y, "color": colour}}
    )
