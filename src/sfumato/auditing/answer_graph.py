"""Graphs of answers: which values each person can have by each answer alone, and by all answers together.

The query graph of an answer connects the people of the query with the values that the answer leaves them. The merged
graph has the edges that every query graph of a person has. It ignores that one assignment must agree with all answers
at once; its error are the edges that no assignment uses. T_Δ2 is the table of values that delta-2 matchings prove
possible: a part of what is possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.arrays import Ints
from sfumato.auditing.answer_forms import ListForm
from sfumato.auditing.atoms import AnswerConstraint, Flags
from sfumato.auditing.column_audits import ValuesAudit
from sfumato.auditing.delta2 import Delta2Auditor

_DELTA2_PEOPLE, _DELTA2_QUERIES = 300, 40
"""Delta-2 matchings are computed up to this size."""


@dataclass(frozen=True, kw_only=True)
class AnswerGraph:
    """People in at least one query, by values and by queries. For the owner only."""

    people: Ints
    """Rows of the people, those with the fewest values first."""
    labels: tuple[str, ...]
    """The possible values."""
    asked: Flags
    """People by queries: who is in which query."""
    merged: Flags
    """People by values: the merged graph."""
    possible: Flags
    """People by values: edges that an assignment uses."""
    delta2: Flags | None
    """People by values: T_Δ2. None for answers that are not lists, and for large logs."""
    counterfeits: Flags | None
    """T_Δ2 if the lists also had the counterfeits that are asked about. None without any."""
    true: Ints
    """The position of the true value of each person: one assignment that agrees with all answers."""

    @property
    def error(self) -> int:
        """Edges of the merged graph that no assignment uses."""
        return int((self.merged & ~self.possible).sum())

    def table(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Head and rows: the values of each person by all worlds and, where computed, by T_Δ2. They show values."""
        columns = {
            "possible values": self.possible, "T_Δ2": self.delta2, "T_Δ2 with counterfeits": self.counterfeits
        }  # fmt: skip
        shown = {name: flags for name, flags in columns.items() if flags is not None}
        rows = tuple(
            (
                f"row {row + 1}",
                *(", ".join(self.labels[v] for v in np.flatnonzero(flags[i])) for flags in shown.values()),
            )
            for i, row in enumerate(self.people.tolist())
        )
        return ("person", *shown), rows

    def to_dict(self) -> dict[str, Any]:
        """Numbers of edges, without values."""
        return {
            "people": len(self.people), "merged_edges": int(self.merged.sum()),
            "possible_edges": int(self.possible.sum()), "merged_error": self.error,
            "delta2_edges": None if self.delta2 is None else int(self.delta2.sum()),
        }  # fmt: skip


def answer_graph(
    audit: ValuesAudit, answers: Sequence[tuple[Ints, AnswerConstraint, object]], possible: Flags,
    fakes: Sequence[Sequence[int]],
) -> AnswerGraph:  # fmt: skip
    """The graphs of answers: rows, constraint and form of each. ``possible``: people by values, by all answers.

    ``fakes``: for each answer, codes of counterfeits that T_Δ2 is also computed with.
    """
    people, values = possible.shape
    merged = np.ones((people, values), np.bool_)
    asked = np.zeros((people, len(answers)), np.bool_)
    for number, (rows, constraint, _) in enumerate(answers):
        others = np.setdiff1d(rows, audit.known)
        if len(others):
            auditor = audit.new_auditor()
            auditor.recall([(rows, constraint)])
            merged[others] &= auditor.possible()[others[0]]
            asked[others, number] = True
    delta2 = counterfeits = None
    lists = all(isinstance(form, ListForm) for _, _, form in answers)
    if lists and people <= _DELTA2_PEOPLE and len(answers) <= _DELTA2_QUERIES:
        people_asked = [np.setdiff1d(rows, audit.known).tolist() for rows, _, _ in answers]
        delta2 = _delta2(audit, people_asked, [()] * len(answers))
        counterfeits = _delta2(audit, people_asked, fakes) if any(fakes) else None
    chosen = np.flatnonzero(asked.any(axis=1))
    chosen = chosen[np.lexsort((chosen, possible[chosen].sum(axis=1)))]
    return AnswerGraph(
        people=chosen, labels=tuple("missing" if label is None else str(label) for label in audit.labels),
        asked=asked[chosen], merged=merged[chosen], possible=possible[chosen],
        delta2=None if delta2 is None else delta2[chosen], true=audit.codes[chosen],
        counterfeits=None if counterfeits is None else counterfeits[chosen],
    )  # fmt: skip


def _delta2(audit: ValuesAudit, people: Sequence[Sequence[int]], fakes: Sequence[Sequence[int]]) -> Flags:
    matchings = Delta2Auditor(audit.codes, values=len(audit.labels))
    for asked, false in zip(people, fakes, strict=True):
        matchings.accept(asked, false)
    return matchings.table()
