"""Probabilistic linkage: patterns and weights against plain Python, names, blocks, missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import AttackScenario, View
from sfumato.attacks.best_row import best_of, share_of, start
from sfumato.attacks.defaults import default_attacks
from sfumato.attacks.record_linkage.probabilistic_linkage.attack import ProbabilisticLinkage
from sfumato.attacks.record_linkage.probabilistic_linkage.blocking import blocks, keys
from sfumato.attacks.record_linkage.probabilistic_linkage.comparisons import comparable, cuts
from sfumato.attacks.record_linkage.probabilistic_linkage.fellegi_sunter import fit, link, patterns
from sfumato.attacks.record_linkage.probabilistic_linkage.string_similarity import free_text, similar_pairs
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter, NotApplicable
from sfumato.release import Release
from sfumato.rng import Rng

SYLLABLES = ["an", "ber", "car", "dan", "el", "fri", "ga", "hen", "is", "jo", "ka", "lo", "mar", "ni", "ol", "pe"]


def people(count: int = 300, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "name": [" ".join("".join(draw.choice(SYLLABLES, size)) for size in (3, 4)) for _ in range(count)],
            "city": draw.choice(["Lund", "Umea", "Vaxjo"], count),
            "age": draw.integers(18, 90, count),
            "income": np.round(draw.lognormal(10, 0.5, count), 2),
        }
    )


def misspelt(frame: pl.DataFrame, seed: int = 2) -> pl.DataFrame:
    """Every name with two letters exchanged, words in the other order for every third, capitals for every second."""
    draw = np.random.default_rng(seed)
    changed = []
    for number, name in enumerate(frame["name"].to_list()):
        place = int(draw.integers(2, len(name) - 3))
        other = name[:place] + name[place + 1] + name[place] + name[place + 2 :]
        if number % 3 == 0:
            other = ", ".join(reversed(other.split(" ", 1)))
        changed.append(other.upper() if number % 2 else other)
    return frame.with_columns(pl.Series("name", changed))


def view(targets: pl.DataFrame, released: pl.DataFrame, **rest: Any) -> View:
    knows = tuple(targets.columns)
    return View(release=Release(table=Table(frame=released), manifest={}), targets=targets, knows=knows, **rest)


def share(attack: ProbabilisticLinkage, seen: View, truth: np.ndarray | None = None) -> float:
    found = attack.guess(seen, Rng(3)).row
    assert found is not None
    return float(np.mean(found == (np.arange(len(found)) if truth is None else truth)))


# --- the engine ---------------------------------------------------------------------------------------------------


def test_patterns_and_best_rows_are_those_of_a_plain_loop() -> None:
    """The compiled engine against levels told one by one: all patterns counted, every best row, every probability."""
    draw = np.random.default_rng(5)
    released = people(60).with_columns(
        pl.when(pl.Series(draw.random(60) < 0.2)).then(None).otherwise(pl.col("age")).alias("age"),
        pl.when(pl.Series(draw.random(60) < 0.2)).then(pl.lit("*")).otherwise(pl.col("city")).alias("city"),
    )
    targets = people(60).with_columns(pl.col("income") * 1.001)
    seen = view(targets, released)
    block = blocks(seen, {"income": 1})
    near, fitted = comparable(seen, list(seen.knows), "similar", block)
    limits = cuts(near, 4, 0.01, np.random.default_rng(1))
    pattern = patterns(near, fitted, limits, block)
    model = fit(pattern, draw=np.random.default_rng(1))
    row, confidence = link(pattern, model, np.random.default_rng(1))

    def levels(person: int, other: int) -> list[int]:
        told = []
        for column, cut in zip(near, limits, strict=True):
            gap = abs(column.known[person] - column.released[other])
            told.append(len(cut) + 1 if np.isnan(gap) else int((gap > cut).sum()))
        for label in fitted:
            value, code = label.known[person], label.released[other]
            part = slice(label.starts[value], label.starts[value + 1])
            place = np.flatnonzero(label.fits[part] == code)
            told.append(int(label.level[part][place[0]]) if len(place) else label.levels - 1)
        return told

    assert [column.blank for column in (*near, *fitted)] == [True, False, False, True]
    counted = np.zeros(tuple(pattern.levels), dtype=int)
    for person in range(60):
        mine = np.flatnonzero(block.row == block.person[person])
        told = [levels(person, other) for other in mine]
        for level in told:
            counted[tuple(level)] += 1
        score = np.array([sum(model.weight[place, at] for place, at in enumerate(level)) for level in told])
        assert score[mine == row[person]][0] == pytest.approx(score.max())
        assert confidence[person] == pytest.approx(1 / np.exp(score - score.max()).sum(), rel=1e-6)
    assert counted.sum() == block.pairs
    for place in range(counted.ndim):
        real = int(pattern.levels[place] - pattern.blank[place])
        margin = counted.sum(axis=tuple(axis for axis in range(counted.ndim) if axis != place))[:real]
        # Levels of strangers follow the counts of all pairs, one in twenty or fewer of which are matches.
        assert model.others[place, :real] == pytest.approx(margin / margin.sum(), abs=0.12)
        if pattern.blank[place]:
            assert model.weight[place, real] == 0


def test_weights_of_known_probabilities_are_recovered() -> None:
    """Agreement of 90, 80 and 70 % among matches, and by chance among others: learned to within four points."""
    draw = np.random.default_rng(7)
    count, sizes, kept = 3000, (40, 25, 30), (0.9, 0.8, 0.7)
    original = pl.DataFrame(
        {f"c{n}": [f"v{v}" for v in draw.integers(size, size=count)] for n, size in enumerate(sizes)}
    )
    masked = original.with_columns(
        pl.when(pl.Series(draw.random(count) < keep)).then(pl.col(f"c{n}")).otherwise(pl.col(f"c{n}").shuffle(seed=n))
        for n, keep in enumerate(kept)
    ).with_columns(area=pl.arange(0, count) // 30)
    seen = view(original.with_columns(area=pl.arange(0, count) // 30), masked)
    block = blocks(seen, {"area": "exact"})
    near, fitted = comparable(seen, ["c0", "c1", "c2"], "exact", block)
    model = fit(patterns(near, fitted, np.empty((0, 5)), block), draw=np.random.default_rng(1))
    expected = [keep + (1 - keep) / size for keep, size in zip(kept, sizes, strict=True)]
    assert model.matches[:, 0] == pytest.approx(expected, abs=0.04)
    assert model.others[:, 0] == pytest.approx([1 / size for size in sizes], abs=0.005)
    assert max(model.bits) == model.bits[0]


def test_equal_rows_are_chosen_among_at_random() -> None:
    counts = np.zeros(4)
    for seed in np.random.default_rng(1).integers(1, 2**62, size=4000):
        held = best_of(start(seed), np.array([1.0, 2.0, 2.0, 0.0]), 4, 10)
        held = best_of(held, np.array([2.0, -100.0]), 2, 14)
        counts[[11, 12, 14].index(held[3])] += 1
    assert counts[:3].sum() == 4000
    # Six standard deviations of a fair choice among three.
    assert np.abs(counts[:3] - 4000 / 3).max() < 6 * np.sqrt(4000 * 2 / 9)
    assert share_of(held) == pytest.approx(1 / (3 + np.exp(-1) + np.exp(-2)))
    assert share_of(start(1)) == 0


def test_a_suppressed_value_is_no_evidence() -> None:
    """The true row agrees in all but a column that is suppressed; a row of stars agrees in nothing."""
    original = people(200)
    starred = pl.DataFrame({name: ["*"] * 20 for name in ("name", "city")}).with_columns(
        age=pl.lit(None, pl.Int64), income=pl.lit(None, pl.Float64)
    )
    released = pl.concat([original.with_columns(city=pl.lit("*")), starred.select(original.columns)])
    assert share(ProbabilisticLinkage(), view(original, released)) == 1.0
    blank = original.with_columns(pl.when(pl.col("age") > 50).then(None).otherwise(pl.col("city")).alias("city"))
    assert share(ProbabilisticLinkage(), view(blank, original, blanks_unknown=True)) == 1.0


def test_columns_of_many_values_take_part() -> None:
    """Five thousand codes on either side, more pairs of values than a table of them could hold."""
    codes = pl.DataFrame({"code": [f"{number:06d}" for number in range(5000)], "age": np.arange(5000) % 70})
    assert share(ProbabilisticLinkage(strings="exact"), view(codes, codes)) == 1.0


# --- names --------------------------------------------------------------------------------------------------------


def test_levels_of_likeness() -> None:
    values = pl.Series("name", ["Jane Doe", "Martha Smith", "Zoë Ångström", None, "..."])
    labels = pl.Series("name", ["DOE, JANE", "Marhta Smith", "zoe angstrom", "Xu Quirk", None, "Marthe Smythson"])
    seen = view(values.to_frame(), labels.to_frame())
    found = similar_pairs(values, labels, np.arange(5), np.arange(6), blocks(seen, {}))
    levels = {(int(a), int(b)): int(level) for a, b, level in zip(*found, strict=True)}
    assert levels[0, 0] == 0
    assert levels[1, 1] == 1
    assert levels[2, 2] == 0
    assert levels[1, 5] == 2
    assert not any(b in (3, 4) or a in (3, 4) for a, b in levels)


def test_only_values_that_meet_in_a_block_are_compared() -> None:
    original = people(300).with_columns(area=pl.arange(0, 300) // 10)
    seen = view(original, original)
    block = blocks(seen, {"area": "exact"})
    codes = np.arange(300)
    a, b, _ = similar_pairs(original["name"], original["name"], codes, codes, block)
    assert (a // 10 == b // 10).all()
    everywhere = similar_pairs(original["name"], original["name"], codes, codes, blocks(seen, {}))
    assert len(everywhere[0]) > len(a) >= 300


def test_only_first_letters_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    original = people(200)
    seen = view(original, original)
    monkeypatch.setattr("sfumato.attacks.record_linkage.probabilistic_linkage.string_similarity._MAX_PAIRS", 1000)
    a, b, level = similar_pairs(original["name"], original["name"], np.arange(200), np.arange(200), blocks(seen, {}))
    assert ((a == b) & (level == 0)).sum() == 200
    first = [{name[0], min(name.split(" "))[0]} for name in original["name"]]
    assert all(first[x] & first[y] for x, y in zip(a, b, strict=True))


def test_what_looks_like_names() -> None:
    names = people(300)["name"]
    codes = pl.Series([f"{number:05d}" for number in range(300)])
    assert free_text(names, names)
    assert not free_text(codes, codes)
    assert not free_text(names.head(50), names)
    assert not free_text(pl.Series(range(300)), names)


def test_released_names_call_for_it() -> None:
    """Without attacks named, a release with names in it is attacked through them; one without is not."""
    roles = Schema(columns={name: Column(role=Role.QUASI) for name in people().columns})
    for columns, wanted in ((people().columns, True), (["city", "age", "income"], False)):
        scenario = AttackScenario(
            original=Data.of(Table(frame=people()), roles),
            release=Release(table=Table(frame=people().select(columns)), manifest={}),
            aligned=True,
        )
        assert any(isinstance(attack, ProbabilisticLinkage) for attack in default_attacks(scenario)) is wanted


def test_misspelt_names_are_found() -> None:
    """By name and city alone, every name written differently: exact comparison is lost, likeness is not."""
    original = people(300).select("name", "city")
    order = np.random.default_rng(4).permutation(300)
    released = misspelt(original)[order]
    truth = np.argsort(order)
    seen = view(original, released)
    assert share(ProbabilisticLinkage(strings="exact"), seen, truth) < 0.1
    guesses = ProbabilisticLinkage().guess(seen, Rng(3))
    assert np.mean(guesses.row == truth) > 0.9
    assert guesses.detail["by similarity"] == ["name"]
    assert guesses.detail["columns"]["name"] > guesses.detail["columns"]["city"]
    # Names in another order sound otherwise: who is blocked out cannot be found.
    assert share(ProbabilisticLinkage(block={"name": "sound"}), seen, truth) < 0.9


# --- blocks -------------------------------------------------------------------------------------------------------


def test_keys_of_blocks() -> None:
    names = pl.Series(["Müller", "Mueller", "Miller", None, "O'Hara", ""])
    assert keys(names, "sound").to_list() == ["M460", "M460", "M460", "", "O600", ""]
    assert keys(names, 3).to_list() == ["mul", "mue", "mil", "", "o h", ""]
    assert keys(pl.Series([1, 2, None]), "exact").to_list() == ["1", "2", ""]
    words = pl.Series(["Pfister", "Honeyman", "Jackson", "123", "Robert", "Rupert", "Ashcraft", "Tymczak"])
    codes = ["P236", "H555", "J250", "", "R163", "R163", "A261", "T522"]
    assert keys(words, "sound").to_list() == codes


def test_blocks_hold_who_agrees() -> None:
    original = people(100)
    seen = view(original, original.reverse())
    block = blocks(seen, {"city": "exact", "name": 1})
    letter = original["name"].str.head(1).to_list()
    for person in range(100):
        rows = block.order[block.first[person] : block.last[person]]
        expected = [
            99 - other
            for other in range(100)
            if original["city"][other] == original["city"][person] and letter[other] == letter[person]
        ]
        assert sorted(rows.tolist()) == sorted(expected)
    assert block.pairs == sum(block.last - block.first)


def test_nobody_is_linked_outside_the_block() -> None:
    original = people(200)
    released = original.with_columns(pl.when(pl.col("age") < 40).then(pl.lit("Kiruna")).otherwise("city").alias("city"))
    found = ProbabilisticLinkage(block=("city",)).guess(view(original, released), Rng(1))
    assert found.row is not None
    assert (original["city"].gather(np.flatnonzero(found.made)) == released["city"].gather(found.row[found.made])).all()
    alone = view(original.with_columns(city=pl.lit("Narvik")).head(3), released)
    with pytest.raises(NotApplicable, match="agrees with any row"):
        ProbabilisticLinkage(block=("city",)).guess(alone, Rng(1))


def test_blocks_that_make_no_sense_are_refused() -> None:
    for wrong in ({"block": {"name": 0}}, {"block": {"name": "rhyme"}}, {"strings": "fuzzy"}, {"engine": "own"}):
        with pytest.raises(BadParameter):
            ProbabilisticLinkage.build(wrong)
    with pytest.raises(NotApplicable, match="names columns that the attacker does not know"):
        ProbabilisticLinkage(block=("zip",)).guess(view(people(), people()), Rng(1))
