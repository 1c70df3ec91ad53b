"""Report of a released graph: one offline HTML page, internal or external."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.evaluation.formatting import Plain, attack_label, interval_ends, number, percent, readable_name
from sfumato.reports.kind_page import KindPage
from sfumato.reports.redaction import external


class GraphPage(KindPage):
    """Nodes, edges, attacks and measures; pictures of the original for its owner."""

    template = "graph.html"

    def external(self, document: Plain) -> Plain:
        return {key: leaving.value for key, leaving in external(document).items()}

    def sentences(self, shown: Plain) -> tuple[str, ...]:
        """The result in two sentences: the strongest attack on identity, and models that fail."""
        found = [a for a in shown.get("attacks", ()) if a.get("discloses") == "identity" and a.get("risk") is not None]
        told = []
        if found:
            worst = max(found, key=lambda attack: float(attack["high"]))
            told.append(
                f"The strongest attack on identity ({attack_label(worst)}) finds {percent(worst['risk'])} "
                f"of the people it looks for (95% interval: {interval_ends(worst['low'], worst['high'])})."
            )
        failed = [v["model"] for v in shown.get("verdicts", ()) if v["state"] != "holds"]
        if failed:
            told.append(f"Not met: {', '.join(map(readable_name, failed))}.")
        return tuple(told) or ("No attack on identity was run.",)

    def context(self, shown: Plain, *, internal: bool) -> Mapping[str, object]:
        from markupsafe import Markup

        return {
            "pictures": [Markup(svg) for svg in shown.get("pictures", ())],  # drawn by us: coordinates only
            "attack_label": attack_label,
            "readable_name": readable_name,
            "percent": percent,
            "shown_number": number,
        }


GRAPH_PAGE = GraphPage()
