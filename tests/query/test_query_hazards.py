"""Known attacks on query answering, each tried on ours: what is seen may depend on data through noise only."""

from __future__ import annotations

import copy
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate, pure
from sfumato.dp.mechanism import on_grid
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.receipt import issue
from sfumato.engines.aggregation import CountRows, Total
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.expressions import Read
from sfumato.engines.statements import Select, Stored
from sfumato.errors import AnswerFailed, SecretAccessRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.execute.sqlgen import additive_sql
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit, SecretValue

CANARY = "zanzibar"


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "person": column("integer"),
    "name": column("category"),
    "kind": column("category", values=("a", "b")),
    "x": column("number", low=0, high=10),
    "n": column("integer", low=0, high=1000),
}


def session(
    frame: pl.DataFrame, *, unit: str | None = None, epsilon: Any = 10**9, pace: float | None = None
) -> Session:
    book = Ledger.open(":memory:")
    book.set_cap(approximate(epsilon, "0.1"), dataset="d")
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS))
    return Session(
        Catalog(dataset="d", private={"t": table}), {"t": frame}, ledger=book, analyst="ana", response_interval=pace
    )


def table(**columns: Any) -> pl.DataFrame:
    size = len(next(iter(columns.values())))
    base: dict[str, Any] = {"person": range(size), "name": [CANARY] * size, "kind": ["a"] * size, "x": [1.0] * size,
                            "n": [1] * size}  # fmt: skip
    return pl.DataFrame(base | columns, strict=False)


# --- floating point -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [Laplace(scale=1, grid="1/1024"), Gaussian(variance=1, grid="1/1024")])
def test_low_bits_tell_nothing(noise: Any) -> None:
    """Mironov's attack: on floats, of outputs near 0 most could not have come from input 1. Here all could."""
    paid = issue(noise.loss(100), dataset="d", entry=1)
    zero = noise.release(SecretValue(np.zeros(20_000, dtype=np.int64)), receipt=paid)
    one = noise.release(SecretValue(np.full(20_000, 1024)), receipt=paid)
    for outputs in (zero, one):
        steps = np.asarray(outputs) * 1024
        assert (steps == np.round(steps)).all()
    near = {v for v in np.asarray(zero).tolist() if 0 < v < 0.25}
    assert near <= {k / 1024 for k in range(1, 256)}
    assert len(near & set(np.asarray(one).tolist())) > 200


def test_naive_float_laplace_would_be_caught() -> None:
    """The same attack on textbook noise: most outputs are impossible from the neighbour."""
    rng = np.random.default_rng(1)
    zero, one = rng.laplace(0, 1, 20_000), 1 + rng.laplace(0, 1, 20_000)
    near = [v for v in zero.tolist() if 0 < v < 0.25]
    impossible = [v for v in near if (v - 1.0) + 1.0 != v]
    assert len(impossible) / len(near) > 0.5
    assert len(one) == 20_000


def test_order_of_rows_cannot_matter() -> None:
    values = [0.1, 1e-9, 9.999999, 3.3333333, 7.7, 2.2e-5] * 500
    rng = np.random.default_rng(2)
    sums = set()
    for _ in range(5):
        rng.shuffle(values)
        asked = session(table(x=values))
        question = parse_query("SELECT SUM(x), VARIANCE(x) FROM t", asked.catalog)
        rows = asked._engine.run(additive_sql(plan_query(question, pure(1)), 1)).open(Permit("a test"))
        sums.add(rows[0])
    assert len(sums) == 1


@pytest.mark.parametrize("tricky", [float("nan"), float("inf"), float("-inf"), 1e308, -1e308, None, 5e-324, -0.0])
@pytest.mark.parametrize(
    "item", ["SUM(x)", "AVG(x)", "VARIANCE(x)", "SUM(CLIP(x * 1e300 * 1e300, 0, 9))", "SUM(CLIP(x * x, 0, 9))"]
)
def test_special_values_stay_inside_the_bounds(tricky: Any, item: str) -> None:
    """One row with any value moves the exact steps by no more than the stated reach."""
    with_it, without = session(table(x=[1.0] * 5 + [tricky])), session(table(x=[1.0] * 5))
    strategy = plan_query(parse_query(f"SELECT {item} FROM t", with_it.catalog), pure(1))
    one, two = (s._engine.run(additive_sql(strategy, 1)).open(Permit("a test"))[0] for s in (with_it, without))
    for draw in strategy.measurements:
        reach = strategy.query.aggregates[draw.covers[0]].sensitivity(1)
        assert sum(abs(one[i] - two[i]) for i in draw.covers) <= reach


