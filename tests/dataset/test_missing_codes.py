"""Codes that mean "no answer": declared in a recipe, read as missing everywhere, and noticed by `sfumato init`."""

import json
import math
from datetime import date, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sfumato.cli import main
from sfumato.data import preview, write
from sfumato.data.missing import is_missing
from sfumato.data.table import ColumnLabels, Table
from sfumato.dataset import Column, Data, Kind, Role, Schema
from sfumato.dataset.hierarchies.intervals import IntervalsHierarchy
from sfumato.errors import InvalidRecipe, WrongKind
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.pipeline import protect
from sfumato.masking.protect_file import protect_file
from sfumato.profiling import propose, to_yaml
from sfumato.profiling.placeholders import find_placeholders
from sfumato.recipe import Recipe
from sfumato.rng import KeyedRng

DRAW = np.random.default_rng(5)
AGES = DRAW.integers(17, 91, 400)


@pytest.mark.parametrize(
    ("values", "codes", "expected"),
    [
        ([7, -9, 998, None], (-9, (997, 999)), [False, True, True, False]),
        ([1.5, 99.0], (99,), [False, True]),
        (["12", " -9 ", "n/a"], (-9, "n/a"), [False, True, True]),
        (["12", "x", "400"], ((300, 500),), [False, False, True]),
        ([1, 2], ("n/a",), [False, False]),
        ([5, -3], ((-math.inf, -1),), [False, True]),
        ([date(2020, 1, 1), date(9999, 12, 31)], ("9999-12-31",), [False, True]),
        ([datetime(9999, 12, 31, 0, 0), datetime(2020, 1, 1)], ("9999-12-31",), [True, False]),
        ([True, False], (1, 0), [False, False]),
    ],
)
def test_a_code_is_compared_as_the_column_is_stored(values, codes, expected):
    assert is_missing(pl.Series(values), codes).to_list() == expected


def test_codes_are_blank_before_the_kind_is_judged():
    series = pl.Series("age", ["23", ".", "999", None])
    column = Column(role=Role.QUASI, kind=Kind.INTEGER, missing_codes=[".", 999])
    assert column.cast(series).to_list() == [23, None, None, None]
    assert series.to_list() == ["23", ".", "999", None]
    with pytest.raises(WrongKind):
        Column(role=Role.QUASI, kind=Kind.INTEGER).cast(series)


@pytest.mark.parametrize("codes", ["99", "[true]", '[" "]', "[.inf]", "[[5, 1]]", "[{a: 1}]", "[[1, 2, 3]]"])
def test_codes_that_are_none(codes):
    with pytest.raises(InvalidRecipe) as refusal:
        Recipe.parse(f"sfumato: 1\ncolumns:\n  age: {{role: quasi, missing_codes: {codes}}}\n")
    assert refusal.value.problems[0].line == 3


def test_a_recipe_gives_its_codes_back():
    text = (
        "sfumato: 1\ncolumns:\n  age: {role: quasi, missing_codes: [-9, n/a, [-.inf, -1], 2.5]}\n"
        "  day: {role: plain, missing_codes: [9999-12-31]}\n"
    )
    recipe = Recipe.parse(text)
    assert recipe.schema.columns["age"].missing_codes == (-9, "n/a", (-math.inf, -1), 2.5)
    assert recipe.schema.columns["day"].missing_codes == ("9999-12-31",)
    assert Recipe.parse(recipe.to_yaml()).schema == recipe.schema
    assert Recipe.parse(json.loads(json.dumps(recipe.to_dict(), allow_nan=False))).schema == recipe.schema


def test_a_large_file_reads_the_same_codes_as_missing(tmp_path):
    schema = Schema(
        columns={
            "age": Column(
                role=Role.QUASI,
                kind=Kind.INTEGER,
                hierarchy=IntervalsHierarchy.build([10, 20]),
                missing_codes=["-", (900, math.inf)],
            ),
            "sex": Column(role=Role.QUASI, missing_codes=[9]),
            "pay": Column(role=Role.PLAIN, missing_codes=[-1, "none"]),
            "seen": Column(role=Role.PLAIN, missing_codes=["1900-01-01"]),
        }
    )
    frame = pl.DataFrame(
        {
            "age": [("-", "999", str(age))[min(age % 20, 2)] for age in AGES.tolist()],
            "sex": DRAW.choice([1, 2, 9], 400),
            "pay": DRAW.choice([-1.0, 10.5], 400),
            "seen": [datetime(1900, 1, 1, 5) if i % 3 else datetime(2020, 1, 1) for i in range(400)],
        }
    )
    frame.write_parquet(tmp_path / "people.parquet")
    step, models = Generalize(suppression=0.1), [KAnonymity(k=3)]
    rng = KeyedRng(1)
    expected = protect(Data.of(Table(frame=frame), schema), steps=[step], models=models, rng=rng)
    assert 0 < expected.data.table.frame["seen"].null_count() < 400
    done = protect_file(
        schema=schema,
        steps=[step],
        models=models,
        source=tmp_path / "people.parquet",
        target=tmp_path / "out.parquet",
        rng=rng,
        threads=1,
    )
    columns = frame.columns
    assert_frame_equal(pl.read_parquet(done.path).sort(columns), expected.data.table.frame.sort(columns))


