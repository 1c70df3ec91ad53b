"""Report of published figures (tables, statistics) as one offline HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.evaluation.formatting import in_words, readable_name
from sfumato.release.guarantee import Guarantee
from sfumato.reports.page import page_html
from sfumato.wording import counted

Plain = Mapping[str, Any]


def figures_html(document: Plain, *, internal: bool) -> str:
    """The page of a document of the private folder of published figures."""
    facts = [(readable_name(key), in_words(value)) for key, value in document["facts"].items()]
    return page_html(
        "figures.html",
        document=document,
        internal=internal,
        sentences=figures_sentences(document),
        facts=facts,
        guarantee=_guarantee(document).section() if "guarantee" in document else (),
        readable_name=readable_name,
    )


def figures_sentences(document: Plain) -> tuple[str, ...]:
    """The result in sentences: what is published, the guarantee, and verdicts that do not hold."""
    sentences = [f"{counted(len(document['tables']), 'table')} published."]
    if "guarantee" in document:
        sentences.append(str(_guarantee(document)))
    failed = [one for one in document["verdicts"] if one["state"] != "holds"]
    sentences += [f"{readable_name(str(one['model']))}: {one['state']}." for one in failed]
    return tuple(sentences)


def _guarantee(document: Plain) -> Guarantee:
    return Guarantee.from_dict(document["guarantee"])
