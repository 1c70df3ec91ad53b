"""The verdict on synthetic rows that repeat the record of a person."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.data.table import Table
from sfumato.evaluation.checks.copied_rows import COPIED, copied_rows, copied_verdict
from sfumato.release import Lineage, State

COUNT = 120


def people(seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "sex": draw.choice(["f", "m"], COUNT),
            "town": draw.choice(["a", "b"], COUNT),
            "income": draw.normal(30_000, 5_000, COUNT).round(2),
        }
    )


def of(frame: pl.DataFrame) -> Table:
    return Table(frame=frame)


def test_copies_are_counted_and_coincidences_are_not() -> None:
    mixed = pl.concat([people().head(7), people(2)])
    assert copied_rows(of(people()), of(mixed)) == 7
    assert copied_rows(of(people()), of(people(2))) == 0
    # The same amount in the row of somebody else is no copy of a record.
    swapped = people().with_columns(town=pl.when(pl.col("town") == "a").then(pl.lit("b")).otherwise(pl.lit("a")))
    assert copied_rows(of(people()), of(swapped)) == 0


def test_records_that_may_recur_by_chance_are_not_judged() -> None:
    """Without a column in which most values occur once, equal rows are no copies."""
    coarse = people().with_columns(income=(pl.col("income") / 10_000).round())
    assert copied_rows(of(coarse), of(coarse)) is None
    assert copied_verdict(of(coarse), of(coarse), Lineage(np.full(COUNT, -1))) == ()


def test_only_synthetic_releases_have_the_verdict() -> None:
    assert copied_verdict(of(people()), of(people()), Lineage.identity(COUNT)) == ()
    assert copied_verdict(of(people()), of(people()), None) == ()


@pytest.mark.parametrize(("keep", "state"), [(False, State.HOLDS), (True, State.FAILS)])
def test_protect_and_check_say_whether_rows_were_copied(keep: bool, state: State, tmp_path: Any) -> None:
    step = {"synthesize": {"model": "trees", "min_leaf": 2, "keep_values": keep}}
    roles = dict.fromkeys(people().columns, "quasi")
    recipe = {
        "sfumato": 1,
        "seed": 3,
        "columns": roles,
        "steps": [step],
        "attacks": [{"singling-out": {"descriptions": 10}}],
    }
    done = sfumato.protect(recipe, people())
    [verdict] = [verdict for verdict in done.verdicts if verdict.model == COPIED]
    assert verdict.state is state
    assert (verdict.worst == 0) == (state is State.HOLDS)
    assert done.evaluation.holds == (state is State.HOLDS)