def some(codes, values=AGES, share=0.1):
    chosen = DRAW.choice(codes, len(values))
    return pl.Series(np.where(DRAW.random(len(values)) < share, chosen, values))


@pytest.mark.parametrize(
    ("values", "codes", "sure"),
    [
        (some([999]), (999,), True),
        (some([-1]), (-1,), True),
        (some([-8, -9]), (-9, -8), True),
        (some([-1, -2, -9], DRAW.integers(0, 30, 400)), (-9, -2, -1), True),
        (some([-4, -5]), (-5, -4), False),
        (some([97, 98, 99], DRAW.integers(1, 8, 400)), (97, 98, 99), True),
        (some([999.0], DRAW.random(400)), (999,), True),
        (pl.Series([float("nan"), 1.5, 999.0, 999.0, float("inf")]), (999,), True),
        (some([99]), (99,), False),
        (some([99999], DRAW.integers(0, 41000, 400)), (99999,), False),
        (some([-1], DRAW.integers(0, 3, 400)), (-1,), False),
        (pl.Series(["1", "-", "2", "3"]), ("-",), True),
        (pl.Series(["DE", "NA", "FR", "DE"]), ("NA",), False),
        (pl.Series(["yes", "no", "Don't know"]), ("Don't know",), False),
        (pl.Series([date(1999, 1, 1), date(9999, 12, 31)]), ("9999-12-31",), True),
    ],
)
def test_noticed(values, codes, sure):
    [found] = find_placeholders(values)
    assert (found.codes, found.sure) == (codes, sure)
    assert found.rows == int(is_missing(values, codes).sum()) > 0


@pytest.mark.parametrize(
    "values",
    [
        pl.Series(AGES),
        pl.Series(np.arange(100)),
        pl.Series(DRAW.integers(-5, 30, 400)),
        some([-7, -3, -1], DRAW.integers(0, 30, 400)),
        pl.Series(DRAW.normal(0, 50, 400)),
        pl.Series([1, 2, 999]),
        pl.Series([99, 99, 99]),
        pl.Series([float("nan"), float("inf"), float("-inf")]),
        pl.Series(["a", "b"]),
        pl.Series(["-", "-"]),
        pl.Series([None, None], dtype=pl.Int64),
        pl.Series([True, False]),
        pl.Series([date(1900, 1, 1), date(1901, 1, 1)]),
    ],
)
def test_values_that_are_left_alone(values):
    assert find_placeholders(values) == ()


def test_what_the_file_says_of_its_codes_comes_first():
    values = pl.Series([1, 2, 3, 8, 97, 98])
    labels = {1: "yes", 2: "no", 3: "Refused to answer", 8: "Don't know", 9: "missing"}
    found = find_placeholders(values, declared=((97, 99),), value_labels=labels)
    assert [(f.codes, f.sure, f.rows) for f in found] == [(((97, 99),), True, 2), ((3,), True, 1), ((8,), False, 1)]


def test_the_recipe_says_what_it_reads_as_missing_and_what_it_only_suspects():
    frame = pl.DataFrame({"age": some([999]), "weeks": some([99], AGES), "hours": ["1", "-", "2", "4"] * 100})
    labels = {"hours": ColumnLabels(missing=("4",))}
    proposal = propose(Table(frame=frame, labels=labels))
    text = to_yaml(proposal, "people.csv", k=2)
    columns = Recipe.parse(text).schema.columns
    assert columns["age"].missing_codes == (999,)
    assert columns["weeks"].missing_codes == ()
    assert columns["hours"].missing_codes == ("4", "-")
    assert columns["hours"].kind is Kind.INTEGER
    assert "add missing_codes: [99]" in text
    assert "[999]" in text.split("  age:")[0]
    told = {c["column"]: c["missing_codes"] for c in proposal.to_dict()["columns"]}
    assert told["weeks"][0]["codes"] == [99]
    assert told["weeks"][0]["sure"] is False
    assert proposal.columns[0].missing == pytest.approx(int((frame["age"] == 999).sum()) / 400)


