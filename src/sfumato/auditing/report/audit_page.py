"""Audit of answers already given, as one offline HTML page. It shows values of single people: for the owner only."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.auditing.past_answers import PastAnswers
from sfumato.auditing.report.audit_pictures import audit_figures
from sfumato.reports.page import page_html
from sfumato.wording import counted


def audit_sentences(audited: PastAnswers) -> tuple[str, ...]:
    """What the answers about a column give away, in sentences."""
    sentences = [f"{counted(len(audited.queries), 'answer')} about “{audited.column}”."]
    if audited.worst is None:
        sentences.append(f"Everybody keeps {audited.k} values or more.")
    else:
        people = "1 person keeps" if len(audited.exposed) == 1 else f"{len(audited.exposed):,} people keep"
        sentences.append(
            f"{people} fewer than {audited.k} values. Row {audited.worst + 1} follows from "
            f"{counted(len(audited.proof), 'answer')}."
        )
    if audited.probability is not None:
        sentences.append(f"The largest probability of a value of a person is {audited.probability:.3g}.")
    if audited.worlds is not None:
        sentences.append(f"Possible worlds, assignments of values to the people asked about: {audited.worlds}.")
    if audited.graph is not None:
        facts = audited.graph.to_dict()
        sentences.append(
            f"Each answer alone leaves {facts['merged_edges']:,} pairs of person and value (the merged graph); "
            f"{facts['merged_error']:,} of them are in no assignment that agrees with all answers."
        )
    return tuple(sentences)


def audit_table(audited: PastAnswers) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]] | None:
    """Head and rows of the table of possible values; None where no person was asked about or values are not listed."""
    return None if audited.graph is None or not len(audited.graph.people) else audited.graph.table()


def audit_html(columns: Sequence[PastAnswers], left_out: Sequence[str]) -> str:
    """The page with the pictures of each column and the proofs."""
    return page_html(
        "audit.html",
        columns=[(column, audit_sentences(column), audit_figures(column), audit_table(column)) for column in columns],
        left_out=left_out,
    )
