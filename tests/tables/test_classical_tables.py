"""Classical tables: primary and secondary suppression, the interval attack, controlled rounding.

Worked examples: the table of investments by activity and region of Fischetti and Salazar (2001),
doi:10.1287/mnsc.47.7.1008.9805, and the sensitivity rules of Hundepool et al. (2012), doi:10.1002/9781118348239.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import BadParameter, HierarchyNotNested, NotApplicable
from sfumato.release import State
from sfumato.tables.cells import TableCells, tabulate
from sfumato.tables.controlled_rounding import round_table
from sfumato.tables.interval_audit import Knowledge, PublishedTable, combine, interval_attack, published_table
from sfumato.tables.sensitivity import ProtectionLevels, SensitivityRules, contributors_knowledge
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
sfumato: 1
data: town.csv
unit: row
columns:
  county: {role: quasi, kind: category}
  place: {role: quasi, kind: category}
  job: {role: quasi, kind: category}
  sex: {role: quasi, kind: category}
tables: [[[county, place], job], [sex, job]]
sensitive: {threshold: 4}
"""


def test_the_command_protects_tables_and_attacks_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    town(5, rows=120).write_csv(tmp_path / "town.csv")
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert main(["protect", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "out"), "--json"]) == 0
    account = json.loads(capsys.readouterr().out)
    assert account["kind"] == "tables"
    assert [verdict["state"] for verdict in account["verdicts"]] == ["holds"]
    values = pl.read_csv(tmp_path / "out" / "tables.csv")["value"]
    assert values.null_count() == account["suppressed"] > 0
    assert not values.drop_nulls().is_between(1, 3).any()
    assert main(["check", str(tmp_path / "out"), "--original", str(tmp_path / "plan.yaml")]) == 0
    capsys.readouterr()
    assert main(["check", str(tmp_path / "out"), "--json"]) == 1  # how wide intervals must be is not in the files
    assert json.loads(capsys.readouterr().out)["verdicts"][0]["state"] == "not checked"
    assert main(["attack", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["suppressed"], found["disclosed"]) == (account["suppressed"], 0)
    rounded = PLAN.replace("sensitive: {threshold: 4}", "round: 5")
    (tmp_path / "round.yaml").write_text(rounded)
    assert main(["protect", str(tmp_path / "round.yaml"), "--out", str(tmp_path / "rounded")]) == 0
    assert (pl.read_csv(tmp_path / "rounded" / "tables.csv")["value"] % 5 == 0).all()
    (tmp_path / "bad.yaml").write_text(rounded + "sensitive: {threshold: 1}\n")
    assert main(["protect", str(tmp_path / "bad.yaml"), "--out", str(tmp_path / "bad")]) == 2
    assert "threshold" in capsys.readouterr().err


def test_check_judges_sums_as_protect_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(1)
    firms = {"region": draw.choice(["a", "b", "c"], 200), "sector": draw.choice(["x", "y"], 200)}
    pl.DataFrame({**firms, "pay": draw.integers(1, 9000, 200)}).write_csv(tmp_path / "firms.csv")
    document = {
        "sfumato": 1, "dataset": "firms", "data": "firms.csv", "unit": "row",
        "columns": dict.fromkeys(("region", "sector", "pay"), "plain"), "tables": [["region", "sector"]],
        "value": "pay", "sensitive": {"threshold": 3},
    }  # fmt: skip
    states = []
    for rules in ({"threshold": 3}, {"threshold": 3, "p_percent": 10}):
        plan, out = tmp_path / "plan.yaml", str(tmp_path / "out")
        plan.write_text(json.dumps({**document, "sensitive": rules}))
        done = sfumato.protect(plan, unmet=True)
        done.save(out, unmet=True, force=True)
        again = sfumato.check(out, original=plan)
        assert [v.to_dict() for v in again] == [v.to_dict() for v in sfumato.check(done)]
        assert [v.to_dict() for v in again] == [v.to_dict() for v in done.verdicts]
        states.append(str(again[0].state))
    assert states == ["not checked", "holds"]
    (tmp_path / "other.yaml").write_text(json.dumps({**document, "tables": [["region"]]}))
    capsys.readouterr()
    assert main(["check", out, "--original", str(tmp_path / "other.yaml")]) == 2
    assert "has not the tables of this plan" in capsys.readouterr().err


def published(folder: Path, *lines: str) -> str:
    """A plan that attacks the published file ``table.csv``."""
    (folder / "attack.yaml").write_text("\n".join(["published: [table.csv]", *lines]))
    return str(folder / "attack.yaml")


def test_a_margin_that_is_left_in_gives_a_cell_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"sex": [None, "F", "M"], "value": [7, None, 3]}).write_csv(tmp_path / "table.csv")
    assert main(["attack", published(tmp_path)]) == 1
    assert "sex = F: 4 to 4  disclosed" in capsys.readouterr().out