def test_huge_sums_do_not_overflow() -> None:
    columns = COLUMNS | {"n": column("integer", low=0, high=2**40)}
    book = Ledger.open(":memory:")
    book.set_cap(pure(10**9), dataset="d")
    catalog = Catalog(dataset="d", private={"t": PrivateTable(name="t", schema=Schema(columns=columns))})
    frame = table(n=[2**62] * 4096)
    answer = Session(catalog, {"t": frame}, ledger=book, analyst="a").ask("SELECT SUM(n) FROM t", epsilon=10**6)
    assert answer.value == pytest.approx(4096 * 2**40, rel=1e-3)


# --- errors -------------------------------------------------------------------------------------------------------

TRAPS = [
    "SELECT COUNT(*) FROM t WHERE 1 / n > 0",
    "SELECT COUNT(*) FROM t WHERE n % n = 0",
    "SELECT COUNT(*) FROM t WHERE CAST(name AS INTEGER) > 0",
    "SELECT COUNT(*) FROM t WHERE CAST(name AS DATE) > '2024-01-01'",
    "SELECT COUNT(*) FROM t WHERE CAST(x * 1e300 AS INTEGER) > 0",
    "SELECT COUNT(*) FROM t WHERE n * n * n * n * n * n * n * n > 5",
    "SELECT COUNT(*) FROM t WHERE FLOOR(x * 1e300) = 1",
    "SELECT COUNT(*) FROM t WHERE SUBSTRING(name, 9999) = 'x'",
    "SELECT COUNT(*) FROM t WHERE -n < ABS(n)",
    "SELECT SUM(CLIP(n * 1e299 * 1e99, 0, 1)) FROM t",
    "SELECT MEDIAN(CLIP(x / n, 0, 5)) FROM t",
    "SELECT COUNT(DISTINCT n / x) FROM t",
    "SELECT SUM(CLIP(LENGTH(name), 0, 10)) FROM t",
]


@pytest.mark.parametrize("sql", TRAPS)
@pytest.mark.parametrize("n", [0, -5, 2**62, -(2**62), None])
def test_no_data_makes_a_query_fail(sql: str, n: Any) -> None:
    asked = session(table(n=[n, 1], x=[float("inf"), float("nan")], name=["12", ""]))
    assert asked.ask(sql, epsilon=1).rows


def test_whatever_goes_wrong_has_one_message_and_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = session(table(n=[1, 2]), epsilon=10)

    def broken(*_: Any) -> str:
        return f"SELECT error('{CANARY}') FROM t"

    monkeypatch.setattr("sfumato.query.execute.executor.additive_sql", broken)
    messages = set()
    for sql in ("SELECT COUNT(*) FROM t", "SELECT SUM(n) FROM t"):
        with pytest.raises(AnswerFailed) as failure:
            asked.ask(sql, epsilon=1)
        messages.add(str(failure.value))
        assert failure.value.__cause__ is None
        assert failure.value.__suppress_context__
    assert len(messages) == 1
    assert CANARY not in messages.pop()
    assert asked.ledger.balance(dataset="d").spent.size == 2


def test_a_failure_inside_our_own_code_is_as_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = session(table(n=[1, 2]), epsilon=10)

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("sfumato.query.execute.executor._noisy", broken)
    with pytest.raises(AnswerFailed) as failure:
        asked.ask("SELECT COUNT(*) FROM t", epsilon=1)
    assert CANARY not in str(failure.value)
    assert asked.ledger.balance(dataset="d").spent.size == 1


# --- keys, repetition, collusion ----------------------------------------------------------------------------------


def test_groups_do_not_show_which_keys_occur() -> None:
    sql = "SELECT kind, COUNT(*) FROM t GROUP BY kind"
    shapes = {
        tuple(row[0].value for row in session(table(kind=kinds)).ask(sql, epsilon=1).rows)
        for kinds in (["a"], ["b"], ["q"], [None], ["b", "a"])
    }
    assert shapes == {("a", "b")}


def test_averaging_gains_nothing() -> None:
    asked = session(table(n=[1] * 50))
    phrased = ["SELECT COUNT(*) FROM t", "select count(*) as c from t", "SELECT COUNT(*) FROM t AS q ORDER BY 1",
               "SELECT COUNT(*) + 0 FROM t", "SELECT COUNT(*) FROM t LIMIT 1"]  # fmt: skip
    first = asked.ask(phrased[0], epsilon="0.1").value
    once = asked.ledger.balance(dataset="d").spent
    assert 0 < once.size <= Fraction(1, 10)
    assert {asked.ask(sql, epsilon="0.1").value for sql in phrased * 3} == {first}
    assert asked.ledger.balance(dataset="d").spent == once


