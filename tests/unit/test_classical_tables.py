"""Classical tables: primary and secondary suppression, the interval attack, controlled rounding.

Worked examples: the table of investments by activity and region of Fischetti and Salazar (2001),
doi:10.1287/mnsc.47.7.1008.9805, and the sensitivity rules of Hundepool et al. (2012), doi:10.1002/9781118348239.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main
from sfumato.errors import BadParameter, HierarchyNotNested, NotApplicable
from sfumato.release import State
from sfumato.tables.cells import TableCells, tabulate
from sfumato.tables.controlled_rounding import round_table
from sfumato.tables.interval_audit import PublishedTable, combine, interval_attack
from sfumato.tables.sensitivity import ProtectionLevels, SensitivityRules
from sfumato.tables.suppression import SuppressedTable, suppress


def investments() -> TableCells:
    """Three activities by three regions, as one contributor per cell."""
    rows = {"I": (20, 50, 10), "II": (8, 19, 22), "III": (17, 32, 12)}
    frame = pl.DataFrame(
        [(a, r, v) for a, line in rows.items() for r, v in zip("ABC", line, strict=True)],
        schema=["activity", "region", "amount"],
        orient="row",
    )
    return tabulate(frame, [["activity", "region"]], value="amount")


def at(cells: TableCells, **place: str) -> int:
    return cells.index[tuple(sorted(place.items()))]


def town(seed: int, rows: int = 60, values: int = 3) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    shares = [0.7, *[0.3 / (values - 1)] * (values - 1)]
    return pl.DataFrame(
        {
            "county": draw.choice(["x", "y"], rows),
            "job": draw.choice([f"j{n}" for n in range(values)], rows, p=shares),
            "sex": draw.choice(["F", "M"], rows),
            "pay": np.round(draw.lognormal(3, 1, rows), 1),
        }
    ).with_columns(place=pl.col("county") + pl.Series(draw.choice(["1", "2"], rows)))  # fmt: skip


def test_the_published_table_of_investments() -> None:
    """By hand: with 8, 22, 17 and 12 suppressed, activity II in region C lies between 5 and 30, and 59 is the least."""
    cells = investments()
    assert cells.values[at(cells)] == 190
    assert cells.values[at(cells, region="B")] == 101
    target = at(cells, activity="II", region="C")
    done = suppress(cells, ProtectionLevels.of(len(cells.keys), {target: (5, 5)}))
    hidden = {dict(cells.keys[n])["activity"] + dict(cells.keys[n])["region"] for n in np.flatnonzero(done.suppressed)}
    assert hidden == {"IIA", "IIC", "IIIA", "IIIC"}
    assert (done.cost, done.optimal) == (59, True)
    interval = {one.key: (one.low, one.high) for one in done.intervals}[cells.keys[target]]
    assert interval == pytest.approx((5, 30))
    assert done.verdict.holds
    assert np.isnan(done.published.values).sum() == 4


def test_an_attacker_who_knows_every_cell_to_within_half_learns_more() -> None:
    """With 8, 22, 17 and 12 known to 50 %: II, A lies between 4 and 12, so II, C lies between 18 and 26."""
    cells = investments()
    target = at(cells, activity="II", region="C")
    done = suppress(cells, ProtectionLevels.of(len(cells.keys), {target: (5, 5)}))
    found = interval_attack(done.published, known_within=0.5, truth=cells.values)
    interval = {one.key: (one.low, one.high) for one in found}[cells.keys[target]]
    assert interval == pytest.approx((18, 26))


def rule_cells(*contributions: float) -> TableCells:
    frame = pl.DataFrame({"branch": ["a"] * len(contributions), "turnover": contributions})
    return tabulate(frame, [["branch"]], value="turnover")


def test_sensitivity_rules_by_hand() -> None:
    """Contributions 70, 20, 10: without the two largest 10 are left, which is 14.3 % of 70."""
    cells = rule_cells(70, 20, 10)
    assert not SensitivityRules(p_percent=14).apply(cells).sensitive.any()
    found = SensitivityRules(p_percent=20).apply(cells)
    assert found.sensitive.all()
    assert found.upper[0] == pytest.approx(0.2 * 70 - 10)
    assert not SensitivityRules(dominance=(1, 70)).apply(cells).sensitive.any()
    found = SensitivityRules(dominance=(2, 80)).apply(cells)
    assert found.upper[0] == pytest.approx(90 / 0.8 - 100)
    assert SensitivityRules(threshold=4).apply(cells).sensitive.all()
    assert not SensitivityRules(threshold=3).apply(cells).sensitive.any()


def test_a_unit_with_several_rows_is_one_contributor() -> None:
    frame = pl.DataFrame({"firm": ["f", "f", "g"], "branch": ["a"] * 3, "turnover": [35.0, 35.0, 30.0]})
    by_row = tabulate(frame, [["branch"]], value="turnover")
    by_firm = tabulate(frame, [["branch"]], value="turnover", unit="firm")
    assert by_row.contributors.tolist() == [3, 3]
    assert by_firm.contributors.tolist() == [2, 2]
    assert by_firm.largest[0, 0] == 70


@pytest.mark.parametrize("seed", [1, 2])
def test_no_cheaper_set_of_cells_protects_the_table(seed: int) -> None:
    """All sets of cells that cost less than the exact solution fail the audit."""
    cells = tabulate(town(seed, rows=40), [["job", "sex"]])
    levels = SensitivityRules(threshold=4).apply(cells)
    exact = suppress(cells, levels, method="exact")
    assert levels.sensitive.any()
    assert exact.optimal
    assert exact.verdict.holds
    others, costs, tried = np.flatnonzero(~levels.sensitive), np.maximum(cells.values, 1.0), 0
    for bits in np.ndindex(*[2] * len(others)):
        hidden = levels.sensitive.copy()
        hidden[others] = bits
        cost = float(costs[hidden].sum())
        if cost < exact.cost:
            tried += 1
            assert not SuppressedTable(cells=cells, levels=levels, suppressed=hidden, cost=cost, bound=0).verdict.holds
    assert tried >= 5
    heuristic = suppress(cells, levels, method="heuristic")
    assert heuristic.verdict.holds
    assert heuristic.cost >= exact.cost


@pytest.mark.parametrize("value", [None, "pay"])
@pytest.mark.parametrize("tables", [[[("county", "place"), "job"]], [["place", "job"], ["sex", "job"]]])
def test_hierarchical_and_linked_tables_are_proved(tables: list[list[str]], value: str | None) -> None:
    cells = tabulate(town(5, rows=200, values=4), tables, value=value)
    assert np.abs(cells.matrix @ cells.values).max() < 1e-9
    rules = SensitivityRules(threshold=4) if value is None else SensitivityRules(p_percent=30, threshold=4)
    done = suppress(cells, rules.apply(cells), method="heuristic")
    assert done.levels.sensitive.any()
    assert done.verdict.state is State.HOLDS
    # Primary suppression alone leaves a cell that can be calculated, and the audit finds it.
    alone = SuppressedTable(cells=cells, levels=done.levels, suppressed=done.levels.sensitive, cost=0, bound=0)
    assert alone.verdict.state is State.FAILS


def test_publishing_one_protecting_cell_fails_the_audit() -> None:
    cells = investments()
    target = at(cells, activity="II", region="C")
    levels = ProtectionLevels.of(len(cells.keys), {target: (5, 5)})
    done = suppress(cells, levels)
    for cell in np.flatnonzero(done.suppressed & ~levels.sensitive):
        fewer = done.suppressed.copy()
        fewer[cell] = False
        mutant = SuppressedTable(cells=cells, levels=levels, suppressed=fewer, cost=0, bound=0)
        assert not mutant.verdict.holds
        assert any(one.disclosed for one in mutant.intervals)


def test_two_tables_that_were_suppressed_one_by_one_disclose_a_cell() -> None:
    """The same margin is suppressed in one table and published in the other."""
    frame = pl.DataFrame({"town": ["a"] * 2 + ["b"] * 9 + ["c"] * 4, "sex": (["F", "M"] * 8)[:15]})
    first = tabulate(frame, [["town"]])
    hidden = suppress(first, SensitivityRules(threshold=3).apply(first)).published
    assert not any(one.disclosed for one in interval_attack(hidden))
    second = tabulate(frame, [["town", "sex"]])
    shown = PublishedTable(keys=second.keys, values=second.values.copy(), sums=second.sums)
    shown.values[second.index[("town", "a"),]] = np.nan
    together = interval_attack(combine([hidden, shown]))
    assert {one.key for one in together if one.disclosed} == {one.key for one in together}
    with pytest.raises(BadParameter, match="contradict"):
        combine([shown, PublishedTable(keys=second.keys, values=second.values + 1, sums=second.sums)])


@pytest.mark.parametrize("base", [3, 5, 10])
def test_controlled_rounding_adds_up(base: int) -> None:
    cells = tabulate(town(3, rows=300, values=5), [[("county", "place"), "job"], ["sex", "job"]])
    done = round_table(cells, base=base)
    assert done.optimal
    assert done.zero_restricted
    assert (cells.matrix @ done.values == 0).all()
    assert (done.values % base == 0).all()
    assert (np.abs(done.values - cells.values) < base).all()
    assert (done.values == cells.values)[cells.values % base == 0].all()
    with pytest.raises(BadParameter, match="multiple of the base"):
        round_table(tabulate(town(3, rows=301), [["job"]]), base=base, keep_total=True)


def test_rounding_is_as_close_as_brute_force() -> None:
    cells = tabulate(town(8, rows=23, values=2), [["job", "sex"]])
    done = round_table(cells, base=5)
    inner = [n for n, key in enumerate(cells.keys) if len(key) == 2]
    low = np.floor(cells.values[inner] / 5) * 5
    best = np.inf
    for bits in np.ndindex(*[2] * len(inner)):
        values = np.zeros(len(cells.keys))
        values[inner] = np.where(cells.values[inner] % 5 == 0, low, low + 5 * np.array(bits))
        for total, parts in reversed(cells.sums):
            values[total] = values[list(parts)].sum()
        if (np.abs(values - cells.values) < 5).all() and np.abs(cells.matrix @ values).max() == 0:
            best = min(best, float(np.abs(values - cells.values).sum()))
    assert done.change == best


def test_bad_tables_are_refused() -> None:
    frame = town(1)
    with pytest.raises(BadParameter, match="no column"):
        tabulate(frame, [["nowhere"]])
    with pytest.raises(HierarchyNotNested):
        tabulate(frame, [[("sex", "job")]])
    with pytest.raises(BadParameter, match="non-negative"):
        tabulate(frame.with_columns(pay=-pl.col("pay")), [["job"]], value="pay")
    with pytest.raises(BadParameter, match="No rule"):
        SensitivityRules()
    with pytest.raises(BadParameter, match="tables of sums"):
        SensitivityRules(p_percent=10).apply(tabulate(frame, [["job"]]))
    lonely = tabulate(pl.DataFrame({"a": ["x"]}), [["a"]])
    with pytest.raises(NotApplicable, match="cannot be protected"):
        suppress(lonely, ProtectionLevels.of(2, {0: (5, 0)}))


PLAN = """
data: town.csv
tables: [[[county, place], job], [sex, job]]
sensitive: {threshold: 4}
unit: row
"""


def test_the_command_protects_tables_and_attacks_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    town(5, rows=120).write_csv(tmp_path / "town.csv")
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert main(["tables", "protect", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "out"), "--json"]) == 0
    account = json.loads(capsys.readouterr().out)
    assert account["verdict"]["state"] == "holds"
    published = pl.read_csv(tmp_path / "out" / "tables.csv")
    assert published["value"].null_count() == account["suppressed"] > 0
    assert not published["value"].drop_nulls().is_between(1, 3).any()
    assert main(["tables", "attack", str(tmp_path / "out" / "tables.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["suppressed"], found["disclosed"]) == (account["suppressed"], 0)
    rounded = PLAN.replace("sensitive: {threshold: 4}\nunit: row", "round: 5")
    (tmp_path / "round.yaml").write_text(rounded)
    assert main(["tables", "protect", str(tmp_path / "round.yaml"), "--out", str(tmp_path / "rounded")]) == 0
    assert (pl.read_csv(tmp_path / "rounded" / "tables.csv")["value"] % 5 == 0).all()
    (tmp_path / "bad.yaml").write_text(rounded + "sensitive: {threshold: 1}\n")
    assert main(["tables", "protect", str(tmp_path / "bad.yaml"), "--out", str(tmp_path / "bad")]) == 2
    assert "threshold" in capsys.readouterr().err


def test_a_margin_that_is_left_in_gives_a_cell_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"sex": [None, "F", "M"], "value": [7, None, 3]}).write_csv(tmp_path / "table.csv")
    assert main(["tables", "attack", str(tmp_path / "table.csv")]) == 1
    assert "sex = F: 4 to 4  disclosed" in capsys.readouterr().out


def counted(lines: dict[str, dict[str, int]]) -> TableCells:
    """A two-way table of counts, as people."""
    rows = [(row, column) for row, line in lines.items() for column, count in line.items() for _ in range(count)]
    return tabulate(pl.DataFrame(rows, schema=["v1", "v2"], orient="row"), [["v1", "v2"]])


def test_the_example_of_sdctable_in_which_two_suppressions_a_line_do_not_suffice() -> None:
    """sdcTable 0.34, tests/testthat/test-simpleheuristic.R: w, b is 47 exactly; with x, b suppressed it is 0 to 141."""
    cells = counted(
        {
            "w": {"a": 30, "b": 47, "c": 64, "d": 89},
            "x": {"a": 90, "b": 124, "c": 5, "d": 31},
            "y": {"a": 92, "b": 100, "c": 59, "d": 85},
            "z": {"a": 800, "b": 991, "c": 651, "d": 685},
        }
    )
    primary = [at(cells, v1=p[0], v2=p[1]) for p in ("wa", "wb", "wc", "xa", "xc", "yb", "yd", "zb", "zd")]
    levels = ProtectionLevels.of(len(cells.keys), dict.fromkeys(primary, (1.0, 1.0)))
    target = cells.keys[at(cells, v1="w", v2="b")]
    hidden = levels.sensitive.copy()
    alone = SuppressedTable(cells=cells, levels=levels, suppressed=hidden, cost=0, bound=0)
    assert not alone.verdict.holds
    assert {one.key for one in alone.intervals if one.disclosed} == {target}
    done = suppress(cells, levels)
    assert done.verdict.holds
    assert done.suppressed.sum() == 10  # sdcTable adds one cell, too
    hidden[at(cells, v1="x", v2="b")] = True
    more = SuppressedTable(cells=cells, levels=levels, suppressed=hidden, cost=0, bound=0)
    assert [(one.low, one.high) for one in more.intervals if one.key == target] == [(0, 141)]
    assert more.verdict.holds


def test_the_data_microdata1_of_sdctable() -> None:
    """sdcTable 0.34, tests/testthat/test-protectTable.r: OPT, HITAS and HYPERCUBE suppress both sexes of A and C."""
    cells = counted(
        {
            "A": {"male": 18, "female": 2},
            "B": {"male": 14, "female": 19},
            "C": {"male": 12, "female": 10},
            "D": {"male": 11, "female": 14},
        }
    )
    done = suppress(cells, ProtectionLevels.of(len(cells.keys), {at(cells, v1="A", v2="female"): (1.0, 1.0)}))
    hidden = {"".join(value for _, value in cells.keys[cell]) for cell in np.flatnonzero(done.suppressed)}
    assert hidden == {"Amale", "Afemale", "Cmale", "Cfemale"}
    assert done.optimal


@pytest.mark.parametrize("method", ["exact", "heuristic"])
def test_the_example_of_sdctable_with_singletons(method: Literal["exact", "heuristic"]) -> None:
    """sdcTable 0.34, tests/testthat/test-protectTable.r: one cell more if singletons are detected."""
    cells = tabulate(pl.DataFrame({"region": ["a", "b", "b", "c"]}), [["region"]])
    plain = suppress(cells, SensitivityRules(threshold=2, insiders=False).apply(cells), method=method)
    safe = suppress(cells, SensitivityRules(threshold=2).apply(cells), method=method)
    assert (plain.suppressed.sum(), safe.suppressed.sum()) == (2, 3)
    assert plain.verdict.holds
    assert safe.verdict.holds
    # The person of region a knows that a is 1, so that c is 4 - 2 - 1.
    mutant = SuppressedTable(cells=cells, levels=safe.levels, suppressed=plain.suppressed, cost=0, bound=0)
    assert not mutant.verdict.holds


def test_single_contributors_learn_no_other_sensitive_cell() -> None:
    """The contributor's attack is written out: publish the own cells, then calculate all others."""
    amounts = {"I": (20, 50, 10), "II": (8, 19, 22), "III": (17, 32, 12)}
    rows = [(a, r, v / 4) for a, line in amounts.items() for r, v in zip("ABC", line, strict=True)
            for _ in range(1 if a + r in ("IIC", "IIIC", "IIA") else 4)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["activity", "region", "amount"], orient="row")
    cells = tabulate(frame, [["activity", "region"]], value="amount")
    safe, plain = (suppress(cells, SensitivityRules(threshold=2, insiders=i).apply(cells)) for i in (True, False))
    assert safe.levels.singletons.sum() == 3
    assert safe.verdict.holds
    disclosed = {True: 0, False: 0}
    for table, careful in ((safe, True), (plain, False)):
        for own in np.flatnonzero(safe.levels.singletons):
            values = table.published.values.copy()
            values[own] = cells.values[own]
            found = interval_attack(PublishedTable(keys=cells.keys, values=values, sums=cells.sums))
            disclosed[careful] += sum(
                one.disclosed and bool(safe.levels.sensitive[cells.index[one.key]]) for one in found
            )
    assert disclosed[True] == 0
    assert disclosed[False] > 0


