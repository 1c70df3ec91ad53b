"""The report as one offline HTML file, and the JSON report.

The page has no script and loads nothing: its content security policy allows its own style sheet by hash and nothing
else. Every string of the data is escaped by the template engine.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.data.atomic import replacing
from sfumato.evaluation import formatting
from sfumato.evaluation.disclosures import disclosure_of
from sfumato.evaluation.limits import judged_words
from sfumato.measures import measure_of
from sfumato.release.public_folder import Leaving, write_public
from sfumato.release.standing import limit_state, limit_words
from sfumato.reports import glossary, text
from sfumato.reports.crosswalk import crosswalk
from sfumato.reports.figures import (
    Figure,
    changed_columns,
    class_size_figure,
    column_figures,
    cost_figures,
    drawings,
    pair_figure,
    risk_figure,
)
from sfumato.reports.report_data import Audience, ReportData
from sfumato.reports.style import style
from sfumato.reports.synthetic_use import MARGINALS, synthetic_use
from sfumato.wording import counted

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_FIRST = 3
"""Figures on the first page."""
_ELSEWHERE = ("step", "parameters", *MARGINALS)
"""Keys of a published step that another part of the page shows."""


def write_report(report: ReportData, path: str | Path, *, audience: Audience, force: bool = False) -> None:
    """Write the report to ``path``, whole or not at all; an existing file is refused unless ``force``."""
    if audience == "external":
        _, page = leaving_report(report)
        write_public(path, page, promise=report.promised, force=force)
        return
    with replacing(path, force=force) as temporary:
        temporary.write_text(report_html(report, audience), encoding="utf-8", newline="\n")


def report_json(report: ReportData, audience: Audience) -> str:
    """The JSON report: the data as that reader may see it, the summary in words, the pictures as data."""
    visible = report.for_audience(audience)
    document = {**_words(visible), **visible.to_dict()}
    if visible.audience == "internal":
        document["advice"] = [item.to_dict() for item in visible.advice]
        document["compliance"] = [framework.to_dict() for framework in crosswalk(visible)]
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)


def leaving_report(report: ReportData) -> tuple[dict[str, Leaving[object]], Leaving[str]]:
    """The external report as JSON and as a page, each with the reason why it may leave."""
    visible = report.for_audience("external")
    words = {key: Leaving(value, visible.why) for key, value in _words(visible).items()}
    return {**words, **visible.leaving()}, Leaving(report_html(visible, "external"), visible.why)


def _words(report: ReportData) -> dict[str, object]:
    """The summary in words, and the pictures as data."""
    return {
        "report": 1,
        "standing": str(text.judgement(report).standing),
        "answer": list(text.summary(report)),
        "left_out": [what for what, _ in text.left_out(report)],
        "pictures": {figure.name: {**figure.chart.to_dict(), "width": figure.width} for figure in _all(report)},
    }


def report_html(report: ReportData, audience: Audience) -> str:
    """The page as text."""
    visible = report.for_audience(audience)
    return page_html("report.html", **_context(visible))


def _all(report: ReportData) -> tuple[Figure, ...]:
    single = (_risk_figure(report), class_size_figure(report), pair_figure(report))
    return (*(f for f in single if f is not None), *column_figures(report), *cost_figures(report))


def _risk_figure(report: ReportData) -> Figure | None:
    return risk_figure(
        report.attacks,
        before=report.attacks_before,
        limits=report.limits,
        counts=report.audience == "internal",
    )


def _context(report: ReportData) -> dict[str, object]:

    from sfumato.data.yaml_documents import yaml_text

    context: dict[str, object] = {
        "report": report,
        "internal": report.audience == "internal",
        "answer": text.summary(report),
        "judgement": text.judgement(report),
        "pairings": text.pairings(report.attacks, report.attacks_before),
        "verdicts": text.verdicts(report),
        "quasi": text.quasi(report),
        "steps": _steps(report),
        "first_figures": _first_figures(report),
        "widest": text.widest_attack(report),
        "threats": text.threats(report),
        "roles": {column.column: column.role for column in report.pictures if column.role != "plain"},
        "about": _about(report),
        "sign_off": [(label, report.about.get(key)) for key, label in text.SIGN_OFF.items()],
        "unchanged": text.unchanged_columns(report),
        "risk": _risk_figure(report),
        "class_sizes": class_size_figure(report),
        "columns": changed_columns(report),
        "unmoved": len(column_figures(report)) - len(changed_columns(report)),
        "pairs": pair_figure(report),
        "costs": cost_figures(report),
        "synthetic": synthetic_use(report.manifest),
        "recipe": yaml_text(_abridged(report.recipe if report.recipe is not None else report.recipe_public)),
        "left_out": text.left_out(report),
        "advice": report.advice,
        "compliance": crosswalk(report),
        "glossary": glossary.GLOSSARY,
    }
    return {**context, "contents": _contents(context)}


def _about(report: ReportData) -> list[tuple[str, str | None]]:
    """The fields of the about section. The owner's report has an empty line for each that is missing."""
    fields = [(label, report.about.get(key)) for key, label in text.ABOUT_LABELS.items()]
    return [field for field in fields if field[1] or report.audience == "internal"]


