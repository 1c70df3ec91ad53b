"""What every measure must do: agree that nothing changed when nothing changed, repeat itself, touch nothing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from people import NUMBERS, QUASI, dataset, frame

from sfumato.data.table import Table
from sfumato.errors import SfumatoError
from sfumato.measures import About, Measure, ReleasePair, judge
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

PARTS = [
    pytest.param(kind, parameters, id=f"{kind.part_name()}-{number}")
    for kind in registry("measure")
    for number, parameters in enumerate(kind.examples)
]


def pair(table: pl.DataFrame) -> ReleasePair:
    return ReleasePair(
        original=dataset(),
        release=Release(table=Table(frame=table), manifest={}),
        lineage=Lineage.identity(table.height),
    )


@pytest.mark.parametrize(("kind", "parameters"), PARTS)
def test_value_or_reason_and_plain_data(kind: type[Measure], parameters: dict[str, Any]) -> None:
    found = judge(kind.build(parameters), pair(frame().drop("name")), rng=Rng(1))
    assert (found.value is None) == bool(found.reason)
    assert found.measure == kind.part_name()
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["measure"] == kind.part_name()


@pytest.mark.parametrize(("kind", "parameters"), PARTS)
def test_repeatable_and_inputs_untouched(kind: type[Measure], parameters: dict[str, Any]) -> None:
    both = pair(frame().drop("name"))
    before, released = both.original.table.frame.clone(), both.masked.clone()
    assert judge(kind.build(parameters), both, rng=Rng(1)) == judge(kind.build(parameters), both, rng=Rng(1))
    assert both.original.table.frame.equals(before)
    assert both.masked.equals(released)


@pytest.mark.parametrize(("kind", "parameters"), PARTS)
def test_unchanged_release_loses_no_utility(kind: type[Measure], parameters: dict[str, Any]) -> None:
    """The best value a measure of utility can have is the value of the original itself; noise cannot improve on it."""
    if kind.about is not About.UTILITY:
        assert kind.better in ("low", "high")
        return
    table = frame().drop("name")
    noise = np.random.default_rng(0)
    worse = table.with_columns(
        pl.Series(name, noise.permutation(table[name].to_numpy())) for name in table.columns if name != "birth"
    ).with_columns(pl.col("height") * 1.3, pl.col("zip").str.head(2) + "***")
    clean = judge(kind.build(parameters), pair(table), rng=Rng(1))
    dirty = judge(kind.build(parameters), pair(worse), rng=Rng(1))
    assert clean.value is not None
    if dirty.value is not None:
        assert dirty.value >= clean.value if kind.better == "low" else dirty.value <= clean.value


SPOILT = {
    "constant": lambda table: table.with_columns(pl.lit(1.0).alias(name) for name in NUMBERS),
    "text": lambda table: table.with_columns(pl.all().cast(pl.String)),
    "starred": lambda table: table.with_columns(pl.lit("*").alias(name) for name in QUASI),
    "emptied": lambda table: table.with_columns(pl.lit(None, dtype=table.schema[name]).alias(name) for name in QUASI),
    "one row": lambda table: table.head(1),
    "other names": lambda table: table.rename({name: f"{name}_2" for name in QUASI}),
}


@pytest.mark.parametrize("spoil", list(SPOILT))
@pytest.mark.parametrize("kind", [kind for kind in registry("measure") if kind.about is About.DISCLOSURE])
def test_bad_releases_are_judged_or_refused(kind: type[Measure], spoil: str) -> None:
    """Whatever the release looks like, a measure of disclosure gives a finite value or a reason; never a crash."""
    table = SPOILT[spoil](frame().drop("name"))
    try:
        found = judge(kind.build(kind.examples[0]), pair(table), rng=Rng(1))
    except SfumatoError as refusal:
        said = str(refusal)
    else:
        said = json.dumps(found.to_dict(), allow_nan=False)
        assert (found.value is None) == bool(found.reason)
    assert len(said) > 20
