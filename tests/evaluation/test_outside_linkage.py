"""Linkage of an outside file without the original: candidates, calibrated expectations, private output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import BadParameter, ColumnsDiffer, OutputExists
from sfumato.evaluation.outside_linkage import estimate_membership

RELEASED = pl.DataFrame(
    {
        "zip": ["A", "A", "A", "B", "C", "C"],
        "age": ["30-39", "30-39", "30-39", "40-49", "50-59", "50-59"],
        "ill": ["flu", "flu", "flu", "gout", "none", "flu"],
    }
)
VOTERS = pl.DataFrame(
    {"name": ["Ann", "Bob", "Cid", "Dot", "Eve"], "plz": ["A", "B", "C", "Z", "A"], "age": [33, 41, 55, 20, None]}
)
RENAME = {"plz": "zip"}


def linked(**more: Any) -> sfumato.LinkResult:
    return sfumato.link(RELEASED, VOTERS, rename=RENAME, knows=["zip", "age"], secrets=["ill"], **more)


def test_candidates_are_counted_and_listed() -> None:
    found = linked()
    assert found.linkage.fitting.tolist() == [3, 1, 2, 0, 3]
    assert found.linkage.fit_one_row == 1
    assert found.linkage.expected_if_inside == pytest.approx(1 / 3 + 1 + 1 / 2 + 1 / 3)
    assert found.linkage.tells["ill"] == {"one value": 3, "nearly one value": 3}
    frame = found.to_frame()
    assert frame.group_by("outside_row").len().sort("outside_row").rows() == [(1, 3), (2, 1), (3, 2), (5, 3)]
    assert frame.filter(pl.col("outside_row") == 2).row(0)[1::2] == (4, "gout")
    # The probabilities of a person's candidates sum to the probability of being in the release.
    sums = frame.group_by("outside_row").agg(pl.col("probability").sum()).sort("outside_row")["probability"]
    assert sums.to_list() == pytest.approx(found.linkage.membership.member[[0, 1, 2, 4]].tolist())
    few = linked(candidates=1)
    assert few.to_frame()["outside_row"].to_list() == [2]
    assert few.linkage.candidates_left_out == 3


def test_the_document_and_the_texts_agree() -> None:
    found = linked(population=60)
    document = found.to_dict()
    assert document["fit_one_row"] == 1
    assert [band["people"] for band in document["candidates"]] == [1, 1, 3, 0, 0, 0]
    assert document["persons"][1] == {"row": 2, "candidates": 1, "probability": found.linkage.probability[1]}
    assert (
        0
        < document["expected_right_matches"]["population"]
        < document["expected_right_matches"]["everybody_in_release"]
    )
    text = str(found)
    assert "Exactly one released row fits 1 person of 5 in the outside file." in text.replace("\n", " ")
    assert "Ann" not in text + repr(found) + json.dumps(document)


def population(seed: int, people: int = 3000) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": np.arange(people),
            "zip": draw.zipf(1.5, people).clip(max=60),
            "age": draw.integers(18, 90, people),
            "sex": draw.integers(0, 2, people),
        }
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_expected_number_of_right_matches_is_calibrated(share: float) -> None:
    """600 outside people, of whom a known share is in the release: over 8 populations the expected number of right
    matches is within 10 % (or 24 people) of the true one. Assuming that everybody is in the release is not."""
    estimated, naive, true = [], [], []
    for seed in range(8):
        everybody = population(seed)
        released, others = everybody[:1500], everybody[1500:]
        inside = round(600 * share)
        outside = pl.concat([released[:inside], others[: 600 - inside]])
        found = sfumato.link(released.drop("id"), outside, knows=["zip", "age", "sex"]).linkage
        estimated.append(found.expected)
        naive.append(found.expected_if_inside)
        true.append(float(found.chance[:inside].sum()))
        assert abs(found.membership.share - share) < 0.12
    allowed = max(24.0, 0.1 * float(np.mean(true)))
    assert abs(np.mean(estimated) - np.mean(true)) < allowed
    if share < 0.9:
        assert abs(np.mean(naive) - np.mean(true)) > allowed


@pytest.mark.parametrize("people", [24, 100, 1000])
def test_surely_right_is_right(people: int) -> None:
    """Of the matches that are called surely right, over populations of which 30 to 100 % are in the release, at least
    95 % are. The point estimate fails this on small files, where no record happens to fit two rows,
    and most outside people are not in the release.
    """
    claimed, right, point, point_right = 0, 0.0, 0, 0.0
    for seed in range(40):
        everybody, size = population(seed, people), people // 4
        released, others = everybody[: people // 2], everybody[people // 2 :]
        inside = round(size * [0.2, 0.3, 0.6, 1.0][seed % 4])
        outside = pl.concat([released[:inside], others[: size - inside]])
        found = sfumato.link(released.drop("id"), outside, knows=["zip", "age", "sex"]).linkage
        correct = np.where(np.arange(size) < inside, found.chance, 0.0)
        claimed, right = claimed + found.surely_right.sum(), right + correct[found.surely_right].sum()
        likely = (found.probability >= 0.95) & (inside < size / 2)
        point, point_right = point + likely.sum(), point_right + correct[likely].sum()
    assert right >= 0.95 * claimed
    assert claimed > 0 or people == 24
    if people == 100:
        assert point_right < 0.95 * point


def test_membership_of_nobody_and_of_everybody() -> None:
    own = np.array([1] * 80 + [2] * 20)
    assert estimate_membership(np.zeros(50, dtype=np.int64), own).share == pytest.approx(0.0, abs=1e-6)
    assert estimate_membership(np.ones(50, dtype=np.int64), own).share == 1.0
    alike = estimate_membership(np.array([5, 5, 0]), np.full(50, 5))
    assert alike.member.tolist() == [1.0, 1.0, 0.0]
    assert alike.share == pytest.approx(2 / 3)
    assert not alike.estimated
    assert not alike.at_least.any()
    assert estimate_membership(np.empty(0, dtype=np.int64), own).share == 0.0


def test_bad_requests_are_refused() -> None:
    with pytest.raises(ColumnsDiffer, match="outside file"):
        sfumato.link(RELEASED, VOTERS, knows=["zip"])
    with pytest.raises(ColumnsDiffer, match="no column in common"):
        sfumato.link(RELEASED, VOTERS.select("name"))
    with pytest.raises(BadParameter, match="population"):
        linked(population=3)
    with pytest.raises(BadParameter, match="both known"):
        sfumato.link(RELEASED, VOTERS, rename=RENAME, knows=["zip"], secrets=["zip"])


def test_the_command_writes_private_files_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RELEASED.write_csv(tmp_path / "released.csv")
    VOTERS.write_csv(tmp_path / "voters.csv")
    table, page = tmp_path / "candidates.csv", tmp_path / "page.html"
    words = ["attack", str(tmp_path / "released.csv"), "--auxiliary", str(tmp_path / "voters.csv")]
    words += ["--rename", "plz=zip", "--knows", "zip,age", "--secret", "ill"]
    assert main([*words, "--candidates", str(table), "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert "surely right" in out
    assert "expected right" in out
    assert pl.read_csv(table).columns == ["outside_row", "released_row", "probability", "ill"]
    assert table.stat().st_mode & 0o077 == 0
    text = page.read_text(encoding="utf-8")
    assert "Exactly one released row fits 1 person" in text
    assert "<script" not in text
    assert "Ann" not in text
    assert main([*words, "--candidates", str(table)]) == 2
    assert OutputExists.code in capsys.readouterr().err
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fit_one_row"] == 1
    assert main(words[:2]) == 2
    assert main([*words, "--limit", "0.1"]) == 2
    assert main([*words[:2], "--original", str(tmp_path / "released.csv"), "--html", "x.html"]) == 2


def test_overlapping_ranges_do_not_overstate_the_matches() -> None:
    """Mondrian on six columns, two of them known: many classes fit, and the most specific one is seldom right."""
    draw = np.random.default_rng(3)
    people = pl.DataFrame(
        {
            "age": draw.integers(30, 60, 600),
            "school": draw.choice([8, 10, 12, 12, 12, 16], 600),
            **{name: draw.integers(0, 40, 600) for name in ("a", "b", "c", "d")},
        }
    )
    recipe = {
        "sfumato": 1, "columns": dict.fromkeys(people.columns, "quasi"),
        "models": [{"k-anonymity": {"k": 5}}], "steps": ["mondrian"], "attacks": ["linkage"], "measures": [],
    }  # fmt: skip
    done = sfumato.protect(recipe, people, seed=1)
    [outcome] = sfumato.attack(done, knows=["age", "school"], attacks=["linkage"], n_targets=600, seed=1)
    found = sfumato.link(done.data, people, knows=["age", "school"]).linkage
    assert found.expected == pytest.approx(outcome.main.rate * 600, rel=0.4)
    assert found.expected < 0.5 * 600 / 5  # k-anonymity of all six columns; the two known ones find far fewer
