"""Random SQL for the query language: a grammar that is mostly valid, and changes that break it.

Tables are ``person`` (id, age, sex, note) and ``visit`` (id, day, moment, ward, bill); ``wards`` is public.
"""

from __future__ import annotations

import random

__all__ = ["SqlFuzzer"]

_WORDS = [
    "SELECT", "FROM", "WHERE", "GROUP BY", "(", ")", ",", "*", "'", '"', ";", "--", "/*", "1", "-1e9", "0", "NULL",
    "AND", "NOT", "CASE", "WHEN", "END", "JOIN", "LEFT JOIN", "ON", "USING (id)", "UNION ALL", "UNION", "INTERSECT",
    "EXCEPT", "WITH", "AS", "read_csv('x')", "id", "OVER ()", "OVER (PARTITION BY id ORDER BY day)", "DISTINCT",
    "LIMIT 1", "HAVING", "ORDER BY", "::int", "[1]", "{", "$1", "?", "\x00", "é", "ERROR 5", "CONFIDENCE 95%", "SUM(",
    "EXISTS", "ANY", "LATERAL", "t.t.t.t", "@", "`", "INTERVAL", "INTERVAL 1 DAY", "ROLLUP", "CUBE", "GROUPING SETS",
    "QUALIFY", "OFFSET 1", "FILTER", "WITHIN GROUP", "COLUMNS(*)", "IN (SELECT id FROM visit)", "CURRENT_DATE", "~",
    "||", "IS", "BETWEEN", "LIKE", "CAST(", "1e400", "0x1F", "TRUE", "PIVOT", "TABLESAMPLE", "ROW_NUMBER()", "date",
]  # fmt: skip


