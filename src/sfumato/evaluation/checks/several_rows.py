"""People with several rows that can be linked: what is judged row by row does not hold for them."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.dataset import Role
from sfumato.dataset.data import ROWS_OF_AN_IDENTIFIER
from sfumato.evaluation.check import SEVERAL_ROWS, Check, Need, Subject
from sfumato.masking.base import method_of
from sfumato.release import State, Verdict


class SeveralRows(Check):
    """No person or household has several released rows that can be linked to each other.

    Models and attacks judge rows. Rows that are known to belong together tell more than each of them: eight noisy
    incomes of one person, as one vector, identify people whom no single row identifies. Such a release is not judged
    for people, unless a step guarantees something about all rows of a person together.

    Rows are linked by a released unit, household or pseudonym, by an order that was kept, by released values that are
    the same in all rows of a person and that nobody else has, or by a column in which somebody has several rows with
    values of their own: case numbers with a counter, or amounts that are nearly the same, tell whose they are. What
    such values have in common is not looked for, so some releases are not judged that could be.

    Where no unit is declared, every row counts as another person. If an identifier of the original has the same value
    in several rows, that is doubtful, and nothing is judged for people until a unit is declared.
    """

    @classmethod
    def verdict_name(cls) -> str:
        return SEVERAL_ROWS

    def applies(self, subject: Subject) -> bool:
        schema = subject.schema
        doubtful = schema.declared_unit is None and bool(schema.names(Role.IDENTIFIER))
        return not subject.synthetic and (schema.unit is not None or doubtful or bool(_grouping(subject)))

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        by = next((name for name in _grouping(subject) if _repeats(subject, name)), None)
        if by is not None:
            return () if _covered(subject) else (_linked_by(by, subject.schema.unit),)
        if subject.schema.declared_unit is None:
            return _undeclared(subject)
        if subject.schema.unit is None or subject.schema.unit in subject.columns:
            return ()
        subject.require((Need.ORIGINAL, Need.LINEAGE))
        if not subject.people.drop_nulls().is_duplicated().any():
            return ()
        if subject.order == "kept":
            return (_not_judged("the rows are in the order of the original"),)
        columns = _linking_columns(subject)
        if columns:
            names = ", ".join(f"`{name}`" for name in columns)
            return (_not_judged(f"the values of {names} are the same in all rows of a person and single some out"),)
        own = next((name for name in subject.columns if _own_values(subject, name)), None)
        if own is not None:
            return (_not_judged(f"the column `{own}` has values that only they have, by which rows may be linked"),)
        return ()


def _grouping(subject: Subject) -> tuple[str, ...]:
    """Released columns that tell which rows belong together; a released identifier is a pseudonym."""
    return tuple(name for name in subject.schema.grouping if name in subject.columns)


def _repeats(subject: Subject, name: str) -> bool:
    groups = subject.release.group([name])
    return bool((groups.rows > 1)[groups.values.to_series().is_not_null().to_numpy()].any())


def _undeclared(subject: Subject) -> tuple[Verdict, ...]:
    """Whether the identifiers of the original say that its rows are not people."""
    subject.require((Need.ORIGINAL,))
    assert subject.original is not None
    for name in subject.schema.names(Role.IDENTIFIER):
        if name not in subject.original.columns:
            continue
        groups = subject.original.group([name])
        rows = groups.rows[groups.values.to_series().is_not_null().to_numpy()]
        if len(rows) > 1 and rows.mean() >= ROWS_OF_AN_IDENTIFIER:
            reason = (
                f"Not judged for people: no `unit` is declared, and the identifier `{name}` has the same value in "
                f"several rows. Declare `unit: {name}` if it identifies a person, or `unit: row` if every row is a "
                "different person."
            )
            return (Verdict.not_checked(SEVERAL_ROWS, reason, column=name),)
    return ()


def _covered(subject: Subject) -> bool:
    """Whether a step guarantees something about all released rows of a person together, and that holds."""
    steps = [step for step in subject.steps if method_of(step).covers_people]
    frame = subject.release.load(subject.columns) if steps else pl.DataFrame()
    return any(v.holds for step in steps for v in method_of(step).verify_release(step, frame))


def _linking_columns(subject: Subject) -> list[str]:
    """The released columns that are constant for every person, if some person is alone with their values; else none."""
    everybody = subject.people.drop_nulls().n_unique()
    groups = {name: subject.release.group([name], subject.people) for name in subject.columns}
    constant = [name for name, values in groups.items() if int(values.people.sum()) == everybody]
    if not constant:
        return []
    alone = subject.release.group(constant, subject.people)
    return constant if bool(((alone.people == 1) & (alone.of_people > 1)).any()) else []


def _own_values(subject: Subject, name: str) -> bool:
    """Whether somebody has values in several rows of a column that nobody else has."""
    groups = subject.release.group([name], subject.people)
    alone = (groups.people == 1) & groups.values.to_series().is_not_null().to_numpy()
    _, position = np.unique(groups.person[alone], return_inverse=True)
    return bool((np.bincount(position, weights=groups.of_people[alone]) > 1).any())


def _linked_by(column: str, unit: str | None) -> Verdict:
    if unit is not None:
        return _not_judged(f"the column `{column}` tells which rows belong together")
    reason = (
        f"Not judged for groups: the column `{column}` tells which rows belong together. No `unit` column is declared, "
        f"so every row counts as another person, and models judge single rows. If `{column}` identifies a person, "
        f"declare `unit: {column}`. If it identifies a group, such as a household, do not release it."
    )
    return Verdict(model=SEVERAL_ROWS, state=State.NOT_CHECKED, reason=reason)


def _not_judged(why: str) -> Verdict:
    reason = (
        f"Not judged for people: somebody has several rows, and {why}. Models and attacks judge single rows. Release "
        "one row a person, or no column that links rows."
    )
    return Verdict(model=SEVERAL_ROWS, state=State.NOT_CHECKED, reason=reason)
