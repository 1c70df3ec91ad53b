"""Sampling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.dataset import Data, Role
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._masking import split
from sfumato.release import Change


class Sample(Step):
    """Release a random sample of the records.

    An attacker cannot be sure that a person is in the file: a unique record may have equals that were not drawn.
    Preserves all distributions within sampling error; sampling weights are raised so that weighted totals are unbiased.
    Does not protect sampled people if the attacker knows that they are in the sample.

    The sample size of each stratum is rounded at random; at least one record is drawn in total.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"age": range(100)})),
    ...                     Schema(columns={"age": Column(role="quasi")}))
    >>> Sample(fraction=0.1).apply(people, Context(rng=Rng(1))).table.rows
    10
    """

    truthful = True
    keeps_rows = False
    simulable = False
    stronger = {"fraction": "less"}
    out_of_core = True
    main = "fraction"
    examples = ({"fraction": 0.5},)
    reference = "Hundepool et al.: Statistical Disclosure Control (2012), section 3.6, doi:10.1002/9781118348239"

    fraction: Annotated[float, Field(gt=0, le=1)]
    """Sampling fraction: 0.1 is 10 %."""
    strata: tuple[str, ...] = ()
    """Columns whose combinations are sampled separately, at the same fraction."""

    @classmethod
    def rows_in_words(cls, published: Mapping[str, Any]) -> str:
        fraction = published.get("parameters", {}).get("fraction")
        return "a random sample" if fraction is None else f"a random sample of {100 * fraction:.4g} %"

    @classmethod
    def changed_columns(cls, published: Mapping[str, Any], columns: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in columns if name in published.get("weights", ()))

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        data.table.require(self.strata)
        weights = tuple(name for name in data.schema.names(Role.WEIGHT) if name in data.table.columns)
        return ((self, (*self.strata, *weights) or data.table.columns[:1]),)

    def apply(self, data: Data, context: Context) -> Change:
        data.table.require(self.strata)
        random, frame = context.rng.generator, data.table.frame
        rows = []
        for part in split(frame, self.strata):
            share = self.fraction * len(part)
            count = int(share + 1e-9) + (random.random() < share - int(share + 1e-9))
            rows.append(random.choice(part, count, replace=False, shuffle=False))
        drawn = np.sort(np.concatenate(rows)).astype(np.int64)
        if not len(drawn):
            drawn = random.integers(data.rows, size=1)
        sample = frame[drawn]
        weights = [name for name in data.schema.names(Role.WEIGHT) if name in frame.columns]
        public: dict[str, object] = {}
        if weights:
            raised = pl.col(weights).cast(pl.Float64) / self.fraction
            sample, public = sample.with_columns(raised), {"weights": weights}
        return Change(table=data.table.with_frame(sample), rows=drawn, public=public)
