"""Report of a released graph: one offline HTML page, internal or external."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.evaluation.formatting import attack_label, number, percent, readable_name
from sfumato.reports.page import page_html

__all__ = ["external_document", "graph_html", "graph_sentences"]

Plain = Mapping[str, Any]
_PUBLIC = ("title", "released", "nodes", "edges", "edge_columns")
_RATES = ("risk", "low", "high", "baseline")


def external_document(document: Plain) -> dict[str, Any]:
    """The document without counts of the original, measures and pictures; risks are rounded to percent."""
    attacks = [
        {
            **{key: attack.get(key) for key in ("attack", "discloses", "reason", "secret", "setting")},
            **{key: None if attack.get(key) is None else round(attack[key], 2) for key in _RATES},
        }
        for attack in document.get("attacks", ())
    ]
    verdicts = [{key: v[key] for key in ("model", "state", "wanted")} for v in document.get("verdicts", ())]
    return {
        **{key: document.get(key) for key in _PUBLIC},
        "steps": [{"step": step["step"]} for step in document.get("steps", ())],
        "attacks": attacks,
        "verdicts": verdicts,
    }


def graph_sentences(document: Plain) -> tuple[str, ...]:
    """The result in two sentences: the strongest attack on identity, and models that fail."""
    found = [a for a in document.get("attacks", ()) if a.get("discloses") == "identity" and a.get("risk") is not None]
    sentences = []
    if found:
        worst = max(found, key=lambda attack: float(attack["high"]))
        sentences.append(
            f"The strongest attack on identity ({attack_label(worst)}) finds {percent(worst['risk'])} "
            f"of the people it looks for (95% interval {percent(worst['low'])} to {percent(worst['high'])})."
        )
    failed = [v["model"] for v in document.get("verdicts", ()) if v["state"] != "holds"]
    if failed:
        sentences.append(f"Not met: {', '.join(map(readable_name, failed))}.")
    return tuple(sentences) or ("No attack on identity was run.",)


def graph_html(document: Plain, *, internal: bool) -> str:
    """The page. The external one is made from :func:`external_document` and shows no picture of the original."""
    from markupsafe import Markup

    shown = document if internal else external_document(document)
    return page_html(
        "graph.html",
        document=shown,
        internal=internal,
        sentences=graph_sentences(shown),
        pictures=[Markup(svg) for svg in shown.get("pictures", ())],  # drawn by us: coordinates only
        attack_label=attack_label,
        readable_name=readable_name,
        percent=percent,
        shown_number=number,
    )
