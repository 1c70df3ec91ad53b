"""The risk-utility map of a study: a chart and its table, as an offline page and as a notebook display."""

from __future__ import annotations

from html import escape
from typing import Any

from sfumato.evaluation.formatting import number, percent
from sfumato.reports.figures import Figure
from sfumato.reports.notebook import figure_html, frame_html
from sfumato.reports.style import style
from sfumato.studies.frontier import Point, Study

__all__ = ["chart", "notebook_html", "page"]


def chart(study: Study) -> dict[str, Any]:
    """The risk-utility map as a Vega-Lite specification: risk on x, loss on y, the Pareto frontier as a line."""
    rows = [
        {
            "candidate": p.candidate.name,
            "method": " + ".join(step.part_name() for step in p.candidate.steps),
            "risk": p.risk,
            "risk_high": p.risk_high,
            "loss": p.loss,
            "loss_low": p.loss_low,
            "loss_high": p.loss_high,
            "kind": "efficient" if p.efficient else "other",
            "attack": p.risk_by,
        }
        for p in study.points
        if p.risk is not None and p.loss is not None
    ]
    limit = study.plan.recipe.limits.risk
    across = f"risk: {study.plan.risk or 'worst attack on identity'}"
    x = {"field": "risk", "type": "quantitative", "title": across, "axis": {"format": "~%"}}
    y = {"field": "loss", "type": "quantitative", "title": f"utility loss: {study.plan.utility}"}
    details = [
        {"field": "candidate"},
        {"field": "risk", "format": ".1%"},
        {"field": "risk_high", "title": "at most", "format": ".1%"},
        {"field": "attack", "title": "by"},
        {"field": "loss", "format": ".3~g"},
    ]
    layers: list[dict[str, Any]] = [
        {
            "transform": [{"filter": "datum.kind === 'efficient'"}],
            "mark": {"type": "line", "color": "#56616c", "strokeDash": [4, 4]},
            "encoding": {"x": x, "y": y, "order": {"field": "risk"}},
        },
        {
            "mark": {"type": "rule", "color": "#8a949e"},
            "encoding": {
                "x": x,
                "y": {"field": "loss_low", "type": "quantitative", "title": y["title"]},
                "y2": {"field": "loss_high"},
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 90, "clip": False},
            "params": [{"name": "zoom", "select": "interval", "bind": "scales"}],
            "encoding": {
                "x": x,
                "y": y,
                "color": {"field": "method", "type": "nominal", "title": "method"},
                "shape": {"field": "kind", "type": "nominal", "title": "", "sort": ["efficient", "other"]},
                "opacity": {"condition": {"test": "datum.kind === 'efficient'", "value": 1}, "value": 0.55},
                "tooltip": details,
            },
        },
    ]
    if limit is not None:
        at = {"x": {"field": "limit", "type": "quantitative"}}
        label = {"type": "text", "color": "#a34200", "align": "left", "baseline": "top", "dx": 4, "y": 4}
        layers.append(
            {
                "data": {"values": [{"limit": limit, "label": "limit " + percent(limit)}]},
                "layer": [
                    {"mark": {"type": "rule", "color": "#c4500a"}, "encoding": at},
                    {"mark": label, "encoding": {**at, "text": {"field": "label"}}},
                ],
            }
        )
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": "Candidates by risk (across) and utility loss (up); the table below has the numbers.",
        "width": "container",
        "height": 420,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": rows},
        "layer": layers,
        "config": {
            "background": "#ffffff",
            "legend": {"orient": "bottom", "columns": 2, "labelLimit": 240, "labelFontSize": 12, "titleFontSize": 12},
            "axis": {"labelFontSize": 12, "titleFontSize": 12, "tickCount": 6},
        },
    }


