"""Answers that were already given: who is exposed by them, and which of them together show it.

Nothing is refused here. The answers that the log's queries have on the data count as published, and everybody's
possible values are computed from all of them. For the person with the fewest values, a smallest set of answers is found
from which this follows: leaving out any of them gives the person more values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.arrays import Ints
from sfumato.auditing.answer_forms import AnswerForm, ListForm
from sfumato.auditing.answer_graph import AnswerGraph, answer_graph
from sfumato.auditing.atoms import AnswerConstraint
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.column_audits import ColumnAudit, SumsAudit, ValuesAudit
from sfumato.auditing.worlds import Worlds
from sfumato.errors import BadParameter, QueryRefused


@dataclass(frozen=True, kw_only=True)
class PastAnswers:
    """What the answers about one column give away. For the owner only."""

    column: str
    queries: tuple[str, ...]
    k: int
    kept: dict[int, int]
    """Number of people by how many values they keep. 0 stands for k or more, which are not counted one by one."""
    exposed: tuple[int, ...]
    """Rows of the people who keep fewer than k values."""
    worst: int | None
    """Row of a person who keeps the fewest values, if anybody is exposed."""
    proof: tuple[int, ...]
    """Numbers of queries that together leave this person fewer than k values; without any of them it would be more."""
    probability: float | None = None
    """The largest probability of a value of a person, where shares are declared and the effort suffices."""
    worlds: Worlds | None = None
    """How many assignments of values to people the answers leave, for columns with known possible values."""
    graph: AnswerGraph | None = None
    """Query graphs, merged graph and possible values, for columns with known possible values."""

    def to_dict(self) -> dict[str, object]:
        """Plain data without values of the column."""
        return {
            "column": self.column, "answers": len(self.queries), "k": self.k,
            "people_by_values_kept": {str(values): people for values, people in sorted(self.kept.items())},
            "exposed": [row + 1 for row in self.exposed], "worst": None if self.worst is None else self.worst + 1,
            **({"largest_probability": self.probability} if self.probability is not None else {}),
            **({"worlds": self.worlds.to_dict()} if self.worlds is not None else {}),
            **({"graph": self.graph.to_dict()} if self.graph is not None else {}),
            "proof": [{"query": number + 1, "question": self.queries[number]} for number in self.proof],
        }  # fmt: skip


@dataclass(frozen=True)
class _Answered:
    text: str
    rows: Ints
    form: AnswerForm | None
    fakes: tuple[int, ...]


def past_answers(
    auditor: Auditor, queries: Iterable[str], *, counterfeits: Mapping[int, Sequence[str]] | None = None
) -> tuple[list[PastAnswers], list[str]]:
    """What the answers to these queries give away, by column, and the queries that cannot be audited.

    ``counterfeits`` are values, by the number of a list (1 is the first query), that the table T_Δ2 is also computed
    with, as if the answer had contained them. Everything else is of the answers as they are.
    """
    added = dict(counterfeits or {})
    by_column: dict[str, tuple[ValuesAudit | SumsAudit, list[_Answered]]] = {}
    left_out: list[str] = []
    for number, text in enumerate(queries, start=1):
        try:
            column, audit, rows, form = auditor.answered(text)
        except QueryRefused:
            left_out.append(text)
            continue
        if column is None:
            continue
        # Answers of another family would tell more together with these, which is not computed.
        if isinstance(audit, ValuesAudit | SumsAudit) and by_column.setdefault(column, (audit, []))[0] is audit:
            fakes = _codes(audit, form, number, added.pop(number, ()))
            by_column[column][1].append(_Answered(text, rows, form, fakes))
        else:
            left_out.append(text)
    if added:
        raise BadParameter(
            f"counterfeits are for query {min(added)}, which the log does not have or which is not audited."
        )
    found = [
        _values(column, audit, answers, auditor)
        if isinstance(audit, ValuesAudit)
        else _sums(column, audit, answers, auditor)
        for column, (audit, answers) in by_column.items()
    ]
    return found, left_out


def _codes(audit: ColumnAudit, form: AnswerForm | None, number: int, values: Sequence[str]) -> tuple[int, ...]:
    """The codes of counterfeit values of a list."""
    if not values:
        return ()
    if not isinstance(audit, ValuesAudit) or not isinstance(form, ListForm):
        raise BadParameter(f"query {number} is not a list of values, and counterfeits are added to lists only.")
    codes = {str(label): code for code, label in enumerate(audit.labels)}
    if not set(values) <= set(codes):
        raise BadParameter(f"a counterfeit of query {number} is not a possible value of its column.")
    return tuple(codes[value] for value in values)


def _values(column: str, audit: ValuesAudit, answers: Sequence[_Answered], asked: Auditor) -> PastAnswers:
    codes, values, k = audit.codes, len(audit.labels), audit.rules.k
    constraints: list[tuple[Ints, AnswerConstraint]] = []
    for answer in answers:
        assert answer.form is not None
        counts = np.bincount(codes[answer.rows], minlength=values).astype(np.int64)
        constraints.append((answer.rows, answer.form.of(counts)))

    def kept(chosen: Sequence[int]) -> Ints:
        auditor = audit.new_auditor()
        auditor.recall([constraints[number] for number in chosen])
        return np.asarray(auditor.possible().sum(axis=1), np.int64)

    everything = audit.new_auditor()
    everything.recall(constraints)
    possible = everything.possible()
    left = np.asarray(possible.sum(axis=1), np.int64)
    left[audit.known] = values + 1  # not protected, and left out of the figures
    exposed = np.flatnonzero(left < k)
    worst = int(exposed[np.argmin(left[exposed])]) if len(exposed) else None
    proof = _minimal(len(answers), lambda chosen: bool(kept(chosen)[worst] < k)) if worst is not None else ()
    likely = everything.probabilities() if audit.rules.probable is not None else None
    likely = None if likely is None else np.delete(likely, audit.known, axis=0)
    told = [(rows, constraint, a.form) for (rows, constraint), a in zip(constraints, answers, strict=True)]
    graph = answer_graph(audit, told, possible, [answer.fakes for answer in answers])
    return PastAnswers(
        column=column, queries=tuple(a.text for a in answers), k=k, kept=dict(Counter(left[left <= values].tolist())),
        exposed=_rows(asked, exposed), worst=None if worst is None else _rows(asked, [worst])[0], proof=proof,
        probability=None if likely is None else float(likely.max()), worlds=everything.worlds(),
        graph=replace(graph, people=asked.file_rows(graph.people)),
    )  # fmt: skip


def _sums(column: str, audit: SumsAudit, answers: Sequence[_Answered], asked: Auditor) -> PastAnswers:
    def few(chosen: Sequence[int]) -> dict[int, int]:
        return audit.exposed_by([answers[number].rows for number in chosen])

    exposed = few(range(len(answers)))
    worst = min(exposed, key=lambda row: (exposed[row], asked.file_rows(np.array([row]))[0]), default=None)
    proof = _minimal(len(answers), lambda chosen: worst in few(chosen)) if worst is not None else ()
    return PastAnswers(
        column=column, queries=tuple(a.text for a in answers), k=audit.rules.k,
        kept={0: len(audit.codes) - len(audit.known) - len(exposed), **Counter(exposed.values())},
        exposed=_rows(asked, list(exposed)), worst=None if worst is None else _rows(asked, [worst])[0], proof=proof,
    )  # fmt: skip


def _rows(asked: Auditor, rows: Sequence[int] | Ints) -> tuple[int, ...]:
    return tuple(sorted(asked.file_rows(np.asarray(rows, np.int64)).tolist()))


def _minimal(count: int, shows: Any) -> tuple[int, ...]:
    """A set of numbers that shows it and of which none can be left out."""
    chosen = list(range(count))
    for number in range(count):
        without = [other for other in chosen if other != number]
        if shows(without):
            chosen = without
    return tuple(chosen)
