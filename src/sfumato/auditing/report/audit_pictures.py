"""Pictures of an audit of answers already given, as Vega-Lite specifications. For the owner of the data only."""

from __future__ import annotations

import numpy as np

from sfumato.auditing.answer_graph import AnswerGraph
from sfumato.auditing.past_answers import PastAnswers
from sfumato.reports.figures import Figure
from sfumato.reports.pictures import AFTER, BEFORE, BEFORE_SOFT, HEAT, INK, MUTED, Spec, base_spec

__all__ = ["audit_figures"]

_ROWS, _VALUES, _NODES = 40, 24, 14
"""Most people and values of the table of possible values, and most people of the drawn graph."""
_CERTAIN, _POSSIBLE, _ERROR = "certain", "possible", "merged graph only"
_STATES: Spec = {"domain": [_CERTAIN, _POSSIBLE, _ERROR], "range": [BEFORE, HEAT[2], BEFORE_SOFT]}


def audit_figures(audited: PastAnswers) -> tuple[Figure, ...]:
    """Values left, the query graph, the table of possible values, and the graph of the worst people."""
    figures = [_histogram(audited)]
    graph = audited.graph
    if graph is not None and len(graph.people):
        figures += [_queries(audited, graph), _table(audited, graph), _drawn(audited, graph)]
    return tuple(figures)


def _histogram(audited: PastAnswers) -> Figure:
    rows = [
        {"values": f"{audited.k} or more" if left == 0 else str(left), "people": people, "few": 0 < left < audited.k}
        for left, people in sorted(audited.kept.items(), key=lambda item: (item[0] == 0, item[0]))
    ]
    spec = base_spec(520, {"step": 26}, {
        "data": {"values": rows},
        "encoding": {
            "y": {"field": "values", "type": "nominal", "sort": None, "title": "possible values left"},
            "x": {"field": "people", "type": "quantitative", "title": "people", "axis": {"tickMinStep": 1}},
        },
        "layer": [
            {"mark": {"type": "bar"}, "encoding": {"color": {"field": "few", "type": "nominal", "legend": None,
             "scale": {"domain": [True, False], "range": [BEFORE, AFTER]}}}},
            {"mark": {"type": "text", "align": "left", "dx": 5}, "encoding": {"text": {"field": "people"}}},
        ],
    })  # fmt: skip
    few = len(audited.exposed)
    return Figure(
        name=f"left-{_ident(audited)}", title="Possible values left", spec=spec, head=("values left", "people"),
        rows=tuple((str(row["values"]), f"{row['people']:,}") for row in rows),
        alternative=f"People by the number of possible values left; {few:,} keep fewer than {audited.k}.",
    )  # fmt: skip


def _queries(audited: PastAnswers, graph: AnswerGraph) -> Figure:
    """Who is in which query; the queries of the proof stand out."""
    shown = min(_ROWS, len(graph.people))
    cells = [
        {"person": f"row {graph.people[i] + 1}", "query": q + 1, "in": "proof" if q in audited.proof else "query"}
        for i in range(shown)
        for q in np.flatnonzero(graph.asked[i]).tolist()
    ]
    spec = base_spec(min(760, 22 * len(audited.queries) + 140), {"step": 16}, {
        "data": {"values": cells},
        "mark": {"type": "circle", "size": 90, "opacity": 1},
        "encoding": {
            "y": {"field": "person", "type": "nominal", "sort": None, "title": None, "axis": {"labelOverlap": False}},
            "x": {"field": "query", "type": "ordinal", "title": "query", "axis": {"labelAngle": 0, "grid": True}},
            "color": {"field": "in", "type": "nominal",
                      "scale": {"domain": ["proof", "query"], "range": [BEFORE, AFTER]}},
        },
    })  # fmt: skip
    return Figure(
        name=f"queries-{_ident(audited)}", title="Who is in which query", spec=spec, head=("person", "queries"),
        rows=tuple(
            (f"row {graph.people[i] + 1}", ", ".join(str(q + 1) for q in np.flatnonzero(graph.asked[i])))
            for i in range(shown)
        ),
        alternative=f"The {shown} people with the fewest values left, by query. Queries of the proof stand out.",
    )  # fmt: skip


def _state(graph: AnswerGraph, i: int, v: int) -> str:
    if graph.possible[i, v]:
        return _CERTAIN if graph.possible[i].sum() == 1 else _POSSIBLE
    return _ERROR


