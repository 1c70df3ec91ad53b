"""Global recoding by a table of replacements."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from pydantic import Field

from sfumato.dataset import Data
from sfumato.masking.base import Context, Step
from sfumato.release import Change


class Recode(Step):
    """Replace values by others according to a table, the same in all rows of a column.

    For manual groupings: ``{job: {nurse: health, surgeon: health}}``. Group sizes and the truth of labels are not
    checked; check the result with a privacy model. Values are compared as text, and the column becomes text. Missing
    values stay missing.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"job": ["nurse", "surgeon", "clerk"]})),
    ...                     Schema(columns={"job": Column(role="quasi")}))
    >>> step = Recode(map={"job": {"nurse": "health", "surgeon": "health"}}, other="else")
    >>> step.apply(people, Context(rng=Rng(1))).table.frame["job"].to_list()
    ['health', 'health', 'else']
    """

    report_phrase = "recoded by a table"
    simulable = True
    draws = False
    out_of_core = True
    main = "map"
    examples = ({"map": {"region": {"north": "upper", "south": "lower"}}},)
    reference = "Hundepool et al.: Statistical Disclosure Control (2012), section 3.6, doi:10.1002/9781118348239"

    map: Annotated[dict[str, dict[str, str | None]], Field(min_length=1)]
    """By column: old value to new value. A new value of null makes the cell missing."""
    other: str | None = None
    """Replacement for values that the table does not list. Default: they are unchanged."""

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        data.table.require(tuple(self.map))
        return tuple((self.model_copy(update={"map": {name: table}}), (name,)) for name, table in self.map.items())

    def apply(self, data: Data, context: Context) -> Change:
        frame = data.table.frame
        data.table.require(tuple(self.map))
        masked = []
        for name, table in self.map.items():
            old = frame.get_column(name).cast(pl.String)
            new = old.replace_strict(
                pl.Series(list(table), dtype=pl.String),
                pl.Series(list(table.values()), dtype=pl.String),
                default=old if self.other is None else pl.repeat(self.other, len(old), eager=True),
                return_dtype=pl.String,
            )
            masked.append(pl.select(pl.when(old.is_not_null()).then(new)).to_series().alias(name))
        return Change(table=data.table.with_frame(frame.with_columns(masked)), public={"columns": list(self.map)})
