"""Model-based synthetic data without a formal guarantee."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.arrays import Array, Floats
from sfumato.dataset import Data, Kind
from sfumato.errors import BadParameter, TooFewRows
from sfumato.extras import missing_extra
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._covariance import square_root
from sfumato.masking.methods._masking import Masking, refuse_not_finite, sorted_rows
from sfumato.masking.methods._smoothing import smoothed
from sfumato.release import Change

_CHUNK = 1 << 18
"""Rows that are drawn at a time."""

_WIDEST = 1e30
"""Larger numbers are scaled down for the model: trees compare in single precision."""


class Synthesize(Masking):
    """Replace all rows by synthetic ones drawn from a model of the table. **No privacy guarantee.**

    Synthetic rows belong to no person, but models memorize: trees can reproduce rare people approximately, and
    membership can be inferred. Run attacks on the release; for a guarantee use a differentially private generator.
    Numbers and dates that fewer than ``min_leaf`` rows share are not released: each is replaced by a number between
    its neighbours in the sorted column, because one exact amount tells whose record a model has seen
    (``keep_values`` releases them). Categories and codes stored as text are values of the data.
    Preserves marginals and dependencies as far as the model captures them: ``trees`` (sequential CART, as in synthpop)
    finds interactions; ``copula`` preserves marginals and rank correlations only. Columns that are not synthesized are
    not part of the model, so choose all that matter; identifiers are emptied.

    Missing values are synthesized as a value of their own. All rows are synthetic: the row map has no entries.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> draw = np.random.default_rng(0)
    >>> age = draw.normal(size=2000)
    >>> people = Data.of(Table(frame=pl.DataFrame({"age": age, "pay": age + draw.normal(size=2000)})),
    ...                     Schema(columns={"age": Column(role="quasi"), "pay": Column(role="sensitive")}))
    >>> made = Synthesize(model="copula").apply(people, Context(rng=Rng(1))).table.frame
    >>> round(made.select(pl.corr("age", "pay")).item(), 1)
    0.7
    """

    report_phrase = "replaced by synthetic values"
    kinds = frozenset(Kind)
    simulable = False
    keeps_rows = False
    stronger = {"min_leaf": "more"}
    out_of_core = False
    examples = ({"model": "copula"}, {"model": "trees", "min_leaf": 10})
    synthetic = True
    reference = (
        "Reiter: Using CART to generate partially synthetic public use microdata. Journal of Official Statistics 21 "
        "(2005); Nowok, Raab, Dibben: synthpop (2016), doi:10.18637/jss.v074.i11; Patki et al.: The synthetic data "
        "vault (2016), doi:10.1109/DSAA.2016.49"
    )

    model: Literal["trees", "copula"] = "trees"
    """``trees``: each column from a regression tree on those before it; a value is drawn from the leaf.
    ``copula``: normal scores with their correlations, values put back by their quantiles."""
    rows: Annotated[int, Field(ge=1)] | None = None
    """Number of synthetic rows. Default: as many as the table has."""
    min_leaf: Annotated[int, Field(ge=2)] = 5
    """Minimum number of records per leaf of a tree, and of rows that share a number for it to be released. Larger
    leaves reproduce less of single people."""
    keep_values: bool = False
    """Whether numbers and dates that few people have are released as they are in the data. Then anybody who knows such
    a value of a person can look up whether that person is in the data."""
    columns: tuple[str, ...] | None = None
    """Columns to synthesize, in the order of the trees. Default: all columns but identifiers."""

    def chosen(self, data: Data) -> tuple[str, ...]:
        if self.columns is None:
            return tuple(n for n in data.table.columns if n not in {*data.removed(), *self.strata})
        return super().chosen(data)

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        return ()

    def apply(self, data: Data, context: Context) -> Change:
        names, frame = self.chosen(data), data.table.frame
        if not names:
            raise BadParameter(
                "synthesize: every column is an identifier or a stratum.",
                fix="Name the columns to synthesize with `columns`.",
            )
        for name in names:
            refuse_not_finite(frame.get_column(name))
        parts = list(self.parts(data))
        pieces = []
        share = (self.rows or data.rows) / data.rows
        for number, rows in enumerate(parts):
            part = frame if len(parts) == 1 else frame[rows]
            count = max(1, round(share * part.height)) if len(parts) > 1 else (self.rows or data.rows)
            if part.height < 2 * self.min_leaf:
                raise TooFewRows(
                    f"synthesize: {'a stratum' if self.strata else 'the table'} has {part.height} rows; a model needs "
                    f"at least {2 * self.min_leaf}.",
                    fix="Use coarser strata.",
                    rows=part.height,
                )
            random = context.rng.child(number).generator
            with context.progress.task("synthesize", len(names)) as tick:
                if self.model == "copula":
                    index = _copula(part, names, count, random)
                else:
                    index = _trees(part, names, count, self.min_leaf, random, tick)
            pieces.append(self._made(part, index, count, random))
        synthetic = pl.concat(pieces)
        public = {**self.public_columns(names), "formal_guarantee": False}
        return Change(
            table=data.table.with_frame(synthetic), rows=np.full(synthetic.height, -1, dtype=np.int64), public=public
        )

    def _made(
        self, part: pl.DataFrame, index: dict[str, Array], count: int, random: np.random.Generator
    ) -> pl.DataFrame:
        columns = []
        for series in part:
            if series.name in index and self.keep_values:
                columns.append(series.gather(index[series.name]))
            elif series.name in index:
                columns.append(smoothed(series, index[series.name], self.min_leaf, random))
            elif series.name in self.strata:
                columns.append(series.new_from_index(0, count))
            else:
                columns.append(pl.Series(series.name, [None], dtype=series.dtype).new_from_index(0, count))
        return pl.DataFrame(columns)


def _coded(series: pl.Series) -> tuple[Floats, bool]:
    """The column as numbers a model can use (gaps below everything), and whether their order has a meaning."""
    if series.dtype.is_numeric() or series.dtype.is_temporal():
        values = series.to_physical().cast(pl.Float64)
        low, high = values.min(), values.max()
        widest = 0.0 if low is None else max(abs(float(low)), abs(float(high)))  # type: ignore[arg-type]
        if widest > _WIDEST:
            values, low, high = values / widest, float(low) / widest, float(high) / widest  # type: ignore[arg-type]
        under = 0.0 if low is None else float(low) - max(float(high) - float(low), 1.0)  # type: ignore[arg-type]
        return values.fill_null(under).to_numpy(), True
    return series.cast(pl.String).rank("dense").fill_null(0).to_numpy().astype(np.float64), False


def _copula(part: pl.DataFrame, names: tuple[str, ...], count: int, random: np.random.Generator) -> dict[str, Array]:
    """Row numbers per column: the value at the drawn quantile. Categories are ordered by their names."""
    from scipy.special import ndtr, ndtri

    n = part.height
    scores = np.empty((n, len(names)), dtype=np.float32, order="F")
    orders = []
    scale = ndtri((np.arange(n) + 0.5) / n).astype(np.float32)
    for j, name in enumerate(names):
        values, _ = _coded(part.get_column(name))
        # Ties stand in a random order, so that a category fills its stretch of the scale.
        mixed = random.permutation(np.arange(n, dtype=np.uint32))
        order = mixed[sorted_rows(pl.Series(values[mixed]))]
        scores[order, j] = scale
        orders.append(order)
    spread = float((scale.astype(np.float64) ** 2).mean())
    root = square_root(np.atleast_2d(scores.T @ scores).astype(np.float64) / (n * spread))
    del scores
    index = {name: np.empty(count, dtype=np.uint32) for name in names}
    for start in range(0, count, _CHUNK):
        rows = slice(start, min(start + _CHUNK, count))
        drawn = ndtr(random.standard_normal((rows.stop - start, len(names))) @ root.T)
        places = np.minimum((drawn * n).astype(np.int64), n - 1)
        for j, (name, order) in enumerate(zip(names, orders, strict=True)):
            index[name][rows] = order[places[:, j]]
    return index


def _trees(
    part: pl.DataFrame, names: tuple[str, ...], count: int, min_leaf: int, random: np.random.Generator, tick: Any
) -> dict[str, Array]:
    """Row numbers per column: a record of the leaf into which the values drawn so far fall."""
    try:
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
    except ImportError:
        raise missing_extra("learning", "scikit-learn", needed_by="synthesize with trees") from None
    index: dict[str, Array] = {names[0]: random.integers(part.height, size=count)}
    known = [_coded(part.get_column(names[0]))[0]]
    drawn = [known[0][index[names[0]]]]
    tick(1)
    for name in names[1:]:
        target, ordered = _coded(part.get_column(name))
        tree = (DecisionTreeRegressor if ordered else DecisionTreeClassifier)(
            min_samples_leaf=min_leaf, random_state=int(random.integers(2**31))
        )
        features, wanted = np.column_stack(known), np.column_stack(drawn)
        tree.fit(features, target)
        index[name] = _from_leaves(tree.apply(features), tree.apply(wanted), random)
        known.append(target)
        drawn.append(target[index[name]])
        tick(1)
    return index


def _from_leaves(leaf: Array, wanted: Array, random: np.random.Generator) -> Array:
    """For each wanted leaf a record drawn at random from those in it."""
    order = np.argsort(leaf, kind="stable")
    starts, stops = np.searchsorted(leaf[order], wanted, "left"), np.searchsorted(leaf[order], wanted, "right")
    return order[starts + (random.random(len(wanted)) * (stops - starts)).astype(np.int64)]
