"""Every masking method on files larger than memory: the values it gives in memory, or a declared refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sfumato.engines.backends.duckdb import Duckdb
from sfumato.errors import NotApplicable
from sfumato.masking.base import Step
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.methods.microaggregate import Microaggregate
from sfumato.masking.methods.noise import Noise
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.masking.methods.sample import Sample
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.pipeline import protect
from sfumato.masking.protect_file import ProtectedFile, protect_file
from sfumato.registry import registry
from sfumato.rng import KeyedRng
from sfumato.secret import SecretValue
from sfumato.testing.masking_sample import masking_frame as frame
from sfumato.testing.masking_sample import masking_sample as dataset

CASES = [
    pytest.param(kind, parameters, id=f"{kind.part_name()}-{number}")
    for kind in registry("method")
    for number, parameters in enumerate(kind.examples)
]
MODELS = (KAnonymity(k=3),)
KEY = SecretValue(bytes(32))


def by_row(table: pl.DataFrame, rows: Any) -> pl.DataFrame:
    return table.with_columns(pl.Series("original row", rows, dtype=pl.Int64)).sort("original row")


def out_of_core(folder: Path, *steps: Step, **more: Any) -> tuple[ProtectedFile, pl.DataFrame]:
    data = dataset()
    data.table.frame.write_parquet(folder / "people.parquet")
    lineage = folder / "lineage.parquet"
    done = protect_file(
        schema=data.schema,
        steps=steps,
        models=MODELS,
        source=folder / "people.parquet",
        target=folder / "out.parquet",
        lineage=lineage,
        rng=KeyedRng(7, key=KEY),
        force=True,
        **{"engine": Duckdb(threads=1), **more},
    )
    assert lineage.stat().st_mode & 0o777 == 0o600
    released = pl.read_parquet(done.path)
    assert done.rows == released.height
    assert done.original_rows == data.rows
    return done, by_row(released, pl.read_parquet(lineage)["original_row"])


def in_memory(*steps: Step) -> tuple[Any, pl.DataFrame]:
    done = protect(dataset(), steps=steps, models=MODELS, rng=KeyedRng(7, key=KEY))
    return done, by_row(done.data.table.frame, done.lineage.rows)


def _less(outcome: dict[str, Any]) -> dict[str, Any]:
    """Without the number of nodes that a search looked at, which depends on the order of the classes."""
    return {key: value for key, value in outcome.items() if key != "nodes_checked"}


def assert_same(folder: Path, *steps: Step, **more: Any) -> None:
    expected, rows = in_memory(*steps)
    done, stored = out_of_core(folder, *steps, **more)
    assert_frame_equal(stored, rows.with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String)), check_exact=True)
    assert [one.public() for one in done.steps] == [one.public() for one in expected.steps]
    assert [_less(one.private()) for one in done.steps] == [_less(one.private()) for one in expected.steps]
    assert [v.to_dict() for v in done.verdicts] == [v.to_dict() for v in expected.verdicts]


@pytest.mark.parametrize(("kind", "parameters"), CASES)
def test_files_are_masked_as_in_memory(
    kind: type[Step], parameters: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, outcome, row map and verdicts are equal to the last bit, or the method says that it cannot."""
    monkeypatch.chdir(tmp_path)
    step = kind.build(parameters)
    if not kind.out_of_core:
        with pytest.raises(NotApplicable, match="needs all rows in memory") as refusal:
            out_of_core(tmp_path, step)
        assert f"`{Generalize.part_name()}`" in str(refusal.value)
        assert f"`{kind.part_name()}`" not in str(refusal.value)
        assert not (tmp_path / "out.parquet").exists()
        return
    if kind.part_name() == "pseudonymize":
        Path("pseudonyms.key").write_text("ab" * 32)
    assert_same(tmp_path, step)


def test_steps_follow_one_another(tmp_path: Path) -> None:
    assert_same(
        tmp_path,
        Noise(variance_ratio=0.1, columns=("income", "rent")),
        Sample(fraction=0.9, strata=("stratum",)),
        RankSwap(p=10, columns=("age", "height"), strata=("stratum",)),
        Generalize(suppression=0.5),
    )


@pytest.mark.parametrize("order", ["shuffled", "kept"])
def test_the_row_map_leads_back_to_the_original(order: Any, tmp_path: Path) -> None:
    _, stored = out_of_core(tmp_path, Sample(fraction=0.5), order=order)
    original = frame().drop("name", "weight")
    assert_frame_equal(stored.drop("original row", "weight"), original[stored["original row"].to_list()])
    rows = pl.read_parquet(tmp_path / "lineage.parquet")["original_row"]
    assert rows.is_sorted() == (order == "kept")


def test_rows_of_a_text_file_are_numbered_in_its_order(tmp_path: Path) -> None:
    people = frame().drop("birth", "admitted").with_columns(row_number=pl.int_range(pl.len()))
    people.write_csv(tmp_path / "people.csv")
    schema = dataset().schema
    columns = {name: column for name, column in schema.columns.items() if name in people.columns}
    protect_file(schema=type(schema)(columns=columns), steps=[Noise(variance_ratio=0.1, columns=("income",))],
                 models=[], source=tmp_path / "people.csv", target=tmp_path / "out.csv",
                 lineage=tmp_path / "rows.parquet", rng=KeyedRng(7, key=KEY))  # fmt: skip
    numbers = pl.read_csv(tmp_path / "out.csv")["row_number"]
    assert numbers.to_list() == pl.read_parquet(tmp_path / "rows.parquet")["original_row"].to_list()


def test_a_step_that_needs_more_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.masking.by_columns._WORKING_COPIES", 1_000_000)
    with pytest.raises(NotApplicable, match=r"rank-swap needs about .* GB for 2 columns of 240 rows") as refusal:
        out_of_core(tmp_path, RankSwap(p=10, columns=("income",), strata=("stratum",)))
    assert "`memory`" in str(refusal.value)
    assert not (tmp_path / "out.parquet").exists()
    assert not (tmp_path / "lineage.parquet").exists()


@pytest.mark.parametrize("algorithm", ["mdav", "v-mdav"])
def test_an_algorithm_of_quadratic_time_is_refused_above_its_limit_of_rows(
    algorithm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.masking.methods.microaggregate._MOST_ROWS", 239)
    step = Microaggregate(k=3, algorithm=algorithm, columns=("income", "rent"))
    with pytest.raises(NotApplicable, match=rf"`{algorithm}` .* 240 rows \(at most 239\)") as refusal:
        out_of_core(tmp_path, step)
    assert "`algorithm: projection`" in refusal.value.fix
    assert not (tmp_path / "out.parquet").exists()
    assert_same(tmp_path, step.model_copy(update={"algorithm": "projection"}))
    assert_same(tmp_path, step.model_copy(update={"strata": ("stratum",)}))
    assert_same(tmp_path, step.model_copy(update={"block": 60}))
