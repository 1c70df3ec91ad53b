"""What a text file does not say about itself: its encoding, its delimiter, and whether it has a header."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import Any, TextIO, TypeAlias

import numpy as np

from sfumato.data.table import refuse_duplicates
from sfumato.data.type_inference import RULES
from sfumato.errors import EmptyTable, NotThatFormat, RaggedLine

DELIMITERS = ("\t", ";", "|", ",")
"""In the order of preference where several fit: a comma is also a decimal sign, a tab hardly anything else."""

_SAMPLE = 1 << 15
_LINES = 20
_TITLES = 10
"""More lines than this are no title."""
"""A file is judged by its first 32 KB, and by more if its lines are so long that fewer lines than this fit."""
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_UNUSED_CP1252 = [0x81, 0x8D, 0x8F, 0x90, 0x9D]

Content: TypeAlias = bytes | mmap
"""The bytes of a file: in memory, or mapped to it."""


@dataclass(frozen=True, kw_only=True)
class CsvDialect:
    """How the lines of a file are cut into fields."""

    delimiter: str
    header: bool
    names: tuple[str, ...]
    skip: int
    """Lines before the first line of data, the header among them."""
    preamble: int = 0
    """Lines before the header: 1 for a file that opens with ``sep=;``."""
    padded: bool = False
    """Whether a space follows every delimiter: it belongs to no field then."""


def is_ascii(data: Content) -> bool:
    """Whether every byte is below 128; piece by piece, so that a mapped file is not copied."""
    whole, size = np.frombuffer(data, dtype=np.uint8), 1 << 20
    return all(bool(whole[at : at + size].max() < 128) for at in range(0, whole.size, size))


def decode(data: Content) -> str:
    """Name of the encoding: UTF-8, UTF-16, else Windows-1252, else Latin-1. A BOM decides where there is one."""
    head = data[:4096]
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    if b"\0" in head:
        for name, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[0::2])):
            if zeros.count(0) > 0.8 * len(zeros):
                return name
        return "binary"
    if is_ascii(data):
        return "utf-8"
    try:
        codecs.utf_8_decode(data, "strict", True)
    except UnicodeDecodeError:
        # Windows-1252 is Latin-1 with letters and quotes where Latin-1 has control characters.
        found = np.bincount(np.frombuffer(data, dtype=np.uint8), minlength=256)
        windows = bool(found[0x80:0xA0].any()) and not found[_UNUSED_CP1252].any()
        return "cp1252" if windows else "latin-1"
    return "utf-8"


def to_utf8(data: Content, encoding: str | None, name: str) -> Content:
    """The same text in UTF-8 with ``\\n`` or ``\\r\\n`` line ends and no BOM; a binary file is refused."""
    found = encoding or decode(data)
    if found == "binary":
        raise NotThatFormat(
            f"{name} is not text: it holds NUL bytes.", fix="Name the file by its real format.", path=name
        )
    if encoding is not None or found != "utf-8":
        try:
            data = bytes(data).decode("utf-8-sig" if found.lower() in {"utf8", "utf-8"} else found).encode()
        except (UnicodeDecodeError, LookupError):
            raise NotThatFormat(
                f"{name} cannot be read as {found} text.", fix="Set `encoding` to the right one.", path=name
            ) from None
    if b"\r" in data[:_SAMPLE] and b"\n" not in data[:_SAMPLE]:
        data = bytes(data).replace(b"\r", b"\n")
    return data


def sniff(
    data: Content, *, delimiter: str | None, header: bool | None, missing: Sequence[str], name: str
) -> CsvDialect:
    """Find delimiter and header from the first lines of UTF-8 text."""
    size = _SAMPLE
    while size < len(data) and data[:size].count(b"\n") < _LINES:
        size *= 4
    text = data[:size].decode("utf-8", "ignore")
    cut = len(data) > size
    preamble = 0
    if text[:4].lower() == "sep=" and text[5:6] in {"\r", "\n"}:
        delimiter = delimiter or text[4]
        text, preamble = text.partition("\n")[2], 1
    if not text.strip():
        raise EmptyTable(f"{name} is empty.", fix="Check that the file was written completely.", path=name)
    if delimiter is None:
        delimiter = _fitting(text, cut)
        refuse_titles(text, DELIMITERS if delimiter is None else (delimiter,), cut, name)
        delimiter = delimiter or _delimiter(text, cut)
    else:
        refuse_titles(text, (delimiter,), cut, name)
    rows = _rows(text, delimiter, cut)
    if header is None:
        header = _has_header(rows, missing)
        if header and _recurs(rows, missing):
            raise NotThatFormat(
                f"{name}: it is not clear whether the first line names the columns. Some of it stands in the lines "
                "below, in the same column.",
                fix=f"Say so: {name}?header=false if the first line is a row, {name}?header=true if it names the "
                f"columns; in a document, `data: {{file: {name}, header: false}}`.",
                path=name,
            )
    first = rows[0]
    padded = len(first) > 1 and all(field[:1] == " " for row in rows for field in row[1:])
    names = [
        (field.strip() or f"column_{number}") if header else f"column_{number}" for number, field in enumerate(first, 1)
    ]
    refuse_duplicates(names, name)
    lines = _header_lines(text, delimiter) if header else 0
    return CsvDialect(
        delimiter=delimiter, header=header, names=tuple(names), skip=preamble + lines, preamble=preamble, padded=padded
    )


def _reader(text: TextIO, delimiter: str, *, strict: bool = False) -> Any:
    csv.field_size_limit(1 << 30)  # a field may be longer than the 128 KB that Python allows by itself
    return csv.reader(text, delimiter=delimiter, strict=strict)


def _rows(text: str, delimiter: str, cut: bool) -> list[list[str]]:
    rows = [row for row in _reader(io.StringIO(text, newline=""), delimiter) if row]
    return rows[:-1] if cut and len(rows) > 1 else rows


def _header_lines(text: str, delimiter: str) -> int:
    reader = _reader(io.StringIO(text, newline=""), delimiter)
    for row in reader:
        if row:
            return int(reader.line_num)
    return 0


def without_lines(data: Content, count: int) -> bytes:
    """The text without its first lines."""
    whole, start = bytes(data), 0
    for _ in range(count):
        start = whole.find(b"\n", start) + 1
        if start == 0:
            return b""
    return whole[start:]


def refuse_titles(text: str, marks: Sequence[str], cut: bool, name: str) -> None:
    """Refuse a file whose first lines are cut into far fewer fields than all others: a title is no header."""
    for mark in marks:
        reader = _reader(io.StringIO(text, newline=""), mark)
        found = [(len(row), int(reader.line_num)) for row in reader if row]
        found = found[:-1] if cut else found
        fields = found[-1][0] if found else 0
        first = next((place for place, (count, _) in enumerate(found) if count == fields), 0)
        below = found[first:]
        same = all(count == fields for count, _ in below)
        if fields > 2 and 0 < first <= _TITLES and len(below) > 2 and same and found[0][0] * 2 <= fields:
            skipped = found[first][1] - 1
            raise NotThatFormat(
                f"{name}: line {skipped + 1} and all that follow have {fields} fields, the first line {found[0][0]}."
                " What stands above looks like a title.",
                fix=f"Leave it out with {name}?skip={skipped}, or delete these lines.",
                path=name,
            )


def _fitting(text: str, cut: bool) -> str | None:
    """The delimiter that cuts all lines into the same number of fields, the first one too; None if there is none.

    Such a file has no title, even if the decimal commas below its names are as many in every line.
    """
    for mark in DELIMITERS:
        found = {len(row) for row in _rows(text, mark, cut)}
        if len(found) == 1 and found != {1}:
            return mark
    return None


def _delimiter(text: str, cut: bool) -> str:
    """The delimiter of lines that none cuts alike."""
    counts = {mark: [len(row) for row in _rows(text, mark, cut)] for mark in DELIMITERS}
    several = {mark: found for mark, found in counts.items() if found[0] > 1}
    if several:
        # No delimiter cuts every line alike: take the one that comes nearest, and let the reading name the line.
        return max(several, key=lambda mark: several[mark].count(several[mark][0]) / len(several[mark]))
    single = [mark for mark in reversed(DELIMITERS) if set(counts[mark]) == {1}]
    return single[0] if single else ","


def _has_header(rows: list[list[str]], missing: Sequence[str]) -> bool:
    """No header if the first line looks like the lines below it: the same kinds, and at least one that is not text."""
    first, rest = rows[0], rows[1:]
    plain = [field.strip() for field in first]
    if len(first) > 2 and any(plain == [str(number + start) for number in range(len(first))] for start in (0, 1)):
        # 0, 1, 2, ... is how pandas names columns that have no name, and 1, 2, 3, ... how R's matrices do.
        return True
    kinds = [_kind([field]) for field in first]
    if not rest:
        return not all(kinds)
    below = [_kind([row[i] for row in rest if i < len(row) and row[i] not in missing]) for i in range(len(first))]
    if any(kind is None and other is not None for kind, other in zip(kinds, below, strict=True) if other != "empty"):
        return True
    if not any(kind is not None and kind == other for kind, other in zip(kinds, below, strict=True)):
        return True
    # Years over columns of something else are names: "country, 2019, 2020".
    columns = [[row[i] for row in rest if i < len(row)] for i, kind in enumerate(kinds) if kind is not None]
    titles = [field for field, kind in zip(first, kinds, strict=True) if kind is not None]
    return None in kinds and all(map(_is_year, titles)) and not any(all(map(_is_year, column)) for column in columns)


def _recurs(rows: list[list[str]], missing: Sequence[str]) -> bool:
    """Whether a first line of texts over texts has a value of the column below it, as a row of data would.

    A first line that stands over another kind of values is a header, and the lines that repeat all of it are no rows.
    """
    first, rest = rows[0], [row for row in rows[1:] if row != rows[0]]
    columns = [[row[i] for row in rest if i < len(row) and row[i] not in missing] for i in range(len(first))]
    over = [(field, column) for field, column in zip(first, columns, strict=True) if _kind([field]) is None]
    if any(_kind(column) not in (None, "empty") for _, column in over):
        return False
    return any(field in column for field, column in over)


def _is_year(field: str) -> bool:
    return re.fullmatch(r" *(19|20)\d\d *", field) is not None


def _kind(values: list[str]) -> str | None:
    """Kind of these fields, None for text, ``"empty"`` when there is none to judge by."""
    found = [value.strip() for value in values if value.strip()]
    if not found:
        return "empty"
    for rule in RULES:
        if all(map(rule.regex.fullmatch, found)):
            return "number" if rule.kind == "integer" else rule.kind
    return None


def quotes_are_regular(data: Content, delimiter: str) -> bool:
    """Whether every quote opens a field, closes it, or is one of a doubled pair inside it.

    Counting from 0, a quote with an even number must open a field or be the second of a pair, one with an odd number
    must close a field or be the first of a pair. The first quote that stands bare inside a field breaks this. Polars
    cuts such files in wrong places without a word, so they must go elsewhere.

    >>> quotes_are_regular(b'a,"x ""y"" z",1', ","), quotes_are_regular(b'5" pipe,6"', ",")
    (True, False)
    """
    whole, size = np.frombuffer(data, dtype=np.uint8), 1 << 20
    at = np.concatenate(
        [np.flatnonzero(whole[start : start + size] == ord('"')) + start for start in range(0, whole.size, size)]
    )
    if at.size % 2:
        return False
    edge = np.zeros(256, dtype=bool)
    edge[[ord(delimiter), ord("\n"), ord("\r")]] = True
    opening, closing = at[0::2], at[1::2]
    opens = (opening == 0) | edge[whole[opening - 1]]
    closes = (closing == whole.size - 1) | edge[whole[np.minimum(closing + 1, whole.size - 1)]]
    paired = opening[1:] == closing[:-1] + 1
    opens[1:] |= paired
    closes[:-1] |= paired
    return bool(opens.all() and closes.all())


def explain(data: Content, dialect: CsvDialect, name: str) -> None:
    """Raise the error that names the line which does not fit; return when every line does."""
    text = io.TextIOWrapper(io.BytesIO(bytes(data)), encoding="utf-8", newline="")
    for _ in range(dialect.preamble):
        next(text)
    reader = _reader(text, dialect.delimiter, strict=True)
    width, begin = len(dialect.names), 1 + dialect.preamble
    try:
        for row in reader:
            if row and len(row) != width:
                raise RaggedLine(
                    f"{name}, line {begin}: {len(row)} fields where the first line has {width}.",
                    fix="Quote fields that contain the delimiter, or set `delimiter`.",
                    path=name,
                    line=begin,
                    fields=len(row),
                    expected=width,
                )
            begin = reader.line_num + 1 + dialect.preamble
    except csv.Error:
        raise RaggedLine(
            f"{name}, line {begin}: a quoted field is not closed, or goes on after its closing quote.",
            fix='Double the quotes inside quoted fields ("" for ").',
            path=name,
            line=begin,
        ) from None
