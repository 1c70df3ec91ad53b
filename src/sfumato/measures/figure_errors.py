"""Errors of published figures: how many are missing, and how far the others are from the exact ones."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sfumato.measures.base import MeasureResult

_NO_PEOPLE = ("mean", "variance")
"""Figures that a group without people has not. Its count and its total are 0."""


def figure_errors(
    published: Mapping[str, pl.DataFrame], exact: Mapping[str, pl.DataFrame]
) -> tuple[MeasureResult, ...]:
    """The share of suppressed figures, and errors as shares of the exact figures. For the owner of the data only.

    The last column of an exact table is its value, the others name the figure. An error is the sum of all absolute
    errors of a table divided by the sum of its exact figures; tables of several figures are divided by figure.

    >>> shown = pl.DataFrame({"sex": ["F", "M", None], "value": [10, None, 22]})
    >>> truth = pl.DataFrame({"sex": ["F", "M", None], "value": [8, 12, 20]})
    >>> [round(result.value, 3) for result in figure_errors({"sex": shown}, {"sex": truth})]
    [0.333, 0.143]
    """
    parts = pl.concat([_compared(name, table, exact[name]) for name, table in published.items()])
    by_part = parts.group_by("part", maintain_order=True).agg(
        missing=pl.col("shown").is_null().mean(),
        error=pl.col("error").sum() / pl.col("exact").filter(pl.col("shown").is_not_null()).abs().sum(),
        mean=pl.col("error").mean(),
        largest=pl.col("error").max(),
    )
    errors = by_part.filter(pl.col("error").is_finite())
    detail = {
        name: dict(by_part.select("part", key).drop_nulls().rows())
        for name, key in (("mean_absolute_error", "mean"), ("largest_error", "largest"))
    }
    missing = parts["shown"].null_count() / parts.height if parts.height else None
    reason = "" if errors.height else "no published figure has an exact value other than 0"
    return (
        MeasureResult(
            measure="suppressed-figures", value=missing, columns=dict(by_part.select("part", "missing").rows()),
            reason="" if parts.height else "there is no figure",
        ),
        MeasureResult(
            measure="relative-error", value=None if reason else _mean(errors["error"]),
            columns=dict(errors.select("part", "error").rows()), detail=detail, reason=reason,
        ),
    )  # fmt: skip


def _mean(values: pl.Series) -> float:
    return float(values.to_numpy().mean())


def _compared(name: str, published: pl.DataFrame, exact: pl.DataFrame) -> pl.DataFrame:
    """``part``, ``shown``, ``exact`` and ``error`` of every figure that was to be published."""
    *keys, value = exact.columns
    text = [pl.col(key).cast(pl.String) for key in keys]
    shown = published.select(*text, shown=pl.col(value).cast(pl.Float64))
    true = exact.select(*text, exact=pl.col(value).cast(pl.Float64))
    pairs = (
        shown.join(true, on=keys, how="left", nulls_equal=True) if keys else pl.concat([shown, true], how="horizontal")
    )
    if "figure" in keys:
        part = pl.concat_str("of", "figure", separator=": ")
        pairs = pairs.filter(~pl.col("figure").is_in(_NO_PEOPLE) | pl.col("exact").is_not_null())
    else:
        part = pl.lit(name)
    pairs = pairs.with_columns(pl.col("exact").fill_null(0))
    return pairs.select(part.alias("part"), "shown", "exact", error=(pl.col("shown") - pl.col("exact")).abs())
