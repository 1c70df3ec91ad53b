"""The page of a study: a risk-utility map per utility measure and the table of all candidates."""

from __future__ import annotations

from html import escape
from itertools import count

from sfumato.evaluation.formatting import percent
from sfumato.reports.notebook import frame_html
from sfumato.reports.page import page_html
from sfumato.studies.frontier import Point, Study
from sfumato.studies.map import risk_utility_map
from sfumato.wording import counted

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
    from markupsafe import Markup

    limit = study.plan.recipe.limits.risk
    best = study.recommend(risk=limit)
    maps = [
        (
            utility,
            [
                Markup(risk_utility_map(study, utility, best=best, width=width, ident=f"map-{number}-{width}"))
                for width in (780, 360)
            ]
            if any(utility in point.losses for point in study.points)
            else [],
        )
        for number, utility in enumerate(study.plan.utilities, start=1)
    ]
    return page_html(
        "study.html",
        title=study.plan.recipe.title or "Risk and utility",
        sentences=_sentences(study, limit, best),
        maps=maps,
        caption=_CAPTION.format(utility=study.plan.utility),
        limit=limit,
        utilities=study.plan.utilities,
        points=sorted(study.points, key=lambda p: (p.risk is None, p.risk or 0.0, p.loss or 0.0)),
        best=best,
        remark_of=lambda point: _remark(point, best),
        recipe_of=lambda point: study.plan.recipe_of(point.candidate).to_yaml(),
        share=lambda value: percent(value, limit=limit),
    )


def _sentences(study: Study, limit: float | None, best: Point | None) -> tuple[str, ...]:
    seeds = counted(len(study.plan.seeds), "seed")
    sentences = [
        f"{len(study.points)} candidates, {seeds} each.",
        "Efficient candidates: no other has both less risk and less loss.",
    ]
    if limit is not None:
        found = "no candidate meets it."
        if best is not None:
            found = f"{best.candidate.name} has the smallest loss by {study.plan.utility}."
        incomplete = sum(bool(point.stopped) for point in study.points)
        if incomplete:
            found += f" {incomplete} of the candidates ran out of time and cannot be recommended."
        sentences.append(f"Risk at most {percent(limit)}: {found}")
    return tuple(sentences)


def _remark(point: Point, best: Point | None) -> str:
    marks = ["recommended"] if point is best else ["efficient"] if point.efficient else []
    return "; ".join([*marks, *([point.remark] if point.remark else [])])
