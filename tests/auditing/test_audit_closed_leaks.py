"""What an outsider tried against the auditor and got through with once: each way is closed and stays closed."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import sfumato
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.query_log import read_log
from sfumato.auditing.rules import AuditRules
from sfumato.dataset import RangeDomain, ValuesDomain
from sfumato.dataset.document import Dataset
from sfumato.errors import AnswerDenied, BadParameter, MetadataMissing
from sfumato.query.open_session import open_session
from sfumato.query.session import Session

TABLE = pl.DataFrame(
    {"name": ["ann", "bob", "cyd", "dan"], "age": [20, 30, 40, 50], "flu": [1, 1, 0, 0], "wage": [10, 20, 30, 40]}
)


DOMAINS = {"flu": ValuesDomain(values=(0, 1)), "wage": RangeDomain(low=0, high=100)}


def desk(**rules: Any) -> Auditor:
    both = AuditRules(k=2, independent=("flu", "wage"), **rules)
    return Auditor(TABLE, secrets=["flu", "wage"], rules=both, domains=DOMAINS)


@pytest.mark.parametrize(
    "condition",
    ["COLUMNS('wage') > 25", "COLUMNS('w.*') > 25", "#4 > 25", "random() < 0.5", "list_contains([30], wage)",
     "CASE WHEN wage > 25 THEN age > 25 END", "current_date > DATE '2000-01-01'",
     "EXISTS (SELECT 1 FROM asked WHERE wage > 25)", "name SIMILAR TO 'c.*'"],
)  # fmt: skip
def test_a_condition_names_its_columns_and_nothing_else(condition: str) -> None:
    """COLUMNS('wage') is a column that no check by name sees: one count told whether somebody earns more than 25."""
    for item in ("COUNT(*)", "SUM(wage)", "flu"):
        made = desk().ask(f"SELECT {item} FROM t WHERE {condition} AND name = 'cyd'")
        assert made.verdict == "refused"
        assert made.answer is None


def test_plain_conditions_are_still_read() -> None:
    for condition in ("age > 25 AND NOT name = 'bob'", "age BETWEEN 20 AND 50", "name LIKE '%n' OR age IN (30, 40)",
                      "age IS NOT NULL", "age * 2 - 1 > 40", "CAST(age AS VARCHAR) = '20'",
                      "len(name) = 3"):  # fmt: skip
        assert desk().ask(f"SELECT COUNT(*) FROM t WHERE {condition}").verdict == "answered"


@pytest.mark.parametrize("item", ["SUM(flu)", "AVG(flu)", "flu"])
@pytest.mark.parametrize("condition", ["age < 35", "age > 35"])
def test_a_total_of_yes_and_no_tells_on_nobody(item: str, condition: str) -> None:
    """Both have it, or neither: as a sum of real numbers 2 fixes nobody, as a number of cases it fixes both."""
    assert desk().ask(f"SELECT {item} FROM t WHERE {condition}").verdict == "refused"


def test_extremes_of_yes_and_no() -> None:
    """That one of two has it leaves both open; that none of them lacks it does not."""
    assert desk().ask("SELECT MAX(flu) FROM t WHERE age < 35").answer == 1
    assert desk().ask("SELECT MIN(flu) FROM t WHERE age < 35").verdict == "refused"
    assert desk().ask("SELECT MIN(flu) FROM t WHERE age > 35").answer == 0
    assert desk().ask("SELECT MAX(flu) FROM t WHERE age > 35").verdict == "refused"


def test_totals_of_yes_and_no_are_answered_where_they_may_be() -> None:
    asked = desk()
    assert asked.ask("SELECT SUM(flu) FROM t WHERE age > 25").answer == 1
    assert asked.ask("SELECT AVG(flu) FROM t WHERE age > 25").answer == pytest.approx(1 / 3)
    assert asked.ask("SELECT COUNT(*) FROM t WHERE age > 25 AND flu = 1").answer == 1
    assert asked.ask("SELECT SUM(flu) FROM t WHERE age > 35").verdict == "refused"  # bob would be known to have it
    assert asked.ask("SELECT SUM(wage) FROM t WHERE age > 25").answer == 90


@pytest.mark.parametrize("seed", range(40))
def test_no_sequence_about_yes_and_no_leaves_one_possibility(seed: int) -> None:
    """Against every world there is: sums, means, counts and lists of a yes/no column, in any order."""
    draw = Random(seed)
    people = draw.randint(2, 6)
    truth = [draw.randint(0, 1) for _ in range(people)]
    truth[:2] = [0, 1]
    frame = pl.DataFrame({"id": range(people), "has": truth})
    asked = Auditor(frame, secrets=["has"], rules=AuditRules(k=2), domains={"has": RangeDomain(low=0, high=1)})
    worlds = list(product((0, 1), repeat=people))
    for _ in range(8):
        chosen = draw.sample(range(people), draw.randint(1, people))
        item = draw.choice(["SUM(has)", "AVG(has)", "has", "COUNT(*)", "MAX(has)"])
        extra = " AND has = 1" if item == "COUNT(*)" else ""
        made = asked.ask(f"SELECT {item} FROM t WHERE id IN ({', '.join(map(str, chosen))}){extra}")
        if made.verdict == "refused":
            continue
        cases = sum(truth[i] for i in chosen)
        told = {"AVG(has)": cases / len(chosen), "has": sorted(truth[i] for i in chosen), "MAX(has)": int(cases > 0)}
        assert made.answer == told.get(item, cases)
        fold = max if item == "MAX(has)" else sum
        worlds = [world for world in worlds if fold(world[i] for i in chosen) == fold(truth[i] for i in chosen)]
        assert all(len({world[i] for world in worlds}) == 2 for i in range(people))


@pytest.mark.parametrize("values", [[1.5, float("nan"), 2.0, 2.0], [1.5, None, 2.0, 2.0], [1.0, 0.0, 1.0, 1.0],
                                    [float("inf"), 1.0, 2.0, 2.0], [5, 5, 5, 5], [None] * 4, [True, False, True, True],
                                    ["a", "b", "b", None]])  # fmt: skip
def test_whatever_the_column_holds_a_question_is_decided(values: list[Any]) -> None:
    frame = pl.DataFrame({"id": range(4), "s": values})
    for item in ("s", "SUM(s)", "AVG(s)", "MAX(s)", "COUNT(*)"):
        made = Auditor(frame, secrets=["s"], rules=AuditRules(k=2)).ask(f"SELECT {item} FROM t WHERE id < 3")
        assert made.verdict in ("answered", "refused")


def test_sums_of_fractions_are_still_told() -> None:
    frame = pl.DataFrame({"id": range(3), "s": [0.5, 1.0, 0.25]})
    halves = {"s": RangeDomain(low=0, high=90, step=0.25)}
    made = Auditor(frame, secrets=["s"], rules=AuditRules(k=2), domains=halves).ask("SELECT SUM(s) FROM t")
    assert made.answer == 1.75
    real = {"s": RangeDomain(low=0, high=90)}  # without a step it is not known how much a sum leaves open
    assert (
        "no declared domain"
        in Auditor(frame, secrets=["s"], rules=AuditRules(k=2), domains=real).ask("SELECT SUM(s) FROM t").reason
    )


def test_lists_are_no_secret_values() -> None:
    with pytest.raises(BadParameter, match="lists"):
        Auditor(pl.DataFrame({"s": [[1]]}), secrets=["s"], rules=AuditRules(k=2))


def test_a_log_is_read_as_it_was_written() -> None:
    """Two blanks within a name became one, so that the replay was about other people than the question had been."""
    one = "SELECT flu FROM t WHERE name = 'a  b'\nSELECT   SUM(wage)  FROM t\n# a remark\n"
    assert list(read_log(one)) == ["SELECT flu FROM t WHERE name = 'a  b'", "SELECT SUM(wage) FROM t"]
    two = "SELECT flu\nFROM t WHERE name = 'x;  y''z' ;\n-- a remark\nSELECT COUNT(*) FROM t;"
    assert list(read_log(two)) == ["SELECT flu FROM t WHERE name = 'x;  y''z'", "SELECT COUNT(*) FROM t"]
    assert list(read_log("SELECT 'unclosed ; FROM t")) == ["SELECT 'unclosed", "FROM t"]


WAGES = """
sfumato: 1
dataset: w
ledger: ledger.db
answering: {policy: {audit: {k: 2}}}
person: row
tables:
  t:
    data: w.csv
    columns:
      id:   {kind: integer}
      wage: {kind: number, role: sensitive, domain: {low: 0, high: 100, step: 0.5}}
