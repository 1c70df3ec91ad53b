"""Summary statistics: exact with a threshold, private with a budget, and the attack on exact ones."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main
from sfumato.dataset import RangeDomain, ValuesDomain
from sfumato.dp import concentrated
from sfumato.ledger import Charge, Ledger
from sfumato.tables import summary_statistics
from sfumato.tables.summary_attack import disclosed_sums
from sfumato.tables.summary_file import SummaryFile
from sfumato.tables.summary_statistics import private_groups, private_regression

JOBS = {"job": ValuesDomain(values=("a", "b", "c"))}
PAY, HOURS = RangeDomain(low=0, high=100), RangeDomain(low=0, high=60)


def staff(rows: int = 400, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    hours = draw.integers(10, 60, rows)
    pay = np.clip(20 + 0.5 * hours + draw.normal(0, 5, rows), 0, 100).round(2)
    return pl.DataFrame({"job": draw.choice(["a", "b", "c"], rows), "hours": hours, "pay": pay})


def receipt(rho: Fraction) -> Any:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(concentrated(rho), dataset="staff")
    return ledger.charge(Charge(loss=concentrated(rho), unit="row", what="q"), dataset="staff", analyst="a")


@pytest.mark.parametrize("kind", ["groups", "regression"])
def test_one_row_changes_the_noisy_sums_by_no_more_than_the_noise_is_made_for(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over extreme and random rows, also out of bounds. The largest change is reached, so less noise would fail."""
    seen: list[tuple[Any, int]] = []

    def keep(sums: Any, *, norm: int, rho: Fraction, receipt: Any) -> Any:
        seen.append((sums, norm))
        return np.ones(sums.shape), 1.0

    monkeypatch.setattr(summary_statistics, "_measured", keep)
    frame, moved = staff(30), []
    draw = np.random.default_rng(2)
    rows = [
        (0.0, 0),
        (100.0, 60),
        (100.0, 0),
        (1e9, -5),
        *((float(p), int(h)) for p, h in draw.integers(0, 60, (40, 2))),
    ]
    for pay, hours in rows:
        more = pl.concat([frame, pl.DataFrame({"job": ["b"], "hours": [hours], "pay": [pay]})])
        seen.clear()
        for table in (frame, more):
            if kind == "groups":
                private_groups(table, "pay", JOBS, PAY, rho=Fraction(1), receipt=None)  # type: ignore[arg-type]
            else:
                private_regression(table, "pay", {"hours": HOURS}, PAY, rho=Fraction(1), receipt=None)  # type: ignore[arg-type]
        (before, norm), (after, _) = seen
        moved.append(int(((after - before).astype(object) ** 2).sum()) / (norm * (1 << 48)))
    assert max(moved) <= 1
    assert max(moved) == 1


def test_private_figures_are_near_the_true_ones_and_use_the_budget() -> None:
    frame, rho = staff(4000), Fraction(2)
    paid = receipt(2 * rho)
    groups = private_groups(frame, "pay", JOBS, PAY, rho=rho, receipt=paid)
    line = {
        figure.name: figure.value
        for figure in private_regression(frame, "pay", {"hours": HOURS}, PAY, rho=rho, receipt=paid)
    }
    assert paid.used.size == 2 * rho
    y = pl.col("pay")
    every = {"count": pl.len(), "total": y.sum(), "mean": y.mean(), "variance": y.var(ddof=0)}
    true = {row["job"]: row for row in frame.group_by("job").agg(**every).iter_rows(named=True)}
    for figure in groups:
        wanted = true[figure.group.removeprefix("job = ")][figure.name]
        assert figure.value is not None
        if figure.deviation is not None:
            assert abs(figure.value - wanted) < 6 * figure.deviation + 0.02 * wanted / 100
        else:
            assert figure.value == pytest.approx(wanted, rel=0.15)
    assert line["hours"] == pytest.approx(0.5, abs=0.05)
    assert line["intercept"] == pytest.approx(20, abs=2)


