"""Commands for people in two tables and for trails: files in, result out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sfumato.cli import cli
from sfumato.dp.loss import approximate
from sfumato.errors import (
    BadParameter,
    NotThatFormat,
    OutputExists,
    OverBudget,
    TooFewRows,
    UndecidedColumns,
    UnknownBudget,
)
from sfumato.ledger.ledger import Ledger
from sfumato.parties.bloom_encoding import BloomEncoder, mutual_links

FAMILIES = ("smith", "jones", "taylor", "brown", "williams", "wilson", "johnson", "davies", "robinson", "wright")


def call(folder: Path, *arguments: str) -> Any:
    given = [str(folder / text[1:]) if text.startswith("@") else text for text in arguments]
    return CliRunner().invoke(cli, given)


def done(folder: Path, *arguments: str) -> str:
    result = call(folder, *arguments)
    assert result.exception is None, result.output
    return str(result.output)


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    pl.DataFrame({"id": range(30)}).write_csv(tmp_path / "one.csv")
    pl.DataFrame({"number": range(20, 60)}).write_csv(tmp_path / "two.csv")
    done(tmp_path, "party", "blind", "@one.csv", "--column", "id", "--out", "@blind.json", "--secret", "@secret.json")
    return tmp_path


def test_two_parties_learn_how_many_people_both_have(sets: Path) -> None:
    reply = ("party", "reply", "@two.csv", "@blind.json", "--column", "number", "--out", "@reply.json")
    done(sets, *reply, "--exact")
    assert "10 items in both tables, exactly" in done(
        sets, "party", "overlap", "@reply.json", "--secret", "@secret.json"
    )
    assert os.stat(sets / "secret.json").st_mode & 0o077 == 0
    private = ("--epsilon", "2", "--delta", "1e-3", "--ledger", str(sets / "l.db"), "--dataset", "two", "--force")
    ledger = Ledger.open(sets / "l.db")
    before = (sets / "reply.json").read_text()
    assert isinstance(call(sets, *reply, *private).exception, UnknownBudget)
    ledger.set_cap(approximate(3, "1e-2"), dataset="two")
    assert (sets / "reply.json").read_text() == before
    done(sets, *reply, *private)
    found = json.loads(done(sets, "party", "overlap", "@reply.json", "--secret", "@secret.json", "--json"))
    assert abs(found["size"] - 10) <= found["noise_at_most"]
    assert ledger.balance(dataset="two").spent == approximate(2, "1e-3")
    written = (sets / "reply.json").read_text()
    assert isinstance(call(sets, *reply, *private).exception, OverBudget)
    assert (sets / "reply.json").read_text() == written


def test_the_noise_of_a_reply_is_drawn_after_the_charge(sets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the moment of the draw the charge is on disk: a crash then costs budget."""
    from sfumato.parties import intersection_size

    ledger = Ledger.open(sets / "l.db")
    ledger.set_cap(approximate(3, "1e-2"), dataset="two")
    spent: list[Any] = []

    def draw(*_: Any) -> Any:
        spent.append(Ledger.open(sets / "l.db").balance(dataset="two").spent)
        raise KeyboardInterrupt

    monkeypatch.setattr(intersection_size, "discrete_laplace", draw)
    private = ("--epsilon", "2", "--delta", "1e-3", "--ledger", str(sets / "l.db"), "--dataset", "two")
    reply = ("party", "reply", "@two.csv", "@blind.json", "--column", "number", "--out", "@reply.json")
    assert call(sets, *reply, *private).exit_code != 0
    assert spent == [approximate(2, "1e-3")]
    assert not (sets / "reply.json").exists()


def test_a_reply_needs_a_budget_or_says_that_it_is_exact(sets: Path) -> None:
    reply = ("party", "reply", "@two.csv", "@blind.json", "--column", "number", "--out", "@reply.json")
    for wrong in ((), ("--epsilon", "1"), ("--exact", "--epsilon", "1"), ("--epsilon", "1", "--delta", "1e-3")):
        assert call(sets, *reply, *wrong).exit_code == 2
    assert not (sets / "reply.json").exists()


