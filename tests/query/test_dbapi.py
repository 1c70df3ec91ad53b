"""The DB-API 2.0 connection of a session: pandas.read_sql, PEP 249, bound parameters, cost charged once."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.errors import OverBudget
from sfumato.query import dbapi
from sfumato.query.sql.statement import parse_statement

PEOPLE = pl.DataFrame({"sex": ["f", "m"] * 500, "age": [20, 30, 40, 50] * 250})
DESCRIBED: dict[str, Any] = {
    "dataset": "trial",
    "person": "row",
    "tables": {
        "people": {
            "columns": {
                "sex": {"kind": "category", "domain": {"values": ["f", "m"]}},
                "age": {"kind": "integer", "domain": {"low": 0, "high": 120}},
            },
        }
    },
}
COUNTS = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture
def session() -> sfumato.Session:
    return sfumato.session(DESCRIBED, {"people": PEOPLE}, epsilon=10, analyst="ana")


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_reads_a_private_answer(session: sfumato.Session) -> None:
    frame = pd.read_sql(COUNTS, session.connect(epsilon=1))
    assert frame.columns.tolist() == ["sex", "n"]
    assert frame["sex"].tolist() == ["f", "m"]
    assert frame["n"].between(450, 550).all()
    assert str(session.remaining()) == "ε = 9"
    again = pd.read_sql(COUNTS, session.connect(epsilon=1))
    pd.testing.assert_frame_equal(frame, again)
    assert str(session.remaining()) == "ε = 9"
    wide = pd.read_sql(
        "SELECT COUNT(*) AS n FROM people WHERE age >= ? AND sex = ?",
        session.connect(epsilon=1, intervals=True),
        params=(40, "f"),
    )
    assert wide.columns.tolist() == ["n", "n_low", "n_high"]
    assert 200 < wide["n"][0] < 300
    assert pd.read_sql("SHOW TABLES", session.connect())["name"].tolist() == ["people"]
    with pytest.raises((pd.errors.DatabaseError, dbapi.DatabaseError), match="SFU-"):
        pd.read_sql("SELECT * FROM people", session.connect(epsilon=1))


def test_the_module_is_pep_249(session: sfumato.Session) -> None:
    assert (dbapi.apilevel, dbapi.paramstyle) == ("2.0", "qmark")
    assert dbapi.threadsafety in (0, 1, 2, 3)
    assert issubclass(dbapi.Warning, Exception)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    names = "Data Operational Integrity Internal Programming NotSupported"
    for name in (f"{word}Error" for word in names.split()):
        assert issubclass(getattr(dbapi, name), dbapi.DatabaseError)
        assert getattr(dbapi.Connection, name) is getattr(dbapi, name)
    assert dbapi.DateFromTicks(0).year in (1969, 1970)
    assert dbapi.TimestampFromTicks(0).second == 0
    with dbapi.connect(session, epsilon=1) as connection:
        cursor = connection.cursor()
        assert cursor.description is None
        assert cursor.rowcount == -1
        with pytest.raises(dbapi.InterfaceError, match="No query"):
            cursor.fetchone()
        assert cursor.execute(COUNTS) is cursor
        assert cursor.description is not None
        assert [column[:2] for column in cursor.description] == [("sex", dbapi.STRING), ("n", dbapi.NUMBER)]
        assert all(len(column) == 7 for column in cursor.description)
        assert cursor.rowcount == 2
        assert cursor.fetchone()[0] == "f"  # type: ignore[index]
        assert [row[0] for row in cursor.fetchmany(5)] == ["m"]
        assert cursor.fetchone() is None
        assert cursor.fetchall() == []
        assert [row[0] for row in cursor.execute(COUNTS)] == ["f", "m"]
        assert cursor.answer is not None
        assert cursor.answer.cached
        connection.commit()
        connection.rollback()
        with pytest.raises(dbapi.NotSupportedError):
            cursor.executemany(COUNTS, [(), ()])
        cursor.close()
        with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
            cursor.execute(COUNTS)
    with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
        connection.cursor()
    assert str(session.remaining()) == "ε = 9"


def test_refusals_are_errors_of_the_module(session: sfumato.Session) -> None:
    for sql in (
        "SELECT age FROM people",
        "DROP TABLE people",
        "INSERT INTO people VALUES ('f', 1)",
        "SELECT 1; SELECT 2",
    ):
        with pytest.raises(dbapi.ProgrammingError, match="SFU-"):
            session.connect(epsilon=1).cursor().execute(sql)
    with pytest.raises(dbapi.ProgrammingError, match="needs its cost"):
        session.connect().cursor().execute(COUNTS)
    with pytest.raises(dbapi.OperationalError) as caught:
        session.connect(epsilon=11).cursor().execute(COUNTS)
    assert isinstance(caught.value.__cause__, OverBudget)
    assert str(session.remaining()) == "ε = 10"


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (5, "5"), (-5, "(-5)"), (True, "TRUE"), (None, "NULL"), (0.1, "0.1"), (-1e-7, "(-0.0000001)"), (1e22, None),
        (Decimal("1.50"), "1.50"), ("o'hara", "'o''hara'"), (date(2020, 1, 31), "DATE '2020-01-31'"),
        (datetime(2020, 1, 31, 5), "TIMESTAMP '2020-01-31 05:00:00'"), (np.int64(7), "7"), (np.str_("x"), "'x'"),
    ],
)  # fmt: skip
def test_values_become_literals(value: Any, literal: str | None) -> None:
    bound = dbapi.bind_parameters("?", [value]).strip()
    assert bound == (literal or "10000000000000000000000")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), b"x", [1], object(), "a\0b"])
def test_other_values_are_refused_without_being_shown(value: Any) -> None:
    with pytest.raises(dbapi.DataError, match="has no SQL form"):
        dbapi.bind_parameters("?", [value])


@pytest.mark.parametrize("parameters", [(), (1, 2, 3), "ab", {"a": 1}])
def test_the_number_of_parameters_is_checked(parameters: Any) -> None:
    with pytest.raises(dbapi.ProgrammingError):
        dbapi.bind_parameters("SELECT COUNT(*) FROM t WHERE a = ? AND b = ?", parameters)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30))
def test_a_text_parameter_is_one_literal_whatever_it_contains(text: str) -> None:
    """Injection: the parsed query has one string literal with exactly this value, and the rest is unchanged."""
    from sqlglot import exp

    sql = "SELECT COUNT(*) FROM t WHERE a = 'it''s ?' AND b = ? AND \"c?\" = 1 -- ?\n AND d = 2"
    _, tree, _ = parse_statement(dbapi.bind_parameters(sql, [text]))
    texts = [node.this for node in tree.find_all(exp.Literal) if node.is_string]
    assert texts == ["it's ?", text]
    _, plain, _ = parse_statement(sql.replace("b = ?", "b = 'x'"))
    assert [type(node) for node in tree.walk()] == [type(node) for node in plain.walk()]


def test_a_prefix_does_not_change_the_meaning_of_a_literal() -> None:
    assert dbapi.bind_parameters("SELECT COUNT(*) FROM t WHERE a = E?", ["\\' OR 1=1"]).count("E '") == 1
