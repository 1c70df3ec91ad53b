"""k-concealment and k-confusion against the definition: every assignment of people to rows is written out."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.measures import MeasureResult, ReleasePair, judge
from sfumato.measures.disclosure.concealment import Concealment
from sfumato.measures.disclosure.confusion import Confusion
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

GROUPS = {
    "a": ["a", "ab", "abcd"],
    "b": ["b", "ab", "bc", "abcd"],
    "c": ["c", "bc", "cd", "abcd"],
    "d": ["d", "cd", "abcd"],
}


def written(group: str) -> str:
    return group if len(group) == 1 else "{" + ", ".join(group) + "}"


def measured(
    people: list[tuple[str, ...]],
    rows: list[tuple[str, ...]],
    own: list[int],
    measure: type[Concealment | Confusion] = Concealment,
    **more: int,
) -> MeasureResult:
    names = [f"q{i}" for i in range(len(people[0]))]
    before = pl.DataFrame(people, schema=names, orient="row")
    after = pl.DataFrame([tuple(map(written, row)) for row in rows], schema=names, orient="row")
    schema = Schema(columns={name: Column(role=Role.QUASI) for name in names})
    pair = ReleasePair(
        original=Data.of(Table(frame=before), schema),
        release=Release(table=Table(frame=after), manifest={}),
        lineage=Lineage(np.array(own)),
    )
    return judge(measure(**more), pair, rng=Rng(1))


def by_definition(people: list[tuple[str, ...]], rows: list[tuple[str, ...]], own: list[int]) -> list[int]:
    """Per released person, in how many rows she stands in some assignment; people left out get rows that fit all."""
    everyone = [*people, *[("",) * len(people[0])] * own.count(-1)]
    places = [*rows, *[("abcd",) * len(rows[0])] * (len(everyone) - len(rows))]
    fits = [
        [all(value in group for value, group in zip(person, row, strict=True)) for row in places] for person in everyone
    ]
    found: list[set[int]] = [set() for _ in everyone]
    for order in permutations(range(len(places))):
        if all(fits[person][place] for person, place in enumerate(order)):
            for person, place in enumerate(order):
                found[person].add(place)
    return [len([place for place in found[person] if place < len(rows)]) for person in own if person >= 0]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]], list[int]]:
    width = draw(st.integers(1, 2))
    people = draw(st.lists(st.tuples(*[st.sampled_from("abcd")] * width), min_size=1, max_size=6))
    own = draw(st.permutations(range(len(people))))
    own = own[: draw(st.integers(max(1, len(own) - 2), len(own)))]
    rows = [tuple(draw(st.sampled_from([g for g in GROUPS[v] if v in g])) for v in people[person]) for person in own]
    if len(people) < 6 and draw(st.booleans()):
        rows.append(tuple(draw(st.sampled_from(["a", "bc", "abcd"])) for _ in range(width)))
        own = [*own, -1]
    return people, rows, list(own)


@settings(deadline=None, max_examples=250)
@given(tables())
def test_the_smallest_number_of_rows_is_that_of_all_assignments(
    table: tuple[list[tuple[str, ...]], list[tuple[str, ...]], list[int]],
) -> None:
    people, rows, own = table
    expected = by_definition(people, rows, own)
    found = measured(people, rows, own, k=2)
    assert found.value == min(expected)
    assert found.detail["average"] == pytest.approx(sum(expected) / len(expected))
    assert found.detail["below"] == pytest.approx(sum(n < 2 for n in expected) / len(expected))
    assert found.detail["fitting"] >= found.value


def test_a_row_that_fits_may_be_taken_by_somebody_who_has_no_other() -> None:
    """Person b fits two rows, but the first is the only one that fits person a."""
    found = measured([("a",), ("b",), ("c",)], [("ab",), ("bc",), ("bc",)], [0, 1, 2])
    assert found.value == 1
    assert found.detail["fitting"] == 1
    found = measured([("a",), ("b",), ("c",), ("d",)], [("ab",), ("abcd",), ("abcd",), ("cd",)], [0, 1, 2, 3])
    assert found.value == 3
    found = measured([("a",), ("a",), ("b",)], [("ab",), ("ab",), ("ab",)], [2, 0, 1])
    assert found.value == 3


def test_fitting_rows_overstate_what_is_hidden() -> None:
    """Two rows fit c, but one of them is needed by the two people a and b, who have no third."""
    found = measured([("a",), ("b",), ("c",)], [("ab",), ("abcd",), ("cd",)], [0, 1, 2])
    assert found.detail["fitting"] == 2
    assert found.value == 1


def test_rows_that_do_not_fit_their_people_are_not_judged() -> None:
    found = measured([("a",), ("b",)], [("b",), ("a",)], [0, 1])
    assert found.value is None
    assert "perturbed" in found.reason


def largest_by_definition(people: list[tuple[str, ...]], rows: list[tuple[str, ...]], own: list[int]) -> list[float]:
    """Per released person the largest share of assignments of the released people in which a row is theirs."""
    fits = [[all(v in group for v, group in zip(people[p], row, strict=True)) for row in rows] for p in own]
    worlds = [order for order in permutations(range(len(rows))) if all(fits[i][row] for i, row in enumerate(order))]
    counts = [[sum(order[i] == row for order in worlds) for row in range(len(rows))] for i in range(len(own))]
    return [max(count) / len(worlds) for count in counts]


@settings(deadline=None, max_examples=250)
@given(tables())
def test_the_largest_probability_is_that_of_all_assignments(
    table: tuple[list[tuple[str, ...]], list[tuple[str, ...]], list[int]],
) -> None:
    people, rows, own = table
    found = measured(people, rows, own, Confusion, k=2)
    if -1 in own:
        assert found.value is None
        return
    expected = largest_by_definition(people, rows, own)
    assert found.value == pytest.approx(1 / max(expected))
    assert found.detail["below"] == pytest.approx(sum(p > 1 / 2 + 1e-9 for p in expected) / len(expected))
    assert found.detail["concealment"] >= found.value - 1e-9


def test_concealment_does_not_give_confusion() -> None:
    """Everybody has two rows or more, but one row is a person's in two of three assignments."""
    rows = [("ab",), ("abcd",), ("bc",)]
    assert measured([("a",), ("b",), ("c",)], rows, [0, 1, 2]).value == 2
    found = measured([("a",), ("b",), ("c",)], rows, [0, 1, 2], Confusion)
    assert found.detail["largest"] == pytest.approx(2 / 3)
    assert found.detail["concealment"] == 2


def test_groups_that_are_too_large_are_not_judged() -> None:
    people = [(letter,) for letter in "abcd" for _ in range(90)]
    rows = [(group,) for group in ("ab", "bc", "cd", "abcd") for _ in range(90)]
    own = [*range(90), *range(90, 180), *range(180, 270), *range(270, 360)]
    found = measured(people, rows, own, Confusion)
    assert found.value is None
    assert "too large" in found.reason
