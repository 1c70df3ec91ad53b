"""Equivalence classes of people who have several rows: a class of k rows may belong to fewer than k people."""

from __future__ import annotations

import polars as pl

from sfumato.evaluation.check import Check, Need, Subject
from sfumato.masking.evaluate import rows_without_values
from sfumato.release import State, Verdict

__all__ = ["PEOPLE", "PeoplePerClass"]

PEOPLE = "people per equivalence class"
"""The name of the verdict."""


class PeoplePerClass(Check):
    """Every equivalence class holds the rows of at least k people of the privacy unit.

    ``k`` is the largest number of rows or of different values that a model requires of a class. Rows that came from no
    person, and rows without any quasi-identifier value, do not count.
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
        rows, quasi = subject.from_people, subject.quasi
        table = subject.released(quasi)[rows]
        missing = {name: subject.schema.column(name).missing for name in quasi}
        hidden = rows_without_values(table, quasi, missing)
        table.columns = [f"q{i}" for i in range(len(quasi))]
        table = table.with_columns(subject.people)
        table = table.filter(pl.Series(~hidden, dtype=pl.Boolean)) if not hidden.all() else table
        classes = table.group_by(pl.exclude("person")).agg(pl.col("person").n_unique(), pl.len().alias("rows"))
        if classes.is_empty():
            return (Verdict(model=PEOPLE, state=State.NOT_CHECKED, reason="The release has no rows of people."),)
        fewest = int(classes["person"].min())  # type: ignore[arg-type]
        if fewest >= wanted:
            return (Verdict(model=PEOPLE, state=State.HOLDS, worst=fewest, wanted=wanted),)
        reason = (
            f"An equivalence class holds the rows of {fewest} {'person' if fewest == 1 else 'people'} (`unit: "
            f"{subject.schema.unit}`), and {wanted} are required. Keep one row per person, or generalize further "
            "(`lowest` of `generalize`)."
        )
        failing = int(classes.filter(pl.col("person") < wanted)["rows"].sum())
        return (Verdict(model=PEOPLE, state=State.FAILS, worst=fewest, wanted=wanted, failing=failing, reason=reason),)
