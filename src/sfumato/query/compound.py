"""Answers of several parts as one: rows one after the other, losses added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.dp.loss import PrivacyLoss, sequential
from sfumato.query.costing import cost_of
from sfumato.query.grouping_sets import answer_sets, sets_note
from sfumato.query.options import CheckedOptions
from sfumato.query.plan.grouping_sets import CubePlan, plan_sets
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.results.answer import Answer
from sfumato.query.results.explain import Explanation, explain
from sfumato.query.results.windows import sorted_rows
from sfumato.query.sql.compound import CompoundQuery, parse_compound

if TYPE_CHECKING:
    from sfumato.query.session import Session


def ask_parts(session: Session, sql: str, options: CheckedOptions) -> Answer | None:
    """The answer to a query of several parts; None for others. All parts are paid for at once, or none."""
    query = parse_compound(sql, session.catalog)
    if query is None:
        return None
    together = _together(query, options)
    if together is not None:
        sets = answer_sets(session, together, sql)
        return _combined_answer(session, query, sets, together.cost, sets_note(together))
    answers = session.run_plans(_plans(session, query, options), sql)
    cost = sequential(answer.loss for answer in answers if answer.loss is not None)
    return _combined_answer(session, query, answers, cost, _apart(query))


def explain_parts(session: Session, sql: str, options: CheckedOptions) -> Explanation | None:
    """How a query of several parts would be answered; None for others."""
    query = parse_compound(sql, session.catalog)
    if query is None:
        return None
    together = _together(query, options)
    if together is not None:
        return _combined_explanation(query, [explain(p) for p in together.sets], together.cost, sets_note(together))
    plans = _plans(session, query, options)
    return _combined_explanation(query, [explain(p) for p in plans], sequential(p.cost for p in plans), _apart(query))


def _together(query: CompoundQuery, options: CheckedOptions) -> CubePlan | None:
    """The plan that measures grouping sets together; None where that is not possible."""
    return plan_sets(query.parts, cost_of(options), **options.limits) if query.sets and options.share is None else None


def _apart(query: CompoundQuery) -> str:
    return f"The {len(query.parts)} parts are measured separately, each at an equal share of the cost."


def _plans(session: Session, query: CompoundQuery, options: CheckedOptions) -> list[NoisePlan]:
    own = options.divided(len(query.parts))
    return [session.plan_noise(part, own) for part in query.parts]


def _combined_answer(
    session: Session, query: CompoundQuery, answers: Sequence[Answer], cost: PrivacyLoss, note: str
) -> Answer:
    """The rows of all parts, sorted and limited together."""
    rows = [row for answer in answers for row in answer.rows]
    columns = [[row[place].value for row in rows] for place, _ in query.order]
    chosen = query.chosen_by_noise and query.limit is not None and query.limit < len(rows)
    rows = [tuple([replace(cell, low=None, high=None) for cell in row]) for row in rows] if chosen else rows
    order = sorted_rows(range(len(rows)), columns, [descending for _, descending in query.order])
    return replace(
        answers[-1],
        columns=answers[0].columns,
        rows=tuple(rows[place] for place in order[: query.limit]),
        loss=cost,
        cached=all(answer.cached for answer in answers),
        kept=min((a.kept for a in answers if a.kept is not None), key=lambda kept: kept.high or 0, default=None),
        limits=next((state for state in ("cut", "not shown", "fit") if state in {a.limits for a in answers}), None),
        explanation=_combined_explanation(query, [answer.explanation for answer in answers], cost, note),
        certificate=session.joint_certificate([answer.certificate for answer in answers]),
    )


def _combined_explanation(
    query: CompoundQuery, parts: Sequence[Explanation], cost: PrivacyLoss, note: str
) -> Explanation:
    """The explanations of all parts as one; the noise of a grouping set with the name of the set."""
    groups = [part.groups for part in parts]
    noises = [noise for part in parts for noise in part.noises]
    if query.sets:
        noises = [
            replace(noise, what=f"{noise.what} {name}")
            for name, part in zip(query.sets, parts, strict=True)
            for noise in part.noises
        ]
    chosen = []
    if query.chosen_by_noise:
        chosen.append("Where LIMIT cuts, rows are chosen by noisy values of several parts, and there are no intervals.")
    return replace(
        parts[0],
        cost=str(cost),
        groups=None if any(count is None for count in groups) else sum(count or 0 for count in groups),
        noises=tuple(dict.fromkeys(noises)),
        notes=tuple(dict.fromkeys([*(line for part in parts for line in part.notes), note, *chosen])),
    )
