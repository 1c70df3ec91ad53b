"""Contract of a learner: the model depends on the number of records in each cell and on nothing else."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sfumato.rng import Rng
from sfumato.testing.parts import run_checks

if TYPE_CHECKING:
    from sfumato.integral.encoding import Encoding
    from sfumato.integral.learner import Learner
    from sfumato.integral.records import Records


def check_learner(learner: Learner) -> None:
    """Raise AssertionError unless ``learner`` keeps the contract of a learner."""
    run_checks(learner, LEARNER_CHECKS)


def _sample(learner: Learner) -> tuple[pl.DataFrame, Encoding]:
    from sfumato.integral.encoding import ColumnEncoding, Encoding

    draw = Rng(3).child("learner").generator
    x, z = draw.uniform(0, 100, 80), draw.uniform(0, 10, 80)
    frame = pl.DataFrame({"x": x, "z": z, "y": 0.4 * x + 3 * z + draw.normal(0, 4, 80)})
    if not learner.uses_grid:
        return frame, Encoding.from_table(frame, features=["x", "z"], label="y", threshold=35)
    bounds = {"x": (0.0, 100.0), "z": (0.0, 10.0)}
    # Labels are numbers or two classes; a learner that takes only one of them is given the other in its own tests.
    label = ColumnEncoding(name="y", edges=(35.0,)) if learner.needs_label else None
    return frame, Encoding.from_bounds(bounds, label=label)


def _records(frame: pl.DataFrame, encoding: Encoding) -> Records:
    from sfumato.integral.records import Records

    return Records.of(frame, encoding)


def does_not_depend_on_order(learner: Learner) -> None:
    frame, encoding = _sample(learner)
    one, other = _records(frame, encoding), _records(frame.reverse(), encoding)
    same = learner.fit(one, one.counts) == learner.fit(other, other.counts)
    assert same, "the model depends on the order of the records"


def batches_are_single_fits(learner: Learner) -> None:
    frame, encoding = _sample(learner)
    records = _records(frame, encoding)
    counts = np.stack([records.without([row]) for row in range(25)])
    single = [learner.fit(records, row) for row in counts]
    assert list(learner.fit_many(records, counts)) == single, "`fit_many` returns other models than `fit`"


def models_are_scored_and_described(learner: Learner) -> None:
    frame, encoding = _sample(learner)
    records = _records(frame, encoding)
    model = learner.fit(records, records.counts)
    assert isfinite(learner.score(model, records)), "the score is not a number"
    assert any(learner.describe(model, encoding)), "`describe` returns no text"
    kinds = {type(one) for one in learner.coarser()}
    assert kinds <= {type(learner)}, "`coarser` returns another kind of learner"


LEARNER_CHECKS = (does_not_depend_on_order, batches_are_single_fits, models_are_scored_and_described)
