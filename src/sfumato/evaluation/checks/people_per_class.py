"""Equivalence classes of people who have several rows: a class of k rows may belong to fewer than k people."""

from __future__ import annotations

from sfumato.evaluation.check import Check, Need, Subject
from sfumato.masking.evaluate import rows_without_values
from sfumato.release import State, Verdict

PEOPLE = "people per equivalence class"
"""The name of the verdict."""


class PeoplePerClass(Check):
    """Every equivalence class holds the rows of at least k people of the privacy unit.

    ``k`` is the largest number of rows or of different values that a model requires of a class. Rows that came from no
    person, and rows without any quasi-identifier value, do not count. All rows without a value of the privacy unit
    count as one person, since they may be the rows of one.
    """

    needs = frozenset({Need.ORIGINAL, Need.LINEAGE})

    @classmethod
    def verdict_name(cls) -> str:
        return PEOPLE

    def applies(self, subject: Subject) -> bool:
        wanted = any(model.fewest_people for model in subject.models)
        return subject.schema.unit is not None and wanted and bool(subject.quasi) and not subject.synthetic

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        wanted = max(model.fewest_people for model in subject.models)
        quasi = subject.quasi
        classes = subject.release.group(quasi, subject.least_people)
        missing = {name: subject.schema.column(name).missing for name in quasi}
        counted = classes.of_people > 0
        hidden = rows_without_values(classes.values, quasi, missing)
        if not hidden[counted].all():
            counted &= ~hidden
        if not counted.any():
            return (Verdict(model=PEOPLE, state=State.NOT_CHECKED, reason="The release has no rows of people."),)
        people, rows = classes.people[counted], classes.of_people[counted]
        fewest = int(people.min())
        if fewest >= wanted:
            return (Verdict(model=PEOPLE, state=State.HOLDS, worst=fewest, wanted=wanted),)
        reason = (
            f"An equivalence class holds the rows of {fewest} {'person' if fewest == 1 else 'people'} (`unit: "
            f"{subject.schema.unit}`), and {wanted} are required. Keep one row per person, or generalize further "
            "(`lowest` of `generalize`)."
        )
        failing = int(rows[people < wanted].sum())
        return (Verdict(model=PEOPLE, state=State.FAILS, worst=fewest, wanted=wanted, failing=failing, reason=reason),)