def test_differencing_fails() -> None:
    """All but one person against all: the difference is noise, not the person's value."""
    frame = table(n=[1000] + [0] * 99, name=[CANARY] + ["other"] * 99)
    found = []
    for _ in range(60):
        asked = session(frame)
        everyone = asked.ask("SELECT COUNT(*) FROM t WHERE n > 500", epsilon="0.1").value
        others = asked.ask(f"SELECT COUNT(*) FROM t WHERE n > 500 AND name <> '{CANARY}'", epsilon="0.1").value
        found.append(everyone - others)
    right = sum(difference == 1 for difference in found)
    assert right < 20
    assert np.std(found) > 5


# --- reaching outside ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/passwd'",
        "COPY t TO '/tmp/sfumato-leak.csv'",
        "ATTACH '/tmp/sfumato-leak.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET allowed_paths = ['/etc/passwd']",
        "SELECT getenv('HOME')",
        "SELECT * FROM not_registered",
    ],
)
def test_the_engine_itself_is_locked(statement: str) -> None:
    """Even if a statement got past the language, the engine would not obey."""
    not_registered = pl.DataFrame({"a": [1]})
    running: Any = Duckdb().start({"t": table(n=[1]).to_arrow()})
    with pytest.raises(duckdb.Error):
        running._connection.execute(statement)
    assert not_registered.height == 1


def test_files_are_read_where_they_lie(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    table(n=[5, 6]).write_csv(path)
    (tmp_path / "other.csv").write_text("a\n1\n")
    running: Any = Duckdb().start({"t": path})
    assert running.run(Select((("s", Total(Read(("t", "n"), "int"))),), Stored("t"))).open(Permit("a test")) == [(11,)]
    with pytest.raises(duckdb.Error):
        running._connection.execute(f"SELECT * FROM read_csv('{tmp_path / 'other.csv'}')")


def test_one_row_does_not_change_how_others_are_read(tmp_path: Path) -> None:
    """Guessing types or separators from the rows would let one person's row turn everybody's values into others."""
    honest = ["1,a,2024-01-02", "2,b,2024-03-04", "3,c,2024-05-06"]
    counts = []
    for extra in ([], ["x;y;z"], ['4,"d",not a date,more,columns'], [",,"], ["5,5,5"], ["9\t9\t9"]):
        path = tmp_path / f"{len(counts)}.csv"
        path.write_text("\n".join(["n,kind,day", *honest, *extra]) + "\n")
        running = Duckdb().start({"t": path})
        read = (("n", CountRows(Read(("t", "n"), "int"))), ("d", CountRows(Read(("t", "day"), "date"))))
        counts.append(running.run(Select(read, Stored("t"))).open(Permit("a test"))[0])
    assert all(3 <= numbers <= 4 and dates == 3 for numbers, dates in counts)


def test_sums_per_person_are_exact_in_any_order() -> None:
    values = [0.1, 1e-9, 9.999999, 3.3333333, 7.7] * 40
    totals = set()
    rng = np.random.default_rng(3)
    for _ in range(4):
        rng.shuffle(values)
        book = Ledger.open(":memory:")
        book.set_cap(pure(1), dataset="d")
        private = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit="person"), rows=1, groups=1)
        frame = table(x=values, person=[1] * len(values))
        asked = Session(Catalog(dataset="d", private={"t": private}), {"t": frame}, ledger=book, analyst="a")
        sql = "SELECT SUM(CLIP(s, 0, 900)) FROM (SELECT person, SUM(x) AS s FROM t GROUP BY person) AS q"
        strategy = plan_query(parse_query(sql, asked.catalog), pure(1))
        totals.add(asked._engine.run(additive_sql(strategy, 1)).open(Permit("a test"))[0])
    assert len(totals) == 1


def test_true_values_are_secret_values() -> None:
    running = Duckdb().start({"t": table(n=[5, 6]).to_arrow()})
    result = running.run(Select((("n", Read(("t", "n"), "int")),), Stored("t")))
    assert repr(result) == "<SecretValue>"
    for peek in (str, list, len, bool, copy.copy, copy.deepcopy):
        with pytest.raises(SecretAccessRefused):
            peek(result)


def test_answers_come_at_whole_beats() -> None:
    import time

    asked = session(table(n=[1, 2]), pace=0.2)
    for sql in ("SELECT COUNT(*) FROM t", "SELECT MEDIAN(n) FROM t"):
        started = time.monotonic()
        asked.ask(sql, epsilon=1)
        beats = (time.monotonic() - started) / 0.2
        assert beats % 1 < 0.3


def test_grid_takes_any_float() -> None:
    steps = on_grid([float("nan"), float("inf"), float("-inf"), 0.3, 1e300, None], grid="1/4", low=0, high=2)
    assert steps.tolist() == [0, 8, 0, 1, 8, 0]
