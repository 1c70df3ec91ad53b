"""Parts of units bounded by compiled and by plain code against the statement: the same numbers, the same promise."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from bounding_reference import disagreements
from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import PrivacyLoss, approximate, pure
from sfumato.engines.backends.duckdb import bounding_kernel as folding
from sfumato.engines.backends.duckdb import unit_parts
from sfumato.engines.backends.duckdb.bounding_kernel import fold
from sfumato.engines.backends.duckdb.engine import MOST_FEW, Duckdb
from sfumato.engines.contribution_bounding import Bounded, Cut, Term, bounded_totals
from sfumato.engines.expressions import Cast, ColumnRef
from sfumato.errors import QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.execute.executor import additive_totals, stated_totals
from sfumato.query.execute.sqlgen import bounding_pieces
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit

PERMIT = Permit("a test of exact numbers")
CITIES = tuple("abcdefghijklmnopqrst")
ITEMS = ["COUNT(*)", "COUNT(x)", "SUM(x)", "SUM(n)", "AVG(x)", "AVG(n)", "COUNT(*) FILTER (WHERE n > 2)",
         "COUNT(DISTINCT person)", "SUM(n - 4)"]  # fmt: skip
KEYS = ["city", "n", "city, n > 2"]
CONDITIONS = ["", "WHERE n > 0", "WHERE x < 3 OR city = 'a'"]


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


def catalog(rows: int, groups: int, person: str = "integer") -> Catalog:
    columns = {
        "person": column(person),
        "city": column("category", values=CITIES),
        "n": column("integer", low=-3, high=9),
        "x": column("number", low=-1.5, high=4),
    }
    table = PrivateTable(name="t", schema=Schema(columns=columns, unit="person"), rows=rows, groups=groups)
    return Catalog(dataset="d", private={"t": table})


def people(draw: random.Random, size: int) -> pl.DataFrame:
    ids = [draw.choice([0, -1, 2**63 - 1, -(2**63)]) for _ in range(3)] + [draw.randrange(10**6) for _ in range(40)]
    return pl.DataFrame(
        {
            "person": [draw.choice(ids) if draw.random() < 0.95 else None for _ in range(size)],
            "city": [draw.choice([*CITIES, "elsewhere", None]) for _ in range(size)],
            "n": [draw.choice([None, -(10**6), -3, 0, 1, 5, 9, 10**6]) for _ in range(size)],
            "x": [draw.choice([None, float("nan"), float("-inf"), -1.5, 0.1, 3.99, 1e300]) for _ in range(size)],
        },
        schema={"person": pl.Int64, "city": pl.String, "n": pl.Int64, "x": pl.Float64},
    )


def cost(draw: random.Random) -> PrivacyLoss:
    return draw.choice([pure(1), approximate(1, "1e-6")])


def plans(count: int, seed: int) -> Iterator[NoisePlan]:
    draw = random.Random(seed)
    for _ in range(count):
        items, by = ", ".join(draw.sample(ITEMS, draw.randint(1, 3))), draw.choice(KEYS)
        known = catalog(draw.randint(1, 3), draw.randint(1, 9))
        sql = f"SELECT {by}, {items} FROM t {draw.choice(CONDITIONS)} GROUP BY {by}"
        yield plan_query(parse_query(sql, known), cost(draw))


def exact(table: Any) -> list[tuple[int, ...]]:
    return sorted(tuple(map(int, row)) for row in table.open(PERMIT))


@pytest.mark.parametrize(("engine", "rows"), [(Duckdb(compiled=0, threads=1), 1500), (Duckdb(threads=1), MOST_FEW)])
def test_code_and_statement_agree_to_the_last_bit(engine: Duckdb, rows: int) -> None:
    frame = people(random.Random(1), rows)
    running = engine.start({"t": frame})
    seen: Counter[tuple[str, Cut]] = Counter()
    for plan in plans(60, seed=2):
        pieces = bounding_pieces(plan, 7)
        assert pieces is not None
        found = running.fold(pieces)
        if found is None:
            assert not pieces.fits()
            continue
        assert exact(found) == exact(stated_totals(plan, running, 7, passes=True))
        seen.update((plan.bounding, term.cut) for term in pieces.terms)
    running.close()
    assert set(seen) == {("sample", Cut.CLIP), ("sample", Cut.MEAN), ("clip", Cut.CLIP), ("clip", Cut.MEAN)}
    assert min(seen.values()) >= 3


def test_batches_and_the_order_of_rows_cannot_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = people(random.Random(3), 900)
    [plan] = plans(1, seed=4)
    pieces = bounding_pieces(plan, 7)
    assert pieces is not None
    found = []
    for batch, seed, small in ((1 << 20, 0, 10**6), (100, 1, 10**6), (7, 2, 0)):
        monkeypatch.setattr("sfumato.engines.backends.duckdb.engine._BATCH", batch)
        monkeypatch.setattr(unit_parts, "_SMALL_TABLE", small)
        running = Duckdb(compiled=0).start({"t": frame.sample(fraction=1, shuffle=True, seed=seed)})
        table = running.fold(pieces)
        assert table is not None
        found.append(exact(table))
        running.close()
    assert found[0] == found[1] == found[2]
    assert found[0]


def batches(rows: Sequence[tuple[int, ...]]) -> list[Any]:
    columns = [pa.array(list(column), pa.int64()) for column in zip(*rows, strict=True)]
    return list(pa.table(columns, names=[f"c{i}" for i in range(len(columns))]).to_batches())


@pytest.mark.parametrize("slices", [1, 2, 7])
def test_a_table_in_slices_has_the_same_numbers(slices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice has all rows of some units; all of them together are all rows."""
    frame = people(random.Random(12), 1400)
    running = Duckdb(compiled=0, threads=1).start({"t": frame})
    wanted = [exact(stated_totals(plan, running, 7, passes=True)) for plan in plans(6, seed=13)]
    read = []
    batches_of = running._batches  # type: ignore[attr-defined]
    monkeypatch.setattr(running, "_batches", lambda source: read.append(source) or batches_of(source))
    monkeypatch.setattr("sfumato.engines.backends.duckdb.engine._SLICE", -(-1400 // slices))
    assert [exact(additive_totals(plan, running, 7)) for plan in plans(6, seed=13)] == wanted
    assert len(set(read)) == 6 * slices


@pytest.mark.parametrize("number", [0, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63)])
def test_whole_numbers_of_any_size_are_stored(number: int) -> None:
    rows = [(1, 5, number), (number, -7, 3), (2, number, -number if number != -(2**63) else 1)]
    for some in (rows, rows[:1], rows[1:]):
        dealt = unit_parts.UnitParts()
        assert dealt.read([*batches(some), *batches([(3, 1, -1)])], 9)
        assert sorted(tuple(row) for part in dealt for row in part.tolist()) == sorted([*some, (3, 1, -1)])


def test_groups_at_both_ends_of_the_order_are_kept() -> None:
    """By hand: person 1 is in five groups, in the order 4, 0, 3, 2, 1; person 2 in one, with three rows."""
    places = [(1, (10 << 20) | 4), (1, (20 << 20) | 0), (1, (30 << 20) | 3), (1, (40 << 20) | 2), (1, (50 << 20) | 1)]
    rows = places + [(2, (5 << 20) | 3)] * 3
    term = Term(reach=1, low=0, high=2, every=True)
    expected = {
        (1, 0): [(3, 2, 1), (4, 1, 1)],
        (1, 1): [(1, 1, 1), (3, 2, 1), (4, 1, 1)],
        (2, 1): [(0, 1, 1), (1, 1, 1), (3, 2, 1), (4, 1, 1)],
        (5, 0): [(0, 1, 1), (1, 1, 1), (2, 1, 1), (3, 3, 2), (4, 1, 1)],
    }
    for ends, wanted in expected.items():
        assert both(rows, Bounded(source="", groups=5, ends=ends, terms=(term,))) == wanted


def test_a_vector_is_scaled_down_to_its_norm() -> None:
    """Three fours and a four: norm 8 against 4, so each becomes two (less the safety, cut towards zero)."""
    rows = [(1, g, 4) for g in range(4)]
    term = Term(reach=4, low=-9, high=9, times=1000, bound=4000**2)
    found = both(rows, Bounded(source="", groups=4, ends=None, terms=(term,)))
    assert found == [(g, 1999, 1) for g in range(4)]
    unbounded_joins = Term(reach=4, low=-9, high=9, times=1000, bound=8000**2)
    found = both(rows, Bounded(source="", groups=4, ends=None, terms=(unbounded_joins,)))
    assert found == [(g, 4000, 1) for g in range(4)]


def test_no_rows_and_too_many() -> None:
    pieces = Bounded(source="", groups=3, ends=(1, 0), terms=(Term(reach=1, low=0, high=1, every=True),))
    assert fold([[]], pieces) == bounded_totals([], pieces) == []
    assert fold([batches([(1, 0), (2, 0)])], pieces, 2) == [(0, 2, 2)]
    assert fold([batches([(1, 0), (2, 0), (3, 0)])], pieces, 2) is None
    assert fold([batches([(1, 0), (2, 0)]), batches([(3, 0)])], pieces, 3) == [(0, 3, 3)]
    assert fold([batches([(1, 0), (2, 0)]), batches([(3, 0)])], pieces, 2) is None


def test_a_million_public_groups_are_answered() -> None:
    """As many as the place of a group has bits for, by compiled code and by the statement; one more is refused."""

    def known(size: int) -> Catalog:
        columns = {"person": column("integer"), "a": column("integer", low=1, high=1024),
                   "b": column("integer", low=1, high=size)}  # fmt: skip
        table = PrivateTable(name="t", schema=Schema(columns=columns, unit="person"), rows=2, groups=2)
        return Catalog(dataset="d", private={"t": table})

    sql = "SELECT a, b, COUNT(*) FROM t GROUP BY a, b"
    frame = pl.DataFrame({"person": [1, 1, 1, 2, 2, 2], "a": [1, 1, 1024, 9, 8, 9], "b": [1, 1, 1024, 5, 5, 6]})
    plan = plan_query(parse_query(sql, known(1024)), pure(1))
    running = Duckdb(compiled=0).start({"t": frame})
    pieces = bounding_pieces(plan, 7, running.listed)
    assert pieces is not None
    assert pieces.fits()
    found = exact(additive_totals(plan, running, 7))
    assert found == exact(stated_totals(plan, running, 7, passes=True))
    assert {row[0] for row in found} > {0, (1 << 20) - 1}
    with pytest.raises(QueryRefused, match="1,049,600 groups; at most 1,048,576"):
        parse_query(sql, known(1025))


def test_only_what_surely_fits_is_taken_on() -> None:
    def fits(term: Term, ends: tuple[int, int] | None = (1, 1), groups: int = 10) -> bool:
        return Bounded(source="", groups=groups, ends=ends, terms=(term,)).fits()

    assert fits(Term(reach=1 << 35, low=0, high=1 << 35))
    assert not fits(Term(reach=1 << 36, low=0, high=1))
    assert not fits(Term(reach=1, low=-(1 << 36), high=0))
    assert not fits(Term(reach=1, low=0, high=1), groups=(1 << 20) + 1)
    assert fits(Term(reach=1, low=0, high=1 << 29), ends=None)
    assert not fits(Term(reach=1, low=0, high=1 << 30), ends=None)
    assert not fits(Term(reach=1 << 30, low=0, high=0, shares=2, cut=Cut.MEAN, rows=1 << 7))


def both(rows: Sequence[tuple[int, ...]], pieces: Bounded) -> list[tuple[int, ...]]:
    """What compiled and plain code come to."""
    found = fold([batches(rows)], pieces)
    assert found is not None
    assert found == sorted(bounded_totals(rows, pieces))
    return found


def test_persons_with_names_are_left_to_the_statement() -> None:
    frame = people(random.Random(5), 300).with_columns(person=pl.col("person").cast(pl.String))
    running = Duckdb(compiled=0).start({"t": frame})
    question = parse_query("SELECT city, COUNT(*) FROM t GROUP BY city", catalog(2, 2, "category"))
    plan = plan_query(question, pure(1))
    pieces = bounding_pieces(plan, 7)
    assert pieces is not None
    assert running.fold(pieces) is None
    assert exact(additive_totals(plan, running, 7)) == exact(stated_totals(plan, running, 7, passes=True))


@pytest.mark.parametrize("ids", [pl.String, pl.Int32, pl.Float64])
def test_few_persons_may_have_names_and_numbers(ids: Any) -> None:
    """Floats are left to the statement: there, all that are not numbers are one person, and here none would be."""
    frame = people(random.Random(5), 300).with_columns(person=(pl.col("person") % 1000).cast(ids))
    if ids is pl.Float64:
        frame = frame.with_columns(person=pl.when(pl.col("n") == 5).then(float("nan")).otherwise(pl.col("person")))
    running = Duckdb().start({"t": frame})
    for sql in ("SELECT city, COUNT(*), AVG(x) FROM t GROUP BY city", "SELECT n, SUM(n) FROM t GROUP BY n"):
        plan = plan_query(parse_query(sql, catalog(2, 2, "category")), pure(1))
        pieces = bounding_pieces(plan, 7)
        assert pieces is not None
        found = running.fold(pieces)
        assert (found is None) == (ids is pl.Float64)
        assert exact(additive_totals(plan, running, 7)) == exact(stated_totals(plan, running, 7, passes=True))


def test_a_file_that_has_grown_is_left_to_the_statement(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    people(random.Random(6), 300).write_parquet(path)
    running = Duckdb().start({"t": path})
    [plan] = plans(1, seed=4)
    pieces = bounding_pieces(plan, 7)
    assert pieces is not None
    assert running.fold(pieces) is not None
    people(random.Random(7), 3000).write_parquet(path)
    assert running.fold(pieces) is None
    assert exact(additive_totals(plan, running, 7)) == exact(stated_totals(plan, running, 7, passes=True))


def test_tables_of_middling_size_are_left_to_the_statement() -> None:
    assert not Duckdb().start({"t": people(random.Random(6), MOST_FEW + 1)}).folds
    assert Duckdb().start({"t": people(random.Random(6), MOST_FEW)}).folds
    assert not Duckdb(order="sha256").start({"t": people(random.Random(6), 300)}).folds
    assert not Duckdb(compiled=0, order="sha256").start({"t": people(random.Random(6), 300)}).folds
    assert Duckdb(compiled=300).start({"t": people(random.Random(6), 300)}).folds


def test_a_failure_while_folding_has_the_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    book = Ledger.open(":memory:")
    book.set_cap(pure(9), dataset="d")
    session = Session(catalog(1, 1), {"t": people(random.Random(7), 50)}, ledger=book, analyst="a",
                      engine=Duckdb(compiled=0))  # fmt: skip

    def broken(*_: Any) -> None:
        raise ValueError("zanzibar")

    monkeypatch.setattr(folding, "fold", broken)
    with pytest.raises(Exception, match="could not be computed") as failure:
        session.ask("SELECT city, COUNT(*) FROM t GROUP BY city", epsilon=1)
    assert "zanzibar" not in str(failure.value)
    assert failure.value.__cause__ is None


@pytest.mark.parametrize("engine", [Duckdb(compiled=0), Duckdb()], ids=["compiled", "few rows"])
def test_neighbours_stay_within_what_one_person_may_add(engine: Duckdb) -> None:
    """Taking any one person out moves no more groups, and none of them farther, than the terms allow."""
    frame = people(random.Random(8), 400)
    whole = engine.start({"t": frame})
    gone = frame["person"].drop_nulls().unique().sort().to_list()[:8]
    fewer = [engine.start({"t": frame.filter(pl.col("person").ne_missing(person))}) for person in gone]
    checked = 0
    for plan in plans(20, seed=9):
        pieces = bounding_pieces(plan, 7)
        assert pieces is not None
        if not pieces.fits():
            continue
        with_all = {row[0]: row[1:] for row in exact(whole.fold(pieces))}
        blank = (0,) * (sum(term.shares for term in pieces.terms) + 1)
        for running in fewer:
            less = {row[0]: row[1:] for row in exact(running.fold(pieces))}
            moved = [[abs(a - b) for a, b in zip(with_all.get(g, blank), less.get(g, blank), strict=True)]
                     for g in range(pieces.groups)]  # fmt: skip
            place = 0
            for term in pieces.terms:
                own = [m[place : place + term.shares] for m in moved]
                place += term.shares
                if pieces.ends is None:
                    assert sum(x * x for part in own for x in part) <= term.bound << 2 * term.shift
                else:
                    assert sum(any(part) for part in own) <= plan.groups
                    most = term.reach * term.rows if term.cut is not Cut.CLIP else max(-term.low, term.high)
                    assert max(sum(part) for part in own) <= most
                checked += 1
    assert checked > 150


def test_more_rows_than_are_taken_on_are_left_to_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source has been read halfway by then; the connection must be free for the statement."""
    running = Duckdb(compiled=0).start({"t": people(random.Random(10), 3000)})
    [plan] = plans(1, seed=4)
    expected = exact(stated_totals(plan, running, 7, passes=True))
    monkeypatch.setattr("sfumato.engines.backends.duckdb.engine._BATCH", 10)
    monkeypatch.setattr("sfumato.engines.backends.duckdb.engine.MOST_ROWS", 100)
    monkeypatch.setattr(running, "_most", 50)
    assert exact(additive_totals(plan, running, 7)) == expected


MUTANTS = {
    "statement keeps all groups": ("sfumato.query.execute.sqlgen.keeps_all_groups", lambda plan: True),
    "sampled rows of all groups": ("sfumato.query.execute.row_sampling.keeps_all_groups", lambda plan: True),
    "less safety in a norm": ("sfumato.query.execute.sqlgen.SAFE", 0.99),
    "shares are not cut": (
        "sfumato.query.execute.sqlgen._share",
        lambda term, index, place: Cast(ColumnRef(f"m{index}", "huge"), "int"),
    ),
    "one end of the order": ("sfumato.query.execute.sqlgen.any_of", lambda first, last: first),
    "one end in passes": ("sfumato.query.execute.group_passes.any_of", lambda first, *others: first),
}


@pytest.mark.parametrize("mutant", ["", *MUTANTS])
def test_another_way_of_bounding_is_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statement, engine and definition agree on sums, quantiles and distinct counts; a mutant does not."""
    if mutant:
        target, change = MUTANTS[mutant]
        monkeypatch.setattr(target, change)
    running = Duckdb(threads=1).start({"t": people(random.Random(11), 300)})
    known, found = catalog(2, 2), []
    for items in ("SUM(n), COUNT(*)", "AVG(x)", "MEDIAN(n), COUNT(DISTINCT n)"):
        question = parse_query(f"SELECT city, {items} FROM t GROUP BY city", known)
        found += disagreements(plan_query(question, pure(1)), running)
        if "MEDIAN" not in items:
            found += disagreements(plan_query(question, approximate(1, "1e-6"), bounding="clip"), running)
    running.close()
    assert bool(found) == bool(mutant)
