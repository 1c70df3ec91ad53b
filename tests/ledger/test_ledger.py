"""The ledger: caps hold exactly, crashes cost budget, tampering shows."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest

from postgres import empty_postgres
from sfumato.dp.loss import PrivacyMeasure, approximate, concentrated, pure
from sfumato.errors import (
    AccountMoved,
    FileMissing,
    LedgerBroken,
    NotComparable,
    OverBudget,
    UnitsDiffer,
    UnknownBudget,
    WriteFailed,
)
from sfumato.ledger.charge import Charge
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SqliteStore


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "sqlite":
        return Ledger.open(tmp_path / "ledger.db")
    url = request.getfixturevalue("postgresql")
    empty_postgres(url)
    return Ledger.open(url)


def spend(ledger: Ledger, cost: object, *, dataset: str = "flu", analyst: str = "ana") -> None:
    ledger.charge(Charge(loss=cost, unit="row", what="q"), dataset=dataset, analyst=analyst)  # type: ignore[arg-type]


def test_no_cap_no_answer(ledger: Ledger) -> None:
    with pytest.raises(UnknownBudget):
        spend(ledger, pure("1e-9"))
    assert list(ledger.entries()) == []


def test_three_thirds_fill_a_budget_of_one(ledger: Ledger) -> None:
    ledger.set_cap(pure(1), dataset="flu")
    for _ in range(3):
        spend(ledger, pure("1/3"))
    with pytest.raises(OverBudget) as refusal:
        spend(ledger, pure("1e-30"))
    assert refusal.value.facts["remaining"].size == 0
    assert ledger.balance(dataset="flu").left == refusal.value.facts["remaining"]
    ledger.verify()


def test_a_refusal_shows_enough_digits_to_tell_cost_and_rest_apart(ledger: Ledger) -> None:
    ledger.set_cap(concentrated("1/3"), dataset="flu")
    with pytest.raises(OverBudget, match=r"costs ρ = 0\.333333334, and .* has ρ = 0\.333333333 left"):
        spend(ledger, concentrated(Fraction(1, 3) + Fraction(1, 10**9)))


def test_totals_with_denominators_of_many_digits_are_rounded_up(ledger: Ledger) -> None:
    """Sums of fractions with ever new primes would grow without end; the total is at least the sum."""
    ledger.set_cap(pure(100), dataset="flu")
    primes = [p for p in range(10**6, 10**6 + 400) if all(p % d for d in range(2, 1001))]
    for prime in primes:
        spend(ledger, pure(Fraction(1, prime)))
    spent, exact = ledger.balance(dataset="flu").spent.size, sum(Fraction(1, prime) for prime in primes)
    assert exact <= spent <= exact + Fraction(len(primes), 2**127)
    assert spent.denominator < exact.denominator
    ledger.verify()


def test_a_data_set_has_one_privacy_unit(ledger: Ledger) -> None:
    ledger.set_cap(pure(2), dataset="flu")
    ledger.set_cap(pure(2), dataset="cold")
    ledger.charge(Charge(loss=pure("0.1"), unit="id, patient", what="q"), dataset="flu", analyst="ana")
    ledger.charge(Charge(loss=pure("0.1"), unit="patient", what="q"), dataset="flu", analyst="bob")
    ledger.charge(Charge(loss=pure("0.1"), unit="row", what="q"), dataset="cold", analyst="bob")
    for other in ("row", "household", "edge"):
        with pytest.raises(UnitsDiffer, match="do not add up"):
            ledger.charge(Charge(loss=pure("0.1"), unit=other, what="q"), dataset="flu", analyst="ana")
    assert ledger.balance(dataset="flu").spent == pure("0.2")
    ledger.verify()


def test_an_account_that_moved_is_closed(ledger: Ledger) -> None:
    ledger.set_cap(pure(2), dataset="flu")
    closed = ledger.move(dataset="flu", to="elsewhere")
    assert ledger.move(dataset="flu", to="elsewhere") == closed
    for change in (
        lambda: spend(ledger, pure("0.1")),
        lambda: ledger.set_cap(pure(3), dataset="flu"),
        lambda: ledger.move(dataset="flu", to="a third place"),
    ):
        with pytest.raises(AccountMoved, match="moved to elsewhere"):
            change()
    ledger.verify()


def test_the_data_set_counts_everyone(ledger: Ledger) -> None:
    ledger.set_cap(pure(1), dataset="flu")
    ledger.set_cap(pure("0.6"), dataset="flu", analyst="ana")
    ledger.set_cap(pure("0.6"), dataset="flu", analyst="bob")
    spend(ledger, pure("0.6"), analyst="ana")
    with pytest.raises(OverBudget, match="your budget on this data set"):
        spend(ledger, pure("0.1"), analyst="ana")
    with pytest.raises(OverBudget, match="the data set's budget"):
        spend(ledger, pure("0.5"), analyst="bob")
    spend(ledger, pure("0.4"), analyst="bob")


def test_an_analyst_has_one_budget_over_all_data_sets(ledger: Ledger) -> None:
    for name in ("flu", "cold"):
        ledger.set_cap(pure(5), dataset=name)
    ledger.set_cap(pure(1), analyst="ana")
    spend(ledger, pure("0.7"), dataset="flu")
    with pytest.raises(OverBudget, match="over all data sets"):
        spend(ledger, pure("0.4"), dataset="cold")
    spend(ledger, pure("0.3"), dataset="cold")
    assert ledger.balance(analyst="ana").left == pure(0)


def test_delta_is_capped_too(ledger: Ledger) -> None:
    ledger.set_cap(approximate(10, "1e-6"), dataset="flu")
    spend(ledger, approximate(1, "6e-7"))
    with pytest.raises(OverBudget):
        spend(ledger, approximate(1, "6e-7"))


def test_budgets_in_rho_take_pure_costs(ledger: Ledger) -> None:
    ledger.set_cap(concentrated(1), dataset="flu")
    spend(ledger, pure(1))
    assert ledger.balance(dataset="flu").spent == concentrated("1/2")
    with pytest.raises(OverBudget):
        spend(ledger, concentrated("0.6"))


def test_an_account_takes_charges_in_every_measure(ledger: Ledger) -> None:
    """An analyst who was charged in rho on one data set is charged in epsilon on another, and the owner in all."""
    ledger.set_cap(concentrated(1), dataset="flu")
    ledger.set_cap(pure(1), dataset="cold")
    ledger.set_cap(approximate(8, "1e-6"), dataset="pox")
    for analyst in ("ana", "owner"):
        spend(ledger, concentrated("0.1"), dataset="flu", analyst=analyst)
        spend(ledger, pure("0.1"), dataset="cold", analyst=analyst)
        spend(ledger, approximate("0.5", "1e-7"), dataset="pox", analyst=analyst)
        spend(ledger, concentrated("0.01"), dataset="pox", analyst=analyst)
        assert ledger.balance(analyst=analyst).spent.measure is PrivacyMeasure.RHO
    ledger.set_cap(concentrated(1, "1e-6"), analyst="ana")
    assert ledger.balance(analyst="ana").spent == concentrated("0.24", "1e-7")  # 0.1 + 0.01 + 0.1²/2 + 0.5²/2
    with pytest.raises(NotComparable, match="without a δ"):
        spend(ledger, concentrated("0.1"), dataset="cold")
    ledger.verify()


def test_each_unit_of_a_data_set_has_an_account_of_its_own(ledger: Ledger) -> None:
    ledger.set_cap(pure(1), dataset="flu")
    ledger.set_cap(pure("0.3"), dataset="flu", unit="edge")

    def charge(unit: str, size: str) -> None:
        ledger.charge(Charge(loss=pure(size), unit=unit, what="q"), dataset="flu", analyst="ana")

    charge("edge", "0.2")  # first, and still not the unit of the data set's own budget
    charge("patient", "0.5")
    charge("patient, id", "0.1")
    with pytest.raises(OverBudget):
        charge("edge", "0.2")
    with pytest.raises(UnitsDiffer, match="--unit"):
        charge("household", "0.1")
    assert ledger.units("flu") == ("patient", "edge")
    assert ledger.balance(dataset="flu").spent == pure("0.6")
    assert ledger.balance(dataset="flu", unit="edge").left == pure("0.1")
    assert ledger.balance(dataset="flu", analyst="ana", unit="edge").spent == pure("0.2")
    assert ledger.balance(analyst="ana").spent == pure("0.8")
    ledger.set_cap(pure(2), dataset="flu", unit="patient")  # the unit that the data set is charged for
    assert ledger.balance(dataset="flu").cap == pure(2)
    ledger.verify()


def test_a_lower_cap_does_not_forget(ledger: Ledger) -> None:
    ledger.set_cap(pure(1), dataset="flu")
    spend(ledger, pure("0.8"))
    ledger.set_cap(pure("0.5"), dataset="flu")
    with pytest.raises(OverBudget):
        spend(ledger, pure("0.1"))
    assert ledger.balance(dataset="flu").left == pure(0)
    ledger.set_cap(pure(1), dataset="flu")
    spend(ledger, pure("0.2"))
    with pytest.raises(OverBudget):
        spend(ledger, pure("1e-9"))


def test_answers_are_kept_once(ledger: Ledger) -> None:
    assert ledger.recall("some question") is None
    assert ledger.remember("some question", "[1]") == "[1]"
    assert ledger.remember("some question", "[2]") == "[1]"
    assert ledger.recall("some question") == "[1]"


def test_receipt_covers_what_was_charged(ledger: Ledger) -> None:
    ledger.set_cap(pure(1), dataset="flu")
    receipt = ledger.charge(Charge(loss=pure("0.25"), unit="row", what="q"), dataset="flu", analyst="ana")
    assert receipt.covers == pure("0.25")
    assert [entry.kind for entry in ledger.entries()] == ["cap", "spend"]


def test_chain_holds_and_gives_its_last_hash(ledger: Ledger) -> None:
    ledger.set_cap(pure(1), dataset="flu")
    first = ledger.verify()
    for _ in range(5):
        spend(ledger, pure("0.1"))
    last = ledger.verify(last=first)
    assert last == list(ledger.entries())[-1].hash
    with pytest.raises(LedgerBroken):
        ledger.verify(last="f" * 64)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE sfumato_ledger SET size = '1/9' WHERE number = 3",
        "UPDATE sfumato_ledger SET analyst = 'bob' WHERE number = 3",
        "UPDATE sfumato_ledger SET totals = '[[1,0],[1,0],[1,0]]' WHERE number = 6",
        "DELETE FROM sfumato_ledger WHERE number = 4",
    ],
)
def test_tampering_is_refused_and_shows(tmp_path: Path, tampering: str) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger.open(path)
    ledger.set_cap(pure(1), dataset="flu")
    for _ in range(5):
        spend(ledger, pure("0.1"))
    outside = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        outside.execute(tampering)
    outside.execute("DROP TRIGGER sfumato_ledger_keep")
    outside.execute("DROP TRIGGER sfumato_ledger_stay")
    outside.execute(tampering)
    with pytest.raises(LedgerBroken):
        ledger.verify()


def test_cutting_off_the_end_shows_against_a_noted_hash(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger.open(path)
    ledger.set_cap(pure(1), dataset="flu")
    spend(ledger, pure("0.1"))
    noted = ledger.verify()
    outside = sqlite3.connect(path, isolation_level=None)
    outside.execute("DROP TRIGGER sfumato_ledger_stay")
    outside.execute("DELETE FROM sfumato_ledger WHERE number = 2")
    ledger.verify()
    with pytest.raises(LedgerBroken):
        ledger.verify(last=noted)


def test_two_hundred_at_once_never_pass_the_cap(ledger: Ledger, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """200 reservations from 20 threads, each with a connection of its own, of 1/150 each: exactly 150 fit."""
    ledger.set_cap(pure(1), dataset="flu")
    on_sqlite = "sqlite" in request.node.callspec.id
    where = tmp_path / "ledger.db" if on_sqlite else request.getfixturevalue("postgresql")
    done: list[bool] = []

    def work() -> None:
        own = Ledger.open(where)
        for _ in range(10):
            try:
                spend(own, pure("1/150"), analyst=threading.current_thread().name)
                done.append(True)
            except OverBudget:
                done.append(False)

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 200
    assert sum(done) == 150
    assert sum(entry.cost().size for entry in ledger.entries() if entry.kind == "spend") == 1
    ledger.verify()


_VICTIM = """
import sys
from sfumato.ledger import Charge, Ledger
from sfumato.dp.loss import pure
ledger = Ledger.open(sys.argv[1])
while True:
    receipt = ledger.charge(Charge(loss=pure("1/1000"), unit="row", what="q"), dataset="flu", analyst="ana")
    print(receipt.entry, flush=True)  # an answer could be given from here on