def _table(audited: PastAnswers, graph: AnswerGraph) -> Figure:
    """People by values: possible, certain, and edges of the merged graph that no assignment uses."""
    shown = min(_ROWS, len(graph.people))
    values = [v for v in range(len(graph.labels)) if graph.merged[:shown, v].any()][:_VALUES]
    cells = [
        {
            "person": f"row {graph.people[i] + 1}", "value": graph.labels[v], "state": _state(graph, i, v),
            "true": bool(graph.true[i] == v), "delta2": graph.delta2 is not None and bool(graph.delta2[i, v]),
        }
        for i in range(shown)
        for v in values
        if graph.merged[i, v]
    ]  # fmt: skip
    x = {"field": "value", "type": "nominal", "sort": None, "title": None, "axis": {"orient": "top", "labelLimit": 110}}
    y = {"field": "person", "type": "nominal", "sort": None, "title": None, "axis": {"labelOverlap": False}}
    layers: list[Spec] = [
        {"mark": {"type": "rect", "stroke": "#ffffff", "strokeWidth": 2},
         "encoding": {"color": {"field": "state", "type": "nominal", "scale": _STATES}}},
        {"transform": [{"filter": "datum.true"}], "mark": {"type": "point", "filled": True, "size": 40, "color": INK,
                                                           "opacity": 1}},
    ]  # fmt: skip
    if graph.delta2 is not None:
        frame = {"type": "point", "shape": "square", "size": 170, "filled": False, "color": INK, "strokeWidth": 0.8}
        layers.insert(1, {"transform": [{"filter": "datum.delta2"}], "mark": frame})
    body = {"data": {"values": cells}, "encoding": {"x": x, "y": y}, "layer": layers}
    spec = base_spec(min(760, 44 * len(values) + 130), {"step": 20}, body)
    proved = "" if graph.delta2 is None else " A frame marks values that delta-2 matchings prove possible (T_Δ2)."
    return Figure(
        name=f"table-{_ident(audited)}", title="Possible values of the people with the fewest", spec=spec,
        head=("person", "possible values", "merged graph"),
        rows=tuple(
            (f"row {graph.people[i] + 1}", *(", ".join(graph.labels[v] for v in np.flatnonzero(edges[i]))
             for edges in (graph.possible, graph.merged)))
            for i in range(shown)
        ),
        alternative=f"Values of the {shown} people with the fewest. The merged graph has {int(graph.merged.sum()):,} "
        f"edges, of which {graph.error:,} are in no assignment. A dot marks the assignment that is true.{proved}",
    )  # fmt: skip


def _drawn(audited: PastAnswers, graph: AnswerGraph) -> Figure:
    """The merged graph as lines between people and values."""
    near = (
        np.flatnonzero(graph.asked[:, sorted(audited.proof)].any(axis=1))
        if audited.proof
        else np.arange(len(graph.people))
    )
    people = near[:_NODES].tolist()
    values = [v for v in range(len(graph.labels)) if graph.merged[people, v].any()][:_VALUES]
    tall = max(len(people), len(values))
    left = {i: (place + 0.5) * tall / len(people) for place, i in enumerate(people)}
    right = {v: (place + 0.5) * tall / len(values) for place, v in enumerate(values)}
    edges = [
        {"x": 0, "y": left[i], "x2": 1, "y2": right[v], "state": _state(graph, i, v),
         "true": bool(graph.true[i] == v)}
        for i in people for v in values if graph.merged[i, v]
    ]  # fmt: skip
    nodes = [{"x": 0, "y": left[i], "label": f"row {graph.people[i] + 1}", "side": "left"} for i in people]
    nodes += [{"x": 1, "y": right[v], "label": graph.labels[v], "side": "right"} for v in values]
    axis: Spec = {"axis": None, "scale": {"domain": [-0.35, 1.35]}}
    position = {
        "x": {"field": "x", "type": "quantitative", **axis},
        "y": {"field": "y", "type": "quantitative", "axis": None, "scale": {"domain": [tall, 0]}},
    }
    lines = {**position, "x2": {"field": "x2"}, "y2": {"field": "y2"},
             "color": {"field": "state", "type": "nominal", "scale": {
                 "domain": _STATES["domain"], "range": [BEFORE, AFTER, MUTED]}},
             "strokeDash": {"field": "state", "type": "nominal", "legend": None, "scale": {
                 "domain": _STATES["domain"], "range": [[1, 0], [1, 0], [3, 4]]}}}  # fmt: skip
    layers: list[Spec] = [
        {"data": {"values": edges}, "mark": {"type": "rule", "strokeWidth": 1.2}, "encoding": lines},
        {"data": {"values": edges}, "transform": [{"filter": "datum.true"}],
         "mark": {"type": "rule", "strokeWidth": 3.2}, "encoding": lines},
        {"data": {"values": nodes}, "mark": {"type": "point", "filled": True, "size": 60, "color": INK, "opacity": 1},
         "encoding": position},
    ]  # fmt: skip
    for side, align, shift in (("left", "right", -9), ("right", "left", 9)):
        layers.append({"data": {"values": nodes}, "transform": [{"filter": f"datum.side == '{side}'"}],
                       "mark": {"type": "text", "align": align, "dx": shift, "limit": 150},
                       "encoding": {**position, "text": {"field": "label"}}})  # fmt: skip
    return Figure(
        name=f"graph-{_ident(audited)}", title="Merged graph and assignment",
        spec=base_spec(560, 26 * tall, {"layer": layers}),
        head=("person", "value", "edge"),
        rows=tuple((f"row {graph.people[i] + 1}", graph.labels[v], _state(graph, i, v))
                   for i in people for v in values if graph.merged[i, v]),
        alternative="People of the proof and the values that each answer alone leaves them. Dotted edges are in no "
        "assignment; thick edges are the true assignment.",
    )  # fmt: skip


def _ident(audited: PastAnswers) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in audited.column)