def _contents(context: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Sections with their short names, and whether they are there."""
    report = context["report"]
    return [
        ("verdicts", "Requirements", True),
        ("change", "What to change", context["internal"] and bool(context["pairings"])),
        ("risk", "Risk", bool(context["pairings"])),
        ("column-table", "Changes", bool(report.column_table)),
        ("columns", "Columns", bool(context["columns"])),
        ("classes", "Equivalence classes", bool(context["class_sizes"])),
        ("pairs", "Pairs", bool(context["pairs"])),
        ("synthetic", "Synthetic rows", bool(context["synthetic"])),
        ("cost", "Cost", bool(report.measures)),
        ("threats", "Attackers", True),
        ("done", "Recipe", True),
        ("method", "Method", True),
        ("compliance", "Compliance", bool(context["compliance"])),
        ("provenance", "Provenance", True),
        ("left-out", "Left out", bool(context["left_out"])),
        ("glossary", "Glossary", True),
    ]


def _first_figures(report: ReportData) -> list[dict[str, str]]:
    """The three figures of the first page: whom attackers found before and find now, and what was released."""
    found: list[dict[str, str]] = []
    headline, widest = text.headline(report), text.widest_attack(report)
    people = "of every 100"
    if headline is not None and headline.after is not None:
        noun = disclosure_of(headline.discloses).noun
        if headline.before is not None and headline.before.get("risk") is not None:
            risk = formatting.of_hundred(headline.before["risk"])
            found.append({"when": "was", "label": f"{noun}, before", "value": risk, "words": people})
        risk = formatting.of_hundred(headline.after["risk"])
        after = "knowing the quasi-identifiers" if widest is not None and headline.discloses == "identity" else "after"
        found.append({"when": "now", "label": f"{noun}, {after}", "value": risk, "words": people})
    if widest is not None:
        knows = ", ".join(widest["knows"][:3]) + (", ..." if len(widest["knows"]) > 3 else "")
        found.append(
            {
                "when": "now",
                "label": f"{disclosure_of('identity').noun}, knowing any released columns",
                "value": formatting.of_hundred(widest["risk"]),
                "words": f"{people}; knows {knows}",
            }
        )
    if isinstance(rows := report.manifest.get("rows"), int):
        whole = "" if report.original_rows is None else f"of {formatting.number(report.original_rows)}"
        words = whole or "count of the original not shown"
        found.append({"when": "", "label": "Records released", "value": formatting.number(rows), "words": words})
    for measure in report.measures:
        kind = measure_of(str(measure.get("measure")))
        if kind.headline and measure.get("value") is not None:
            label, value = text.measure_label(measure), text.measure_value(measure, measure["value"])
            found.append({"when": "", "label": text.capital(label), "value": value, "words": kind.headline})
    return found[:_FIRST]


def _steps(report: ReportData) -> list[dict[str, object]]:
    """What was done: name, parameters and public outcome of each step; for the owner the private outcome too."""
    private = list(report.outcomes)
    steps: list[dict[str, object]] = []
    for step in report.manifest.get("steps", ()):
        name = str(step.get("step"))
        public = {**step.get("parameters", {}), **{key: step[key] for key in step if key not in _ELSEWHERE}}
        own = next((outcome for outcome in private if outcome.get("step") == name), {})
        if own:
            private.remove(own)
        facts = {
            str(key): formatting.in_words(value) for key, value in public.items() if value not in (None, {}, [], ())
        }
        more = {key: value for key, value in own.items() if key != "step" and value != public.get(key)}
        secret = {str(key): formatting.in_words(value) for key, value in more.items()}
        steps.append({"name": name, "meaning": glossary.meaning("method", name), "facts": facts, "private": secret})
    return steps


def _abridged(value: object, most: int = 60) -> object:
    """Plain data with long tables cut: a hierarchy of ten thousand lines is in the manifest, not on the page."""
    if isinstance(value, Mapping):
        # what is empty goes without saying
        return {key: _abridged(item, most) for key, item in value.items() if item not in ({}, [], ())}
    if isinstance(value, list | tuple):
        kept = [_abridged(item, most) for item in value[:most]]
        return kept if len(value) <= most else [*kept, f"... {len(value) - most} more lines, see release.json"]
    return value


def page_html(template: str, **context: object) -> str:
    """A page without scripts: its style sheet is inside, and its policy allows nothing else."""
    from markupsafe import Markup

    sheet = style()
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    page = environment().get_template(template)
    return page.render(style=Markup(sheet), policy=policy, **context)  # the sheet is our own file, not data


def _code(sentence: object) -> Markup:
    """A sentence as HTML: escaped, with what stands between backquotes as code.

    >>> _code("Set `limits: {risk: ...}` & run <again>.")
    Markup('Set <code>limits: {risk: ...}</code> &amp; run &lt;again&gt;.')
    """
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(str(sentence)))))


@cache
def environment() -> Environment:
    """The template engine of all pages: it escapes every string of the data."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("sfumato.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": formatting.percent,
        "number": formatting.number,
        "readable_name": formatting.readable_name,
        "code": _code,
    }
    environment.globals |= {
        "counted": counted,
        "judged_words": judged_words,
        "before_of": text.before_of,
        "measure_label": text.measure_label,
        "measure_of": measure_of,
        "measure_value": text.measure_value,
        "draw": lambda figure: Markup("\n".join(drawings(figure))),
        "limit_words": lambda met: limit_words(limit_state(met)),
        "limit_meaning": glossary.limit_meaning,
        "meaning": glossary.meaning,
    }
    return environment