"""


def test_declared_bounds_count_behind_the_front(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("id,wage\n0,0\n1,0\n2,50\n3,70\n")
    (tmp_path / "w.yaml").write_text(WAGES)
    session = open_session(Dataset.load(tmp_path / "w.yaml"), analyst="ann")
    with pytest.raises(AnswerDenied, match="fewer than 2 values"):
        session.ask("SELECT SUM(wage) FROM t WHERE id < 2")
    assert session.ask("SELECT SUM(wage) FROM t WHERE id > 0").value == 120


def test_bounds_that_do_not_hold_are_refused_when_the_desk_opens(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("id,wage\n0,0\n1,0\n2,50\n3,170\n")
    (tmp_path / "w.yaml").write_text(WAGES)
    with pytest.raises(MetadataMissing, match="bounds") as caught:
        open_session(Dataset.load(tmp_path / "w.yaml"), analyst="ann")
    assert "170" not in str(caught.value)


def wages(folder: Path, numbers: list[Any], declared: str, policy: str = "{k: 2}") -> Session:
    (folder / "w.csv").write_text("\n".join(["id,wage", *(f"{i},{n}" for i, n in enumerate(numbers))]) + "\n")
    column = f"wage: {{{declared}, role: sensitive}}"
    text = WAGES.replace("{audit: {k: 2}}", f"{{audit: {policy}}}")
    (folder / "w.yaml").write_text(re.sub(r"wage: \{.*", column, text))
    return sfumato.session(folder / "w.yaml")


LISTED = "kind: integer, domain: {values: [0, 10, 25]}"
WHOLE, CENTS = "kind: integer, domain: {low: 0, high: 100}", "kind: number, domain: {low: 0, high: 5000, step: 0.01}"
LOW = [0, 0, 0, 31.5, 44.25, 99]


@pytest.mark.parametrize(
    ("numbers", "declared", "policy", "asked"),
    [
        ([10, 10, 0, 25], LISTED, "{k: 2}", ["SUM(wage) 2"]),
        ([50, 51, 50, 7, 93], WHOLE, "{k: 5}", ["MAX(wage) 3", "MIN(wage) 3"]),
        (LOW, CENTS, "{k: 2}", ["SUM(wage) 3"]),
        (LOW, CENTS, "{k: 2}", ["MAX(wage) 3"]),
        ([0.01, 0, 0, 31.5], CENTS, "{k: 3}", ["SUM(wage) 3"]),
        ([0, 0, 0, 31, 44], WHOLE, "{k: 2, simulatable: true}", ["SUM(wage) 3"]),
        ([31, 44, 7, 0, 2], WHOLE, "{k: 2, simulatable: true}", ["SUM(wage) 3"]),
        ([31, 44, 7, 0, 2], "kind: integer", "{k: 2, simulatable: true}", ["wage 3"]),
        ([0, 0, 0, 31, 44], "kind: integer", "{k: 2}", ["SUM(wage) 3"]),
        ([0, 0, 0, 31, 44], "kind: integer", "{k: 2}", ["MAX(wage) 3"]),
        (LOW, "kind: number, domain: {low: 0, high: 5000}", "{k: 2}", ["AVG(wage) 3"]),
        ([1000, 1000, 5000, 8000], "kind: integer, domain: {low: 0, high: 90000, step: 1000}", "{k: 4}",
         ["SUM(wage) 2"]),
    ],
)  # fmt: skip
def test_what_the_declared_numbers_give_away_is_refused(
    tmp_path: Path, numbers: list[Any], declared: str, policy: str, asked: list[str]
) -> None:
    """The last question of each sequence would leave somebody fewer than k of the possible numbers."""
    session = wages(tmp_path, numbers, declared, policy)
    for text in asked[:-1]:
        item, people = text.split()
        assert session.ask(f"SELECT {item} FROM t WHERE id < {people}").value is not None
    item, people = asked[-1].split()
    with pytest.raises(AnswerDenied, match=r"fewer than|no declared|not decided"):
        session.ask(f"SELECT {item} FROM t WHERE id < {people}")
