"""Free text: what the rules find and miss, consistent replacement, the verdict, and an attack on the outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from held_out_letters import held_out_letters
from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.record_linkage.directory_linkage import DirectoryLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.demos.corpora.known_notes import KnownNote, recall_by_kind, synthetic_notes
from sfumato.demos.corpora.synthetic_case_files import held_out_case_files
from sfumato.documents.methods.deidentify_text import DeidentifyText
from sfumato.documents.tagger import Tagger
from sfumato.documents.text_findings import TextFinding, TextKind, find_identifiers
from sfumato.errors import BadParameter
from sfumato.masking.pipeline import MaskingResult, protect
from sfumato.registry import Registry, registry
from sfumato.release import Release, State
from sfumato.rng import Rng
from sfumato.stats import wilson


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Seen by Dr. Okonwe.", [("name", "Okonwe")]),
        ("Maria J. Lopez called; Lopez was upset.", [("name", "Maria J. Lopez"), ("name", "Lopez")]),
        ("In May and April it rained on Monday.", []),
        ("Card 4111 1111 1111 1111.", [("id", "4111 1111 1111 1111")]),
        ("Card 4111 1111 1111 1112.", [("id", "4111 1111 1111 1112")]),
        ("The Quillfeather twins met Xanthe Brubaker's aunt.", [("name", "Quillfeather"), ("name", "Xanthe Brubaker")]),
        ("Everything hurts. The MRI of 4 March was fine in Ghent.", [("date", "4 March"), ("place", "Ghent")]),
        ("LINDQVIST, Arvo, a man aged 61", [("name", "LINDQVIST, Arvo"), ("age", "61")]),
        ("A 93-year-old, then a 7 year old", [("age", "93"), ("age", "7")]),
        ("SSN: 219-09-9999", [("id", "219-09-9999")]),
        ("MRN: 00448812, weight 8812", [("id", "00448812")]),
        ("on 2021-03-04 and 4/3/2021", [("date", "2021-03-04"), ("date", "4/3/2021")]),
        ("March 4th, 2021", [("date", "March 4th, 2021")]),
        ("call 415-555-0132 or a.b@example.org", [("contact", "415-555-0132"), ("contact", "a.b@example.org")]),
        ("12 Old Mill Road", [("place", "12 Old Mill Road")]),
        ("treated at Marlow clinic", [("place", "Marlow")]),
        ("blood pressure 120/80, temperature 37.5", []),
        (
            "Born 17Jun1999, seen 20. May 1962 and 03/2014",
            [("date", "17Jun1999"), ("date", "20. May 1962"), ("date", "03/2014")],
        ),
        (
            "since summer 1998, in 2003, on 3/4, Sat 16 Jul",
            [("date", "summer 1998"), ("date", "2003"), ("date", "3/4"), ("date", "Sat 16 Jul")],
        ),
        ("a man of 44, then a woman in her late forties", [("age", "44"), ("age", "late forties")]),
        (
            "a sixty-four-year-old; aged forty; the driver (31)",
            [("age", "sixty-four"), ("age", "forty"), ("age", "31")],
        ),
        ("Ref AB123456C, NI no. QQ 12 34 56 C", [("id", "AB123456C"), ("id", "QQ 12 34 56 C")]),
        (
            "NHS number 943 476 5919; IBAN DE89 3704 0044 0532 0130 00",
            [("id", "943 476 5919"), ("id", "DE89 3704 0044 0532 0130 00")],
        ),
        ("ring me on 617 529, ask @jo_17", [("contact", "617 529"), ("contact", "@jo_17")]),
        ("my name is zofia and its kavita here", [("name", "zofia"), ("name", "kavita")]),
    ],
)
def test_rules(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(one.kind, one.text) for one in find_identifiers(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "Take 2 tablets of paracetamol 500 mg twice a day for 10 days. Pain was 8/10, pulse 72.",
        "The wound is 3 cm long and was closed with 4-0 sutures. HbA1c 6.5 %.",
        "The unit was full. Case closed. Please order 30 tablets. No fever in 3 months.",
        "This is a difficult case here. I will call again. The text is fine. It's not here.",
        "Vitamin B12 and COVID19 tests were negative; T10 to L2 are stable. The rate is 1500 ml per day.",
        "Smoked 20 cigarettes a day for 15 years. Follow up in 6 weeks. The record is complete.",
        "The dose was raised from 1000 to 2000 mg. We spoke about hope and grace. My name is on the list.",
        "The study (12) and section (3) were read. The mother of three is tired. One of nine felt better.",
    ],
)
def test_harmless_sentences_stay(text: str) -> None:
    assert find_identifiers(text) == []


@pytest.mark.parametrize(
    ("draw", "ranges"),
    [
        (synthetic_notes, dict.fromkeys(("name", "place", "date", "id", "contact"), (0.98, 1.0))),
        (
            held_out_letters,
            {**dict.fromkeys(("name", "date", "id", "contact", "age"), (0.97, 1.0)), "place": (0.87, 0.94)},
        ),
        (
            held_out_case_files,
            {**dict.fromkeys(("date", "id", "contact", "age"), (0.98, 1.0)), "name": (0.86, 0.92),
             "place": (0.94, 0.98)},
        ),
    ],
    ids=["notes that the rules were written with", "letters too", "case files that they were not written with"],
)  # fmt: skip
def test_recall_by_kind_is_known(
    draw: Callable[..., list[KnownNote]], ranges: dict[TextKind, tuple[float, float]]
) -> None:
    """The interval of each recall meets the range; the table is in the documentation."""
    found = recall_by_kind(draw(500, seed=2))
    assert set(found) == set(ranges)
    for kind, (least, most) in ranges.items():
        low, high = wilson(found[kind].found, found[kind].all)
        assert high >= least
        assert low <= most


class Initials(Tagger):
    """Finds single capital letters with a dot, and nothing at its place if ``broken``."""

    broken: bool = False
    """Whether positions are wrong."""

    def find(self, texts: Sequence[str]) -> list[list[TextFinding]]:
        shift = int(self.broken)
        return [
            [
                TextFinding(start=m.start() + shift, end=m.end() + shift, kind="name", text=m[0])
                for m in re.finditer(r"\b[A-Z]\.", text)
            ]
            for text in texts
        ]


def test_taggers_of_other_packages_add_to_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    own = registry("tagger").get
    monkeypatch.setattr(Registry, "get", lambda self, name: Initials if name == "initials" else own(name))
    [text] = release(["Seen by K. on 2021-03-04."], [1], taggers=["rules", "initials"]).data.table.frame["note"]
    assert re.fullmatch(r"Seen by \[PERSON 1\] on \d{4}-\d\d-\d\d\.", text)
    monkeypatch.setattr(Initials, "build", lambda parameters: Initials(broken=True))
    with pytest.raises(BadParameter, match="elsewhere in the text"):
        release(["Seen by K. on 2021-03-04."], [1], taggers=["initials"])


def release(texts: list[str], whose: list[int], **settings: object) -> MaskingResult:
    frame = pl.DataFrame({"who": whose, "note": texts})
    data = Data.of(Table(frame=frame), Schema(columns={"note": Column(role=Role.SENSITIVE)}, unit="who"))
    step = DeidentifyText.build({"columns": ["note"], "days": 50, **settings})
    return protect(data, steps=[step], rng=Rng(4), order="kept")


def test_people_keep_their_pseudonym_and_dates_their_distance() -> None:
    texts = [
        "Ann Baker came on 2021-03-01. Baker returned on 2021-03-11. Ann left.",
        "Mrs. Baker was seen on 2021-04-01.",
        "Ann Baker came on 2021-03-01, and again 13/13/2021.",
    ]
    notes = release(texts, [1, 1, 2]).data.table.frame["note"].to_list()
    first, second, other = ([*dict.fromkeys(re.findall(r"\[PERSON \d+\]", note))] for note in notes)
    assert len(first) == 1, "full name, family name and given name are one person"
    assert first == second, "the same person in another text"
    assert first != other, "another patient's Ann Baker is another person"
    days = [[date.fromisoformat(found) for found in re.findall(r"\d{4}-\d\d-\d\d", note)] for note in notes]
    assert (days[0][1] - days[0][0]).days == 10
    assert (days[1][0] - days[0][0]).days == 31
    assert days[0][0] != date(2021, 3, 1)
    assert "[DATE]" in notes[2]
    assert not any(word in note for note in notes for word in ("Ann", "Baker", "13/13"))


def test_nothing_that_was_found_is_left() -> None:
    notes = synthetic_notes(300, seed=5)
    result = release([note.text for note in notes], list(range(300)))
    for before, after in zip(notes, result.data.table.frame["note"], strict=True):
        for one in find_identifiers(before.text):
            if one.kind != "date":
                assert not re.search(rf"(?<!\w){re.escape(one.text)}(?!\w)", after), "a finding was not replaced"


def test_names_in_identifier_columns_are_looked_up() -> None:
    frame = pl.DataFrame({"patient": ["Xu Qwelle"], "note": ["The Qwelle twins are well."]})
    columns = {"patient": Column(role=Role.IDENTIFIER), "note": Column(role=Role.PLAIN)}
    data = Data.of(Table(frame=frame), Schema(columns=columns))
    step = DeidentifyText(columns=("note",), days=9)
    assert "Qwelle" not in protect(data, steps=[step], rng=Rng(1)).data.table.frame["note"][0]


def test_a_text_is_not_checked_unless_a_person_signs() -> None:
    assert [one.state for one in release(["All is well."], [1]).verdicts] == [State.NOT_CHECKED]
    [signed] = release(["All is well."], [1], signed_by="Privacy office").verdicts
    assert signed.state is State.HOLDS
    assert "Privacy office" in signed.reason
    assert DeidentifyText.verify_release({}, pl.DataFrame())[0].state is State.NOT_CHECKED


def test_a_directory_finds_people_before_and_hardly_afterwards(tmp_path: Path) -> None:
    notes = [note for note in synthetic_notes(600, seed=6) if "twins" not in note.text]
    frame = pl.DataFrame({"who": range(len(notes)), "note": [note.text for note in notes]})
    data = Data.of(Table(frame=frame), Schema(columns={"note": Column(role=Role.SENSITIVE)}, unit="who"))
    words = [" ".join(text for kind, text in note.known if kind in ("name", "place")) for note in notes]
    pl.DataFrame({"who": range(len(notes)), "entry": words}).write_csv(tmp_path / "book.csv")
    attack = DirectoryLinkage(item="note", directory=tmp_path / "book.csv", identity="who")
    rates = []
    for steps in ([], [DeidentifyText(columns=("note",), days=50)]):
        result = protect(data, steps=steps, rng=Rng(1))  # type: ignore[arg-type]
        scenario = AttackScenario(
            original=data, release=Release(table=result.data.table, manifest={}), lineage=result.lineage
        )
        rates.append(evaluate_attack(attack, scenario, rng=Rng(2), n_targets=300).main.rate)
    assert rates[0] > 0.8
    assert rates[1] < 0.1
