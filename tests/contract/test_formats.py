"""What every file format must do: give back what it was given, refuse what is not its own, leave nothing behind."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest

from sfumato.data import ColumnLabels, Format, Table, read, write
from sfumato.data.format import format_for
from sfumato.errors import EmptyTable, NotThatFormat, SfumatoError
from sfumato.registry import registry

FORMATS = [kind for kind in registry("format") if issubclass(kind, Format)]
CASES = [
    pytest.param(kind, suffix, id=f"{kind.part_name()}{suffix}")
    for kind in FORMATS
    for suffix in kind.suffixes
    if suffix not in kind.read_only
]

PEOPLE = pl.DataFrame(
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


@pytest.mark.parametrize(("kind", "suffix"), CASES)
def test_a_table_survives_the_round_trip(kind: type[Format], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"people{suffix}"
    write(Table(frame=PEOPLE), path)
    again = read(path)
    assert again.frame.equals(PEOPLE)
    assert again.frame.schema == PEOPLE.schema


@pytest.mark.parametrize(("kind", "suffix"), CASES)
def test_writing_twice_gives_the_same_table_and_one_file(kind: type[Format], suffix: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    write(Table(frame=PEOPLE), first)
    write(read(first), second)
    assert read(second).frame.equals(PEOPLE)
    assert sorted(tmp_path.iterdir()) == [first, second]


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.part_name())
def test_labels_survive_where_the_format_says_so(kind: type[Format], tmp_path: Path) -> None:
    labels = {
        "age": ColumnLabels(label="Age in years", value_labels={18: "adult", 99: "refused"}, missing=(99,)),
        "income": ColumnLabels(label="Income per month"),
    }
    frame = PEOPLE.with_columns(age=pl.Series([34, 99, None, 18]))
    path = tmp_path / f"labelled{kind.suffixes[0]}"
    write(Table(frame=frame, labels=labels), path)
    again = read(path)
    assert again.frame.equals(frame)
    if "labels" in kind.keeps:
        assert {name: again.labels[name].label for name in labels} == {name: labels[name].label for name in labels}
    if "value labels" in kind.keeps:
        assert dict(again.labels["age"].value_labels) == dict(labels["age"].value_labels)
    if "missing codes" in kind.keeps and kind.part_name() != "dta":
        # Stata has no codes of one's own for missing: it keeps .a to .z, tested apart.
        assert again.labels["age"].missing == (99,)


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.part_name())
def test_every_suffix_finds_its_format(kind: type[Format]) -> None:
    assert kind.suffixes
    assert all(format_for(Path(f"some.file{suffix.upper()}")) is kind for suffix in kind.suffixes)


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.part_name())
def test_the_examples_work(kind: type[Format], tmp_path: Path) -> None:
    for number, example in enumerate(kind.examples):
        part, path = kind.build(example), tmp_path / f"{number}{kind.suffixes[0]}"
        write(Table(frame=PEOPLE), path, format=part)
        assert read(path, format=part).frame.equals(PEOPLE)


@pytest.mark.parametrize(("kind", "suffix"), CASES)
def test_an_empty_file_is_refused(kind: type[Format], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"empty{suffix}"
    path.touch()
    with pytest.raises(EmptyTable):
        read(path)


@pytest.mark.parametrize(("kind", "suffix"), CASES)
@pytest.mark.parametrize("wrong", [b"PAR1 and then nothing", b"%PDF-1.7 a document", b"\x00\x01\x02\x03" * 64])
def test_a_file_of_another_format_is_refused(kind: type[Format], suffix: str, wrong: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"wrong{suffix}"
    path.write_bytes(wrong)
    with pytest.raises(NotThatFormat) as caught:
        read(path)
    assert path.name in str(caught.value)
    assert caught.value.status == 2


@pytest.mark.parametrize(("kind", "suffix"), CASES)
def test_a_truncated_file_is_refused_or_shorter_never_a_crash(kind: type[Format], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"whole{suffix}"
    write(Table(frame=PEOPLE), path)
    whole = path.read_bytes()
    for length in (len(whole) // 4, len(whole) // 2, len(whole) * 3 // 4):
        path.write_bytes(whole[:length])
        try:
            outcome = str(read(path).rows <= PEOPLE.height)
        except SfumatoError as refusal:
            outcome = str(refusal)
        assert "a@example.org" not in outcome
        assert outcome != "False"
