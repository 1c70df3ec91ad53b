"""Contract of a tagger: findings are where they say, the same in every run, and odd texts are no problem."""

from __future__ import annotations

from sfumato.documents.tagger import Tagger
from sfumato.documents.text_findings import KINDS
from sfumato.testing.parts import run_checks

_PLAIN = "Dr. Anna Miller wrote to tom@example.org on 3 March 2021 and called 415-555-0132."
_TEXTS = (
    "",
    " ",
    _PLAIN,
    "Zoë Müller 🙂 lives in Zürich.",
    "x" * 5000,
    "12 " * 500,
    "line\none\n\nline two",
    "İ ﬁ \u0000",
)


def check_tagger(tagger: Tagger) -> None:
    """Raise AssertionError unless ``tagger`` keeps the contract of a tagger.

    It gives one list per text; each finding has a kind of identifier and is at its place; the same texts give the same
    findings, alone or among others; empty and odd texts are no error; the contacts in a plain sentence are found.
    """
    run_checks(tagger, TAGGER_CHECKS)


def findings_are_at_their_place(tagger: Tagger) -> None:
    found = tagger.find(_TEXTS)
    assert len(found) == len(_TEXTS), "not one list of findings per text"
    for text, findings in zip(_TEXTS, found, strict=True):
        for one in findings:
            assert one.kind in KINDS, f"`{one.kind}` is no kind of finding"
            assert one.kind != "term", "terms belong to a taxonomy, not to a tagger"
            assert one.text.strip(), "a finding is empty"
            assert text[one.start : one.end] == one.text, "a finding is not at its place in the text"


def texts_do_not_depend_on_each_other(tagger: Tagger) -> None:
    together = tagger.find(_TEXTS)
    assert tagger.find(_TEXTS) == together, "the same texts gave other findings"
    assert [tagger.find([text])[0] for text in _TEXTS] == together, "findings depend on the other texts"


def something_is_found(tagger: Tagger) -> None:
    [found] = tagger.find([_PLAIN])
    assert found, "nothing is found in a sentence with a name, an address, a date and a number"


TAGGER_CHECKS = (findings_are_at_their_place, texts_do_not_depend_on_each_other, something_is_found)
