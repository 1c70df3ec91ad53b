"""Pictures of an audit of answers already given. For the owner of the data only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.auditing.answer_graph import AnswerGraph
from sfumato.auditing.past_answers import PastAnswers
from sfumato.drawing import BarChart, BarRow, Chart, Drawing, legend
from sfumato.drawing.marks import (
    AFTER,
    BEFORE,
    BEFORE_SOFT,
    GRID,
    HEAT,
    INK,
    MUTED,
    PAGE,
    circle,
    cut,
    rect,
    rule,
    text,
    text_width,
)
from sfumato.reports.figures import Figure

_ROWS, _VALUES, _NODES = 40, 24, 14
"""Most people and values of the table of possible values, and most people of the drawn graph."""
_CERTAIN, _POSSIBLE, _ERROR = "certain", "possible", "merged graph only"
_FILLS = {_CERTAIN: BEFORE, _POSSIBLE: HEAT[2], _ERROR: BEFORE_SOFT}
_LINES = {_CERTAIN: BEFORE, _POSSIBLE: AFTER, _ERROR: MUTED}


def audit_figures(audited: PastAnswers) -> tuple[Figure, ...]:
    """Values left, the query graph, the table of possible values, and the graph of the worst people."""
    figures = [_histogram(audited)]
    graph = audited.graph
    if graph is not None and len(graph.people):
        figures += [_queries(audited, graph), _table(audited, graph), _drawn(audited, graph)]
    return tuple(figures)


def _histogram(audited: PastAnswers) -> Figure:
    kept = sorted(audited.kept.items(), key=lambda item: (item[0] == 0, item[0]))
    rows = tuple(
        BarRow(
            label=f"{audited.k} or more" if left == 0 else str(left), value=people, words=f"{people:,}",
            strong=0 < left < audited.k,
        )
        for left, people in kept
    )  # fmt: skip
    few = len(audited.exposed)
    return Figure(
        name=f"left-{_ident(audited)}", title="Possible values left", head=("values left", "people"),
        chart=BarChart(rows=rows, title="people", whole=True), width=520,
        rows=tuple((row.label, row.words) for row in rows),
        alternative=f"People by the number of possible values left; {few:,} keep fewer than {audited.k}.",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Mark:
    """What stands in one cell of a matrix: a colour, a dot on it, a frame around it."""

    row: int
    column: int
    kind: str
    dot: bool = False
    frame: bool = False


@dataclass(frozen=True, kw_only=True)
class _Matrix(Chart):
    """People by queries (dots) or by values (cells)."""

    people: Sequence[str]
    columns: Sequence[str]
    marks: Sequence[_Mark]
    colours: dict[str, str]
    cells: bool = False

    def draw(self, width: float) -> Drawing:
        """As wide as its columns need; the page scrolls it."""
        head, above = legend([(kind, "" if self.cells else "dot", c) for kind, c in self.colours.items()], 4, width)
        left, high = max(map(text_width, self.people)) + 14, 20
        step = min(110.0, max(text_width(name) for name in self.columns) + 12) if self.cells else 24.0
        top = above + 20
        body = [text(left - 8, top + (i + 0.5) * high + 4, name, anchor="end") for i, name in enumerate(self.people)]
        for place, name in enumerate(self.columns):
            x = left + (place + 0.5) * step
            body.append(text(x, top - 5, cut(name, step - 6), MUTED, anchor="middle", whole=name))
            if not self.cells:
                body.append(rule(x, top, x, top + len(self.people) * high, GRID))
        for mark in self.marks:
            x, y = left + mark.column * step, top + mark.row * high
            if self.cells:
                body.append(rect(x, y, step, high, self.colours[mark.kind], edge=PAGE))
            else:
                body.append(circle(x + step / 2, y + high / 2, 5, self.colours[mark.kind]))
            if mark.frame:
                body.append(rect(x + step / 2 - 6, y + high / 2 - 6, 12, 12, "none", edge=INK))
            if mark.dot:
                body.append(circle(x + step / 2, y + high / 2, 3.5, INK))
        size = {"width": max(left + len(self.columns) * step + 8, 420), "height": top + len(self.people) * high + 8}
        return Drawing(**size, body=head + "".join(body))


@dataclass(frozen=True, kw_only=True)
class _Edge:
    """A person and a value that may go together."""

    person: int
    value: int
    kind: str
    true: bool


@dataclass(frozen=True, kw_only=True)
class _Bipartite(Chart):
    """Lines between people and values."""

    people: Sequence[str]
    values: Sequence[str]
    edges: Sequence[_Edge]

    def draw(self, width: float) -> Drawing:
        """People to the left, values to the right."""
        head, above = legend([(kind, "line", colour) for kind, colour in _LINES.items()], 4, width)
        tall = 26 * max(len(self.people), len(self.values))
        left, right = 120.0, width - 160
        down = [above + 10 + (i + 0.5) * tall / len(self.people) for i in range(len(self.people))]
        up = [above + 10 + (i + 0.5) * tall / len(self.values) for i in range(len(self.values))]
        body = [
            rule(left, down[edge.person], right, up[edge.value], _LINES[edge.kind], width=3.2 if edge.true else 1.2,
                 dash="3 4" if edge.kind == _ERROR else "")
            for edge in self.edges
        ]  # fmt: skip
        for name, y in zip(self.people, down, strict=True):
            body += [circle(left, y, 4, INK), text(left - 9, y + 4, name, anchor="end")]
        for name, y in zip(self.values, up, strict=True):
            body += [circle(right, y, 4, INK), text(right + 9, y + 4, cut(name, 145), whole=name)]
        return Drawing(width=width, height=above + tall + 20, body=head + "".join(body))


def _queries(audited: PastAnswers, graph: AnswerGraph) -> Figure:
    """Who is in which query; the queries of the proof stand out."""
    shown = min(_ROWS, len(graph.people))
    marks = [
        _Mark(row=i, column=q, kind="proof" if q in audited.proof else "query")
        for i in range(shown)
        for q in np.flatnonzero(graph.asked[i]).tolist()
    ]
    chart = _Matrix(
        people=_names(graph, range(shown)), columns=[str(q + 1) for q in range(len(audited.queries))], marks=marks,
        colours={"proof": BEFORE, "query": AFTER},
    )  # fmt: skip
    return Figure(
        name=f"queries-{_ident(audited)}", title="Who is in which query", chart=chart, head=("person", "queries"),
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
    marks = [
        _Mark(
            row=i, column=place, kind=_state(graph, i, v), dot=bool(graph.true[i] == v),
            frame=graph.delta2 is not None and bool(graph.delta2[i, v]),
        )
        for i in range(shown)
        for place, v in enumerate(values)
        if graph.merged[i, v]
    ]  # fmt: skip
    chart = _Matrix(
        people=_names(graph, range(shown)), columns=[graph.labels[v] for v in values], marks=marks, colours=_FILLS,
        cells=True,
    )  # fmt: skip
    proved = "" if graph.delta2 is None else " A frame marks values that delta-2 matchings prove possible (T_Δ2)."
    return Figure(
        name=f"table-{_ident(audited)}", title="Possible values of the people with the fewest", chart=chart,
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
    edges = [
        _Edge(person=row, value=place, kind=_state(graph, i, v), true=bool(graph.true[i] == v))
        for row, i in enumerate(people) for place, v in enumerate(values) if graph.merged[i, v]
    ]  # fmt: skip
    chart = _Bipartite(people=_names(graph, people), values=[graph.labels[v] for v in values], edges=edges)
    return Figure(
        name=f"graph-{_ident(audited)}", title="Merged graph and assignment",
        chart=chart, width=560,
        head=("person", "value", "edge"),
        rows=tuple((f"row {graph.people[i] + 1}", graph.labels[v], _state(graph, i, v))
                   for i in people for v in values if graph.merged[i, v]),
        alternative="People of the proof and the values that each answer alone leaves them. Dotted edges are in no "
        "assignment; thick edges are the true assignment.",
    )  # fmt: skip


def _names(graph: AnswerGraph, people: Sequence[int]) -> list[str]:
    return [f"row {graph.people[i] + 1}" for i in people]


def _ident(audited: PastAnswers) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in audited.column)
