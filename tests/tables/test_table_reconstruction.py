"""Reconstruction of people from published tables."""

from __future__ import annotations

import pytest

from sfumato.errors import BadParameter
from sfumato.tables import PublishedStatistic, reconstruct

ATTRIBUTES = {"sex": ("F", "M"), "race": ("B", "W"), "married": ("S", "M")}
FEW = {"at_most": 2}


def block() -> list[PublishedStatistic]:
    """The published tables of Garfinkel, Abowd and Martindale (2018), Table 1."""
    return [
        PublishedStatistic(count=7, median=30, mean=38),
        PublishedStatistic(where={"sex": "F"}, count=4, median=30, mean="33.5"),
        PublishedStatistic(where={"sex": "M"}, count=3, median=30, mean=44),
        PublishedStatistic(where={"race": "B"}, count=4, median=51, mean="48.5"),
        PublishedStatistic(where={"race": "W"}, count=3, median=24, mean=24),
        PublishedStatistic(where={"married": "S"}, low=18, **FEW),
        PublishedStatistic(where={"married": "M"}, low=18, count=4, median=51, mean=54),
        PublishedStatistic(where={"race": "B", "sex": "F"}, count=3, median=36, mean="36.7"),
        PublishedStatistic(where={"race": "B", "sex": "M"}, **FEW),
        PublishedStatistic(where={"race": "W", "sex": "M"}, **FEW),
        PublishedStatistic(where={"race": "W", "sex": "F"}, **FEW),
        PublishedStatistic(high=4, **FEW),
        PublishedStatistic(high=17, **FEW),
        PublishedStatistic(low=64, **FEW),
    ]


MINORS_ARE_SINGLE = (PublishedStatistic(where={"married": "M"}, high=17, count=0),)


def test_the_block_of_seven_people_has_exactly_one_solution() -> None:
    found = reconstruct(block(), people=7, attributes=ATTRIBUTES, never=MINORS_ARE_SINGLE)
    assert found.unique
    assert ["".join(map(str, person)) for person in found.solutions[0]] == [
        "8FBS", "18MWS", "24FWS", "30MWM", "36FBM", "66FBM", "84MBM",
    ]  # fmt: skip


def test_without_the_statistics_by_race_and_sex_the_block_is_not_disclosed() -> None:
    fewer = [one for one in block() if len(one.where) < 2 and "married" not in one.where]
    found = reconstruct(fewer, people=7, attributes=ATTRIBUTES, never=MINORS_ARE_SINGLE, limit=5)
    assert not found.unique
    assert len(found.solutions) == 5


def test_contradicting_statistics_have_no_solution() -> None:
    found = reconstruct([*block(), PublishedStatistic(low=90, count=1)], people=7, attributes=ATTRIBUTES)
    assert (found.solutions, found.complete, found.unique) == ((), True, False)


def test_bad_statistics_are_refused() -> None:
    with pytest.raises(BadParameter, match="suppressed"):
        PublishedStatistic(at_most=2, mean=4)
    with pytest.raises(BadParameter, match="no value"):
        reconstruct([PublishedStatistic(where={"sex": "X"}, count=1)], people=2, attributes=ATTRIBUTES)