def notebook_html(study: Study) -> str:
    """The risk-utility map as inline SVG, and the table of all candidates."""
    frame = study.to_frame()
    if all(point.risk is None or point.loss is None for point in study.points):
        return frame_html(frame)
    spec = {key: value for key, value in chart(study).items() if key != "autosize"}
    figure = Figure(
        name="study",
        title="Risk and utility",
        alternative=f"{len(study.points)} candidates by risk and utility loss; the table below has the numbers",
        spec={**spec, "width": 620, "height": 360},
        head=(),
        rows=(),
        caption="Each point is a candidate, averaged over its seeds. The dashed line joins the efficient candidates.",
    )
    return figure_html(figure) + frame_html(frame)


def page(study: Study) -> str:
    """The HTML page of a study. It works offline: it contains the drawing library."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_html(chart(study), bundle=True)
    document = study.to_dict()
    title = escape(study.plan.recipe.title or "Risk and utility")
    head = (
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        f"<style>{style()}</style>"
    )
    seeds = f"{document['seeds']} seed{'s' if document['seeds'] != 1 else ''} each"
    introduction = [
        f"<main><h1>{title}</h1>",
        f"<p>{len(study.points)} candidates, {seeds}. Lower left is better. "
        "Candidates on the dashed line are Pareto efficient: no other has both less risk and less loss.</p>",
    ]
    if document["limit"] is not None:
        best = document["recommended"]
        introduction.append(
            f"<p><strong>Risk at most {percent(document['limit'])}:</strong> "
            + (f"<b>{escape(best)}</b> has the smallest loss.</p>" if best else "no candidate meets it.</p>")
        )
    # The drawing library contains texts like "</body>", so the page is split at the last occurrence.
    start, mark, rest = drawn.rpartition('<div id="vega-chart">')
    body, close, end = rest.rpartition("</body>")
    first, opening, later = start.partition("<head>")
    first = first.replace("<html>", '<html lang="en">', 1)
    later = later.replace("<title>Chart</title>", "", 1)
    caption = (
        "<figcaption>Each point is a candidate, averaged over its seeds; the thin line spans the loss over the seeds."
        " Drag to move, scroll to zoom.</figcaption></figure>"
    )
    legend = (
        "<h2>All candidates, least risk first</h2><p class='role'>Risk: the share of targets found. At most: the"
        " largest upper end of the 95 % intervals, which a limit is compared with. Loss:"
        f" {escape(study.plan.utility)}, where 0 is best.</p>"
    )
    parts = [
        first,
        opening,
        head,
        later,
        *introduction,
        '<figure class="chart" aria-label="Risk and loss of every candidate; the table below has the numbers">',
        mark,
        body,
        caption,
        legend,
    ]
    return "".join([*parts, _table(study, document["recommended"]), "</main>", close, end])


def _table(study: Study, best: str | None) -> str:
    ordered = sorted(study.points, key=lambda p: (p.risk is None, p.risk or 0.0, p.loss or 0.0))
    numbers = ("risk", "at most", "loss")
    heads = "".join(
        f"<th scope='col'{' class=n' if head in numbers else ''}>{head}</th>"
        for head in ("candidate", "risk", "at most", "by", "loss", "remark", "recipe")
    )
    rows = "".join(_row(study, point, best) for point in ordered)
    region = "<div class='scroll' role='region' aria-label='All candidates' tabindex='0'>"
    return f"{region}<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"


def _row(study: Study, point: Point, best: str | None) -> str:
    name = point.candidate.name
    remark = "recommended" if name == best else ("efficient" if point.efficient else escape(point.reason))
    if not point.holds and not point.reason:
        remark = "a privacy model fails"
    recipe = escape(study.plan.recipe_of(point.candidate).to_yaml())
    cells = (
        f"<th scope='row'>{escape(name)}</th><td class='n'>{percent(point.risk)}</td>"
        f"<td class='n'>{percent(point.risk_high)}</td><td>{escape(point.risk_by)}</td>"
        f"<td class='n'>{number(point.loss)}</td><td>{remark}</td>"
        f"<td><details><summary>show</summary><pre>{recipe}</pre></details></td>"
    )
    return f"<tr{' class=best' if name == best else ''}>{cells}</tr>"
