"""Files of any size: DuckDB and Spark give the release that memory gives."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sfumato.cli import main
from sfumato.data import read, write
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Kind, Role, Schema
from sfumato.dataset.hierarchies.intervals import IntervalsHierarchy
from sfumato.dataset.hierarchies.mask import MaskHierarchy
from sfumato.engines.choice import masking_engine
from sfumato.engines.engine import Engine
from sfumato.engines.stored_table import StoredTable
from sfumato.errors import (
    BadParameter,
    ExtraMissing,
    NotApplicable,
    OutputExists,
    UnknownColumn,
    UnknownFormat,
    Unmet,
    WrongKind,
)
from sfumato.masking.base import Step
from sfumato.masking.methods.add_counterfeits import AddCounterfeits
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.methods.mondrian import Mondrian
from sfumato.masking.methods.pseudonymize import Pseudonymize
from sfumato.masking.methods.remove import Remove
from sfumato.masking.methods.synthesize import Synthesize
from sfumato.masking.model import PrivacyModel
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.models.k_map import KMap
from sfumato.masking.models.l_diversity import LDiversity
from sfumato.masking.models.t_closeness import TCloseness
from sfumato.masking.pipeline import MaskingResult, protect
from sfumato.masking.protect_file import ProtectedFile, judge_table, protect_file
from sfumato.registry import registry
from sfumato.release import State, Verdict
from sfumato.rng import KeyedRng, Rng
from sfumato.secret import SecretValue

SCHEMA = Schema(
    columns={
        "name": Column(role=Role.IDENTIFIER),
        "zip": Column(role=Role.QUASI, hierarchy=MaskHierarchy.build("right")),
        "age": Column(role=Role.QUASI, kind=Kind.INTEGER, hierarchy=IntervalsHierarchy.build([5, 20])),
        "sex": Column(role=Role.QUASI),
        "illness": Column(role=Role.SENSITIVE),
    }
)


def people(rows: int = 600) -> pl.DataFrame:
    draw = Rng(3).generator
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(rows)],
            "zip": [f"{10 + int(z):02d}1" for z in draw.integers(0, 4, rows)],
            "age": draw.integers(0, 60, rows),
            "sex": [None if s > 0.97 else "f" if s > 0.5 else "m" for s in draw.random(rows)],
            "illness": [("flu", "cold", "gout")[i] for i in draw.integers(0, 3, rows)],
            "note, \"odd' name": draw.integers(0, 9, rows),
        }
    )


KEY = SecretValue(bytes(32))
MODELS: tuple[PrivacyModel, ...] = (KAnonymity(k=4), LDiversity(l=2, kind="distinct"))


def in_memory(frame: pl.DataFrame, *steps: Step, models: tuple[PrivacyModel, ...] = MODELS) -> MaskingResult:
    return protect(Data.of(Table(frame=frame), SCHEMA), steps=steps, models=models, rng=KeyedRng(7, key=KEY))


def at_scale(folder: Path, frame: pl.DataFrame, *steps: Step, models: Any = MODELS, **more: Any) -> ProtectedFile:
    source = folder / "people.parquet"
    frame.write_parquet(source)
    more = {"target": folder / "out.parquet", "schema": SCHEMA, "threads": 1, "rng": KeyedRng(7, key=KEY), **more}
    return protect_file(steps=steps, models=models, source=source, **more)


def judged(path: Path, *, schema: Schema, models: Sequence[PrivacyModel]) -> tuple[Verdict, ...]:
    with masking_engine("duckdb", memory="1GB").workspace(path) as workspace:
        return judge_table(StoredTable.open(workspace, schema, original=False), models)


def assert_alike(left: pl.DataFrame, right: pl.DataFrame) -> None:
    assert_frame_equal(left.sort(left.columns), right.sort(right.columns))


VARIANTS: list[dict[str, Any]] = [
    {"suppression": 0.1},
    {"suppression": 0.1, "suppressed": "star"},
    {"suppression": 0.2, "only": ("age",), "highest": {"age": 1}},
    {"suppression": 0.2, "only": ("sex",), "suppressed": "star", "lowest": {"zip": 1}},
    {"suppression": 0.0},
]


@pytest.mark.parametrize("settings", VARIANTS)
def test_duckdb_writes_the_release_that_memory_gives(tmp_path: Path, settings: dict[str, Any]) -> None:
    step = Generalize(**settings)
    expected = in_memory(people(), step)
    done = at_scale(tmp_path, people(), step)
    found = pl.read_parquet(done.path)
    assert_alike(found, expected.data.table.frame)
    assert done.rows == found.height
    assert done.steps[0].public()["levels"] == dict(expected.steps[0].change.public["levels"])
    assert done.steps[0].private()["suppressed_whole"] == expected.steps[0].change.private["suppressed_whole"]
    assert [v.to_dict() for v in done.verdicts] == [v.to_dict() for v in expected.verdicts]
    assert done.holds


@pytest.mark.parametrize("cuts", ["strict", "relaxed"])
def test_mondrian_refuses_labels_of_an_earlier_step_without_quoting_them(tmp_path: Path, cuts: Any) -> None:
    first = Generalize(lowest={"age": 1}, suppression=0.1)
    labels = in_memory(people(), first).data.table.frame["age"].unique().to_list()
    with pytest.raises(WrongKind, match="`age` is declared integer but holds text") as refusal:
        at_scale(tmp_path, people(), first, Mondrian(cuts=cuts))
    assert labels
    assert not any(label in str(refusal.value) for label in labels)
    assert not (tmp_path / "out.parquet").exists()


def test_a_csv_file_gives_the_same_release(tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    people().write_csv(source)
    step = Generalize(suppression=0.1)
    done = protect_file(
        schema=SCHEMA,
        steps=[step],
        models=MODELS,
        source=source,
        target=tmp_path / "out.csv",
        rng=KeyedRng(7, key=KEY),
        threads=1,
    )
    write(in_memory(people(), step).data.table, tmp_path / "expected.csv")
    assert_alike(read(done.path).frame, read(tmp_path / "expected.csv").frame)


def test_words_for_no_value_survive_a_csv_file(tmp_path: Path) -> None:
    """The town of Na and an empty text are values; only a gap is a gap."""
    frame = pl.DataFrame({"q": ["a"] * 4, "t": ["NA", "", None, ' x, "y"'], "n": [1, None, 2, 3]})
    frame.write_parquet(tmp_path / "x.parquet")
    protect_file(schema=Schema(columns={"q": Column(role=Role.QUASI)}), steps=[Generalize()], models=[KAnonymity(k=2)],
                 source=tmp_path / "x.parquet", target=tmp_path / "out.csv", rng=KeyedRng(1))  # fmt: skip
    assert_alike(read(tmp_path / "out.csv").frame, frame)


def test_pseudonyms_are_those_of_the_step_in_memory(tmp_path: Path) -> None:
    steps = (Pseudonymize(key=tmp_path / "secret.key"), Generalize(suppression=0.1))
    expected = in_memory(people(), *steps)
    done = at_scale(tmp_path, people(), *steps)
    assert_alike(pl.read_parquet(done.path), expected.data.table.frame)
    assert "person" not in pl.read_parquet(done.path)["name"].str.join().item()
    assert (tmp_path / "secret.key").read_text().strip() not in str([one.public() for one in done.steps])


def test_identifiers_go_even_when_no_step_says_so(tmp_path: Path) -> None:
    done = at_scale(tmp_path, people(), Generalize(suppression=0.1))
    assert "name" not in pl.read_parquet(done.path).columns
    assert done.steps[-1].public()["step"] == "remove"
    named = at_scale(tmp_path, people(), Remove(), Generalize(suppression=0.1), target=tmp_path / "other.parquet")
    assert "name" not in pl.read_parquet(named.path).columns


def test_rows_are_shuffled_by_a_key_that_the_seed_gives(tmp_path: Path) -> None:
    def order(seed: int) -> list[int]:
        numbered = people().with_columns(pl.int_range(pl.len()).alias("number"))
        done = at_scale(tmp_path, numbered, Generalize(suppression=0.1), rng=KeyedRng(seed, key=KEY), force=True)
        return pl.read_parquet(done.path)["number"].to_list()

    first = order(1)
    assert first == order(1)
    assert first != order(2)
    with pytest.raises(BadParameter, match="keyed"):
        at_scale(tmp_path, people(), Generalize(suppression=0.1), rng=Rng(1), force=True)
    moved = sum(abs(a - b) for a, b in zip(first, sorted(first), strict=True)) / len(first)
    assert moved > 150  # a third of 600 rows is expected of a random order, 0 of the order of the source


def test_order_can_be_kept(tmp_path: Path) -> None:
    numbered = people().with_columns(pl.int_range(pl.len()).alias("number"))
    done = at_scale(tmp_path, numbered, Generalize(suppression=0.1), order="kept")
    numbers = pl.read_parquet(done.path)["number"].to_list()
    assert numbers == sorted(numbers)


def test_the_check_sees_a_file_that_is_not_protected(tmp_path: Path) -> None:
    people().drop("name").write_parquet(tmp_path / "raw.parquet")
    verdicts = judged(tmp_path / "raw.parquet", schema=SCHEMA, models=MODELS)
    assert [verdict.state for verdict in verdicts] == [State.FAILS, State.FAILS]
    assert verdicts[0].worst == 1
    expected = [model.check(Data(table=Table(frame=people()), schema=SCHEMA)) for model in MODELS]
    assert [verdict.to_dict() for verdict in verdicts] == [verdict.to_dict() for verdict in expected]


def test_columns_are_cast_to_their_declared_kind(tmp_path: Path) -> None:
    texts = people().with_columns(pl.col("age").cast(pl.String))
    step = Generalize(suppression=0.1)
    assert_alike(pl.read_parquet(at_scale(tmp_path, texts, step).path), in_memory(people(), step).data.table.frame)
    broken = texts.with_columns(pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("abc")).otherwise("age").alias("age"))
    with pytest.raises(WrongKind, match="1 of its values") as refusal:
        at_scale(tmp_path, broken, step, force=True)
    assert "abc" not in str(refusal.value)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Kind.INTEGER, [1.0, 2.0], 3.7),
        (Kind.INTEGER, ["1", "2"], "3.7"),
        (Kind.DATE, [datetime(2020, 1, 1), datetime(2020, 1, 2)], datetime(2020, 1, 3, 10, 30)),
        (Kind.DATE, ["2020-01-01", "2020-01-02"], "2020-01-03 10:30:00"),
        (Kind.BOOLEAN, [0, 1], 2),
        (Kind.BOOLEAN, [0.0, 1.0], 0.5),
        (Kind.BOOLEAN, ["Yes", "n"], "maybe"),
    ],
)
def test_nothing_is_rounded_or_cut_to_fit_a_kind(kind: Kind, good: list[Any], bad: Any, tmp_path: Path) -> None:
    """What memory refuses is refused by an engine, which would round 3.7 to 4 by itself."""
    schema = Schema(columns={"x": Column(role=Role.QUASI, kind=kind)})

    def run(values: list[Any]) -> Any:
        frame = pl.DataFrame({"x": values})
        frame.write_parquet(tmp_path / "x.parquet")
        told: Any = Data.of(Table(frame=frame), schema)
        protect_file(schema=schema, steps=[Generalize()], models=[KAnonymity(k=2)], source=tmp_path / "x.parquet",
                     target=tmp_path / "out.parquet", rng=KeyedRng(1), force=True)  # fmt: skip
        return told.table.frame["x"]

    expected = run(good * 2)
    assert pl.read_parquet(tmp_path / "out.parquet")["x"].sort().equals(expected.sort())
    values = [*good * 2, bad, bad]
    with pytest.raises(WrongKind, match="2 of its 6 values"):
        run(values)
    pl.DataFrame({"x": values}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(WrongKind, match="2 of its values"):
        protect_file(schema=schema, steps=[Generalize()], models=[KAnonymity(k=2)], source=tmp_path / "x.parquet",
                     target=tmp_path / "out.parquet", rng=KeyedRng(1), force=True)  # fmt: skip


@pytest.mark.parametrize("weight", [0.0, float("nan"), float("inf"), None])
def test_weights_are_positive_numbers(weight: float | None, tmp_path: Path) -> None:
    frame = people().with_columns(w=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit(weight)).otherwise(1.0))
    frame.write_parquet(tmp_path / "x.parquet")
    schema = Schema(columns={**SCHEMA.columns, "w": Column(role=Role.WEIGHT)})
    with pytest.raises(BadParameter, match="positive"):
        protect_file(schema=schema, steps=[Generalize()], models=MODELS, source=tmp_path / "x.parquet",
                     target=tmp_path / "out.parquet", rng=KeyedRng(1))  # fmt: skip
    assert not (tmp_path / "out.parquet").exists()


def test_two_populations_are_one_too_many(tmp_path: Path) -> None:
    for name, rows in (("a", 3000), ("b", 2000)):
        people(rows).drop("name", "illness").write_parquet(tmp_path / f"{name}.parquet")
    models = tuple(KMap(k=4, population=tmp_path / f"{name}.parquet") for name in "ab")
    for run in (lambda: in_memory(people(), Generalize(), models=models),
                lambda: at_scale(tmp_path, people(), Generalize(), models=models)):  # fmt: skip
        with pytest.raises(BadParameter, match="different populations"):
            run()


def test_a_population_and_a_metric_with_a_target_work_too(tmp_path: Path) -> None:
    people(3000).drop("name", "illness").write_parquet(tmp_path / "population.parquet")
    models = (KMap(k=4, population=tmp_path / "population.parquet"), TCloseness(t=0.3, column="illness"))
    step = Generalize(suppression=0.1, metric={"classification": {"column": "note, \"odd' name"}})
    expected = in_memory(people(), step, models=models)
    done = at_scale(tmp_path, people(), step, models=models)
    assert_alike(pl.read_parquet(done.path), expected.data.table.frame)
    assert done.steps[0].public()["levels"] == dict(expected.steps[0].change.public["levels"])
    assert done.steps[0].private()["score"] == pytest.approx(expected.steps[0].change.private["score"])
    assert [v.to_dict() for v in done.verdicts] == [v.to_dict() for v in expected.verdicts]
    assert done.holds


def test_many_wide_columns_need_several_keys(tmp_path: Path) -> None:
    draw = Rng(9).generator
    frame = pl.DataFrame({f"q{i}": [f"value {v}" for v in draw.integers(0, 90, 200)] for i in range(11)})
    schema = Schema(columns={name: Column(role=Role.QUASI) for name in frame.columns})
    frame.write_parquet(tmp_path / "wide.parquet")
    step = Generalize(search="heuristic", seconds=1, suppression=0.5, highest={"q0": 0})
    with pytest.raises(Unmet):
        # 11 columns of 90 values do not fit into one number; q0 alone has too many values to be kept as it is
        protect_file(schema=schema, steps=[step], models=[KAnonymity(k=5)], source=tmp_path / "wide.parquet",
                     target=tmp_path / "out.parquet", rng=KeyedRng(1))  # fmt: skip
    verdict = judged(tmp_path / "wide.parquet", schema=schema, models=[KAnonymity(k=2)])[0]
    assert (verdict.worst, verdict.failing) == (1, 200)


def test_too_many_combinations_start_at_coarser_levels_and_say_so(tmp_path: Path) -> None:
    step = Generalize(suppression=0.1)
    done = at_scale(tmp_path, people(), step, combinations=50)
    assert done.holds
    assert done.steps[0].public()["optimal"] is False
    assert done.steps[0].public()["raised"]["age"] >= 1
    assert all(
        done.steps[0].public()["levels"][name] >= level for name, level in done.steps[0].public()["raised"].items()
    )
    # the same levels, asked for from the start, give the same release
    expected = in_memory(people(), Generalize(suppression=0.1, lowest=done.steps[0].public()["raised"]))
    assert_alike(pl.read_parquet(done.path), expected.data.table.frame)


def test_what_cannot_be_done_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    general = Generalize(suppression=0.1)
    with pytest.raises(NotApplicable, match="synthesize needs all rows"):
        at_scale(tmp_path, people(), general, Synthesize())
    with pytest.raises(NotApplicable, match="add-counterfeits needs all rows"):
        at_scale(tmp_path, people(), AddCounterfeits(fraction=0.1), general)
    with pytest.raises(BadParameter, match="has no privacy model"):
        at_scale(tmp_path, people(), general, models=())
    with pytest.raises(BadParameter, match="Did you mean `duckdb`"):
        at_scale(tmp_path, people(), general, engine="duckbd")
    with pytest.raises(UnknownColumn):
        at_scale(tmp_path, people().drop("zip"), general)
    with pytest.raises(UnknownFormat, match=r"`duckdb` cannot write `.xlsx`"):
        at_scale(tmp_path, people(), general, target=tmp_path / "out.xlsx")
    with pytest.raises(UnknownFormat, match=r"`spark` cannot write `.csv`"):  # before Spark is started
        at_scale(tmp_path, people(), general, target=tmp_path / "out.csv", engine="spark")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet"]
    at_scale(tmp_path, people(), general)
    with pytest.raises(OutputExists):
        at_scale(tmp_path, people(), general)


def test_without_java_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ExtraMissing, match="openjdk-17"):
        at_scale(tmp_path, people(), Generalize(suppression=0.1), engine="spark")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
def test_spark_writes_the_release_that_duckdb_writes(tmp_path: Path) -> None:
    spark = pytest.importorskip("pyspark.sql")
    session = spark.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = session.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    key = Pseudonymize(key=tmp_path / "secret.key")
    try:
        for number, settings in enumerate(VARIANTS[1:3]):
            steps = (key, Generalize(**settings))
            first = at_scale(tmp_path, people(), *steps, target=tmp_path / f"duckdb{number}.parquet")
            target = tmp_path / f"spark{number}.parquet"
            second = at_scale(tmp_path, people(), *steps, target=target, engine="spark")
            assert_alike(pl.read_parquet(first.path), pl.read_parquet(second.path))
            assert [step.public() for step in first.steps] == [step.public() for step in second.steps]
            assert [v.to_dict() for v in first.verdicts] == [v.to_dict() for v in second.verdicts]
            assert second.holds
        with pytest.raises(UnknownFormat, match="Spark reads Parquet"):
            protect_file(
                schema=SCHEMA, steps=[Generalize()], models=MODELS, source=__file__, target=tmp_path / "x.parquet",
                rng=KeyedRng(1), engine="spark",
            )  # fmt: skip
        assert not session.catalog.listTables()  # no table of ours is left behind
    finally:
        session.stop()


MASKING_ENGINES = [
    pytest.param(cls.part_name(), marks=[pytest.mark.slow] if cls.part_name() == "spark" else [])
    for cls in registry("engine")
    if issubclass(cls, Engine) and cls.writes
]


@pytest.mark.parametrize("engine", ["memory", *MASKING_ENGINES])
def test_the_command_line_runs_every_engine_with_its_defaults(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The default `--out` is a relative path."""
    if engine == "spark":
        request.getfixturevalue("java")
    monkeypatch.chdir(tmp_path)
    people().write_parquet("people.parquet")
    Path("sfumato.yaml").write_text(
        "sfumato: 1\ndata: people.parquet\nseed: 1\n"
        "columns:\n  name: identifier\n  zip: {role: quasi, hierarchy: {mask: right}}\n"
        "  age: {role: quasi, hierarchy: {intervals: [5, 20]}}\n  sex: quasi\n  illness: sensitive\n"
        '  "note, \\"odd\' name": {role: plain, decided_by: A. Steward, reason: synthetic}\n'
        "models: [{k-anonymity: 4}]\nsteps: [{generalize: {suppression: 0.1}}]\n"
    )
    assert main(["protect", "sfumato.yaml", "--engine", engine, "--targets", "50"]) == 0
    expected = in_memory(people(), Generalize(suppression=0.1), models=(KAnonymity(k=4),))
    assert_alike(pl.read_parquet("release/data.parquet"), expected.data.table.frame)
    assert main(["check", "release", "--original", "people.parquet"]) == 0
