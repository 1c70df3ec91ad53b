"""Somebody else's file: released values in another coding are read, and said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.attacks.recoding import Recoding
from sfumato.attacks.value_coverage import coverage, read_column
from sfumato.attacks.value_parser import value_range
from sfumato.cli import main

ROWS = 600
Attacked = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    draw = np.random.default_rng(11)
    age, town = draw.integers(18, 90, ROWS), draw.integers(0, 12, ROWS)
    return pl.DataFrame(
        {
            "id": draw.permutation(ROWS),
            "age": age,
            "birth": 2026 - age,
            "town": [f"town {number}" for number in town],
            "ill": draw.choice(["no", "flu", "cold"], ROWS),
        }
    )


def five(age: int) -> int:
    return age // 5 * 5


RECODINGS = {
    "floor": lambda age: five(age),
    "top code in numbers": lambda age: min(five(age), 65),
    "midpoint": lambda age: five(age) + 2.5,
    "middle value": lambda age: five(age) + 2,
    "rounded": lambda age: round(age / 10) * 10,
    "upper end": lambda age: five(age) + 4,
    "tens": lambda age: f"{age // 10}0s",
    "years": lambda age: f"{five(age)}-{five(age) + 4} years",
    "words": lambda age: "under 30" if age < 30 else "65 and over" if age >= 65 else f"{five(age)} to {five(age) + 4}",
    "signs": lambda age: "<30" if age < 30 else "65+" if age >= 65 else f"{five(age)}-{five(age) + 4}",
}


@pytest.fixture
def attacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Attacked:
    """What ``sfumato attack`` prints about somebody else's file, with ``--json`` and without."""

    def attack(people: pl.DataFrame, release: pl.DataFrame, name: str, *options: str) -> tuple[dict[str, Any], str]:
        people.write_csv(tmp_path / "original.csv")
        release.write_csv(tmp_path / "release.csv")
        command = ["attack", str(tmp_path / "release.csv"), "--original", str(tmp_path / "original.csv")]
        command += ["--key", "id", "--knows", "age", "--knows", "town", "--seed", "1", "--attack", name, *options]
        printed = []
        for more in (["--json"], []):
            assert main([*command, *more]) in (0, 1)
            printed.append(capsys.readouterr().out)
        return dict(json.loads(printed[0])), printed[1]

    return attack


@pytest.mark.parametrize("name", RECODINGS)
def test_recoded_ages_are_matched(name: str, people: pl.DataFrame, attacked: Attacked) -> None:
    """The truth is the number of groups of people with the same released values, over the number of people."""
    recoded = pl.Series("age", [RECODINGS[name](age) for age in people["age"]])
    release = people.drop("birth").with_columns(recoded).sample(fraction=1.0, shuffle=True, seed=3)
    true = release.select("age", "town").n_unique() / ROWS
    document, _ = attacked(people, release, "linkage")
    [linkage] = document["attacks"]
    # Halves to even leave the attacker two bands for each half: somewhat less than the truth is found.
    assert linkage["risk"] == pytest.approx(true, rel=0.15 if name == "rounded" else 1e-9)
    readings = document.get("readings", [])
    assert [reading["column"] for reading in readings] == (["age"] if recoded.dtype.is_numeric() else [])


def test_unreadable_values_are_said(people: pl.DataFrame, attacked: Attacked) -> None:
    draw = np.random.default_rng(5)
    coded = people.drop("birth").with_columns(
        age=pl.Series(people["age"] + draw.normal(0, 3, ROWS)), town=pl.col("town").str.replace("town ", "T")
    )
    document, said = attacked(people, coded, "distance-linkage")
    assert document["readings"] == [
        {"column": "age", "occurs": 0.0, "recoding": None},
        {"column": "town", "occurs": 0.0, "recoding": None},
    ]
    assert "`age`: 0 % of the known values occur in the release" in said


def test_an_outside_file_in_another_coding_is_said(
    people: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people.select("age", "town").write_csv(tmp_path / "outside.csv")
    people.select(pl.col("age") // 5 * 5 + 2.5, "town", "ill").sample(300, seed=1).write_csv(tmp_path / "theirs.csv")
    command = ["attack", str(tmp_path / "theirs.csv"), "--auxiliary", str(tmp_path / "outside.csv")]
    assert main([*command, "--knows", "age", "--knows", "town"]) == 0
    assert "`age`: 0 % of the known values occur in the release" in " ".join(capsys.readouterr().out.split())


def test_the_key_is_no_knowledge(people: pl.DataFrame, attacked: Attacked) -> None:
    """A file that tells nobody apart meets its limit although it has a key."""
    blank = people.select("id").with_columns(age=pl.lit("*"), town=pl.lit("*"), ill=pl.lit("*"))
    document, _ = attacked(people, blank, "linkage", "--attack", "any-columns", "--limit", "0.1")
    assert [limit["met"] for limit in document["limits"]] == [True]


def test_a_coarse_column_determines_nothing(people: pl.DataFrame, attacked: Attacked) -> None:
    """Fives of the age do not determine the year of birth. A date of birth follows from the age up to a year."""
    fives = people.drop("birth").with_columns(pl.col("age") // 5 * 5)
    assert "derived" not in attacked(people, fives, "linkage")[0]
    dates = people.with_columns(birth=pl.date("birth", 1, 1) + pl.duration(days=pl.int_range(pl.len()) % 365))
    said = attacked(dates, dates.drop("birth"), "linkage")[1]
    assert "determines" not in said
    assert "`age` narrows `birth` down to" in said


def test_noise_shifts_and_constants_are_no_recoding() -> None:
    draw = np.random.default_rng(2)
    known = pl.Series("x", draw.normal(50, 10, 1000).round(1))
    for released in (known + draw.normal(0, 1, 1000), known + 0.05, known * 0 + 3, known + 5000, known):
        assert read_column(known, released.alias("x")).recoding is None
    # The same without every fifth person: their values may be missing, which is no band.
    assert read_column(known, known.gather_every(5)).recoding is None
    assert read_column(known, known.clip(upper_bound=60)).recoding is Recoding.FLOOR


def test_dates_of_the_first_of_the_month_are_months() -> None:
    days = pl.date_range(pl.date(1990, 1, 1), pl.date(1991, 12, 31), eager=True).alias("born")
    reading = read_column(days, days.dt.truncate("1mo").alias("born"))
    assert reading.recoding is Recoding.FLOOR
    read = coverage(days, days.dt.truncate("1mo"), None, reading.recoding)
    assert sorted(set(read.counts.tolist())) == [28, 30, 31]


@pytest.mark.parametrize(
    ("label", "low", "high"),
    [
        ("40s", 40, 50),
        ("40-49 years", 40, 49),
        ("18 to 24 years old", 18, 24),
        ("under 30", float("-inf"), 30),
        ("less than 30 kg", float("-inf"), 30),
        ("65 years and over", 65, float("inf")),
        ("65+ years", 65, float("inf")),
        ("between 10 and 20", 10, 20),
        ("10k-20k", 10_000, 20_000),
        ("$1,500 - $2,000", 1500, 2000),
        ("10%-20%", 10, 20),
    ],
)
def test_ranges_in_words(label: str, low: float, high: float) -> None:
    found = value_range(label)
    assert found is not None
    assert found.numbers == (low, high)


@pytest.mark.parametrize("label", ["1st-4th", "Ward 7", "2 cars", "12th", "1964-03", "2026-01-02", "AB-12-34"])
def test_names_with_numbers_are_no_ranges(label: str) -> None:
    assert value_range(label) is None
