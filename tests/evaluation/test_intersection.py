"""Two releases that are safe alone and not together."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sfumato.data import write
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter, NotApplicable
from sfumato.evaluation.intersection import guard_intersection
from sfumato.release import Release
from sfumato.release.public_folder import PublicFolder, leaving_manifest

SCHEMA = Schema(
    columns={
        "zip": Column(role=Role.QUASI),
        "age": Column(role=Role.QUASI),
        "condition": Column(role=Role.SENSITIVE),
    }
)


def original() -> Data:
    frame = pl.DataFrame(
        {
            "zip": ["13012", "13013", "13021", "13022"],
            "age": [28, 29, 31, 35],
            "condition": ["AIDS", "flu", "flu", "cancer"],
        }
    )
    return Data.of(Table(frame=frame), SCHEMA)


def release(zips: list[str], ages: list[str], conditions: list[str | None]) -> Release:
    return Release(table=Table(frame=pl.DataFrame({"zip": zips, "age": ages, "condition": conditions})), manifest={})


PLANNED = release(["130**"] * 4, ["28-35"] * 4, ["AIDS", "flu", "flu", "cancer"])
HOSPITAL = release(["130**"] * 4, ["<35"] * 3 + [">=35"], ["AIDS", "gout", "cold", "gout"])


def test_each_release_hides_three_values_and_both_together_one() -> None:
    [alone] = guard_intersection(PLANNED, [PLANNED], original=original(), l=3)
    assert (alone.overlapping, alone.before, alone.after, alone.worst) == (4, 0, 0, 3)
    assert alone.verdict.holds
    [found] = guard_intersection(PLANNED, [HOSPITAL], original=original(), l=2)
    # three people fit `<35`, where AIDS alone is in both; the fourth fits gout alone, so the value is not in common
    assert (found.people, found.overlapping, found.before, found.after, found.known) == (4, 3, 0, 3, 3)
    assert found.worst == 1
    assert found.verdict.state.value == "fails"
    assert "AIDS" not in found.verdict.reason
    assert found.to_dict()["known"] == 3


def test_a_third_release_narrows_what_two_leave() -> None:
    second = release(["*"] * 4, ["*"] * 4, ["AIDS", "flu", "x", "y"])
    third = release(["*"] * 4, ["*"] * 4, ["flu", "cancer", "x", "y"])
    [two] = guard_intersection(PLANNED, [second], original=original(), l=2)
    assert (two.after, two.worst) == (0, 2)
    [three] = guard_intersection(PLANNED, [second, third], original=original(), l=2)
    assert (three.after, three.worst) == (4, 1)


def test_a_value_that_was_left_out_may_be_any() -> None:
    second = release(["*"] * 4, ["*"] * 4, ["AIDS", None, "x", "y"])
    [found] = guard_intersection(PLANNED, [second], original=original(), l=3)
    assert (found.after, found.worst) == (0, 3)


def test_people_who_are_in_no_earlier_release_do_not_count() -> None:
    elsewhere = release(["99999"] * 2, ["28-35"] * 2, ["AIDS", "flu"])
    with pytest.raises(NotApplicable):
        # nothing of that release fits what is known in the column `zip`, which is no overlap at all
        guard_intersection(PLANNED, [release(["x"], ["y"], ["z"])], original=original(), l=2)
    [found] = guard_intersection(PLANNED, [elsewhere], original=original(), l=2)
    assert found.overlapping == 0
    assert found.worst is None
    assert found.verdict.holds


def test_releases_are_read_from_their_folders(tmp_path: Path) -> None:
    for name, made in (("planned", PLANNED), ("earlier", HOSPITAL)):
        (tmp_path / name).mkdir()
        write(made.table, tmp_path / name / "data.csv")
        PublicFolder(path=tmp_path / name, promise=False).manifest(leaving_manifest(made.manifest), kind="microdata")
    [found] = guard_intersection(tmp_path / "planned", [tmp_path / "earlier"], original=original(), l=2)
    assert found.known == 3


def test_bad_questions_are_refused() -> None:
    with pytest.raises(BadParameter, match="at least 2"):
        guard_intersection(PLANNED, [HOSPITAL], original=original(), l=1)
    with pytest.raises(BadParameter, match="No earlier release"):
        guard_intersection(PLANNED, [], original=original(), l=2)
    missing = Release(table=Table(frame=HOSPITAL.table.frame.drop("condition")), manifest={})
    with pytest.raises(NotApplicable, match="earlier release has no column"):
        guard_intersection(PLANNED, [missing], original=original(), l=2)
    bare = Data(table=original().table, schema=Schema(columns={"zip": Column(role=Role.QUASI)}))
    with pytest.raises(NotApplicable, match="no sensitive column"):
        guard_intersection(PLANNED, [HOSPITAL], original=bare, l=2)


def test_a_release_without_common_columns_is_not_called_harmless() -> None:
    people = pl.DataFrame({"age": [20, 20, 30, 30], "s": ["a", "b", "c", "a"]})
    original = Data.of(
        Table(frame=people), Schema(columns={"age": Column(role=Role.QUASI), "s": Column(role=Role.SENSITIVE)})
    )
    planned = Release(table=Table(frame=people), manifest={})
    other = Release(table=Table(frame=people.select("s")), manifest={})
    with pytest.raises(NotApplicable, match="shares no quasi-identifier"):
        guard_intersection(planned, [other], original=original, l=2)
