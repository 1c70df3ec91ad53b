"""Contract of a file format: lossless round trips, refusal of foreign and damaged files, nothing left behind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import date, datetime
from functools import wraps
from pathlib import Path

import polars as pl

from sfumato.data import ColumnLabels, Format, Table, read, write
from sfumato.errors import EmptyTable, NotThatFormat, SfumatoError
from sfumato.testing.parts import expect, run_checks

_PEOPLE = pl.DataFrame(
    {
        "zip": ["02141", "90210", None, "00501"],
        "age": [34, None, 71, 18],
        "income": [1250.5, 0.1, None, 1e6 / 3],
        "sex": ["f", "m", "f", 'Ünï, "x"\n;'],
        "birth": [date(1990, 1, 31), None, date(1953, 12, 1), date(2007, 2, 28)],
        "seen": [datetime(2024, 5, 17, 8, 30, 1), None, datetime(1999, 12, 31, 23, 59, 59), datetime(2000, 1, 1)],
        "mail": ["a@example.org", "b@example.org", "c@example.org", None],
        "card": ["4111111111111111111", "5500000000000000004", None, "6011000000000000004"],
    }
)


def check_format(part: Format) -> None:
    """Raise AssertionError unless ``part`` keeps the contract of a file format, for each suffix that it writes.

    A table of text, numbers, dates and missing values is the same after writing and reading; labels survive where
    ``keeps`` says so; empty, foreign and truncated files are refused by a SfumatoError without any value.
    """
    run_checks(part, FORMAT_CHECKS)


def _for_each_suffix(check: Callable[[Format, str, Path], None]) -> Callable[[Format], None]:
    @wraps(check)
    def run(part: Format) -> None:
        for suffix in part.suffixes:
            if suffix not in part.read_only:
                with tempfile.TemporaryDirectory() as folder:
                    check(part, suffix, Path(folder))

    return run


def has_suffixes(part: Format) -> None:
    assert part.suffixes, "`suffixes` is empty"
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in part.suffixes), "suffixes: `.name`"


@_for_each_suffix
def round_trip(part: Format, suffix: str, folder: Path) -> None:
    path = folder / f"people{suffix}"
    write(Table(frame=_PEOPLE), path, format=part)
    again = read(path, format=part).frame
    assert again.equals(_PEOPLE), f"{suffix}: values differ after writing and reading"
    assert again.schema == _PEOPLE.schema, f"{suffix}: types differ after writing and reading"


@_for_each_suffix
def writing_twice_gives_one_file_each(part: Format, suffix: str, folder: Path) -> None:
    first, second = folder / f"first{suffix}", folder / f"second{suffix}"
    write(Table(frame=_PEOPLE), first, format=part)
    write(read(first, format=part), second, format=part)
    assert read(second, format=part).frame.equals(_PEOPLE), f"{suffix}: a second round trip changes values"
    assert sorted(folder.iterdir()) == [first, second], f"{suffix}: writing leaves other files behind"


@_for_each_suffix
def labels_survive_as_declared(part: Format, suffix: str, folder: Path) -> None:
    labels = {
        "age": ColumnLabels(label="Age in years", value_labels={18: "adult", 99: "refused"}, missing=(99,)),
        "income": ColumnLabels(label="Income per month"),
    }
    frame = _PEOPLE.with_columns(age=pl.Series([34, 99, None, 18]))
    path = folder / f"labelled{suffix}"
    write(Table(frame=frame, labels=labels), path, format=part)
    again = read(path, format=part)
    assert again.frame.equals(frame), f"{suffix}: labels change values"
    if "labels" in part.keeps:
        kept = {name: again.labels[name].label for name in labels}
        assert kept == {name: labels[name].label for name in labels}, f"{suffix}: labels are lost"
    if "value labels" in part.keeps:
        kept_values: dict[object, str] = dict(again.labels["age"].value_labels)
        assert kept_values == dict(labels["age"].value_labels), f"{suffix}: value labels are lost"
    if "missing codes" in part.keeps:
        assert again.labels["age"].missing == (99,), f"{suffix}: missing codes are lost"


@_for_each_suffix
def empty_file_is_refused(part: Format, suffix: str, folder: Path) -> None:
    path = folder / f"empty{suffix}"
    path.touch()
    with expect(EmptyTable, f"{suffix}: an empty file is read"):
        read(path, format=part)


@_for_each_suffix
def foreign_file_is_refused(part: Format, suffix: str, folder: Path) -> None:
    path = folder / f"wrong{suffix}"
    for content in (b"PAR1 and then nothing", b"%PDF-1.7 a document", b"\x00\x01\x02\x03" * 64):
        path.write_bytes(content)
        try:
            read(path, format=part)
        except NotThatFormat as refusal:
            assert path.name in str(refusal), f"{suffix}: the refusal does not name the file"
            assert refusal.status == 2, f"{suffix}: bad input has exit code 2"
        else:
            raise AssertionError(f"{suffix}: a file of another format is read")


@_for_each_suffix
def truncated_file_is_refused_or_shorter(part: Format, suffix: str, folder: Path) -> None:
    path = folder / f"whole{suffix}"
    write(Table(frame=_PEOPLE), path, format=part)
    whole = path.read_bytes()
    for length in (len(whole) // 4, len(whole) // 2, len(whole) * 3 // 4):
        path.write_bytes(whole[:length])
        try:
            assert read(path, format=part).rows <= _PEOPLE.height, f"{suffix}: a truncated file has more rows"
        except SfumatoError as refusal:
            assert "a@example.org" not in str(refusal), f"{suffix}: a refusal shows a value of the file"


FORMAT_CHECKS = (
    has_suffixes,
    round_trip,
    writing_twice_gives_one_file_each,
    labels_survive_as_declared,
    empty_file_is_refused,
    foreign_file_is_refused,
    truncated_file_is_refused_or_shorter,
)