def test_a_margin_with_one_contributor_is_known_to_the_contributor_of_its_only_cell() -> None:
    frame = pl.DataFrame({"branch": ["a", "a", "a", "b", "c", "c", "c", "c"], "county": list("xxyxyyxx"),
                          "turnover": [5.0, 6, 7, 8, 9, 10, 11, 12]})  # fmt: skip
    cells = tabulate(frame, [["branch", "county"]], value="turnover")
    levels = SensitivityRules(threshold=2).apply(cells)
    known = known_cells(cells, levels)
    assert sorted(known) == sorted(
        [
            (at(cells, branch="a", county="y"),),
            tuple(sorted([at(cells, branch="b"), at(cells, branch="b", county="x")])),
        ]
    )
    assert suppress(cells, levels).verdict.holds


def test_the_search_is_limited_by_effort_and_not_by_time() -> None:
    cells = tabulate(town(5, rows=120), [["place", "job"], ["sex", "job"]])
    levels = SensitivityRules(threshold=4, insiders=False).apply(cells)
    short, again, long = (suppress(cells, levels, effort=effort) for effort in (1, 1, 50))
    assert (short.suppressed == again.suppressed).all()
    assert short.verdict.holds
    assert not short.optimal
    assert long.optimal
    assert long.cost <= short.cost


