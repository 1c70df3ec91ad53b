"""Data shuffling."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.arrays import Floats
from sfumato.dataset import Data
from sfumato.errors import BadParameter, TooFewRows
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._covariance import square_root
from sfumato.masking.methods._masking import ORDERED, Masking, Rows, fitting, refuse_not_finite, sorted_rows
from sfumato.release import Change

_LEVELS = 100
"""Maximum number of categories of a predictor."""


class Shuffle(Masking):
    """Shuffle the values of confidential columns so that their relation to the given columns is preserved.

    The confidential columns are regressed on the given ones (on normal scores of the ranks), new scores are drawn from
    the regression with its residual covariance, and the original values are put back in the order of the drawn scores.
    Preserves every marginal distribution exactly, and rank correlations among the confidential columns and with the
    given ones within sampling error. Conditional on the given columns, a masked value carries no information about the
    person's own. Extreme values stay in the file, relations that are not monotone are lost, and the given columns are
    not protected. Dependencies on columns that are masked by other methods are lost.

    Missing values stay missing.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> draw = np.random.default_rng(0)
    >>> age = draw.normal(size=5000)
    >>> people = Data.of(Table(frame=pl.DataFrame({"age": age, "pay": age + draw.normal(size=5000)})),
    ...                     Schema(columns={"age": Column(role="quasi"), "pay": Column(role="sensitive")}))
    >>> masked = Shuffle().apply(people, Context(rng=Rng(1))).table.frame
    >>> masked["pay"].sort().equals(people.table.frame["pay"].sort())
    True
    >>> round(masked.select(pl.corr("age", "pay")).item(), 1)
    0.7
    """

    report_phrase = "values shuffled between records"
    kinds = ORDERED
    simulable = False
    examples = ({"columns": ["income"], "given": ["age"]}, {})
    reference = (
        "Muralidhar, Sarathy: Data shuffling: a new masking approach for numerical data. Management Science 52 (2006), "
        "doi:10.1287/mnsc.1050.0503"
    )

    columns: tuple[str, ...] | None = None
    """Confidential columns, shuffled together. Default: all sensitive columns of numbers or dates; if there are none,
    all such quasi-identifiers."""
    given: tuple[str, ...] | None = None
    """Unchanged columns whose relation to the confidential ones is preserved. Default: all other quasi-identifiers of
    numbers, dates, or at most 100 categories."""

    def chosen(self, data: Data) -> tuple[str, ...]:
        names = self.columns
        if names is None:
            for candidates in (data.sensitive, data.quasi):
                suitable = tuple(n for n in candidates if data.kind(n) in self.kinds and n not in self.strata)
                if suitable and names is None:
                    names = suitable
        return fitting(data, names, self.kinds, self.part_name(), self.strata)

    def _given(self, data: Data, names: tuple[str, ...]) -> tuple[str, ...]:
        taken = {*names, *self.strata}
        if self.given is None:
            return tuple(
                n
                for n in data.quasi
                if n not in taken and (data.kind(n) in self.kinds or data.table.column(n).n_unique() <= _LEVELS)
            )
        data.table.require(self.given)
        if taken & set(self.given):
            raise BadParameter(
                "shuffle: a column of `given` is also shuffled or a stratum.", fix="Keep it in one place."
            )
        return self.given

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        names = self.chosen(data)
        return ((self, tuple(dict.fromkeys((*names, *self._given(data, names), *self.strata)))),)

    def apply(self, data: Data, context: Context) -> Change:
        names = self.chosen(data)
        given, frame = self._given(data, names), data.table.frame
        for name in (*names, *given):
            refuse_not_finite(frame.get_column(name))
        index = {name: np.arange(data.rows, dtype=np.uint32) for name in names}
        for number, rows in enumerate(self.parts(data)):
            part = frame.select({*names, *given}) if len(rows) == data.rows else frame.select({*names, *given})[rows]
            design = _design(part, given, {n for n in given if data.kind(n) not in self.kinds})
            drawn = self._draw(part, names, design, context.rng.child(number).generator)
            for j, name in enumerate(names):
                _put_back(index[name], part.get_column(name), drawn[:, j], rows)
        masked = [frame.get_column(name).gather(index[name]) for name in names]
        public = {**self.public_columns(names), "given": list(given)}
        return Change(table=data.table.with_frame(frame.with_columns(masked)), public=public)

    def _draw(self, part: pl.DataFrame, names: tuple[str, ...], design: Floats, random: np.random.Generator) -> Floats:
        """New scores: the regression prediction plus a random residual."""
        scores = np.column_stack([_scores(part.get_column(name)) for name in names])
        complete = ~np.isnan(scores).any(axis=1)
        if int(complete.sum()) < design.shape[1] + 2:
            raise TooFewRows(
                f"shuffle: {int(complete.sum())} complete rows are too few for a regression on {design.shape[1]} "
                "predictors.",
                fix="Give fewer columns, or use coarser strata.",
                rows=int(complete.sum()),
            )
        fitted = design if complete.all() else design[complete]
        target = scores if complete.all() else scores[complete]
        gram = fitted.T @ fitted
        slope = np.linalg.pinv(gram, hermitian=True) @ (fitted.T @ target)
        residual = target - fitted @ slope
        root = square_root(residual.T @ residual / len(residual))
        drawn: Floats = design @ slope
        drawn += random.standard_normal(drawn.shape) @ root.T
        return drawn


def _scores(series: pl.Series) -> Floats:
    """Normal scores of the ranks; ties share their mean rank; NaN where missing."""
    from scipy.special import ndtri

    count = len(series) - series.null_count()
    ranks = series.rank("average").cast(pl.Float64).to_numpy()
    scores: Floats = ndtri((ranks - 0.5) / max(count, 1))
    return scores


def _design(part: pl.DataFrame, given: tuple[str, ...], categorical: set[str]) -> Floats:
    """A constant, the scores of ordered columns (0 where missing), and an indicator per category but the first."""
    columns = [np.ones(part.height)]
    for name in given:
        series = part.get_column(name)
        if name in categorical:
            values = series.unique().sort()
            if len(values) > _LEVELS:
                raise BadParameter(
                    f"shuffle: `{name}` has more than {_LEVELS} categories.",
                    fix="Generalize it first, or leave it out.",
                )
            columns.extend(series.eq_missing(value).to_numpy().astype(np.float64) for value in values[1:])
        else:
            columns.append(np.nan_to_num(_scores(series)))
    return np.column_stack(columns)


def _put_back(index: Rows, series: pl.Series, drawn: Floats, rows: Rows) -> None:
    """The i-th smallest value goes where the i-th smallest drawn score is."""
    present = np.flatnonzero(series.is_not_null().to_numpy())
    by_value, by_score = sorted_rows(series), present[sorted_rows(pl.Series(drawn[present]))]
    index[rows[by_score]] = rows[by_value]
