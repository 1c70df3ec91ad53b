"""The combinations that single people out are those that a plain GROUP BY finds."""

from itertools import combinations

import duckdb
import numpy as np
import polars as pl
import pytest

from sfumato.errors import BadParameter
from sfumato.profiling.partitions import CAP, divide, encode
from sfumato.profiling.screening import Screen
from sfumato.profiling.search import Search
from sfumato.profiling.singling_out import single_out, unique_share


def people(rows: int, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    zips = draw.zipf(1.3, rows) % 300
    return pl.DataFrame(
        {
            "zip": zips,
            "birth": draw.integers(0, 400, rows),
            "sex": draw.choice(["f", "m"], rows),
            "town": zips // 10,
            "job": [None if x == 0 else f"j{x}" for x in draw.integers(0, 9, rows)],
            "score": np.round(draw.normal(size=rows), 1),
            "constant": ["x"] * rows,
        }
    )


def by_group(frame: pl.DataFrame, names) -> float:
    listed = ", ".join(names)
    query = f"SELECT count(*) FROM (SELECT 1 FROM frame GROUP BY {listed} HAVING count(*) = 1)"
    return duckdb.sql(query).fetchall()[0][0] / frame.height


def smallest(frame: pl.DataFrame, threshold: float, max_size: int) -> dict[tuple[str, ...], float]:
    """By brute force."""
    found: dict[tuple[str, ...], float] = {}
    for size in range(1, max_size + 1):
        for names in combinations(frame.columns, size):
            if not any(set(part) <= set(names) for part in found):
                share = by_group(frame, names)
                if share >= threshold:
                    found[names] = share
    return found


class TestPartitions:
    frame = people(3000)
    data = encode(frame)

    @pytest.mark.parametrize("size", [1, 2, 3, 4])
    def test_counts_agree_with_group_by(self, size):
        for chosen in combinations(range(self.frame.width), size):
            names = [self.frame.columns[c] for c in chosen]
            partition = divide(self.data, chosen)
            assert partition.unique / self.frame.height == by_group(self.frame, names)
            assert partition.groups == self.frame.select(names).unique().height

    def test_sorting_and_table_agree(self, monkeypatch):
        in_table = divide(self.data, [0, 2])
        monkeypatch.setattr("sfumato.profiling.partitions._CELLS_PER_ROW", 0)
        monkeypatch.setattr("sfumato.profiling.partitions.max", lambda a, b: 0, raising=False)
        in_order = divide(self.data, [0, 2])
        assert in_table.groups == in_order.groups
        assert (in_table.histogram == in_order.histogram).all()

    def test_keys_that_outgrow_64_bits(self, monkeypatch):
        expected = divide(self.data, [0, 1, 5])
        monkeypatch.setattr("sfumato.data.row_codes._LARGEST_KEY", 10)
        assert (divide(self.data, [0, 1, 5]).histogram == expected.histogram).all()

    def test_at_most_is_the_sum_of_small_pieces(self):
        sizes = self.frame.group_by("zip").len()["len"].to_numpy()
        table = divide(self.data, [0]).at_most()
        for pieces in (0, 1, 2, 7, 100, CAP):
            assert table[pieces] == np.minimum(sizes, pieces).sum()


class TestScreening:
    def test_every_row_screened_is_the_exact_count(self):
        frame = people(700)
        data = encode(frame)
        members = np.array(list(combinations(range(frame.width), 3)))
        alone = Screen(data).alone(members, np.arange(frame.height))
        for chosen, count in zip(members, alone, strict=True):
            assert count == divide(data, chosen).unique

    def test_long_lists_are_searched_to_their_end(self):
        # The only twin of the first row stands at the far end of a list longer than a block.
        rows = 10_000
        frame = pl.DataFrame({"a": [1] * rows, "b": [0, *range(2, rows), 0], "c": [1] * rows})
        alone = Screen(encode(frame)).alone(np.array([[0, 1], [0, 2]]), np.array([0, 1, 5000]))
        assert alone.tolist() == [2, 0]


class TestSingleOut:
    @pytest.mark.parametrize("seed", [1, 2, 3])
    @pytest.mark.parametrize("threshold", [0.02, 0.3, 0.5, 1.0])
    def test_the_smallest_combinations_are_found(self, seed, threshold):
        frame = people(400, seed)
        found = single_out(frame, threshold=threshold, show=1000)
        assert {c.columns: c.unique for c in found.minimal} == smallest(frame, threshold, 4)
        assert found.more == found.sampled == 0

    def test_the_best_of_the_others_are_found_though_most_are_ruled_out(self):
        draw = np.random.default_rng(5)
        answers = [pl.Series(f"answer{i}", draw.integers(0, 2 + i % 3, 3000)) for i in range(6)]
        frame = people(3000).drop("birth", "constant").with_columns(answers)
        found = single_out(frame, threshold=0.99)
        assert found.ruled_out > 0
        for size in (2, 3, 4):
            shares = sorted((by_group(frame, names) for names in combinations(frame.columns, size)), reverse=True)
            assert [c.unique for c in found.others if len(c.columns) == size] == shares[:3]

    def test_screening_shows_counted_numbers(self):
        frame = people(5000)
        found = single_out(frame, threshold=0.3, exact_visits=1, show=100)
        exact = single_out(frame, threshold=0.3, show=100)
        assert found.sampled == 1000
        assert 0.03 < found.margin < 0.05
        assert {c.columns for c in found.minimal} <= {c.columns for c in exact.minimal}
        for combination in (*found.minimal, *found.others):
            assert combination.unique == by_group(frame, combination.columns)

    def test_screening_misses_only_what_lies_within_the_margin(self):
        frame = people(5000)
        found = single_out(frame, threshold=0.3, exact_visits=1, show=1000)
        missed = {c.columns: c.unique for c in single_out(frame, threshold=0.3, show=1000).minimal}
        for combination in found.minimal:
            missed.pop(combination.columns)
        assert all(abs(share - 0.3) <= 0.06 for share in missed.values())

    def test_size_is_limited(self):
        assert max(len(c.columns) for c in single_out(people(400), max_size=2).others) == 2

    def test_too_many_combinations_stop_the_search_and_say_so(self, monkeypatch):
        monkeypatch.setattr("sfumato.profiling.search._MOST_COMBINATIONS", 10)
        assert single_out(people(400)).size == 1

    def test_one_row_and_no_useful_column(self):
        assert single_out(pl.DataFrame({"a": ["x", "x"]})).minimal == ()
        assert single_out(pl.DataFrame({"a": [1]})).minimal == ()

    def test_missing_values_are_a_value(self):
        assert unique_share(pl.DataFrame({"a": [None, None, 1]})) == pytest.approx(1 / 3)

    def test_the_input_is_not_changed(self):
        frame = people(100)
        before = frame.clone()
        single_out(frame)
        assert frame.equals(before)

    @pytest.mark.parametrize("bad", [{"max_size": 0}, {"max_size": 5}, {"threshold": 0}, {"threshold": 1.5}])
    def test_bad_settings(self, bad):
        with pytest.raises(BadParameter):
            single_out(people(50), **bad)

    def test_bounds_are_never_below_the_truth(self):
        frame = people(2000)
        search = Search(encode(frame), threshold=1.0, show=5, exact_visits=10**9)
        list(search.levels(2))
        for size in (3, 4):
            members = np.array(list(combinations(range(frame.width - 1), size)))
            truth = [search.share(tuple(m)) for m in members.tolist()]
            assert (search._bound(members) >= truth).all()
