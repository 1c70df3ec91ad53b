"""CSV: what is written reads back the same, whatever is in it, whole or scanned."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from datetime import datetime
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data import Table, read, scan, write
from sfumato.data.formats.csv import MISSING, Csv, cut_exactly, cut_fast
from sfumato.data.text_files import CsvDialect
from sfumato.data.type_inference import COMMA, RULES, infer
from sfumato.errors import EmptyTable, RaggedLine, SfumatoError

SIGNS = st.sampled_from(
    [",", ";", "\t", "|", '"', "\n", "\r\n", " ", "é", "€", "🙂", "0", "1", ".", "-", "=", "NA", "a"]
)
WORDS = st.lists(SIGNS, max_size=6).map("".join) | st.sampled_from([*MISSING, "00501", "+49 30", "sep=;", "inf", "1E5"])

VALUES = {
    "integer": (st.integers(-(10**18) + 1, 10**18 - 1), pl.Int64),
    "number": (st.floats(allow_nan=False), pl.Float64),
    "boolean": (st.booleans(), pl.Boolean),
    "date": (st.dates(), pl.Date),
    "datetime": (st.datetimes(), pl.Datetime("us")),
    "time": (st.times(), pl.Time),
}


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    """Up to four columns; a column of text begins with a word, so that it is not one of numbers by chance."""
    height = draw(st.integers(1, 8))
    columns = []
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["text", *VALUES]))
        name = draw(st.sampled_from(["", 'a "quoted" name', "^x$", "zwei;drei", "plain"])) + f"_{number}"
        if kind == "text":
            rest = draw(st.lists(st.none() | WORDS | st.text(max_size=8), min_size=height, max_size=height))
            values: list[object] = ["word", *(text and text.replace("\0", "") for text in rest[1:])]
            columns.append(pl.Series(name, values, dtype=pl.String))
        else:
            strategy, dtype = VALUES[kind]
            rest = draw(st.lists(st.none() | strategy, min_size=height, max_size=height))
            columns.append(pl.Series(name, [draw(strategy), *rest[1:]], dtype=dtype))
    return pl.DataFrame(columns)


@settings(deadline=None, max_examples=120)
@given(frame=tables(), delimiter=st.sampled_from([None, ";", "\t", "|"]), packed=st.booleans())
def test_what_is_written_reads_back_the_same(frame: pl.DataFrame, delimiter: str | None, packed: bool) -> None:
    part = Csv(delimiter=delimiter, header=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv.gz" if packed else "table.csv")
        write(Table(frame=frame), path, format=part)
        again = read(path, format=part).frame
    assert again.schema == frame.schema
    assert again.equals(frame)


@settings(deadline=None, max_examples=60)
@given(frame=tables())
def test_delimiter_and_header_are_found_again(frame: pl.DataFrame) -> None:
    """Without being told: true as soon as the header is words and a column under it is not."""
    frame = frame.with_columns(pl.Series("count", range(frame.height)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        write(Table(frame=frame), path)
        again = read(path).frame
    assert again.equals(frame)


@settings(deadline=None, max_examples=20)
@given(frame=tables())
def test_a_scan_sees_what_reading_sees(frame: pl.DataFrame) -> None:
    part = Csv(header=True, delimiter=",")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        write(Table(frame=frame), path, format=part)
        whole = read(path, format=part).frame
        lazily = scan(path, format=part)
        with lazily.connect() as connection:
            scanned = connection.sql(f"SELECT * FROM {lazily.expression}").pl()
    assert scanned.columns == whole.columns
    assert scanned.equals(whole)


@settings(deadline=None, max_examples=120)
@given(st.lists(st.from_regex(r"[-+]?[0-9]{0,20}[.,]?[0-9]{0,4}([eE][-+]?[0-9]{1,3})?", fullmatch=True), min_size=1))
def test_a_column_becomes_numbers_only_if_every_value_fits_the_pattern(texts: list[str]) -> None:
    """The fast checks of whole numbers and dates agree with the patterns that define them."""
    column = pl.Series("x", texts, dtype=pl.String)
    filled = column.filter(column != "")
    result = infer(column.to_frame(), comma=False)["x"]
    fits = [rule for rule in RULES if all(map(rule.regex.fullmatch, filled.to_list()))]
    if filled.len() == 0 or not fits:
        assert result.dtype == pl.String
    else:
        assert fits[0] is not COMMA
        assert result.dtype == (pl.Int64 if fits[0].kind == "integer" else pl.Float64)


@settings(deadline=None, max_examples=120)
@given(st.binary(max_size=200) | st.text(alphabet='a1,;"\n\r\t|. é', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_never_a_crash(data: bytes) -> None:
    try:
        outcome: int | str = Csv().parse(data, "f.csv").rows
    except SfumatoError as refusal:
        outcome = refusal.code
    assert outcome in {"SFU-102", "SFU-103", "SFU-104", "SFU-109"} or int(outcome) > 0


FIELDS = st.sampled_from(
    ["a", "1", "", "NA", '"NA"', '""', '"x,y"', '"l\nm"', '"q""q"', '5" p', '6"', "é", "?", "s", '"a"b', 'a"b"c', "01"]
)


@settings(deadline=None, max_examples=300)
@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(FIELDS, min_size=width, max_size=width) | st.lists(FIELDS, max_size=5), min_size=1
        )
    ),
    st.sampled_from(["\n", "", "\n\n"]),
    st.booleans(),
)
def test_fields_are_cut_as_the_standard_library_cuts_them(rows: list[list[str]], end: str, windows: bool) -> None:
    """Python's own csv module, slow and strict, is the oracle: the same fields, or both refuse."""
    width = len(rows[0]) or 1
    text = "\n".join([",".join(f"h{i}" for i in range(width)), *map(",".join, rows)]) + end
    text = text.replace("\n", "\r\n") if windows else text
    try:
        expected = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row][1:]
    except csv.Error:
        expected = []
    dialect = CsvDialect(delimiter=",", header=True, names=tuple(f"h{i}" for i in range(width)), skip=1)
    try:
        data = text.encode()
        fast = cut_fast(data, dialect, missing=MISSING, name="f.csv")
        found = (cut_exactly(data, dialect, missing=MISSING, name="f.csv") if fast is None else fast).rows()
    except (RaggedLine, EmptyTable):
        found = []
    if not expected or any(len(row) != width for row in expected):
        assert found == []
    else:
        plain = [[field if field not in MISSING else None for field in row] for row in expected]
        assert [[field if field not in MISSING else None for field in row] for row in found] == plain


