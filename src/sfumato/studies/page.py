"""A study as one offline page: the map of risk and utility, interactive, and the same as a table."""

from __future__ import annotations

from html import escape
from typing import Any

from sfumato.studies.frontier import Point, Study

__all__ = ["chart", "page"]

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2630;--soft:#56616c;--line:#e3e6e8;--page:#fcfbf7;--best:#e2eef7}
@media (prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#a9b2bb;--line:#2c343c;--page:#12161c;--best:#1d3140}}
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:var(--ink);
background:var(--page)}
h1{font-size:1.6rem;line-height:1.2}
h2{font-size:1.2rem;margin:2rem 0 .3rem}
p{max-width:44rem}
figure{margin:1rem 0;padding:.75rem;background:#fff;border:1px solid var(--line);border-radius:.5rem}
#vega-chart{width:100%}
#vega-chart summary{color:#1c2630}
figcaption,.small{color:var(--soft);font-size:.9rem}
figure figcaption{color:#56616c}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{padding:.35rem .6rem;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
tbody th{min-width:11rem}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tr.best{background:var(--best)}
summary{cursor:pointer;white-space:nowrap}
pre{margin:0;max-width:80vw;overflow-x:auto}
@media print{details{display:none}}
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
        words = {"type": "text", "color": "#a34200", "align": "left", "baseline": "top", "dx": 4, "y": 4}
        layers.append(
            {
                "data": {"values": [{"limit": limit, "label": "limit " + _percent(limit)}]},
                "layer": [
                    {"mark": {"type": "rule", "color": "#c4500a"}, "encoding": at},
                    {"mark": words, "encoding": {**at, "text": {"field": "label"}}},
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


def page(study: Study) -> str:
    """The whole page. No network is needed: the drawing library is inside."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_html(chart(study), bundle=True)
    document = study.to_dict()
    title = escape(study.plan.recipe.title or "Risk and utility")
    head = (
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        f"<style>{_STYLE}</style>"
    )
    seeds = f"{document['seeds']} seed{'s' if document['seeds'] != 1 else ''} each"
    words = [
        f"<h1>{title}</h1>",
        f"<p>{len(study.points)} candidates, {seeds}. Left and low is good. "
        "Candidates on the dashed line are efficient: no other has both less risk and less loss.</p>",
    ]
    if document["limit"] is not None:
        best = document["recommended"]
        words.append(
            f"<p><strong>Risk at most {_percent(document['limit'])}:</strong> "
            + (f"<b>{escape(best)}</b> loses least.</p>" if best else "no candidate stays below it.</p>")
        )
    # The drawing library itself contains words like "</body>", so the page is taken apart at its own last marks.
    start, mark, rest = drawn.rpartition('<div id="vega-chart">')
    body, close, end = rest.rpartition("</body>")
    first, opening, later = start.partition("<head>")
    first = first.replace("<html>", '<html lang="en">', 1)
    later = later.replace("<title>Chart</title>", "", 1)
    said = (
        "<figcaption>Each point is a candidate, averaged over its seeds; a thin line spans the loss over the seeds."
        " Drag to move, turn the wheel to zoom.</figcaption></figure>"
    )
    explained = (
        "<h2>All candidates, least risk first</h2><p class='small'>Risk: the share of people found. At most: the upper"
        " end of its 95 % interval, the largest over the seeds; a limit is held against it. Loss:"
        f" {escape(study.plan.utility)}, where 0 is best.</p>"
    )
    parts = [
        first,
        opening,
        head,
        later,
        *words,
        '<figure aria-label="Risk and loss of every candidate; the table below has the numbers">',
        mark,
        body,
        said,
        explained,
    ]
    return "".join([*parts, _table(study, document["recommended"]), close, end])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _table(study: Study, best: str | None) -> str:
    ordered = sorted(study.points, key=lambda p: (p.risk is None, p.risk or 0.0, p.loss or 0.0))
    numbers = ("risk", "at most", "loss")
    heads = "".join(
        f"<th scope='col'{' class=n' if head in numbers else ''}>{head}</th>"
        for head in ("candidate", "risk", "at most", "by", "loss", "remark", "recipe")
    )
    rows = "".join(_row(study, point, best) for point in ordered)
    region = "<div class='wide' role='region' aria-label='All candidates' tabindex='0'>"
    return f"{region}<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"


def _row(study: Study, point: Point, best: str | None) -> str:
    name = point.candidate.name
    remark = "recommended" if name == best else ("efficient" if point.efficient else escape(point.reason))
    if not point.holds and not point.reason:
        remark = "a privacy model fails"
    recipe = escape(study.plan.recipe_of(point.candidate).to_yaml())
    cells = (
        f"<th scope='row'>{escape(name)}</th><td class='n'>{_percent(point.risk)}</td>"
        f"<td class='n'>{_percent(point.risk_high)}</td><td>{escape(point.risk_by)}</td>"
        f"<td class='n'>{_number(point.loss)}</td><td>{remark}</td>"
        f"<td><details><summary>show</summary><pre>{recipe}</pre></details></td>"
    )
    return f"<tr{' class=best' if name == best else ''}>{cells}</tr>"
