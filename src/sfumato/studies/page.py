"""The page of a study: a risk-utility map per utility measure and the table of all candidates."""

from __future__ import annotations

from html import escape
from itertools import count

from sfumato.evaluation.formatting import number, percent
from sfumato.reports.notebook import frame_html
from sfumato.reports.style import style
from sfumato.studies.frontier import Point, Study
from sfumato.studies.map import risk_utility_map

__all__ = ["notebook_html", "page"]

_CAPTION = (
    "Each point is a candidate, averaged over its seeds; lower left is better. The horizontal line is the interval of"
    " the risk, and the bar at its right end is the upper end that the limit is compared with. The vertical line spans"
    " the loss over the seeds. Filled points, joined by the dashed line, are efficient: no other candidate has both"
    " less risk and less loss by {utility}. The diamond is recommended."
)
_numbers = count(1)


def notebook_html(study: Study) -> str:
    """The first risk-utility map and the table of all candidates."""
    frame = frame_html(study.to_frame())
    if all(point.risk is None or point.loss is None for point in study.points):
        return frame
    best = study.recommend(risk=study.plan.recipe.limits.risk)
    # The identifier is new each time: a notebook may show the same picture twice.
    svg = risk_utility_map(study, study.plan.utility, best=best, width=640, ident=f"sfumato-study-{next(_numbers)}")
    light = "background:#fff;color:#1c2630;padding:.5rem;max-width:50rem"
    caption = escape(_CAPTION.format(utility=study.plan.utility))
    return f'<figure style="{light}">{svg}<figcaption>{caption}</figcaption></figure>{frame}'


def page(study: Study) -> str:
    """The HTML page of a study: one offline file without scripts."""
    limit = study.plan.recipe.limits.risk
    best = study.recommend(risk=limit)
    title = escape(study.plan.recipe.title or "Risk and utility")
    runs = len(study.plan.seeds)
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>',
        f"<style>{style()}</style></head><body><main><h1>{title}</h1>",
        f"<p>{len(study.points)} candidates, {runs} seed{'s' if runs != 1 else ''} each. ",
        "Efficient candidates: no other has both less risk and less loss.</p>",
        *_verdict(study, limit, best),
        *(_figure(study, utility, best) for utility in study.plan.utilities),
        "<h2>All candidates, least risk first</h2><p class='role'>Risk: the share of targets found. At most: the"
        " largest upper end of the 95 % intervals, which a limit is compared with. Loss: 0 is best.</p>",
        _table(study, best, limit),
        "</main></body></html>\n",
    ]
    return "".join(parts)


def _verdict(study: Study, limit: float | None, best: Point | None) -> list[str]:
    if limit is None:
        return []
    text = f"<p><strong>Risk at most {percent(limit)}:</strong> "
    if best is not None:
        text += f"<b>{escape(best.candidate.name)}</b> has the smallest loss by {escape(study.plan.utility)}."
    else:
        text += "no candidate meets it."
    incomplete = sum(bool(point.stopped) for point in study.points)
    if incomplete:
        text += f" {incomplete} of the candidates ran out of time and cannot be recommended."
    return [text + "</p>"]


def _figure(study: Study, utility: str, best: Point | None) -> str:
    if not any(utility in point.losses for point in study.points):
        return f"<p>No candidate has a risk and a loss by {escape(utility)}.</p>"
    place = study.plan.utilities.index(utility) + 1
    wide, narrow = (
        risk_utility_map(study, utility, best=best, width=width, ident=f"map-{place}-{width}") for width in (780, 360)
    )
    return (
        f"<figure>{wide}{narrow}<figcaption>{escape(_CAPTION.format(utility=study.plan.utility))}</figcaption></figure>"
    )


def _table(study: Study, best: Point | None, limit: float | None) -> str:
    ordered = sorted(study.points, key=lambda p: (p.risk is None, p.risk or 0.0, p.loss or 0.0))
    losses = [f"loss: {utility}" for utility in study.plan.utilities]
    heads = "".join(
        f"<th scope='col'{' class=n' if head in ('risk', 'at most', *losses) else ''}>{escape(head)}</th>"
        for head in ("candidate", "risk", "at most", "by", *losses, "remark", "recipe")
    )
    rows = "".join(_row(study, point, best, limit) for point in ordered)
    region = "<div class='scroll' role='region' aria-label='All candidates' tabindex='0'>"
    return f"{region}<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"


def _row(study: Study, point: Point, best: Point | None, limit: float | None) -> str:
    marks = ["recommended"] if point is best else ["efficient"] if point.efficient else []
    remark = "; ".join([*marks, *([point.remark] if point.remark else [])])
    recipe = escape(study.plan.recipe_of(point.candidate).to_yaml())
    spans = (point.losses.get(utility) for utility in study.plan.utilities)
    cells = (
        f"<th scope='row'>{escape(point.candidate.name)}</th><td class='n'>{percent(point.risk, limit=limit)}</td>"
        f"<td class='n'>{percent(point.risk_high, limit=limit)}</td><td>{escape(point.risk_by)}</td>"
        + "".join(f"<td class='n'>{number(span[0] if span else None)}</td>" for span in spans)
        + f"<td>{escape(remark)}</td><td><details><summary>show</summary><pre>{recipe}</pre></details></td>"
    )
    return f"<tr{' class=best' if point is best else ''}>{cells}</tr>"