def test_files_that_are_no_messages_are_refused(sets: Path) -> None:
    base = "00" * 31 + "09"
    for text in ("{}", "no json", "[" * 99_999, '{"message": "blinded set", "base": "00", "points": []}',
                 f'{{"message": "blinded set", "base": "{base}", "points": [7]}}'):  # fmt: skip
        (sets / "bad.json").write_text(text)
        for command in (
            ("reply", "@two.csv", "@bad.json", "--column", "number", "--exact", "--out", "@r.json"),
            ("overlap", "@bad.json", "--secret", "@secret.json"),
        ):
            assert isinstance(call(sets, "party", *command).exception, NotThatFormat)
    assert isinstance(
        call(sets, "party", "overlap", "@blind.json", "--secret", "@secret.json").exception, NotThatFormat
    )
    again = ("party", "blind", "@one.csv", "--column", "id", "--out", "@blind.json", "--secret", "@secret.json")
    assert isinstance(call(sets, *again).exception, OutputExists)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    draw = np.random.default_rng(3)
    weights = 1 / np.arange(1, 11)
    for name, size in (("people", 400), ("public", 4000)):
        families = draw.choice(FAMILIES, size, p=weights / weights.sum())
        pl.DataFrame({"id": range(size), "family": families, "year": draw.integers(1930, 2000, size)}).write_csv(
            tmp_path / f"{name}.csv"
        )
    (tmp_path / "shared.key").write_text("0123456789abcdef0123\n")
    return tmp_path


def test_an_owner_sees_what_an_encoding_gives_away(people: Path) -> None:
    encode = ("party", "encode", "@people.csv", "--column", "family", "--key-file", "@shared.key", "--keep", "id")
    done(people, *encode, "--out", "@plain.csv")
    done(people, *encode, "--salt", "year", "--flip", "0.05", "--out", "@hard.csv")
    assert pl.read_csv(people / "plain.csv").columns == ["id", "encoding"]
    attack = ("--population", "@public.csv", "--column", "family", "--truth", "@people.csv", "--json")
    plain, hard = (json.loads(done(people, "party", "attack", f"@{f}.csv", *attack)) for f in ("plain", "hard"))
    assert plain["pattern"] > 0.8
    assert hard["pattern"] < plain["most_frequent_name"] + 0.1
    counted = pl.read_csv(people / "public.csv").group_by("family").len(name="people").sort("family")
    counted.write_csv(people / "counts.csv")
    given = ("--population", "@counts.csv", "--column", "family", "--count", "people", "--truth", "@people.csv")
    assert json.loads(done(people, "party", "attack", "@plain.csv", *given, "--json"))["pattern"] > 0.8


def test_encodings_link_records_with_typing_errors(people: Path) -> None:
    names = [f"{first} {family}" for first in ("anna", "maria", "oskar", "ludwig") for family in FAMILIES]
    typed = [name.replace("m", "n", 1) if i % 3 == 0 else name for i, name in enumerate(names)]
    for file, column in (("a", names), ("b", typed[::-1])):
        pl.DataFrame(
            {"id": [f"{name}!" for name in (names if file == "a" else names[::-1])], "name": column}
        ).write_csv(people / f"{file}.csv")
        key = ("--column", "name", "--key-file", "@shared.key", "--keep", "id", "--out", f"@{file}.parquet")
        done(people, "party", "encode", f"@{file}.csv", *key)
    done(people, "party", "link", "@a.parquet", "@b.parquet", "--id", "id", "--threshold", "0.6", "--out", "@links.csv")
    links = pl.read_csv(people / "links.csv")
    assert (links["ours"] == links["theirs"]).all()
    assert links.height == len(names)
    bad = call(people, "party", "link", "@people.csv", "@b.parquet", "--id", "id", "--out", "@no.csv")
    assert "encoding" in str(bad.exception)


def test_links_do_not_depend_on_the_size_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = BloomEncoder(key=b"k" * 16, bits=200, flip="0.1")
    one, other = (encoder.encode([f"{a}{b}" for a in FAMILIES for b in FAMILIES]) for _ in range(2))
    whole = mutual_links(one, other, threshold=0.1)
    monkeypatch.setattr("sfumato.parties.bloom_encoding._BLOCK", 700)
    assert mutual_links(one, other, threshold=0.1) == whole
    assert len({a for a, _, _ in whole}) == len({b for _, b, _ in whole}) == len(whole) > 50
    with pytest.raises(BadParameter):
        mutual_links(one, other, threshold=0)


