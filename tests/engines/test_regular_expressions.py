"""Regular expressions of the query language: what Python's say, in bounded time; everything else is refused."""

from __future__ import annotations

import random
import re

import duckdb
import pytest

from regex_samples import pattern, texts
from sfumato.engines.backends.duckdb.dialect import DuckdbGenerator
from sfumato.engines.expressions import constant
from sfumato.engines.functions import Matches
from sfumato.engines.regular_expressions import PatternRefused, parse_pattern, written_pattern


def python_pattern(text: str) -> str:
    """The same language in Python: its $ matches before a last line break, and its \\s has one character more."""
    branches = parse_pattern(text)
    return written_pattern(branches, end=r"\Z")


def test_duckdb_matches_what_python_matches() -> None:
    draw = random.Random(12)
    with duckdb.connect() as connection:
        for _ in range(150):
            text, whole = pattern(draw), draw.random() < 0.3
            try:
                branches = parse_pattern(text, whole=whole)
            except PatternRefused:
                continue
            lines = texts(draw)
            sql = DuckdbGenerator().expression(Matches(constant("@"), branches)).replace("'@'", "x", 1)
            found = connection.execute(f"SELECT {sql} FROM (SELECT unnest($1) AS x)", [lines]).fetchall()
            plain = re.compile(written_pattern(branches, end=r"\Z"))
            assert [row[0] for row in found] == [plain.search(line) is not None for line in lines], text


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("^E1[0-4]", ["E10", "E14.2"], ["E15", "aE10"]),
        (r"\d{3}$", ["a123", "0123"], ["12", "123\n", "٣٣٣"]),
        ("a.c", ["abc", "xa cx"], ["a\nc", "ac"]),
        ("^(cat|dog)s?$", ["cat", "dogs"], ["cats ", "dog\n", "catdog"]),
        (r"[\w.]+@", ["a.b@", "x@y"], ["@", "é@"]),
        (r"\s", ["a b", "\t", "\x0c"], ["ab", "\x0b", "\xa0"]),
        ("a*b+", ["b", "aab"], ["a", ""]),
        (r"x\$", ["x$"], ["x"]),
        ("^$", [""], ["a", "\n"]),
    ],
)
def test_patterns_mean_what_they_say(text: str, yes: list[str], no: list[str]) -> None:
    sql = DuckdbGenerator().expression(Matches(constant("@"), parse_pattern(text))).replace("'@'", "x", 1)
    found = duckdb.execute(f"SELECT {sql} FROM (SELECT unnest($1) AS x)", [[*yes, *no]]).fetchall()
    assert [row[0] for row in found] == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize(
    "text",
    ["(a+)+", "(a|a)*", "(a*)*b", "a**", "a*?", "a++", "(?i)a", "(?=a)", "(?<n>a)", r"(a)\1", r"\bword", r"\p{L}",
     "a{,3}",
     "a{3,}", "a{5,2}", "a{101}", "a{0}", "[[:alpha:]]", "[z-a]", "[]", "[a", "(a", "a)", "a|", "|a", "", "a^b", "a$b",
     "(^a)", "(a$|b)", "*a", "+", "?", "a*b*c*", "[a-\\d]", "\\", "x" * 201, "a{0,99}b{0,99}c{0,99}", "{2}", r"\A",
     r"\x41",
     r"\u0041", "a{2}{3}", "[^]"],
)  # fmt: skip
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(PatternRefused):
        parse_pattern(text)


def test_a_backtracking_engine_ends_soon_on_whatever_is_accepted() -> None:
    """Python's engine tries one way after the other, as Java's does: the slowest accepted patterns, and a long text."""
    long = "a" * 300
    for text in ("a*a*b", "^.*.*b$", "(a|b)?(a|b)?a{0,9}a{0,9}a{0,9}b", "a*a{0,99}b"):
        try:
            plain = re.compile(python_pattern(text))
        except PatternRefused:
            continue
        assert plain.search(long) is None  # would take years for a pattern such as (a*)*b
