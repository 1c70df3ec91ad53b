"""Aggregation of small categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from sfumato.masking.base import Context
from sfumato.masking.methods._masking import Masking
from sfumato.release import Change
from sfumato.schema import Dataset, Kind

__all__ = ["MergeRare"]


class MergeRare(Masking):
    """Merges categories that few people have into one, called ``other``.

    Afterwards every category of a masked column has at least ``min_count`` people: when the merged one is still too
    small, the next rarest joins it, until it is large enough or everything is merged. A released row stays true.
    Preserves the frequencies of the common categories exactly. Does not look at combinations of columns: two common
    categories together can still single somebody out.

    Missing values stay missing and do not count as a category.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.schema import Column, Schema
    >>> people = Dataset.of(Table(frame=pl.DataFrame({"job": list("aaaabbcd")})),
    ...                     Schema(columns={"job": Column(role="quasi")}))
    >>> "".join(MergeRare(min_count=2, label="x").apply(people, Context(rng=Rng(1))).table.frame["job"])
    'aaaabbxx'
    """

    truthful = True
    simulable = False
    kinds = frozenset({Kind.CATEGORY, Kind.BOOLEAN})
    stronger = {"min_count": "more"}
    independent_columns = True
    main = "min_count"
    examples = ({"min_count": 10},)
    reference = "Hundepool et al.: Statistical Disclosure Control (2012), section 3.6, doi:10.1002/9781118348239"

    min_count: Annotated[int, Field(ge=2)]
    """Fewest people a released category may have (in each stratum, where strata are given)."""
    label: str = "other"
    """What the merged category is called."""

    @classmethod
    def pooled_label(cls, parameters: Mapping[str, Any]) -> str:
        return str(parameters.get("label", "other"))

    def apply(self, data: Dataset, context: Context) -> Change:
        names, frame = self.chosen(data), data.table.frame
        data.table.require(self.strata)
        masked, merged = [], {}
        by = [f"by {number}" for number in range(len(self.strata))]
        strata = [frame.get_column(stratum).alias(name) for stratum, name in zip(self.strata, by, strict=True)]
        for name in names:
            series = frame.get_column(name).cast(pl.String)
            values = pl.DataFrame([*strata, series.alias("value")])
            counts = values.filter(pl.col("value").is_not_null()).group_by([*by, "value"]).len()
            counts = counts.sort("len", "value")
            # A category goes when it is small, or when those before it do not yet make up a large one.
            running = pl.col("len").cum_sum() - pl.col("len")
            small = pl.col("len") < self.min_count
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
