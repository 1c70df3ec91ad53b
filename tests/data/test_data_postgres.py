"""Reading PostgreSQL, against a real server."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from urllib.parse import quote

import polars as pl
import pytest

from sfumato.data import read
from sfumato.errors import DatabaseFailed, DuplicateColumns, EmptyTable

MAKE = """
DROP SCHEMA IF EXISTS survey CASCADE; CREATE SCHEMA survey;
CREATE TABLE survey.people (id int, small smallint, big bigint, zip char(5), name text, income double precision,
    price numeric(8, 2), units numeric(10, 0), flag boolean, birth date, seen timestamp, noted timestamptz, at time,
    tags text[], note jsonb);
INSERT INTO survey.people VALUES
 (1, 2, 9007199254740993, '02141', 'Ann, "A"' || chr(10) || 'x', 0.1, 12.50, 7, true,
  '1990-01-31', '2024-05-17 08:30:01.5',
  '2024-05-17 08:30:01+02', '08:30', '{a,b}', '{"k": 1}'),
 (2, NULL, NULL, NULL, '', 'NaN', NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL),
 (3, NULL, NULL, NULL, NULL, 'Infinity', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (4, NULL, NULL, NULL, 'NA', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE survey.nobody (id int);
CREATE TABLE survey.far (birth date); INSERT INTO survey.far VALUES ('infinity');
CREATE TABLE survey.lonely (name text); INSERT INTO survey.lonely VALUES ('a'), (NULL), (''), ('b');
CREATE TABLE survey.many AS SELECT i AS id, md5(i::text) AS code FROM generate_series(1, 200000) AS i;
"""


@pytest.fixture(scope="module")
def server(postgresql: str) -> str:
    import psycopg

    with psycopg.connect(postgresql) as connection:
        connection.execute(MAKE)
    return postgresql


def test_every_type_arrives(server: str) -> None:
    table = read(f"{server}?table=survey.people")
    assert table.origin == "database"
    first = table.frame.row(0, named=True)
    assert first["big"] == 9007199254740993
    assert first["zip"] == "02141"
    assert first["name"] == 'Ann, "A"\nx'
    assert (first["price"], first["units"], first["flag"]) == (12.5, 7, True)
    assert (first["birth"], first["at"]) == (date(1990, 1, 31), time(8, 30))
    assert first["seen"] == datetime(2024, 5, 17, 8, 30, 1, 500000)
    assert first["noted"] == datetime(2024, 5, 17, 6, 30, 1, tzinfo=UTC)
    assert (first["tags"], first["note"]) == ("{a,b}", '{"k": 1}')
    assert table.frame.schema["id"] == pl.Int64


def test_null_empty_text_and_the_word_na_are_told_apart(server: str) -> None:
    assert read(f"{server}?table=survey.people").frame["name"].to_list()[1:] == ["", None, "NA"]
    assert read(f"{server}?table=survey.lonely").frame["name"].to_list() == ["a", None, "", "b"]


def test_infinity_is_a_float_and_nan_is_missing(server: str) -> None:
    income = read(f"{server}?table=survey.people").frame["income"]
    assert income.is_null().to_list() == [False, True, False, True]  # NaN is a missing value
    assert income.is_infinite()[2]


def test_a_query_by_url(server: str) -> None:
    frame = read(f"{server}?query={quote('SELECT count(*) AS n, sum(id) AS s FROM survey.many;')}").frame
    assert frame.rows() == [(200000, 20000100000.0)]


def test_a_large_result_is_streamed_whole(server: str) -> None:
    frame = read(f"{server}?table=survey.many").frame
    assert frame.height == 200000
    assert frame["id"].sum() == 20000100000
    assert frame["code"].n_unique() == 200000


def test_the_connection_only_reads(server: str) -> None:
    for query in ("DELETE FROM survey.many RETURNING id", "SELECT 1) AS a; DROP TABLE survey.many; SELECT (1"):
        with pytest.raises(DatabaseFailed):
            read(f"{server}?query={quote(query)}")
    assert read(f"{server}?table=survey.many").rows == 200000


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        ("table=survey.nowhere", DatabaseFailed),
        ("query=SELECT%20wrong%20FROM%20survey.people", DatabaseFailed),
        ("query=SELECT%201%20AS%20a,%202%20AS%20a", DuplicateColumns),
        ("table=survey.nobody", EmptyTable),
        ("table=survey.far", DatabaseFailed),
    ],
)
def test_what_cannot_be_read_is_refused(server: str, ask: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(f"{server}?{ask}")


def test_an_error_quotes_no_data(server: str) -> None:
    with pytest.raises(DatabaseFailed) as caught:
        read(f"{server}?query={quote('SELECT name::int FROM survey.people')}")
    assert "Ann" not in str(caught.value)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(DatabaseFailed) as caught:
        read("postgresql://me:geheim@127.0.0.1:9/census?table=people")
    assert "geheim" not in str(caught.value)
    assert "127.0.0.1/census" in str(caught.value)
