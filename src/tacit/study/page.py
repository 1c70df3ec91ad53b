"""A study as one offline page: the map of risk and utility, interactive, and the same as a table."""

from __future__ import annotations

from html import escape
from typing import Any

from tacit.study.frontier import Point, Study

__all__ = ["chart", "page"]

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1c2630}
h1{font-size:1.6rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{padding:.35rem .6rem;text-align:left;border-bottom:1px solid #e3e6e8;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
tr.best{background:#eaf2f8}
caption{text-align:left;color:#56616c;padding:.5rem 0}
summary{cursor:pointer}
pre{margin:0}
"""


def chart(study: Study) -> dict[str, Any]:
    """The map as a Vega-Lite specification: risk across, loss up, the frontier as a line, details on hover."""
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
    x = {"field": "risk", "type": "quantitative", "title": f"risk: {study.plan.risk or 'worst attack on identity'}"}
    y = {"field": "loss", "type": "quantitative", "title": f"utility loss: {study.plan.utility}"}
    details = ["candidate", "risk", "risk_high", "attack", "loss"]
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
            "mark": {"type": "point", "filled": True, "size": 90},
            "params": [{"name": "zoom", "select": "interval", "bind": "scales"}],
            "encoding": {
                "x": x,
                "y": y,
                "color": {"field": "method", "type": "nominal", "title": "method"},
                "shape": {"field": "kind", "type": "nominal", "title": "", "sort": ["efficient", "other"]},
                "opacity": {"condition": {"test": "datum.kind === 'efficient'", "value": 1}, "value": 0.55},
                "tooltip": [{"field": name} for name in details],
            },
        },
    ]
    if limit is not None:
        rule = {"type": "rule", "color": "#c4500a"}
        layers.append(
            {
                "data": {"values": [{"limit": limit}]},
                "mark": rule,
                "encoding": {"x": {"field": "limit", "type": "quantitative"}},
            }
        )
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": 720,
        "height": 420,
        "data": {"values": rows},
        "layer": layers,
    }


def page(study: Study) -> str:
    """The whole page. No network is needed: the drawing library is inside."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_html(chart(study), bundle=True)
    document = study.to_plain()
    head = f"<title>Risk and utility</title><style>{_STYLE}</style>"
    words = [
        f"<h1>{escape(study.plan.recipe.title or 'Risk and utility')}</h1>",
        f"<p>{len(study.points)} candidates, {document['seeds']} seeds each. Left and low is good. "
        "Candidates on the dashed line are efficient: no other has both less risk and less loss.</p>",
    ]
    if document["limit"] is not None:
        best = document["recommended"]
        words.append(
            f"<p><strong>Risk at most {document['limit']:g}:</strong> "
            + (f"<b>{escape(best)}</b> loses least.</p>" if best else "no candidate stays below it.</p>")
        )
    # The drawing library itself contains words like "</body>", so the page is taken apart at its own last marks.
    start, mark, rest = drawn.rpartition('<div id="vega-chart">')
    body, close, end = rest.rpartition("</body>")
    first, opening, later = start.partition("<head>")
    table = _table(study, document["recommended"])
    return "".join([first, opening, head, later, *words, mark, body, table, close, end])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _table(study: Study, best: str | None) -> str:
    ordered = sorted(study.points, key=lambda p: (p.risk is None, p.risk or 0.0, p.loss or 0.0))
    heads = "".join(f"<th scope='col'>{h}</th>" for h in ("candidate", "risk", "at most", "by", "loss", "", "recipe"))
    return (
        f"<table><caption>All candidates, least risk first.</caption><thead><tr>{heads}</tr></thead><tbody>"
        + "".join(_row(study, point, best) for point in ordered)
        + "</tbody></table>"
    )


def _row(study: Study, point: Point, best: str | None) -> str:
    name = point.candidate.name
    remark = "recommended" if name == best else ("efficient" if point.efficient else escape(point.reason))
    if not point.holds and not point.reason:
        remark = "a privacy model fails"
    recipe = escape(study.plan.recipe_of(point.candidate).to_yaml())
    cells = (
        f"<th scope='row'>{escape(name)}</th><td class='n'>{_number(point.risk)}</td>"
        f"<td class='n'>{_number(point.risk_high)}</td><td>{escape(point.risk_by)}</td>"
        f"<td class='n'>{_number(point.loss)}</td><td>{remark}</td>"
        f"<td><details><summary>show</summary><pre>{recipe}</pre></details></td>"
    )
    return f"<tr{' class=best' if name == best else ''}>{cells}</tr>"
