"""Each detector recognizes what it should, by name and by content, and leaves its look-alikes alone."""

import re
from datetime import date
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import ColumnLabels, Table
from sfumato.dataset import Column, Data, Kind, Role, Schema
from sfumato.dataset.hierarchy import hierarchy_from_dict
from sfumato.profiling.detectors import DETECTORS
from sfumato.profiling.detectors.facts import Facts, words_of
from sfumato.profiling.detectors.finding import HIPAA
from sfumato.profiling.proposal import propose

draw = np.random.default_rng(3)


def luhn_number(prefix: str, length: int) -> str:
    body = prefix + "".join(map(str, draw.integers(0, 10, length - len(prefix) - 1)))
    total = 0
    for place, digit in enumerate(map(int, reversed(body))):
        total += sum(map(int, str(digit * (2 if place % 2 == 0 else 1))))
    return body + str(-total % 10)


def iban_number() -> str:
    body = "".join(map(str, draw.integers(0, 10, 18)))
    check = 98 - int(body + "131400") % 97  # DE is 13 14
    return f"DE{check:02d}{body}"


def dni_number() -> str:
    number = int(draw.integers(10**7, 10**8))
    return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"


def nir_number() -> str:
    number = int(f"{draw.integers(1, 3)}{draw.integers(10, 99)}{draw.integers(1, 13):02d}75{draw.integers(100, 999)}")
    number = number * 1000 + int(draw.integers(100, 999))
    return f"{number}{97 - number % 97:02d}"


def bsn_number() -> str:
    while True:
        digits = draw.integers(0, 10, 9)
        if digits.any() and (digits * np.array([9, 8, 7, 6, 5, 4, 3, 2, -1])).sum() % 11 == 0:
            return "".join(map(str, digits))


def digits(pattern: str) -> str:
    return re.sub("#", lambda _: str(draw.integers(0, 10)), pattern)


def many(make, count=60):
    return [make() for _ in range(count)]


GIVEN = ["Maria", "John", "Anna", "Peter", "Fatima", "Carlos", "Wei", "Olga", "Paul", "Emma", "Luca", "Hans"]
FAMILY = [
    "Smith",
    "Okafor",
    "Lindqvist",
    "Garcia",
    "Haddad",
    "Novak",
    "Tanaka",
    "Rossi",
    "Mbeki",
    "Dubois",
    "Weber",
    "Silva",
]
PEOPLE = [f"{a} {b}" for a in GIVEN for b in FAMILY]

VINS = ["1M8GDM9AXKP042788", "5YJSA1DG9DFP14705", "1HGCM82633A004352", "JH4KA7561PC008269", "1FTFW1ET5DFC10312"]