def test_a_short_key_is_refused(people: Path) -> None:
    (people / "short.key").write_text("abc")
    result = call(
        people, "party", "encode", "@people.csv", "--column", "family", "--key-file", "@short.key", "--out", "@x.csv"
    )
    assert isinstance(result.exception, BadParameter)


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    draw = np.random.default_rng(5)
    there = np.argwhere(draw.random((200, 8)) < 0.3)
    names = {"name": [f"person{i}" for i, _ in there], "site": [f"s{j}" for _, j in there]}
    pl.DataFrame(names).write_csv(tmp_path / "people.csv")
    pl.DataFrame({"sample": there[:, 0] * 7 % 200, "site": names["site"], "dna": there[:, 1]}).sample(
        fraction=1, shuffle=True, seed=1
    ).write_csv(tmp_path / "samples.csv")
    return tmp_path


def trails(folder: Path, **more: Any) -> str:
    rules = {"identified": "people.csv", "k": 4, **more}
    columns = {"sample": {"role": "identifier"}, "site": {"role": "plain"}, "dna": {"role": "plain"}}
    plan = {"sfumato": 1, "data": "samples.csv", "unit": "sample", "columns": columns, "trails": rules}
    (folder / "trails.yaml").write_text(json.dumps(plan))
    return str(folder / "trails.yaml")


def test_trails_are_matched_measured_and_suppressed(visits: Path) -> None:
    from sfumato import attack, check, measure, protect

    plan = trails(visits)
    links = attack(plan).links
    assert json.loads(done(visits, "attack", plan, "--json"))["linked"] == links.height > 20
    assert (links["name"].str.slice(6).cast(pl.Int64) * 7 % 200 == links["sample"].cast(pl.Int64)).all()
    unique, rare = (result.value for result in measure(plan))
    assert rare > unique > 0
    assert not check(plan).holds
    document = json.loads(done(visits, "protect", plan, "--out", "@out", "--json"))
    assert (document["kind"], document["verdicts"][0]["state"]) == ("trails", "holds")
    public = (visits / "out" / "release.json").read_text() + (visits / "out" / "report.html").read_text()
    assert "samples_lost" not in public  # a count of the original
    assert check(visits / "out").holds
    given, released = pl.read_csv(visits / "samples.csv"), pl.read_csv(visits / "out" / "visits.csv")
    rest = ["site", "dna"]
    assert 0.5 * given.height < released.join(given, on=rest, how="semi").height == released.height
    numbers = released["sample"].unique()
    assert sorted(numbers) == list(range(1, len(numbers) + 1))  # ids do not leave
    true = given.group_by(rest).agg("sample").join(released.with_columns(number="sample"), on=rest)
    assert np.mean([number in ids for ids, number in zip(true["sample"], true["number"], strict=True)]) < 0.5
    assert not released.select(rest).equals(given.select(rest).head(released.height))
    assert attack(visits / "out", original=plan).links.is_empty()
    made = protect(plan)
    assert check(made).holds
    assert attack(made).links.is_empty()
    with pytest.raises(TooFewRows):
        protect(trails(visits, k=500))


def test_the_exit_code_says_whether_trails_are_rare(visits: Path) -> None:
    from sfumato.cli import main

    plan = trails(visits, k=2)
    assert main(["check", plan]) == 1
    assert main(["attack", plan]) == 1
    assert main(["measure", plan]) == 0
    assert main(["protect", plan, "--out", str(visits / "out")]) == 0
    assert main(["check", str(visits / "out")]) == 0
    assert main(["attack", str(visits / "out"), "--original", plan]) == 0
    assert main(["check", trails(visits, site="sample", k=2)]) == 2


def test_trails_release_no_column_that_nobody_decided(visits: Path) -> None:
    plan = json.loads(Path(trails(visits)).read_text())
    plan["columns"]["dna"] = {"kind": "category"}
    (visits / "trails.yaml").write_text(json.dumps(plan))
    refused = call(visits, "protect", "@trails.yaml", "--out", "@out2")
    assert isinstance(refused.exception, UndecidedColumns)
    assert "`dna`" in str(refused.exception)
