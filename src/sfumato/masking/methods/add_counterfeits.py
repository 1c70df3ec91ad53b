"""Counterfeit records."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.dataset import Data, Role
from sfumato.masking.base import Context, Step
from sfumato.release import Change


class AddCounterfeits(Step):
    """Add fabricated records among the real ones.

    An attacker who finds a matching record cannot be sure that it belongs to a real person. The share of counterfeits
    is published; which records are counterfeits is not. Preserves the marginals in expectation (and, with ``pieces``,
    the joint distribution of the quasi-identifiers and that of all other columns). Weakens the dependence between the
    two by about the share of counterfeits, and totals grow with the number of rows. Real records are unchanged, so it
    does not protect real people by itself.

    Counterfeits are placed at random. In identifier, household and person columns they get random values of the same
    form (letters and lengths as in the column, whole numbers of its range), so that a pseudonym does not reveal them;
    put this step after ``pseudonymize``. Random names are recognizable, so names must be removed, as the pipeline does.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"age": range(100)})),
    ...                     Schema(columns={"age": Column(role="quasi")}))
    >>> change = AddCounterfeits(fraction=0.1).apply(people, Context(rng=Rng(1)))
    >>> change.table.rows, int((change.rows == -1).sum())
    (110, 10)
    """

    simulable = False
    keeps_rows = False
    adds_rows = True
    stronger = {"fraction": "more"}
    main = "fraction"
    examples = ({"fraction": 0.2}, {"fraction": 0.1, "variant": "independent"})
    reference = (
        "Xiao, Tao: m-invariance: towards privacy preserving re-publication of dynamic datasets (SIGMOD 2007), "
        "doi:10.1145/1247480.1247556"
    )

    fraction: Annotated[float, Field(gt=0, le=10)]
    """Counterfeits per real record (0.1: one for every ten); at least one is added."""
    variant: Literal["pieces", "independent"] = "pieces"
    """``pieces``: quasi-identifiers from one record, all other columns from another. ``independent``: every column
    from a record of its own."""

    def apply(self, data: Data, context: Context) -> Change:
        frame, random = data.table.frame, context.rng.generator
        count = max(1, round(self.fraction * data.rows))
        hidden = {*data.removed(), *data.schema.names(Role.HOUSEHOLD)}
        if data.schema.unit is not None:
            hidden.add(data.schema.unit)
        quasi, rest = random.integers(data.rows, size=(2, count))
        columns = []
        for name in frame.columns:
            series = frame.get_column(name)
            if name in hidden:
                columns.append(_random_values(series, count, random))
                continue
            if self.variant == "independent":
                rows = random.integers(data.rows, size=count)
            else:
                rows = quasi if name in data.quasi else rest
            columns.append(series.gather(rows))
        total = data.rows + count
        place = np.full(total, -1, dtype=np.int64)
        real = np.ones(total, dtype=bool)
        real[random.choice(total, count, replace=False)] = False
        place[real] = np.arange(data.rows)
        order = place.copy()
        order[~real] = np.arange(data.rows, total)
        table = data.table.with_frame(pl.concat([frame, pl.DataFrame(columns)])[order])
        # no column is perturbed: values of real rows are true, and an adversary may rely on them
        return Change(table=table, rows=place, public={"columns": []})


def _random_values(series: pl.Series, count: int, random: np.random.Generator) -> pl.Series:
    """Random values of the same form as the column's; missing if the form is unknown."""
    known = series.drop_nulls()
    if len(known) and series.dtype == pl.String:
        sample = known.sample(min(len(known), 1000), seed=int(random.integers(2**31)))
        letters = np.array(sorted(set("".join(sample.to_list()))) or [""])
        lengths = random.choice(sample.str.len_chars().to_numpy(), count)
        words = ["".join(random.choice(letters, int(length))) for length in lengths]
        return pl.Series(series.name, words, dtype=pl.String)
    if len(known) and series.dtype.is_integer():
        low, high = int(known.min()), int(known.max())  # type: ignore[arg-type]
        kind = np.uint64 if high > np.iinfo(np.int64).max else np.int64
        drawn = random.integers(low, high, count, dtype=kind, endpoint=True)
        return pl.Series(series.name, drawn).cast(series.dtype)
    return pl.Series(series.name, [None], dtype=series.dtype).new_from_index(0, count)