BY_CONTENT = {
    "names": (PEOPLE, Role.IDENTIFIER, "A"),
    "e-mail": (many(lambda: f"u{digits('#####')}@example.org"), Role.IDENTIFIER, "F"),
    "phone": (many(lambda: digits("+1 617 555 ####")), Role.IDENTIFIER, "D"),
    "phone-us": (many(lambda: digits("(617) 555-####")), Role.IDENTIFIER, "D"),
    "ssn": (many(lambda: digits("12#-4#-56##")), Role.IDENTIFIER, "G"),
    "dni": (many(dni_number), Role.IDENTIFIER, "G"),
    "nir": (many(nir_number), Role.IDENTIFIER, "G"),
    "bsn": (many(bsn_number), Role.IDENTIFIER, "G"),
    "iban": (many(iban_number), Role.IDENTIFIER, "J"),
    "card": (many(lambda: luhn_number("4", 16)), Role.IDENTIFIER, "J"),
    "vin": (VINS * 9, Role.IDENTIFIER, "L"),
    "mac": (many(lambda: digits("0a:1b:#c:#d:##:##")), Role.IDENTIFIER, "M"),
    "url": (many(lambda: f"https://example.org/{digits('####')}"), Role.IDENTIFIER, "N"),
    "ip": (many(lambda: digits("10.1#.2#.1##")), Role.IDENTIFIER, "O"),
    "uuid": (many(lambda: digits("########-####-4###-a###-############")), Role.IDENTIFIER, "R"),
    "unique": (many(lambda: digits("K#######")), Role.IDENTIFIER, "R"),
    "sex": (["female", "male", "male"] * 20, Role.QUASI, None),
    "race": (["White", "Black", "Asian-Pac-Islander"] * 20, Role.QUASI, None),
    "marital": (["Never-married", "Divorced", "Married-civ-spouse"] * 20, Role.QUASI, None),
    "country": (["France", "Germany", "Spain", "Italy", "Poland"] * 20, Role.QUASI, None),
    "state": (["MA", "NY", "CA", "TX", "WA", "OH"] * 20, Role.QUASI, None),
    "uk-postcode": (many(lambda: digits("SW#A #AA")) * 2, Role.QUASI, "B"),
    "zip+4": (many(lambda: digits("02###-####")), Role.QUASI, "B"),
    "five-digits": (many(lambda: digits("0####"), 100) * 3, Role.QUASI, "B"),
    "icd-10": (["E11.9", "I10", "J45.2", "F32", "C50.9", "B20"] * 20, Role.SENSITIVE, None),
    "dates": ([date(1990, 1, 1 + i % 28) for i in range(60)], Role.QUASI, "C"),
    "german-dates": ([f"{1 + i % 28:02d}.07.1965" for i in range(60)], Role.QUASI, "C"),
    "text": ([f"The patient told Dr {f} about the visit of {g}" for f in FAMILY for g in GIVEN], Role.IDENTIFIER, "R"),
}  # fmt: skip

