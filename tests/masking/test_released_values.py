"""What is judged is what stands in the released file: one form for each number, whoever opens the table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sfumato
from sfumato.errors import BadParameter, WriteFailed
from sfumato.release import Release

PLACES = [("memory", ".csv"), ("memory", ".parquet"), ("memory", ".sav"), ("duckdb", ".csv"), ("duckdb", ".parquet")]
WITH_NAN = [
    {"l-diversity": {"l": 2}},
    {"p-sensitive": {"p": 2, "k": 5}},
    {"t-closeness": {"t": 0.1}},
    {"beta-likeness": {"beta": 0.5}},
]


def _plan(columns: dict[str, Any], models: list[object], steps: list[object]) -> dict[str, object]:
    return {"sfumato": 1, "unit": "row", "columns": columns, "models": models, "steps": steps}


def _laboratory(*, other: object) -> pl.DataFrame:
    """Classes of five people: three with 1.0, and two with nothing, or one with nothing and one with ``other``. A last
    class has other values, so that models which compare with the whole table have something to compare with."""
    values = [*([1.0, 1.0, 1.0, other, None] * 8), *([2.0, 3.0, 4.0, 5.0, 6.0] * 8)]
    jobs = [f"job {row // 5}" for row in range(40)] + ["many"] * 40
    return pl.DataFrame({"job": jobs, "lab": pl.Series(values, dtype=pl.Float64)})


@pytest.mark.parametrize(
    ("model", "engine", "suffix"),
    [*((WITH_NAN[0], *place) for place in PLACES), *((model, "memory", ".parquet") for model in WITH_NAN[1:])],
)
def test_nan_is_no_sensitive_value(model: dict[str, object], engine: str, suffix: str, tmp_path: Path) -> None:
    plan = _plan(
        {"job": {"role": "quasi"}, "lab": {"role": "sensitive", "kind": "number"}}, [{"k-anonymity": 5}, model], []
    )
    verdicts = []
    for name, other in (("nan", float("nan")), ("missing", None)):
        file = tmp_path / f"{name}.parquet"
        _laboratory(other=other).write_parquet(file)
        done = sfumato.protect(
            plan, file, engine=engine, suffix=suffix, n_targets=10, seconds=0.001, seed=1, unmet=True
        )
        done.save(tmp_path / name, unmet=True)
        again = sfumato.check(tmp_path / name)
        verdicts += [(v.state, v.worst) for found in (done.verdicts, again) for v in found if v.model in model]
    assert len(set(verdicts)) == 1, verdicts
    assert str(verdicts[0][0]) == "fails"
    # power: a value that is one does count
    _laboratory(other=7.0).write_parquet(tmp_path / "value.parquet")
    counted = sfumato.protect(
        plan, tmp_path / "value.parquet", engine=engine, n_targets=10, seconds=0.001, seed=1, unmet=True
    )
    assert next((v.state, v.worst) for v in counted.verdicts if v.model in model) != verdicts[0]


@pytest.mark.parametrize("release", ["frame", "file"])
def test_check_of_another_ones_table_takes_nan_as_missing(release: str, tmp_path: Path) -> None:
    frame = _laboratory(other=float("nan"))
    frame.write_parquet(tmp_path / "release.parquet")
    plan = _plan({"job": {"role": "quasi"}, "lab": {"role": "sensitive"}}, [{"l-diversity": {"l": 2}}], [])
    recipe = sfumato.Recipe.parse(plan)
    found = sfumato.check(frame if release == "frame" else tmp_path / "release.parquet", recipe=recipe)
    assert [str(v.state) for v in found if v.model == "l-diversity"] == ["fails"]


@pytest.mark.parametrize(("engine", "suffix"), PLACES)
def test_a_step_makes_one_zero(engine: str, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    pl.DataFrame(
        {
            "zip": [f"Z{town:03d}" for town in range(20) for _ in range(5)],
            "balance": [-1.5 if person == 0 else 1.5 + person / 2 for _ in range(20) for person in range(5)],
        }
    ).write_csv(file)
    plan = _plan(
        {"zip": {"role": "quasi"}, "balance": {"role": "quasi", "kind": "number"}},
        [{"k-anonymity": 5}],
        [{"round": {"base": 10, "columns": ["balance"]}}],
    )
    sfumato.protect(plan, file, engine=engine, suffix=suffix, n_targets=10, seconds=0.001, seed=1).save(
        tmp_path / "release"
    )
    data = tmp_path / "release" / f"data{suffix}"
    match suffix:
        case ".csv":
            rows = data.read_text().splitlines()[1:]
        case ".parquet":
            rows = [f"{zip_code},{balance!r}" for zip_code, balance in pl.read_parquet(data).iter_rows()]
        case _:
            import pyreadstat

            rows = [f"{row}" for row in pyreadstat.read_sav(data, output_format="polars")[0].iter_rows()]
    assert min(Counter(rows).values()) == 5


def _with_a_star() -> pl.DataFrame:
    """Twelve people in two classes, and one whose own values are ``*``."""
    towns = [*"AB" * 6, "*"]
    return pl.DataFrame({"zip": towns, "job": towns, "ill": [*["flu", "flu", "none", "none"] * 3, "hiv"]})


ROLES = {"zip": {"role": "quasi"}, "job": {"role": "quasi"}, "ill": {"role": "sensitive"}}
MODELS: list[object] = [{"k-anonymity": 5}, {"l-diversity": {"l": 2}}]


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_star_in_the_data_is_no_suppressed_cell(engine: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    _with_a_star().write_csv(file)
    with pytest.raises(BadParameter, match="holds the value `\\*`"):
        sfumato.protect(_plan(ROLES, MODELS, []), file, engine=engine, seconds=0.001, unmet=True)
    coded = {name: {**role, "missing_codes": ["*"]} for name, role in ROLES.items()}
    done = sfumato.protect(_plan(coded, MODELS, []), file, engine=engine, n_targets=10, seconds=0.001, unmet=True)
    assert [str(v.state) for v in done.verdicts if v.model in ("k-anonymity", "l-diversity")] == ["fails", "fails"]


def test_check_exempts_only_rows_that_somebody_suppressed(tmp_path: Path) -> None:
    frame = _with_a_star()
    recipe = sfumato.Recipe.parse(_plan(ROLES, MODELS, []))

    def states(release: object, **options: Any) -> list[str]:
        return [str(v.state) for v in sfumato.check(release, **options) if v.model in ("k-anonymity", "l-diversity")]

    # nobody knows: what was assumed is said
    assumed = [v for v in sfumato.check(frame, recipe=recipe) if v.model == "k-anonymity"]
    assert [str(v.state) for v in assumed] == ["holds"]
    assert "1 row with `*` in every quasi-identifier taken for suppressed" in assumed[0].reason
    # the original knows
    assert states(frame, recipe=recipe, original=frame) == ["fails", "fails"]
    before = frame.with_columns(pl.when(pl.col("zip") == "*").then(pl.lit("C")).otherwise("zip").alias("zip"))
    before = before.with_columns(job="zip")
    assert states(frame, recipe=recipe, original=before) == ["holds", "holds"]
    # the manifest knows: a step changed the columns, or none did
    for steps, expected in (([], "fails"), ([{"step": "generalize", "columns": ["zip", "job"]}], "holds")):
        manifest = {"columns": ROLES, "models": MODELS, "steps": steps, "recipe": {"unit": "row", "columns": ROLES}}
        release = Release(table=sfumato.read(frame), manifest=manifest)
        manifest["models"] = [{"k-anonymity": {"k": 5}}]
        assert states(release) == [expected]


def _spelled(odd: object) -> pl.DataFrame:
    """Classes of five people, four with one value and one with ``odd``, which is another."""
    usual = 0.3 if isinstance(odd, float) else "1" if odd == "1.0" else "hiv"
    jobs = [f"job {row // 5}" for row in range(50)]
    return pl.DataFrame({"job": jobs, "ill": [odd if row % 5 == 4 else usual for row in range(50)]})


@pytest.mark.parametrize(
    ("odd", "suffix", "kept"),
    [
        ("hiv ", ".sav", False),
        ("", ".sav", False),
        ("", ".dta", False),
        ("", ".xlsx", False),
        ("1.0", ".csv", True),
        ("hiv ", ".csv", True),
        ("", ".csv", True),
        (0.1 + 0.2, ".xlsx", False),
        (0.1 + 0.2, ".csv", True),
        (0.1 + 0.2, ".sav", True),
        ("hiv ", ".parquet", True),
    ],
)
def test_what_is_judged_is_what_is_written(odd: object, suffix: str, kept: bool, tmp_path: Path) -> None:
    kind = {"kind": "number"} if isinstance(odd, float) else {"kind": "category"}
    plan = _plan({"job": {"role": "quasi"}, "ill": {"role": "sensitive", **kind}}, MODELS, [])
    done = sfumato.protect(plan, _spelled(odd), suffix=suffix, n_targets=10, seconds=0.001, unmet=True)
    assert [str(v.state) for v in done.verdicts if v.model == "l-diversity"] == ["holds"]
    folder = tmp_path / "release"
    if kept:
        done.save(folder, unmet=True)
        assert [str(v.state) for v in sfumato.check(folder) if v.model == "l-diversity"] == ["holds"]
        return
    with pytest.raises(WriteFailed, match="Column `ill`") as refused:
        done.save(folder, unmet=True)
    assert not folder.exists()
    assert "hiv" not in str(refused.value)