def test_a_group_lost_in_the_noise_has_no_mean() -> None:
    frame = staff(50).filter(pl.col("job") != "c")
    found = private_groups(
        frame, "pay", {"job": ValuesDomain(values=("c",))}, PAY, rho=Fraction(1, 10**6), receipt=receipt(Fraction(1))
    )
    assert {f.name for f in found if f.value is None} <= {"mean", "variance"}
    assert (
        all(f.value is None or f.name in ("count", "total") for f in found) or found[0].value > 2 * found[0].deviation
    )  # type: ignore[operator]


def mask(*rows: int, size: int = 8) -> Any:
    found = np.zeros(size, dtype=bool)
    found[list(rows)] = True
    return found


def test_the_attack_finds_people_small_differences_and_suppressed_groups() -> None:
    everybody = mask(*range(8))
    safe = disclosed_sums([everybody, mask(0, 1, 2, 3)], threshold=3)
    assert not safe.any
    # All but one: the difference is one person.
    assert disclosed_sums([everybody, mask(*range(7))], threshold=3).people == 1
    # All but two: no person, but a pair below the threshold.
    two = disclosed_sums([everybody, mask(*range(6))], threshold=3)
    assert (two.people, two.cells, two.differences) == (0, 1, 1)
    # Three overlapping groups that determine a person, although no group is part of another.
    ring = [mask(0, 1, 2), mask(2, 3, 4), mask(0, 1, 3, 4)]
    assert disclosed_sums(ring, threshold=3).people == 1
    # A suppressed group is the total less the others.
    assert disclosed_sums([everybody, mask(0, 1, 2, 3, 4)], hidden=[mask(5, 6, 7)], threshold=3).hidden == (True,)
    assert disclosed_sums([everybody], hidden=[mask(5, 6, 7)], threshold=3).hidden == (False,)


def test_a_regressor_that_is_zero_but_for_one_person_discloses_this_person() -> None:
    marker, hours = np.zeros(8), np.arange(8.0)
    marker[3] = 1
    everybody = mask(*range(8))
    assert disclosed_sums([everybody], regressors=[hours], threshold=3).people == 0
    assert disclosed_sums([everybody], regressors=[hours, marker], threshold=3).people == 1


DATA = """
sfumato: 1
dataset: staff
data: staff.csv
unit: row
columns:
  pay: {role: quasi, domain: {low: 0, high: 100}}
  hours: {role: quasi, domain: {low: 0, high: 60}}
  job: {role: quasi, domain: {values: [a, b, c]}}
"""
PLAN = f"""{DATA}
statistics:
  - {{of: pay, by: [job]}}
  - {{of: pay}}
  - {{of: pay, on: [hours]}}
"""


EXACT = "threshold: 5\np_percent: 1\n"


def run(
    folder: Path, text: str, frame: pl.DataFrame, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, dict[str, Any]]:
    frame.write_csv(folder / "staff.csv")
    (folder / "plan.yaml").write_text(text)
    words = ["protect", str(folder / "plan.yaml"), "--out", str(folder / "out"), "--force", "--json"]
    code = main([*words, *more])
    said = capsys.readouterr()
    return code, json.loads(said.out) if code < 2 else {"error": said.err}


def test_the_command_suppresses_small_groups_and_those_that_protect_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.concat([staff(60), pl.DataFrame({"job": ["rare", "rare"], "hours": [20, 30], "pay": [99.0, 98.0]})])
    code, account = run(tmp_path, PLAN + EXACT, frame, capsys)
    assert (code, account["verdicts"][0]["state"], account["suppressed"]) == (0, "holds", 2)
    figures = pl.read_csv(tmp_path / "out" / "statistics.csv")
    assert figures.filter(pl.col("group") == "job = rare")["value"].null_count() == 4
    assert figures["value"].null_count() == 8
    fitted = figures.filter(pl.col("figure") == "hours")["value"][0]
    assert fitted == pytest.approx(np.polyfit(frame["hours"], frame["pay"], 1)[0])