def run(folder: Path, plan: str, frame: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    frame.write_parquet(folder / "data.parquet")
    (folder / "plan.yaml").write_text("data: data.parquet\n" + plan)
    code = main(["tables", "protect", str(folder / "plan.yaml"), "--out", str(folder / "out"), "--json", "--force"])
    said = capsys.readouterr()
    return code, said.out if code < 2 else said.err


@pytest.mark.parametrize("method", ["sensitive: {p_percent: 10}\nunit: row", "round: 5"])
@pytest.mark.parametrize(
    ("table", "amount", "message"),
    [
        ("[job]", float("nan"), "finite"),
        ("[job]", float("inf"), "finite"),
        ("[job]", 1e308, "larger unit"),
        ("[job, job]", 1.0, "twice"),
        ("[[job, job]]", 1.0, "twice"),
        ("[value]", 1.0, "Rename"),
    ],
)
def test_numbers_and_names_that_tables_cannot_hold_are_refused(
    table: str, amount: float, message: str, method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.DataFrame({"job": list("aaabbb"), "value": list("aabbcc"), "pay": [1.0, 2, 3, 4, 5, amount]})
    code, said = run(tmp_path, f"tables: [{table}]\nvalue: pay\n{method}\n", frame, capsys)
    assert (code, message in said) == (2, True)
    assert not (tmp_path / "out").exists()
