"""Report of a released graph: one offline HTML page, internal or external."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.evaluation.formatting import attack_label, number, percent, readable_name
from sfumato.reports.page import page_html
from sfumato.reports.redaction import external

Plain = Mapping[str, Any]


def external_document(document: Plain) -> dict[str, Any]:
    """The document as others may read it: without counts of the original and pictures."""
    return {key: leaving.value for key, leaving in external(document).items()}


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