CELLS = ["1", "23", "-4", "0", "007", "-0", "+5", "1.5", ".5", "00.5", "2E10", "2e+3", "inf", "nan", "NA", "?", "-9"]
CELLS += [
    "true",
    "False",
    "2020-01-31",
    "2020-02-30",
    "+202-01-01",
    "x",
    "",
    " 7",
    "7 ",
    "10:00:00",
    "1,5",
    "999999999999999999",
]
CELLS += ["9" * 19, "0.99999999999999999999", "-00.1"]


@settings(deadline=None, max_examples=400)
@given(
    kinds=st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3), min_size=1, max_size=3),
    picks=st.lists(st.integers(0, 10**6), min_size=1, max_size=12),
    quoting=st.integers(0, 6),
    words=st.sampled_from([MISSING, ("", "-9", "1.5"), ("", "x", "true"), ("NA",)]),
)
def test_reading_fast_gives_what_reading_exactly_gives(
    kinds: list[list[str]], picks: list[int], quoting: int, words: tuple[str, ...]
) -> None:
    """Words for "missing", codes that look like numbers, quoted or not, in few and in many rows."""
    columns = [[cells[pick % len(cells)] for pick in picks] * 3 for cells in kinds]
    rows = [
        ";".join(f'"{cell}"' if quoting and (number + place) % quoting == 0 else cell for place, cell in enumerate(row))
        for number, row in enumerate(zip(*columns, ["end"] * len(columns[0]), strict=True))
    ]
    names = tuple(f"h{i}" for i in range(len(columns) + 1))
    data = "\n".join([";".join(names), *rows, ""]).encode()
    part = Csv(delimiter=";", header=True, missing=words)
    exact = cut_exactly(data, CsvDialect(delimiter=";", header=True, names=names, skip=1), missing=words, name="f.csv")
    expected = infer(exact, comma=True)
    found = part.parse(data, "f.csv").frame
    assert found.schema == expected.schema
    assert found.equals(expected)


@settings(deadline=None, max_examples=150)
@given(
    moments=st.lists(st.none() | st.datetimes(), min_size=1, max_size=5),
    form=st.sampled_from(["%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"]),
)
def test_what_arrow_reads_at_once_is_what_polars_reads(moments: list[datetime | None], form: str) -> None:
    texts = [moment and re.sub(r"^\d+", lambda year: year[0].zfill(4), moment.strftime(form)) for moment in moments]
    column = pl.Series("x", texts, dtype=pl.String)
    [rule] = [rule for rule in RULES if rule.arrow and all(map(rule.regex.fullmatch, column.drop_nulls().to_list()))][
        :1
    ]
    whole = rule.at_once(column)
    assert whole is not None
    assert whole.to_list() == column.to_frame().select(rule.convert(pl.col("x"))).to_series().to_list()


def test_a_day_that_does_not_exist_is_left_to_closer_reading() -> None:
    [rule] = [rule for rule in RULES if rule.kind == "date"]
    column = pl.Series("x", ["2020-02-29", "2021-02-29"])
    assert rule.at_once(column) is None
    assert infer(column.to_frame())["x"].dtype == pl.String