def counted(lines: dict[str, dict[str, int]], *, value: str | None = None) -> TableCells:
    """A two-way table of counts, as people; with `value` as sums of ones, so that a blank may be 0."""
    rows = [(row, column, 1) for row, line in lines.items() for column, count in line.items() for _ in range(count)]
    return tabulate(pl.DataFrame(rows, schema=["v1", "v2", "one"], orient="row"), [["v1", "v2"]], value=value)


def test_the_example_of_sdctable_in_which_two_suppressions_a_line_do_not_suffice() -> None:
    """sdcTable 0.34, tests/testthat/test-simpleheuristic.R: w, b is 47 exactly; with x, b suppressed it is 0 to 141."""
    cells = counted(
        {
            "w": {"a": 30, "b": 47, "c": 64, "d": 89},
            "x": {"a": 90, "b": 124, "c": 5, "d": 31},
            "y": {"a": 92, "b": 100, "c": 59, "d": 85},
            "z": {"a": 800, "b": 991, "c": 651, "d": 685},
        },
        value="one",
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
    assert [(one.low, one.high) for one in more.intervals if one.key == target] == [pytest.approx((0, 141))]
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
    frame = pl.DataFrame({"region": ["a", "b", "b", "c"], "one": 1})
    cells = tabulate(frame, [["region"]], value="one")
    plain = suppress(cells, SensitivityRules(threshold=2, insiders=False).apply(cells), method=method)
    safe = suppress(cells, SensitivityRules(threshold=2).apply(cells), method=method)
    assert (plain.suppressed.sum(), safe.suppressed.sum()) == (2, 3)
    assert plain.verdict.holds
    assert safe.verdict.holds
    # The person of region a knows that a is 1, so that c is 4 - 2 - 1.
    mutant = SuppressedTable(cells=cells, levels=safe.levels, suppressed=plain.suppressed, cost=0, bound=0)
    assert not mutant.verdict.holds
    # Zeros of counts are published, so that two blanks that add up to 2 are 1 and 1 for everybody.
    counts = tabulate(frame, [["region"]])
    levels = SensitivityRules(threshold=2, insiders=False).apply(counts)
    assert suppress(counts, levels, method=method).suppressed.sum() == 3
    assert not SuppressedTable(cells=counts, levels=levels, suppressed=plain.suppressed, cost=0, bound=0).verdict.holds


def test_single_contributors_learn_no_other_sensitive_cell() -> None:
    """The contributor's attack is written out: publish the own cells, then calculate all others."""
    amounts = {"I": (20, 50, 10), "II": (8, 19, 22), "III": (17, 32, 12)}
    rows = [(a, r, v / 4) for a, line in amounts.items() for r, v in zip("ABC", line, strict=True)
            for _ in range(1 if a + r in ("IIC", "IIIC", "IIA") else 4)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["activity", "region", "amount"], orient="row")
    cells = tabulate(frame, [["activity", "region"]], value="amount")
    safe, plain = (suppress(cells, SensitivityRules(threshold=2, insiders=i).apply(cells)) for i in (True, False))
    assert safe.verdict.holds
    alone = np.flatnonzero(cells.contributors == 1)
    assert len(alone) == 3
    disclosed = {True: 0, False: 0}
    for table, careful in ((safe, True), (plain, False)):
        for own in alone:
            values = table.published.values.copy()
            values[own] = cells.values[own]
            found = interval_attack(PublishedTable(keys=cells.keys, values=values, sums=cells.sums))
            disclosed[careful] += sum(
                one.disclosed and bool(safe.levels.sensitive[cells.index[one.key]]) for one in found
            )
    assert disclosed[True] == 0
    assert disclosed[False] > 0


def test_a_contributor_knows_own_contributions_to_all_cells() -> None:
    """Firm f is alone in two cells and in a margin, one of two in a third; firms of the same cells are merged."""
    rows = [("f", "a", "x", 5), ("f", "b", "x", 6), ("f", "c", "x", 7), ("g", "c", "x", 1), ("h", "c", "y", 2),
            ("i", "c", "y", 3), ("g", "c", "x", 1)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["firm", "branch", "county", "turnover"], orient="row")
    cells = tabulate(frame, [["branch", "county"]], value="turnover", unit="firm")
    people = {tuple(sorted(one.cells.tolist())): one for one in contributors_knowledge(cells)}
    a, b = at(cells, branch="a"), at(cells, branch="b")
    ax, bx, cx, cy = (at(cells, branch=p[0], county=p[1]) for p in ("ax", "bx", "cx", "cy"))
    assert set(people) == {tuple(sorted([a, ax, b, bx, cx])), (cx,), (cy,)}
    firm = people[tuple(sorted([a, ax, b, bx, cx]))]
    known = dict(zip(firm.cells.tolist(), zip(firm.low, firm.high, strict=True), strict=True))
    assert known == {a: (5, 5), ax: (5, 5), b: (6, 6), bx: (6, 6), cx: (7, np.inf)}
    assert people[cy,].low.tolist() == [3]
    assert people[cx,].low.tolist() == [2]
    # Of counts, who is not alone in a cell knows that it is at least one more than the own contribution.
    people_of_a = contributors_knowledge(tabulate(pl.DataFrame({"a": ["x", "x", "y"]}), [["a"]]))
    assert [(p.cells.tolist(), p.low.tolist(), p.high.tolist()) for p in people_of_a] == [
        ([1], [2], [np.inf]), ([2], [1], [1])
    ]  # fmt: skip


def test_readers_use_that_counts_are_whole_numbers() -> None:
    """a + b = 4, b + c = 4, a + c + e = 6: a equals c, so that e is even; linear programs alone would give 1 to 4."""
    keys = tuple((("cell", name),) for name in ("a", "b", "c", "e", "ab", "bc", "ace"))
    values = np.array([np.nan] * 4 + [4, 4, 6])
    sums = ((4, (0, 1)), (5, (1, 2)), (6, (0, 2, 3)))
    found = interval_attack(PublishedTable(keys=keys, values=values, sums=sums, integers=True, least=1))
    assert [(one.low, one.high) for one in found] == [(1, 2), (2, 3), (1, 2), (2, 4)]
    (linear,) = interval_attack(PublishedTable(keys=keys, values=values, sums=sums, least=1), targets={3})
    assert linear.low == pytest.approx(1)


def oracle(table: SuppressedTable, *, most: int) -> bool:
    """Whether a table of counts is protected, by enumeration of all tables with at most this many people in a cell.

    Every attacker must consider it possible that a sensitive cell has as many people as the threshold, and (unless no
    suppression allows that) that it has one less than it has. Each row is a person, who knows whether others are in the
    own cell: it has 1, or at least 2.
    """
    cells, levels = table.cells, table.levels
    totals = {total for total, _ in cells.sums}
    inner = [n for n in range(len(cells.keys)) if n not in totals]
    ranges = [[0] if cells.values[n] == 0 else range(1, most + 1) for n in inner]
    leaves = np.array(np.meshgrid(*ranges, indexing="ij")).reshape(len(inner), -1)
    belongs = np.array([[set(key) <= set(cells.keys[n]) for n in inner] for key in cells.keys])
    possible = belongs @ leaves
    published = ~table.suppressed
    seen = possible[:, (possible[published] == cells.values[published, None]).all(axis=0)]
    people = [set[int](), *({n} for n in inner if cells.contributors[n] > 0)]
    for cell in np.flatnonzero(levels.sensitive):
        for own in people:
            held = [n for n in range(len(cells.keys)) if any(belongs[n, inner.index(o)] for o in own)]
            known = [n for n in held if cells.contributors[n] == 1]
            if cell in known:
                continue
            shared = [n for n in held if cells.contributors[n] > 1]
            mine, every = (
                x[cell, (x[known] == cells.values[known, None]).all(axis=0) & (x[shared] >= 2).all(axis=0)]
                for x in (seen, possible)
            )
            below = max(every.min(), cells.values[cell] - levels.lower[cell])
            if mine.max() < cells.values[cell] + levels.upper[cell] or mine.min() > below:
                return False
    return True


@pytest.mark.parametrize(("shape", "least"), [((2, 3), 5), ((2, 2, 2), 4)])
def test_the_verdict_is_that_of_an_enumeration_of_all_tables(shape: tuple[int, ...], least: int) -> None:
    """Random sets of suppressed cells of random tables: the audit and the enumeration agree on every one."""
    draw, agreed = np.random.default_rng(3), {True: 0, False: 0}
    for _ in range(5 if len(shape) == 2 else 3):
        counts = draw.choice([0, 1, 1, 2, 3], shape)
        rows = [tuple(map(str, place)) for place in np.ndindex(*shape) for _ in range(counts[place])]
        names = [f"d{n}" for n in range(len(shape))]
        cells = tabulate(pl.DataFrame(rows, schema=names, orient="row"), [names])
        levels = SensitivityRules(threshold=3).apply(cells)
        done = suppress(cells, levels, method="heuristic")
        assert done.verdict.holds
        assert oracle(done, most=5)
        for number in range(6):
            hidden = (done.suppressed | (draw.random(len(cells.keys)) < 0.5)) & ~cells.empty
            hidden &= levels.sensitive | (draw.random(len(cells.keys)) < (0.7, 1)[number % 2])
            if number == 0:  # protected from readers, often not from contributors
                hidden = suppress(cells, replace(levels, contributors=()), method="heuristic").suppressed
            table = SuppressedTable(cells=cells, levels=levels, suppressed=hidden, cost=0, bound=0)
            assert table.verdict.holds == oracle(table, most=5)
            agreed[table.verdict.holds] += 1
    assert min(agreed.values()) >= least, agreed


def calculated(table: SuppressedTable, *, most: int) -> list[tuple[int, int]]:
    """Sensitive cells that a firm calculates, as (firm, cell), by enumeration of all tables of counts.

    A firm knows its rows in each cell, and which of these cells no other firm has rows in.
    """
    cells = table.cells
    totals = {total for total, _ in cells.sums}
    inner = [n for n in range(len(cells.keys)) if n not in totals]
    ranges = [[0] if cells.values[n] == 0 else range(1, most + 1) for n in inner]
    leaves = np.array(np.meshgrid(*ranges, indexing="ij")).reshape(len(inner), -1)
    possible = np.array([[set(key) <= set(cells.keys[n]) for n in inner] for key in cells.keys]) @ leaves
    published = ~table.suppressed
    possible = possible[:, (possible[published] == cells.values[published, None]).all(axis=0)]
    found = []
    for (firm,), rows in cells.contributions.group_by("unit", maintain_order=True):
        own = {cell: int(amount) for cell, amount in rows.select("cell", "amount").iter_rows()}
        fits = np.ones(possible.shape[1], np.bool_)
        for cell, amount in own.items():
            alone = cells.contributors[cell] == 1
            fits &= (possible[cell] == amount) if alone else (possible[cell] > amount)
        found += [
            (int(str(firm)), int(cell))
            for cell in np.flatnonzero(table.levels.sensitive)
            if len(set(possible[cell, fits].tolist())) == 1 and not (cell in own and cells.contributors[cell] == 1)
        ]
    return found


def test_no_firm_calculates_a_cell_of_a_small_random_table() -> None:
    """Contributors who are taken to know only their own rows, not that others have rows there too, fail the test."""
    draw, weak, caught = np.random.default_rng(8), 0, 0
    for _ in range(12):
        counts = draw.choice([0, 1, 1, 2, 2, 3], (2, 3))
        places = [(str(a), str(b)) for a, b in np.ndindex(2, 3) for _ in range(counts[a, b])]
        frame = pl.DataFrame(places, schema=["a", "b"], orient="row")
        frame = frame.with_columns(firm=pl.Series(draw.integers(0, max(len(places) - 2, 1), len(places))))
        cells = tabulate(frame, [["a", "b"]], unit="firm")
        levels = SensitivityRules(threshold=3).apply(cells)
        done = suppress(cells, levels)
        assert done.verdict.holds
        assert calculated(done, most=6) == []
        shared = [(cells.contributors[one.cells] > 1).astype(float) for one in levels.contributors]
        less = tuple(replace(p, low=p.low - s) for p, s in zip(levels.contributors, shared, strict=True))
        careless = suppress(cells, replace(levels, contributors=less))
        judged = replace(careless, levels=levels)
        told = bool(calculated(judged, most=6))
        weak += told
        caught += told and not judged.verdict.holds
    assert weak == caught >= 2


def test_a_firm_that_is_not_alone_in_two_cells_does_not_calculate_a_third(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Firm 22 has one row in each of two cells that others have rows in, so that both are at least 2."""
    firms = {
        "c0": {"r0": [0, 1, 2], "r1": [11], "r2": [23, 22]},
        "c1": {"r0": [1, 4, 2, 6, 7], "r1": [12, 2, 14, 15, 16, 17, 18, 19], "r2": []},
        "c2": {"r0": [8, 9, 10], "r1": [20], "r2": [25, 26]},
        "c3": {"r0": [], "r1": [11, 22], "r2": []},
    }
    rows = [(a, b, firm) for b, line in firms.items() for a, here in line.items() for firm in here]
    frame = pl.DataFrame(rows, schema=["a", "b", "firm"], orient="row")
    plan = "tables: [[a, b]]\nunit: firm\nsensitive: {threshold: 3}\n"
    code, said = run(tmp_path, plan, frame, capsys)
    assert (code, json.loads(said)["verdicts"][0]["state"]) == (0, "holds")
    table = published_table(pl.read_csv(tmp_path / "out" / "tables.csv"), counts=True)
    index = {key: number for number, key in enumerate(table.keys)}
    held = [index[("a", "r2"), ("b", "c0")], index[("a", "r1"), ("b", "c3")]]
    firm = Knowledge(cells=np.array(held), low=np.full(2, 2.0), high=np.full(2, np.inf))
    found = interval_attack(table, knowledge=firm)
    assert set(held) <= {index[one.key] for one in found}
    assert not any(one.disclosed for one in found)


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
    columns = ", ".join(f"{name}: {{role: plain}}" for name in frame.columns)
    unit = "" if "unit:" in plan else "unit: row\n"
    (folder / "plan.yaml").write_text(f"sfumato: 1\ndata: data.parquet\ncolumns: {{{columns}}}\n{unit}{plan}")
    code = main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "out"), "--json", "--force"])
    said = capsys.readouterr()
    return code, said.out if code < 2 else said.err


@pytest.mark.parametrize("method", ["sensitive: {p_percent: 10}", "round: 5"])
@pytest.mark.parametrize(
    ("table", "amount", "message"),
    [
        ("[job]", float("nan"), "missing values"),
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


FIRMS = "tables: [[branch, county]]\nvalue: turnover\nunit: firm\nsensitive: {threshold: 2, p_percent: 10}\n"


def test_a_firm_that_is_alone_in_two_cells_does_not_calculate_a_third(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Firm f has branches a and b of county x for itself, and g branch c; the attack reads the published file."""
    rows = [("f", "a", "x", 10), ("f", "b", "x", 12), ("g", "c", "x", 7)]
    rows += [(f"{b}{c}{n}", b, c, 20 + n) for b, c in ("ay", "by", "cy", "dx", "dy") for n in range(6)]
    frame = pl.DataFrame(rows, schema=["firm", "branch", "county", "turnover"], orient="row")
    code, said = run(tmp_path, FIRMS, frame, capsys)
    assert (code, json.loads(said)["verdicts"][0]["state"]) == (0, "holds")
    table = published_table(pl.read_csv(tmp_path / "out" / "tables.csv"), counts=False)
    place = {key: number for number, key in enumerate(table.keys)}
    for branch, own in (("a", 10.0), ("b", 12.0)):
        table.values[place[("branch", branch), ("county", "x")]] = own
    third = ("branch", "c"), ("county", "x")
    (found,) = [one for one in interval_attack(table) if one.key == third]
    assert found.low <= 7 - 0.7
    assert found.high >= 7 + 0.7


def test_blanks_of_counts_are_at_least_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two blanks that add up to 2 are 1 and 1; a blank that is 0 contradicts the published zeros."""
    pl.DataFrame({"sex": [None, "F", "M", "X"], "value": [9, None, None, 7]}).write_csv(tmp_path / "table.csv")
    assert main(["attack", published(tmp_path)]) == 1
    assert "2 of 2" in capsys.readouterr().out
    assert main(["attack", published(tmp_path, "zeros_hidden: true")]) == 0
    capsys.readouterr()
    pl.DataFrame({"sex": [None, "F", "M"], "value": [9, None, 9]}).write_csv(tmp_path / "table.csv")
    assert main(["attack", published(tmp_path)]) == 2
    assert "zeros_hidden" in capsys.readouterr().err


@pytest.mark.parametrize(("value", "message"), [(1e308, "finite"), (float("inf"), "finite"), (2.5, "values: sums")])
def test_a_published_file_of_other_numbers_is_refused(
    value: float, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame({"sex": [None, "F", "M"], "value": [value, None, 2.0]}).write_csv(tmp_path / "table.csv")
    assert main(["attack", published(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_sums_without_a_rule_about_dominance_are_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.DataFrame({"job": ["a"] * 12 + ["b"] * 12, "pay": [1e6, *[10.0] * 11, *range(30, 42)]})
    plan = "tables: [[job]]\nvalue: pay\nunit: row\nsensitive: {threshold: 10}\n"
    code, said = run(tmp_path, plan, frame, capsys)
    assert (code, json.loads(said)["verdicts"][0]["state"]) == (1, "not checked")
    assert not (tmp_path / "out").exists()
    code, said = run(tmp_path, plan.replace("10}", "10, p_percent: 10}"), frame, capsys)
    assert (code, json.loads(said)["suppressed"]) == (0, 3)


def test_a_sensitive_sum_of_zero_needs_a_distance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Amounts are not negative, so that the sum 0 of five firms discloses all of them."""
    frame = pl.DataFrame({"job": list("aaaaabbbbbccccc"), "pay": [0] * 5 + [4, 5, 6, 7, 8] * 2})
    plan = "tables: [[job]]\nvalue: pay\nunit: row\nsensitive: {p_percent: 10, threshold: 3}\n"
    code, said = run(tmp_path, plan, frame, capsys)
    assert (code, "`zero`" in said) == (2, True)
    code, said = run(tmp_path, plan.replace("3}", "3, zero: 6}"), frame, capsys)
    assert (code, json.loads(said)["suppressed"]) == (0, 2)
    shown = pl.read_csv(tmp_path / "out" / "tables.csv")
    assert shown.filter(pl.col("job") == "a")["value"].null_count() == 1
