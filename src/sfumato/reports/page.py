"""The report as one HTML file that needs nothing else, and its JSON twin.

The page has no script, loads nothing, and says so to the browser by a content security policy that allows its own style
sheet by hash and nothing more. Every string of the data is escaped by the template engine.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.data.atomic import replacing
from sfumato.evaluation import formatting
from sfumato.reports import glossary as meanings
from sfumato.reports import text as words
from sfumato.reports.figures import (
    Figure,
    class_size_figure,
    column_figures,
    cost_figures,
    pair_figure,
    risk_figure,
)
from sfumato.reports.report_data import Audience, ReportData

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["report_html", "report_json", "write_report"]


def write_report(account: ReportData, path: str | Path, *, audience: Audience, force: bool = False) -> None:
    """Write the report to ``path``, whole or not at all; an existing file is refused unless ``force``."""
    page = report_html(account, audience)
    with replacing(path, force=force) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")


def report_json(account: ReportData, audience: Audience) -> str:
    """The twin as JSON text: the account as that reader may see it, the answer in words, the pictures as data."""
    told = account.told_to(audience)
    twin = {
        "report": 1,
        "standing": words.standing(told),
        "answer": list(words.answer(told)),
        **told.to_dict(),
        "left_out": [what for what, _ in words.left_out(told)],
        "pictures": {figure.name: figure.spec for figure in _all(told)},
    }
    if told.audience == "internal":
        twin["advice"] = [item.to_dict() for item in told.advice]
    return json.dumps(twin, ensure_ascii=False, indent=1, allow_nan=False)


def report_html(account: ReportData, audience: Audience) -> str:
    """The page as text."""
    told = account.told_to(audience)
    return _environment().get_template("report.html").render(_context(told))


def _all(account: ReportData) -> tuple[Figure, ...]:
    single = (_risk_figure(account), class_size_figure(account), pair_figure(account))
    return (*(f for f in single if f is not None), *column_figures(account), *cost_figures(account))


def _risk_figure(account: ReportData) -> Figure | None:
    return risk_figure(
        account.attacks,
        before=account.attacks_before,
        limits=account.limits,
        counts=account.audience == "internal",
    )


def _context(account: ReportData) -> dict[str, Any]:
    from markupsafe import Markup

    from sfumato.data.yaml_documents import yaml_text

    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    headline = words.headline(account)
    context: dict[str, Any] = {
        "account": account,
        "internal": account.audience == "internal",
        "style": Markup(style),  # our own file, not data
        "policy": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        "answer": words.answer(account),
        "standing": words.standing(account),
        "headline": headline,
        "pairings": words.pairings(account.attacks, account.attacks_before),
        "verdicts": words.verdicts(account),
        "quasi": words.quasi(account),
        "steps": _steps(account),
        "smallest": _smallest(account),
        "noun": {"identity": "People found", "attribute": "Secrets learned"}.get(headline.discloses, "Right guesses")
        if headline
        else "",
        "roles": {column.column: column.role for column in account.columns if column.role != "plain"},
        "risk": _risk_figure(account),
        "class_sizes": class_size_figure(account),
        "columns": column_figures(account),
        "pairs": pair_figure(account),
        "costs": cost_figures(account),
        "recipe": yaml_text(_abridged(account.recipe if account.recipe is not None else account.recipe_public)),
        "left_out": words.left_out(account),
        "advice": account.advice,
        "glossary": meanings.glossary(),
    }
    return {**context, "contents": _contents(context)}


def _contents(context: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Sections with their short names, and whether they are there."""
    account = context["account"]
    return [
        ("verdicts", "Requirements", True),
        ("risk", "Risk", bool(context["pairings"])),
        ("change", "What to change", context["internal"] and bool(context["pairings"])),
        ("classes", "Classes", bool(context["class_sizes"])),
        ("columns", "Columns", bool(context["columns"])),
        ("pairs", "Pairs", bool(context["pairs"])),
        ("cost", "Cost", bool(account.measures)),
        ("threats", "Intruders", True),
        ("done", "Recipe", True),
        ("method", "Method", True),
        ("provenance", "Provenance", True),
        ("left-out", "Left out", bool(context["left_out"])),
        ("glossary", "Words", True),
    ]


def _smallest(account: ReportData) -> float | None:
    """The size of the smallest released class."""
    values = (measure.get("value") for measure in account.measures if measure.get("measure") == "class-sizes")
    return next(values, None)


def _before(measure: Mapping[str, Any]) -> float | None:
    """The same measure on the original, where the measure tells it."""
    detail = measure.get("detail", {})
    value = detail.get("before", detail.get("smallest_before"))
    return value if isinstance(value, int | float) else None


def _steps(account: ReportData) -> list[dict[str, Any]]:
    """What was done: name, parameters and public outcome of each step; for the owner the private outcome too."""
    private = list(account.outcomes)
    steps: list[dict[str, Any]] = []
    for step in account.manifest.get("steps", ()):
        name = str(step.get("step"))
        public = {**step.get("parameters", {}), **{key: step[key] for key in step if key not in ("step", "parameters")}}
        own = next((outcome for outcome in private if outcome.get("step") == name), {})
        if own:
            private.remove(own)
        facts = {str(key): _told(value) for key, value in public.items() if value not in (None, {}, [], ())}
        more = {key: value for key, value in own.items() if key != "step" and value != public.get(key)}
        secret = {str(key): _told(value) for key, value in more.items()}
        steps.append({"name": name, "says": meanings.meaning("method", name), "facts": facts, "private": secret})
    return steps


def _abridged(value: Any, most: int = 60) -> Any:
    """Plain data with long tables cut: a hierarchy of ten thousand lines is in the manifest, not on the page."""
    if isinstance(value, Mapping):
        # what is empty goes without saying
        return {key: _abridged(item, most) for key, item in value.items() if item not in ({}, [], ())}
    if isinstance(value, list | tuple):
        kept = [_abridged(item, most) for item in value[:most]]
        return kept if len(value) <= most else [*kept, f"... {len(value) - most} more lines, see release.json"]
    return value


def _told(value: Any) -> str:
    """Plain data in a line of text."""
    match value:
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{key}: {_told(item)}" for key, item in value.items())
        case list() | tuple():
            return ", ".join(f"({_told(item)})" if isinstance(item, list | tuple) else _told(item) for item in value)
        case int() | float():
            return formatting.number(value)
        case None:
            return "–"
        case _:
            return str(value)


@cache
def _style() -> str:
    return files("sfumato.reports").joinpath("templates/report.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from sfumato.reports.svg import render

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
    }
    environment.globals["value_words"] = words.value_words
    environment.globals |= {
        "column_weights": formatting.column_weights,
        "achieved": words.achieved,
        "before_of": _before,
        "draw": lambda spec, ident, label, kind="": Markup(render(spec, ident=ident, label=label, kind=kind)),
        "limit_meaning": meanings.limit_meaning,
        "meaning": meanings.meaning,
        "measure_title": meanings.measure_title,
        "of_hundred": formatting.of_hundred,
    }
    return environment
