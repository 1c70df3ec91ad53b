"""Merging of rare categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import polars as pl
from pydantic import Field

from sfumato.dataset import Data, Kind
from sfumato.errors import NotApplicable
from sfumato.masking.base import Context
from sfumato.masking.methods._masking import Masking
from sfumato.release import Change


class MergeRare(Masking):
    """Merge rare categories into one, called ``other``.

    Afterwards every category of a masked column has at least ``min_count`` people: if the merged category is still too
    small, the next rarest is added, until it is large enough or everything is merged. People are counted by the column
    that the privacy unit names, where all rows without a value count as one person, or by rows. Truthful. Preserves the
    frequencies of the common categories exactly. Combinations of columns are not considered: two common categories
    together can still single out a person.

    Missing values stay missing and do not count as a category.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"job": list("aaaabbcd")})),
    ...                     Schema(columns={"job": Column(role="quasi")}))
    >>> "".join(MergeRare(min_count=2, label="x").apply(people, Context(rng=Rng(1))).table.frame["job"])
    'aaaabbxx'
    """

    report_phrase = "categories of fewer than {min_count} people merged into “{label}”"
    truthful = True
    simulable = False
    kinds = frozenset({Kind.CATEGORY, Kind.BOOLEAN})
    stronger = {"min_count": "more"}
    independent_columns = True
    reads_unit = True
    main = "min_count"
    examples = ({"min_count": 10},)
    reference = "Hundepool et al.: Statistical Disclosure Control (2012), section 3.6, doi:10.1002/9781118348239"

    min_count: Annotated[int, Field(ge=2)]
    """Minimum number of people per released category (per stratum, if strata are given)."""
    label: str = "other"
    """Label of the merged category."""

    @classmethod
    def pooled_label(cls, parameters: Mapping[str, object]) -> str:
        return str(parameters.get("label", "other"))

    def apply(self, data: Data, context: Context) -> Change:
        names, frame = self.chosen(data), data.table.frame
        data.table.require(self.strata)
        masked, merged = [], {}
        by = [f"by {number}" for number in range(len(self.strata))]
        strata = [frame.get_column(stratum).alias(name) for stratum, name in zip(self.strata, by, strict=True)]
        whose = self._people(data)
        for name in names:
            series = frame.get_column(name).cast(pl.String)
            values = pl.DataFrame([*strata, series.alias("value")])
            present = values.with_columns(whose).filter(pl.col("value").is_not_null())
            counts = present.group_by([*by, "value"]).agg(people=pl.col("person").n_unique()).sort("people", "value")
            # a person counts once among the rarer categories: with the rarest that they are in
            ranks = counts.with_row_index("rank")
            first = (
                present.join(ranks, on=[*by, "value"], nulls_equal=True).group_by([*by, "person"]).agg(pl.min("rank"))
            )
            new = first.group_by("rank").agg(new=pl.len().cast(pl.Int64))
            counts = ranks.join(new, on="rank", how="left").sort("rank").with_columns(pl.col("new").fill_null(0))
            # a category is merged if it is rare, or if the rarer ones together are still too small
            running = pl.col("new").cum_sum() - pl.col("new")
            small = pl.col("people") < self.min_count
            before = running.over(by) if by else running
            pending = (small.any().over(by) if by else small.any()) & (before < self.min_count)
            gone = counts.with_columns(gone=small | pending | (pl.col("value") == self.label))
            joined = values.join(gone.select([*by, "value", "gone"]), on=[*by, "value"], how="left",
                                 nulls_equal=True, maintain_order="left")  # fmt: skip
            hide = joined["gone"].fill_null(value=False)
            merged[name] = int(gone["gone"].sum())
            label = pl.repeat(self.label, len(series), eager=True)
            masked.append(pl.select(pl.when(hide).then(label).otherwise(series)).to_series().alias(name))
        table = data.table.with_frame(frame.with_columns(masked))
        return Change(table=table, public=self.public_columns(names), private={"categories_merged": merged})

    def _people(self, data: Data) -> pl.Series:
        """The person of each row."""
        unit = data.schema.unit
        if unit is None:
            return pl.int_range(data.rows, eager=True).alias("person")
        if unit not in data.table.columns:
            raise NotApplicable(
                f"merge-rare counts people by `{unit}`, which an earlier step removed.",
                fix="Put merge-rare before that step.",
                column=unit,
            )
        return data.table.column(unit).alias("person")