def test_a_plan_that_discloses_somebody_is_not_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = staff(60).with_columns(chief=(pl.int_range(60) == 7).cast(pl.Int64))
    plan = (
        PLAN.replace("[hours]", "[hours, chief]").replace("\n  pay", "\n  chief: {role: quasi, kind: integer}\n  pay")
        + EXACT
    )
    code, account = run(tmp_path, plan, frame, capsys)
    assert (code, account["verdicts"][0]["state"], account["people_disclosed"]) == (1, "fails", 1)
    assert not (tmp_path / "out").exists()
    code, account = run(tmp_path, plan, frame, capsys, "--unmet")
    assert (code, account["verdicts"][0]["state"], account["people_disclosed"]) == (1, "fails", 1)
    assert (tmp_path / "out" / "statistics.csv").is_file()


def test_the_command_charges_a_ledger_and_refuses_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.tables.summary_file._MOST_GROUPS", 3)
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.set_cap(concentrated(1), dataset="staff")
    private = (
        PLAN
        + """
ledger: ledger.db
budget: {rho: 1/2}
"""
    )
    code, account = run(tmp_path, private, staff(), capsys)
    assert (code, account["guarantee"]["rho"], account["guarantee"]["charged"]) == (0, 0.5, True)
    spent = ledger.balance(dataset="staff").spent.size
    assert spent == Fraction(1, 2)
    for bad, message in (
        (private.replace("low: 0, high: 100", "low: 9, high: 9"), "low below high"),
        (private.replace("of: pay, on", "of: nothing, on"), "nothing"),
        (private.replace("rho: 1/2", "rho: -1"), "negative"),
        (private.replace("[a, b, c]", "[]"), "at least 1"),
        (private.replace("domain: {low: 0, high: 60}", "kind: number"), "`low` and `high` of `hours`"),
        (private.replace("high: 100}", "high: .inf}"), "finite"),
        (private.replace("rho: 1/2", "rho: 1/1000000000000000"), "too small"),
        (private.replace("[a, b, c]", "[a, b, c, d]"), "more than 3 groups"),
        (private + "threshold: 5\n", "either"),
    ):
        code, said = run(tmp_path, bad, staff(), capsys)
        assert code == 2
        assert message in said["error"]
    holes = staff().with_columns(pay=pl.when(pl.col("hours") > 50).then(None).otherwise(pl.col("pay")))
    assert ledger.balance(dataset="staff").spent.size == spent
    code, said = run(tmp_path, private, holes, capsys)  # a refusal would tell that somebody's value is missing
    first, second = (one["guarantee"].pop("certificate")["charges"][0] for one in (account, said))
    assert (code, said["guarantee"]) == (0, {**account["guarantee"], "entry": said["guarantee"]["entry"]})
    assert {**first, "entry": second["entry"]} == second