BY_NAME = {
    "patient_name": (PEOPLE, Role.IDENTIFIER, "A"),
    "Name": (PEOPLE, Role.IDENTIFIER, "A"),
    "Vorname": (GIVEN * 5, Role.IDENTIFIER, "A"),
    "ZIP": (many(lambda: digits("941##")), Role.QUASI, "B"),
    "zip5": ([94105, 10001, 60601] * 20, Role.QUASI, "B"),
    "PLZ": (many(lambda: digits("1####")), Role.QUASI, "B"),
    "codigo_postal": (many(lambda: digits("28###")), Role.QUASI, "B"),
    "city": (["Springfield", "Shelbyville"] * 30, Role.QUASI, "B"),
    "homeAddress": (many(lambda: digits("## Main Street")), Role.IDENTIFIER, "B"),
    "latitude": ([42.1 + i / 100 for i in range(60)], Role.QUASI, "B"),
    "dateOfBirth": (["1965-07-31", "1970-01-02"] * 30, Role.QUASI, "C"),
    "DOB": (["07/31/1965", "01/02/1970"] * 30, Role.QUASI, "C"),
    "Geburtsdatum": (["31.07.1965", "02.01.1970"] * 30, Role.QUASI, "C"),
    "age": ([1, 50, 97] * 20, Role.QUASI, "C"),
    "telephone": (many(lambda: digits("617555####")), Role.IDENTIFIER, "D"),
    "fax": (many(lambda: digits("617-555-####")), Role.IDENTIFIER, "E"),
    "Email": (["x"] * 60, Role.IDENTIFIER, "F"),
    "ssn": (many(lambda: digits("1########")), Role.IDENTIFIER, "G"),
    "MRN": (list(range(60)), Role.IDENTIFIER, "H"),
    "patient_id": (list(range(60)), Role.IDENTIFIER, "H"),
    "member_id": (list(range(60)), Role.IDENTIFIER, "I"),
    "account_number": (list(range(60)), Role.IDENTIFIER, "J"),
    "passport": (many(lambda: digits("P#######")), Role.IDENTIFIER, "K"),
    "license_plate": (many(lambda: digits("AB-###")), Role.IDENTIFIER, "L"),
    "imei": (many(lambda: luhn_number("35", 15)), Role.IDENTIFIER, "M"),
    "website": (["www.example.org"] * 60, Role.IDENTIFIER, "N"),
    "client_ip": (many(lambda: digits("10.0.#.#")), Role.IDENTIFIER, "O"),
    "fingerprint": (["a", "b"] * 30, Role.IDENTIFIER, "P"),
    "photo": (["1.jpg", "2.jpg"] * 30, Role.IDENTIFIER, "Q"),
    "user_id": (list(range(60)), Role.IDENTIFIER, "R"),
    "birth_year": ([1950, 1987] * 30, Role.QUASI, None),
    "year": ([2019, 2020] * 30, Role.UNDECIDED, None),
    "sex": ([1, 2] * 30, Role.QUASI, None),
    "race": ([1, 2, 5] * 20, Role.QUASI, None),
    "education": (["a", "b"] * 30, Role.QUASI, None),
    "workclass": (["a", "b"] * 30, Role.QUASI, None),
    "native-country": (["US", "MX"] * 30, Role.QUASI, None),
    "salary-class": ([">50K", "<=50K"] * 30, Role.SENSITIVE, None),
    "Income": ([1.5, 2.5] * 30, Role.SENSITIVE, None),
    "diagnosis": (["flu", "cold"] * 30, Role.SENSITIVE, None),
    "religion": (["a", "b"] * 30, Role.SENSITIVE, None),
    "sampling_weight": ([100.0, 90.5] * 30, Role.WEIGHT, None),
    "weight": ([1.2, 0.4] * 30, Role.WEIGHT, None),
    "wt": ([1200, 3400] * 30, Role.WEIGHT, None),
    "wt71": ([70.5, 80.0, None] * 20, Role.QUASI, None),
    "Weight": ([150.5, 180.0] * 30, Role.QUASI, None),
    "seqn": ([float(n) for n in range(233, 293)], Role.IDENTIFIER, "R"),
    "black": ([0, 1] * 30, Role.QUASI, None),
    "hisp": (["yes", "no"] * 30, Role.QUASI, None),
    "nonwhite": ([0.0, 1.0] * 30, Role.QUASI, None),
    "nevermarried": ([0, 1] * 30, Role.QUASI, None),
    "divorced": ([False, True] * 30, Role.QUASI, None),
    "catholic": ([0, 1] * 30, Role.SENSITIVE, None),
    "hepatitis": ([0, 1] * 30, Role.SENSITIVE, None),
    "tb": ([0, 1] * 30, Role.SENSITIVE, None),
    "asthma": ([0, 1] * 30, Role.SENSITIVE, None),
    "pepticulcer": ([0, 1] * 30, Role.SENSITIVE, None),
    "price71": ([2.1, 2.2] * 30, Role.UNDECIDED, None),
    "tax82": ([0.9, 1.1] * 30, Role.UNDECIDED, None),
    "income_tax": ([900, 1100] * 30, Role.SENSITIVE, None),
    "pid": ([n // 4 for n in range(200)], Role.IDENTIFIER, "R"),
    "person": ([f"P{n // 4:04d}" for n in range(200)], Role.IDENTIFIER, "R"),
    "patient": ([f"K{n // 4:02d}.1" for n in range(200)], Role.IDENTIFIER, "R"),
    "AFNLWGT": (list(range(1000, 1060)), Role.WEIGHT, None),
    "hhid": ([i // 3 for i in range(60)], Role.HOUSEHOLD, None),
}

HARMLESS = {
    "q7": [1, 2, 3, 4, 5] * 12,
    "color": ["red", "green", "blue"] * 20,
    "reading": [float(x) for x in draw.normal(50, 9, 20).round(1)] * 3,
    "ten_digits_in_few_rows": [6175550100, 6175550101] * 30,
    "five_digits_without_zero": [f"{12345 + i % 7}" for i in range(60)],
    "almost_dates": ["1965-07-31", "none", "none", "none"] * 15,
    "one_among_many": ["x@example.org"] + ["home"] * 59,
    "luhn_by_chance": [f"400000000000000{i % 10}" for i in range(60)],
    "empty": [None] * 60,
    "case": [f"P{n // 4:04d}" for n in range(200)],
}


def proposal_of(name, values):
    [column] = propose(Table(frame=pl.DataFrame({name: pl.Series(values)}))).columns
    return column


@pytest.mark.parametrize("case", BY_CONTENT)
def test_by_content_alone(case):
    values, role, hipaa = BY_CONTENT[case]
    column = proposal_of("c", values)
    assert (column.role, column.finding.hipaa) == (role, hipaa), column.reason


@pytest.mark.parametrize("name", BY_NAME)
def test_by_name(name):
    values, role, hipaa = BY_NAME[name]
    column = proposal_of(name, values)
    assert (column.role, column.finding.hipaa) == (role, hipaa), column.reason


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_unclear_is_undecided_and_says_so(name):
    column = proposal_of(name, HARMLESS[name])
    assert column.role is Role.UNDECIDED
    assert "choose a role" in column.reason


@pytest.mark.parametrize("case", [*BY_CONTENT, *BY_NAME])
def test_no_reason_shows_a_value_and_every_proposal_can_be_used(case):
    values, *_ = BY_CONTENT.get(case) or BY_NAME[case]
    column = proposal_of(case, values)
    if isinstance(values[0], str) and len(values[0]) > 4:
        assert not any(value in column.reason for value in set(values))
    declared = Column(role=column.role, kind=column.kind, hierarchy=column.hierarchy)
    dataset = Data.of(Table(frame=pl.DataFrame({case: pl.Series(values)})), Schema(columns={case: declared}))
    assert dataset.bound_hierarchy(case).gaps(dataset.table.column(case)).is_empty()


def test_all_eighteen_classes_of_hipaa_are_covered():
    named = {hipaa for _, _, hipaa in (*BY_CONTENT.values(), *BY_NAME.values()) if hipaa}
    assert named == set(HIPAA)
    assert len(HIPAA) == 18


def test_hierarchies_follow_the_kind():
    assert proposal_of("zip", many(lambda: digits("941##"))).hierarchy == {"mask": "right"}
    assert proposal_of("dob", ["1965-07-31", "1970-01-02"] * 30).hierarchy == {"dates": ["month", "year", "decade"]}
    assert proposal_of("age", [1, 50, 97] * 20).hierarchy == {"intervals": {"widths": [5, 10, 20], "top": 90}}
    assert proposal_of("height", [150.0 + i for i in range(60)]).hierarchy == {"intervals": [5, 10, 20, 40]}
    assert proposal_of("height", [1.5 + i / 100 for i in range(60)]).hierarchy == {"intervals": [0.05, 0.1, 0.2, 0.4]}
    for detector in DETECTORS:
        hierarchy_from_dict(getattr(detector, "hierarchy", None))


def test_dates_that_cannot_all_be_read_stay_text():
    column = proposal_of("birth_date", ["1965-07-31"] * 59 + ["long ago"])
    assert (column.role, column.kind, column.hierarchy) == (Role.QUASI, Kind.CATEGORY, None)
    assert "some values are not dates" in column.reason


def test_a_word_for_no_answer_does_not_hide_dates_or_numbers():
    born = proposal_of("birth_date", ["1965-07-31"] * 59 + ["unknown"])
    assert (born.kind, born.missing_codes) == (Kind.DATE, ("unknown",))
    weight = proposal_of("Gewicht (kg)", [f"{50 + i},5" for i in range(59)] + ["k.A."])
    assert (weight.role, weight.kind, weight.missing_codes) == (Role.QUASI, Kind.NUMBER, ("k.A.",))
    # among words it may be an answer like others
    assert proposal_of("smoker", ["yes", "no", "unknown"] * 20).missing_codes == ()


def test_amounts_with_commas_and_thousands_are_numbers():
    cost = proposal_of("Kosten €", [f"{i}.{i * 7 % 1000:03d},{i:02d}" for i in range(1, 80)])
    assert (cost.role, cost.kind) == (Role.SENSITIVE, Kind.NUMBER)
    for codes in ([f"0{i}.123" for i in range(10, 90)], [f"491.{i}.567" for i in range(100, 190)]):
        assert proposal_of("c", codes).kind is Kind.CATEGORY


def test_remarks_are_free_text_by_their_name():
    said = ["Pat. wünscht Rückruf", "Allergie", "Angehörige informiert: Tochter Anna"] * 20
    assert proposal_of("Bemerkung", said).role is Role.IDENTIFIER
    assert proposal_of("Bemerkung", ["A", "B"] * 30).role is Role.UNDECIDED
    assert proposal_of("station", said).role is Role.UNDECIDED


def test_what_everybody_in_a_village_shares_is_no_household():
    facts = Facts(name="relat", series=pl.Series([1, 2, 3] * 100), label="Relation to head of household")
    assert all((f := d(facts)) is None or f.detector != "a household number" for d in DETECTORS)


def test_shares_count_values_not_missing_ones():
    column = proposal_of("c", [f"a{i}@example.org" for i in range(30)] + [None] * 500)
    assert column.role is Role.IDENTIFIER
    assert column.missing == pytest.approx(500 / 530)


def test_a_weight_with_a_gap_is_no_weight():
    assert proposal_of("sampling_weight", [1.0, None] * 30).role is Role.UNDECIDED
    assert proposal_of("sampling_weight", [1.0, 0.0] * 30).role is Role.UNDECIDED


def test_the_title_of_a_column_counts_as_its_name():
    facts = Facts(name="v17", series=pl.Series([1, 2] * 30), label="Sex of respondent")
    assert any((f := d(facts)) is not None and f.detector == "sex" for d in DETECTORS)


@pytest.mark.parametrize("codes", [[1, 2, 3], [1.0, 2.0, 3.0]])
def test_codes_are_read_by_their_labels_and_missing_codes_left_out(codes):
    labels = ColumnLabels(value_labels={1: "White", 2: "Black", 3: "Asian", 9: "no answer"}, missing=(9,))
    frame = pl.DataFrame({"v17": pl.Series([*codes, 9] * 20, strict=False)})
    [column] = propose(Table(frame=frame, labels={"v17": labels})).columns
    assert column.finding.detector == "race or ethnic origin"
    assert column.missing == 0.25


@pytest.mark.parametrize(
    ("name", "words"), [("ORI_HID", " ori hid "), ("hhSize2", " hh size 2 "), ("", "  "), ("Größe", " grosse ")]
)
def test_words(name, words):
    assert words_of(name) == words


def test_of_several_weights_the_first_counts():
    frame = pl.DataFrame({"sampling_weight": [1.5, 2.5] * 30, "household_weight": [3.5, 4.5] * 30})
    first, second = propose(Table(frame=frame)).columns
    assert (first.role, second.role) == (Role.WEIGHT, Role.UNDECIDED)
    assert "first" not in first.reason
    assert "`sampling_weight` comes first" in second.reason


def test_every_word_list_has_its_source_and_license() -> None:
    folder = Path(str(files("sfumato.profiling.words")))
    text = (folder / "LICENSES").read_text(encoding="utf-8")
    assert {path.name for path in folder.glob("*.txt")} == set(re.findall(r"\w+\.txt", text))
    assert "Copyright (c) 2012-2016 Dan Wheeler and Dropbox, Inc." in text
    assert "The above copyright notice and this permission notice shall be" in text
