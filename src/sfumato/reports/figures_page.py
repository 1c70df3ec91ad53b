"""Report of published figures (tables, statistics) as one offline HTML page."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.evaluation.formatting import Plain, in_words, readable_name
from sfumato.release.guarantee import Guarantee
from sfumato.release.public_folder import Why
from sfumato.reports.kind_page import KindPage
from sfumato.wording import counted


class FiguresPage(KindPage):
    """Tables with their method, guarantee and verdicts."""

    template = "figures.html"

    def external(self, document: Plain) -> Plain:
        """Readers see no counts and reasons of verdicts, and not which suppressed cells are sensitive themselves."""
        shown = dict(document)
        shown["verdicts"] = [{key: one.get(key) for key in ("model", "state", "wanted")} for one in shown["verdicts"]]
        tabs = shown.get("cross_tabs", ())
        if tabs:
            shown["cross_tabs"] = [{key: one[key] for key in ("title", "head", "labels", "lines")} for one in tabs]
        return shown

    def sentences(self, shown: Plain) -> tuple[str, ...]:
        """What is published, the guarantee, and verdicts that do not hold."""
        sentences = [f"{counted(len(shown['tables']), 'table')} published."]
        if "guarantee" in shown:
            sentences.append(str(_guarantee(shown)))
        failed = [one for one in shown["verdicts"] if one["state"] != "holds"]
        sentences += [f"{readable_name(str(one['model']))}: {one['state']}." for one in failed]
        return tuple(sentences)

    def context(self, shown: Plain, *, internal: bool) -> Mapping[str, object]:
        return {
            "facts": [(readable_name(key), in_words(value)) for key, value in shown["facts"].items()],
            "guarantee": _guarantee(shown).section() if "guarantee" in shown else (),
            "readable_name": readable_name,
        }

    def why(self, document: Plain) -> Why:
        """Without a guarantee, what the tables show was computed with the original and is protected by the method."""
        return Why.PAID if "guarantee" in document else Why.MEASURED


def _guarantee(shown: Plain) -> Guarantee:
    return Guarantee.from_dict(shown["guarantee"])


FIGURES_PAGE = FiguresPage()