def test_a_third_fits_in_a_third(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.set_cap(concentrated("1/3"), dataset="staff")
    ledger.set_cap(concentrated(1), dataset="people")
    ledger.charge(Charge(loss=concentrated("1/9"), unit="person", what="q"), dataset="people", analyst="ana")
    plan = PLAN + "ledger: ledger.db\nbudget: {rho: 1/3}\n"
    for given in (plan.replace("ledger: ledger.db\n", ""), plan):
        code, account = run(tmp_path, given, staff(), capsys)
        assert (code, account["guarantee"]["rho"]) == (0, pytest.approx(1 / 3))
    assert ledger.balance(dataset="staff").left == concentrated(0)
    code, said = run(tmp_path, plan.replace("dataset: staff", "dataset: people"), staff(), capsys)
    assert (code, "do not add up" in said["error"]) == (2, True)


def test_more_groups_than_the_attack_can_cover_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pl.DataFrame({"job": range(2100), "hours": 1, "pay": 1.0})
    code, said = run(tmp_path, PLAN + EXACT, frame, capsys)
    assert (code, "at most 2,000 groups" in said["error"]) == (2, True)


def test_the_plan_is_exported() -> None:
    from sfumato import tables

    assert tables.SummaryFile is SummaryFile


def test_declared_values_of_another_type_are_not_mistaken() -> None:
    """1.5 is not 1, and a text in a column of numbers is no error; rows with other values are left out."""
    frame = pl.DataFrame({"job": [1, 1, 2], "pay": [10.0, 20.0, 30.0]})
    found = private_groups(
        frame,
        "pay",
        {"job": ValuesDomain(values=(1.5, "x", "2"))},
        PAY,
        rho=Fraction(10**6),
        receipt=receipt(Fraction(10**6)),
    )
    counts = [figure.value for figure in found if figure.name == "count"]
    assert counts == pytest.approx([0, 0, 1], abs=0.1)


BY_JOB = DATA + "statistics: [{of: pay, by: [job]}]\nthreshold: 10\n"
OTHERS = [*range(20, 40)]


def shown(folder: Path, group: str) -> int:
    """The number of published figures of a group."""
    return pl.read_csv(folder / "out" / "statistics.csv").filter(group=group)["value"].drop_nulls().len()


@pytest.mark.parametrize(
    ("job_a", "job_b", "published"),
    [
        ([1] * 12, [0, 1] * 20, False),  # 12 of 12
        ([0] * 12, [0, 1] * 20, False),  # none of 12
        ([1] * 11 + [0], [0, 1] * 20, False),  # the one who is not knows about all others
        ([1] * 12 + [0] * 9, [0, 1] * 20, False),  # nine are fewer than the threshold
        ([1] * 12 + [0] * 10, [0, 1] * 20, True),
        ([7.5] * 12, OTHERS, False),  # variance 0
        ([7.5] * 11 + [30], OTHERS, False),  # variance 0 for the one who has 30
        ([10] * 11 + [1_000_000], OTHERS, False),
        ([10, 12] * 6 + [1_000_000], OTHERS, False),  # the p % rule
        ([4] * 50 + [5] * 50 + [100], OTHERS, False),  # the total hides 100, the variance does not
        ([4] * 50 + [5] * 50, OTHERS, True),
    ],
)
def test_a_group_that_tells_the_values_of_its_people_is_suppressed(
    job_a: list[float], job_b: list[float], published: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.DataFrame({"job": ["a"] * len(job_a) + ["b"] * len(job_b), "pay": [*map(float, job_a), *job_b]})
    code, account = run(tmp_path, BY_JOB + "p_percent: 10\n", frame, capsys)
    assert (code, account["suppressed"]) == (0, 0 if published else 1)
    assert (shown(tmp_path, "job = a"), shown(tmp_path, "job = b")) == (4 if published else 0, 4)


def test_amounts_without_a_rule_about_dominance_are_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.DataFrame({"job": ["a"] * 12 + ["b"] * 20, "pay": [*range(5, 16), 90, *OTHERS]})
    code, account = run(tmp_path, BY_JOB, frame, capsys)
    assert (code, account["verdicts"][0]["state"]) == (1, "not checked")
    assert not (tmp_path / "out").exists()
    for rule, groups in (("p_percent: 10", 1), ("dominance: [1, 40]", 1), ("dominance: [1, 60]", 2)):
        code, account = run(tmp_path, f"{BY_JOB}{rule}\n", frame, capsys)
        assert (code, account["groups"]) == (0, groups)
    # A column of two values needs none: the threshold holds for the frequencies.
    two = frame.with_columns(pay=pl.int_range(32) % 2)
    assert run(tmp_path, BY_JOB.replace("10", "5"), two, capsys)[0] == 0


def test_people_are_counted_and_not_their_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twelve rows of two people are two people."""
    frame = pl.DataFrame({"who": [n % 2 for n in range(12)] + [*range(2, 22)], "job": ["a"] * 12 + ["b"] * 20,
                          "pay": [*range(5, 17), *OTHERS]})  # fmt: skip
    plan = BY_JOB + "p_percent: 10\n"
    assert run(tmp_path, plan, frame, capsys)[1]["suppressed"] == 0
    by_person = plan.replace("unit: row", "unit: who").replace("\n  pay", "\n  who: {role: identifier}\n  pay")
    assert run(tmp_path, by_person, frame, capsys)[1]["suppressed"] == 1
    code, said = run(tmp_path, plan.replace("unit: row\n", ""), frame, capsys)
    assert (code, "whose privacy" in said["error"]) == (2, True)
    private = by_person.split("threshold")[0] + "budget: {rho: 1}\n"
    code, said = run(tmp_path, private, frame, capsys)
    assert (code, "bounds" in said["error"]) == (2, True)
    code, said = run(tmp_path, private + "bounds: {rows: 6}\n", frame, capsys)
    assert (code, said["guarantee"]["rho"], said["guarantee"]["unit"], said["guarantee"]["max_rows"]) == (
        0,
        1,
        "who",
        6,
    )


@pytest.mark.parametrize("several", [False, True])
def test_a_leverage_point_is_not_fitted(several: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One person is far away from all others, so that the line passes through the own value."""
    frame = staff(60)
    far = pl.DataFrame({"job": ["a"], "hours": [100_000], "pay": [77.0]})
    with_far = pl.concat([frame, *[far] * (2 if several else 1)])
    line = np.polyfit(with_far["hours"], with_far["pay"], 1)
    assert np.polyval(line, 100_000) == pytest.approx(77, abs=0.1)
    with_far = with_far.with_columns(who=pl.Series([*range(60), *[60] * (2 if several else 1)]))
    plan = DATA.replace("unit: row", "unit: who").replace("\n  pay", "\n  who: {role: identifier}\n  pay")
    plan += "statistics: [{of: pay, on: [hours]}]\np_percent: 1\nthreshold: 10\n"
    code, account = run(tmp_path, plan, with_far, capsys)
    assert (code, account["verdicts"][0]["state"], account["people_disclosed"]) == (1, "fails", 1)
    code, account = run(tmp_path, plan, with_far.head(60), capsys)
    assert (code, account["people_disclosed"]) == (0, 0)


def test_a_person_who_is_a_group_does_not_calculate_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two jobs with one person each: their sum is the total less the others, so a third job is suppressed."""
    frame = pl.concat([staff(60), pl.DataFrame({"job": ["r", "s"], "hours": [20, 30], "pay": [50.0, 48.0]})])
    plan = PLAN.replace("  - {of: pay, on: [hours]}\n", "") + EXACT
    code, account = run(tmp_path, plan, frame, capsys)
    assert (code, account["verdicts"][0]["state"], account["suppressed"]) == (0, "holds", 3)


def test_what_people_calculate_is_what_the_rank_says() -> None:
    """Random groups: a suppressed group is known to a person if its indicator adds nothing to the rank of the groups
    and the own rows."""
    draw, seen = np.random.default_rng(5), {True: 0, False: 0}
    for _ in range(150):
        groups = [m for m in draw.random((3, 6)) < 0.6 if m.any()]
        hidden = draw.random(6) < 0.5
        units = draw.integers(0, 5, 6)
        if not groups or not hidden.any():
            continue
        known = False
        for person in (-1, *np.unique(units)):
            own = np.eye(6)[units == person]
            equations = np.vstack([*np.array(groups, dtype=float), *own])
            more = np.vstack([equations, hidden])
            if not set(np.flatnonzero(hidden)) <= set(np.flatnonzero(units == person)):
                known |= bool(np.linalg.matrix_rank(more) == np.linalg.matrix_rank(equations))
        assert disclosed_sums(groups, hidden=[hidden], units=units, threshold=2).hidden == (known,)
        seen[known] += 1
    assert min(seen.values()) > 20