def test_an_spss_file_with_open_ranges_goes_through(tmp_path, monkeypatch, capsys):
    pyreadstat = pytest.importorskip("pyreadstat")
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"age": [*AGES.tolist(), -5, -7, -5], "sex": [1, 2] * 200 + [1, 2, 9]})
    pyreadstat.write_sav(
        frame,
        "people.sav",
        missing_ranges={"age": [{"lo": -math.inf, "hi": -1}], "sex": [9]},
        variable_value_labels={"sex": {1: "male", 2: "female"}},
    )
    assert main(["init", "people.sav", "--k", "2"]) == 0
    assert "sex: 9 is read as missing." in capsys.readouterr().out
    assert main(["init", "people.sav", "--k", "2", "--force", "--details"]) == 0
    shown = capsys.readouterr().out
    assert "stand for missing values" in shown
    assert "-inf" in shown
    columns = Recipe.load("sfumato.yaml").schema.columns
    assert columns["age"].missing_codes == ((-math.inf, -1),)
    assert columns["sex"].missing_codes == (9,)
    assert main(["protect", "sfumato.yaml", "--json"]) == 0
    assert main(["check", "release", "--original", "people.sav", "--json"]) == 0


class TestPartOfATable:
    rows = pl.DataFrame({"number": range(5000), "row_number": [f"{i % 90:02d}" for i in range(5000)]})

    def test_first_rows_and_others_spread_over_the_rest(self):
        found = preview(self.rows, most=1000)
        assert found.partial
        assert found.rows == 5000
        assert found.table.frame["number"].to_list() == [*range(500), *range(500, 5000, 9)]

    @pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".duckdb"])
    def test_a_file_passed_through_gives_the_rows_that_memory_gives(self, tmp_path, suffix):
        path = tmp_path / f"people{suffix}"
        write(Table(frame=self.rows), path)
        found = preview(path, most=1000, whole=False)
        assert found.rows == 5000
        assert_frame_equal(found.table.frame, preview(path, most=1000, whole=True).table.frame)
        assert_frame_equal(found.table.frame, preview(self.rows, most=1000).table.frame)

    def test_labels_of_a_part_are_those_of_the_whole(self, tmp_path):
        labels = {"number": ColumnLabels(label="Running number", missing=(7,))}
        write(Table(frame=self.rows, labels=labels), tmp_path / "people.parquet")
        assert preview(tmp_path / "people.parquet", most=1000, whole=False).table.labels == labels

    def test_a_small_table_is_whole(self, tmp_path):
        path = tmp_path / "people.csv"
        write(Table(frame=self.rows), path)
        for whole in (True, False, None):
            found = preview(path, most=5000, whole=whole)
            assert not found.partial
            assert found.table.rows == found.rows == 5000

    def test_init_says_that_it_looked_at_a_part(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        write(Table(frame=self.rows), Path("people.csv"))
        assert main(["init", "people.csv", "--rows", "1000"]) == 0
        assert "Read 1,000 of 5,000 rows" in capsys.readouterr().err
        assert "of the rows were examined" in Path("sfumato.yaml").read_text().replace("\n# ", " ")
        assert main(["init", "people.csv", "--rows", "1000", "--json", "--force"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["rows"] == 5000
        assert document["looked_at"] == 1000


class TestAmounts:
    def role(self, values) -> tuple[str, str]:
        [column] = propose(Table(frame=pl.DataFrame({"v17": values})), max_size=1).columns
        return column.role.value, column.finding.detector

    @pytest.mark.parametrize(
        "values",
        [
            DRAW.lognormal(10, 0.6, 1000).astype(int),
            DRAW.lognormal(10, 0.6, 1000).round(2),
            DRAW.normal(50_000, 9_000, 1000).astype(int),
            DRAW.permutation(np.arange(1000)) * 100,
            DRAW.exponential(20_000, 1000).astype(int),
        ],
    )
    def test_a_near_unique_amount_is_no_identifier(self, values):
        assert self.role(values) == ("quasi", "an amount")

    @pytest.mark.parametrize(
        "values",
        [
            np.arange(1000) + 1,
            DRAW.integers(1, 10**9, 1000),
            DRAW.permutation(np.arange(10**5, 10**5 + 1000)),
            np.concatenate([1000 + np.arange(500), 9000 + np.arange(500)]),
            10**15 + np.arange(1000) ** 2,
        ],
    )
    def test_numbers_given_to_people_are(self, values):
        assert self.role(values) == ("identifier", "a unique code")