"""


def test_kill_never_gives_a_free_answer(tmp_path: Path) -> None:
    """Killed at 12 different moments: every receipt that was seen is in the ledger, whose chain still holds."""
    path = tmp_path / "ledger.db"
    ledger = Ledger.open(path)
    ledger.set_cap(pure(10**6), dataset="flu")
    seen: set[int] = set()
    for trial in range(12):
        victim = subprocess.Popen(
            [sys.executable, "-c", _VICTIM, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert victim.stdout is not None
        seen.add(int(victim.stdout.readline()))
        time.sleep(0.003 * trial)
        victim.kill()
        rest, _ = victim.communicate()
        seen |= {int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")}
    written = {entry.number for entry in ledger.entries() if entry.kind == "spend"}
    assert len(seen) >= 12
    assert seen <= written
    assert ledger.balance(dataset="flu").spent == pure(Fraction(len(written), 1000))
    ledger.verify()


def test_a_locked_ledger_gives_no_receipt(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(SqliteStore(path, timeout=0.05))
    ledger.set_cap(pure(1), dataset="flu")
    outside = sqlite3.connect(path, isolation_level=None)
    outside.execute("BEGIN IMMEDIATE")
    with pytest.raises(WriteFailed, match="nothing was charged"):
        spend(ledger, pure("0.1"))
    outside.execute("ROLLBACK")
    assert ledger.balance(dataset="flu").spent == pure(0)
    spend(ledger, pure("0.1"))


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("dear reader, this is not a database at all, but it is long enough to be taken for one" * 20)
    with pytest.raises(FileMissing):
        Ledger.open(path)
    with pytest.raises(FileMissing):
        Ledger.open(tmp_path / "no" / "folder" / "ledger.db")
