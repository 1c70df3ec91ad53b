"""Contract of a measure: a value or a reason, repeatable, best for an unchanged release, no crash on odd releases."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.errors import SfumatoError
from sfumato.measures import About, Measure, MeasureResult, Picture, ReleasePair, judge
from sfumato.release import Lineage, Release
from sfumato.rng import Rng
from sfumato.testing.parts import run_checks
from sfumato.testing.population import NUMBERS, QUASI, population, population_frame


def check_measure(measure: Measure) -> None:
    """Raise AssertionError unless ``measure`` keeps the contract of a measure.

    Its class answers what reports and studies ask; the result is a value or a reason, as plain JSON; the same seed
    gives the same result; inputs are not changed; a measure of utility is best for an unchanged release; a measure of
    disclosure copes with releases of any shape.
    """
    run_checks(measure, MEASURE_CHECKS)


def _pair(table: pl.DataFrame) -> ReleasePair:
    release = Release(table=Table(frame=table), manifest={})
    return ReleasePair(original=population(), release=release, lineage=Lineage.identity(table.height))


def _released() -> pl.DataFrame:
    return population_frame().drop("name")


def _result(measure: Measure, table: pl.DataFrame) -> MeasureResult:
    return judge(measure, _pair(table), rng=Rng(1))


def classifies_itself(measure: Measure) -> None:
    kind = type(measure)
    assert isinstance(kind.about, About), "`about` says whether it measures disclosure or utility"
    assert kind.better in ("low", "high"), '`better` is "low" or "high"'
    assert isinstance(kind.picture, Picture), "`picture` says how a report draws it"
    assert len(kind.explanation()) > 20, "a report has no sentence that explains the measure"
    assert len(kind.label) <= 60, "`label` is too long for a table"
    assert kind.default_rank is None or kind.examples[0] == {}, "a default measure needs no parameters"
    assert kind.publishable or not kind.publishable_detail, "details are public only if the value is"


def value_or_reason_as_plain_data(measure: Measure) -> None:
    result = _result(measure, _released())
    assert (result.value is None) == bool(result.reason), "a result has a value or a reason, not both or neither"
    assert result.measure == measure.part_name(), "the result names another measure"
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["measure"] == measure.part_name(), "the document names another measure"


def repeatable_and_inputs_unchanged(measure: Measure) -> None:
    pair = _pair(_released())
    before, released = pair.original.table.frame.clone(), pair.masked.clone()
    first, second = judge(measure, pair, rng=Rng(1)), judge(measure, pair, rng=Rng(1))
    assert first == second, "the same seed gave another result"
    assert pair.original.table.frame.equals(before), "the original was changed"
    assert pair.masked.equals(released), "the release was changed"


def unchanged_release_is_best(measure: Measure) -> None:
    """Utility: permuted columns, scaled numbers and cut codes never score better than the original itself."""
    if measure.about is not About.UTILITY:
        return
    table = _released()
    draw = np.random.default_rng(0)
    shuffled = table.with_columns(
        pl.Series(name, draw.permutation(table[name].to_numpy())) for name in table.columns if name != "birth"
    )
    worse = shuffled.with_columns(pl.col("height") * 1.3, pl.col("zip").str.head(2) + "***")
    clean, damaged = _result(measure, table).value, _result(measure, worse).value
    assert clean is not None, "an unchanged release has no value"
    if damaged is not None:
        ordered = damaged >= clean if measure.better == "low" else damaged <= clean
        assert ordered, "a damaged release scores better than an unchanged one"


ODD_RELEASES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "constant": lambda table: table.with_columns(pl.lit(1.0).alias(name) for name in NUMBERS),
    "text": lambda table: table.with_columns(pl.all().cast(pl.String)),
    "starred": lambda table: table.with_columns(pl.lit("*").alias(name) for name in QUASI),
    "emptied": lambda table: table.with_columns(pl.lit(None, dtype=table.schema[name]).alias(name) for name in QUASI),
    "every fifth row empty": lambda table: table.with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col(name)).alias(name) for name in QUASI
    ),
    "one row": lambda table: table.head(1),
    "other names": lambda table: table.rename({name: f"{name}_2" for name in QUASI}),
    "other values": lambda table: table.with_columns(pl.lit("somewhere").alias(name) for name in QUASI),
}
"""Releases that a measure or an attack must cope with, by what is done to the table."""


def odd_releases_are_measured_or_refused(measure: Measure) -> None:
    """A measure of disclosure gives a finite value or a reason for every release; never a crash."""
    if measure.about is not About.DISCLOSURE:
        return
    for name, spoil in ODD_RELEASES.items():
        try:
            result = _result(measure, spoil(_released()))
        except SfumatoError as refusal:
            text = str(refusal)
        else:
            text = json.dumps(result.to_dict(), allow_nan=False)
            assert (result.value is None) == bool(result.reason), f"{name}: neither value nor reason, or both"
        assert len(text) > 20, f"{name}: the refusal says nothing"


MEASURE_CHECKS = (
    classifies_itself,
    value_or_reason_as_plain_data,
    repeatable_and_inputs_unchanged,
    unchanged_release_is_best,
    odd_releases_are_measured_or_refused,
)