class SqlFuzzer:
    """Writes statements; the same seed writes the same ones."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def _pick(self, *items: str) -> str:
        return self._draw.choice(items)

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share

    def number(self, depth: int) -> str:
        if depth <= 0 or self._chance(0.3):
            return self._pick("age", "bill", "0", "1", "2.5", "-3", "1e9", "id", "floor")
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self._pick(
            f"({a} {self._pick('+', '-', '*', '/', '%')} {b})", f"ABS({a})", f"ROUND({a}, 1)", f"CLIP({a}, 0, 9)",
            f"COALESCE({a}, {b})", f"NULLIF({a}, {b})", f"LEAST({a}, {b})", f"CAST({a} AS INTEGER)", f"SQRT({a})",
            f"POWER({a}, 2)", f"SIGN({a})", f"WIDTH_BUCKET({a}, 0, 10, 4)", f"LENGTH({self.text(depth - 1)})",
            f"CASE WHEN {self.condition(depth - 1)} THEN {a} ELSE {b} END",
            f"EXTRACT(MONTH FROM {self.day(depth - 1)})",
            f"date_diff('{self._pick('day', 'week', 'month', 'hour')}', {self.day(depth - 1)}, {self.day(depth - 1)})",
            f"CAST({self.text(depth - 1)} AS DOUBLE)", f"TRUNC({a})", f"(-{a})", f"YEAR({self.day(depth - 1)})",
        )  # fmt: skip

    def text(self, depth: int) -> str:
        if depth <= 0 or self._chance(0.4):
            return self._pick("sex", "ward", "sex", "note", "'a'", "''", "'x%'")
        a, b = self.text(depth - 1), self.text(depth - 1)
        return self._pick(
            f"{a} || {b}", f"LOWER({a} || {a})", f"COALESCE({a}, {b})", f"NULLIF({a}, {b})",
            f"CASE WHEN {self.condition(depth - 1)} THEN {a} ELSE {b} END", f"CAST({self.day(depth - 1)} AS VARCHAR)",
            f"UPPER({a})", f"TRIM({a})", f"SUBSTRING({a}, 1, 2)", f"{a} || '-'", f"CONCAT({a}, ward)", f"LEFT({a}, 1)",
            f"strftime({self.day(depth - 1)}, '%Y-%m')", f"CAST({self.number(depth - 1)} AS VARCHAR)", "dayname(day)",
        )  # fmt: skip

    def texts(self) -> str:
        """Rows with a text ``t`` that is made by several subqueries, each from the one within it."""
        sql = f"SELECT id, note || {self.text(2)} AS t, day, moment, ward, sex, note, age, bill, floor FROM {self.wide}"
        for _ in range(self._draw.randint(0, 4)):
            made = self.text(1).replace("note", "t").replace("'a'", "t")
            sql = f"SELECT id, {made} AS t, day, moment, ward, sex, note, age, bill, floor FROM ({sql}) x"
        return sql

    def day(self, depth: int) -> str:
        if depth <= 0 or self._chance(0.5):
            return self._pick("day", "moment", "DATE '2024-02-29'", "TIMESTAMP '2024-02-29 10:00:00'")
        a = self.day(depth - 1)
        return self._pick(
            f"date_trunc('{self._pick('year', 'month', 'week', 'day')}', {a})", f"CAST({a} AS DATE)", f"last_day({a})",
            f"({a} {self._pick('+', '-')} INTERVAL {self._pick('1 DAY', '2 MONTH', '5 HOUR', '1 YEAR')})",
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        if depth > 0 and self._chance(0.3):
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return self._pick(f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})")
        sign = self._pick("=", "<>", "<", "<=", ">", ">=")
        return self._pick(
            f"{self.number(depth - 1)} {sign} {self.number(depth - 1)}", f"{self.text(depth - 1)} {sign} 'a'",
            f"day {sign} '2024-01-15'", "day BETWEEN '2024-01-01' AND '2024-03-31'", "ward IN ('a', 'b')",
            f"{self.text(depth - 1)} LIKE 'a%'", f"{self.matched()}({self.text(depth - 1)}, '{self.regex()}')",
            f"{self.number(depth - 1)} IS NULL",
            f"age BETWEEN 1 AND {self.number(0)}",
            "id IN (SELECT id FROM visit WHERE bill > 3)", "NOT EXISTS (SELECT 1 FROM visit v WHERE v.id = person.id)",
            "ward IN (SELECT ward FROM wards WHERE floor = 1)", "id NOT IN (SELECT id FROM person WHERE age < 40)",
        )  # fmt: skip

    def matched(self) -> str:
        return self._pick("REGEXP_MATCHES", "REGEXP_LIKE", "REGEXP_FULL_MATCH", "NOT REGEXP_MATCHES", "REGEXP_EXTRACT")

    def regex(self) -> str:
        """A regular expression, often a broken one."""
        signs = (
            "a",
            "[a-c]",
            "\\d",
            "\\w{1,2}",
            ".",
            "(a|b)",
            "x?",
            "^",
            "$",
            "*",
            "+",
            "|",
            "[",
            "(",
            ")",
            "\\",
            "{2}",
            "é",
        )
        return "".join(self._pick(*signs) for _ in range(self._draw.randint(0, 5)))

    wide = "person JOIN visit USING (id) JOIN wards USING (ward)"

    def source(self) -> str:
        if self._chance(0.6):
            return self.wide
        return self._pick(
            "person", "visit", "person LEFT JOIN visit ON person.id = visit.id", "visit JOIN wards USING (ward)",
            f"(SELECT * FROM visit WHERE {self.condition(1)}) AS visit", "(SELECT DISTINCT id, ward FROM visit)",
            "(SELECT id, SUM(bill) AS bill, COUNT(*) AS age FROM visit GROUP BY id)",
            "(SELECT id FROM visit UNION SELECT id FROM person)",
            "(SELECT id FROM visit INTERSECT SELECT id FROM person)",
            "(SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY day) AS age FROM visit)",
        )  # fmt: skip

    def measured(self) -> str:
        x = self._pick("age", "bill", f"CLIP({self.number(2)}, 0, 5)", self.number(1))
        item = self._pick(
            "COUNT(*)", "COUNT(*)", f"COUNT({x})", f"SUM({x})", f"AVG({x})", f"MEDIAN({x})", f"MAX({x})",
            f"STDDEV({x})",
            "COUNT(DISTINCT id)", f"COUNT(DISTINCT {self.text(1)})", "MODE(ward)", f"QUANTILE_CONT({x}, 0.9)",
            f"CORR({x}, age)", f"COUNT_IF({self.condition(1)})", f"REGR_SLOPE(bill, {x})", f"HISTOGRAM({x})",
            f"HISTOGRAM({x}, {self._pick('3', '10', '0', 'age')})",
        )  # fmt: skip
        return f"{item} FILTER (WHERE {self.condition(1)})" if self._chance(0.15) else item

    def aggregate(self) -> str:
        keys = [self._pick("ward", "sex", "date_trunc('month', day)", self.text(1), "floor", "note", self.number(1))
                for _ in range(self._draw.choice([0, 1, 1, 2]))]  # fmt: skip
        items = [f"{self.measured()} AS n{i}" for i in range(self._draw.randint(1, 2))]
        named = [f"{key} AS k{i}" for i, key in enumerate(keys)]
        sql = f"SELECT {', '.join([*named, *items])} FROM {self.source()}"
        if self._chance(0.5):
            sql += f" WHERE {self.condition(2)}"
        if keys:
            form = self._pick("{}", "{}", "{}", "ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())")
            sql += f" GROUP BY {form.format(', '.join(keys))}"
        return sql + self._pick(
            "",
            "",
            " HAVING COUNT(*) > 3",
            " ORDER BY n0 DESC LIMIT 2",
            " ORDER BY n0 LIMIT 1",
            " QUALIFY RANK() OVER (ORDER BY n0) = 1",
        )

    def query(self) -> str:
        inner = self.aggregate()
        return self._pick(
            inner, inner, inner, f"SELECT * FROM ({inner}) WHERE n0 > 2", f"SELECT SUM(n0), COUNT(*) FROM ({inner})",
            f"WITH a AS ({inner}) SELECT n0 / SUM(n0) OVER () FROM a", f"{inner} UNION ALL {self.aggregate()}",
            f"SELECT k0, LAG(n0) OVER (ORDER BY k0) FROM ({inner})", f"SELECT DISTINCT n0 FROM ({inner}) ORDER BY 1",
        )  # fmt: skip

    def broken(self) -> str:
        """A query with some tokens inserted, deleted, exchanged or repeated."""
        tokens = self.query().split(" ")
        for _ in range(self._draw.randint(1, 4)):
            place = self._draw.randint(0, len(tokens))
            change = self._pick("insert", "delete", "swap", "repeat", "cut")
            if change == "insert":
                tokens.insert(place, self._draw.choice(_WORDS))
            elif change == "delete" and place < len(tokens):
                del tokens[place]
            elif change == "swap" and place + 1 < len(tokens):
                tokens[place], tokens[place + 1] = tokens[place + 1], tokens[place]
            elif change == "cut" and len(tokens) > 4:
                tokens = tokens[:place] if place > 3 else tokens[place:]
            elif place < len(tokens):
                tokens.insert(place, tokens[place])
        return " ".join(tokens)

    def statement(self) -> str:
        """A query, or a broken one."""
        if self._chance(0.03):
            return " ".join(self._draw.choice(_WORDS) for _ in range(self._draw.randint(1, 15)))
        return self.query() if self._chance(0.5) else self.broken()
