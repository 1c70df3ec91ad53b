"""Noise addition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.dataset import Data
from sfumato.errors import BadParameter
from sfumato.masking.base import Context
from sfumato.masking.channel import PointChannel, PublicKnowledge, StepChannel
from sfumato.masking.methods._covariance import moments, robust_moments, square_root
from sfumato.masking.methods._masking import Masking, Strata, matrix_of, split
from sfumato.masking.methods._rotation import rotate
from sfumato.release import Change

_CHUNK = 1 << 18
"""Rows masked at a time, to limit memory."""


class Noise(Masking):
    """Add random noise to numbers.

    ``variance_ratio`` is the variance of the noise divided by the variance of the column in every variant (for
    ``robust`` and ``outlier-aware``, divided by the robust variance, which is much smaller for skewed columns such as
    incomes). Preserves means in expectation; what else is preserved depends on the variant (see the field). Extreme
    values are hardly protected: an outlier with small noise is still an outlier (``outlier-aware`` adds more noise
    there), and an attacker who knows the variance links by likelihood. It is not differential privacy.

    From a release, :meth:`recover` gives unbiased estimates of the original mean and covariance. Whole numbers become
    decimal (add a ``round`` step, but note that rounding can remove small noise). Missing values stay missing; a
    constant column is unchanged; collinear columns stay collinear under ``correlated``.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> values = np.random.default_rng(0).normal(100, 10, 20_000)
    >>> people = Data.of(Table(frame=pl.DataFrame({"pay": values})), Schema(columns={"pay": Column(role="quasi")}))
    >>> step = Noise(variance_ratio=0.21)
    >>> masked = step.apply(people, Context(rng=Rng(1))).table.frame
    >>> round(masked["pay"].var() / 100, 1), round(float(step.recover(masked)[1][0, 0]) / 100, 1)
    (1.2, 1.0)
    """

    report_phrase = "random noise added ({variance_ratio:.0%} of the variance)"
    simulable = True
    stronger = {"variance_ratio": "more"}
    main = "variance_ratio"
    examples = (
        {"variance_ratio": 0.1},
        {"variance_ratio": 0.1, "variant": "correlated"},
        {"variance_ratio": 0.1, "variant": "corrected"},
        {"variance_ratio": 0.1, "variant": "multiplicative"},
        {"variance_ratio": 0.1, "variant": "outlier-aware"},
        {"variance_ratio": 0.5, "variant": "orthogonal"},
        {"variance_ratio": 0.1, "variant": "robust"},
    )
    reference = (
        "Brand: Microdata protection through noise addition (2002), doi:10.1007/3-540-47804-3_8; Kim: A method for "
        "limiting disclosure in microdata based on random noise and transformation (1986); Ting, Fienberg, Trottini: "
        "Random orthogonal matrix masking (2008), doi:10.1504/IJICS.2008.016823"
    )

    variance_ratio: Annotated[float, Field(gt=0, le=4)]
    """Variance of the noise divided by the variance of the column. A fraction, not a percentage: 0.1 is 10 % of the
    variance, which is noise of about 32 % of the standard deviation."""
    variant: Literal[
        "additive", "correlated", "robust", "corrected", "multiplicative", "outlier-aware", "orthogonal"
    ] = "additive"
    """``additive``: independent per column; covariances between columns are kept in expectation, variances grow.
    ``correlated``: noise covariance proportional to the data's, so correlations are kept. ``robust``: the same with a
    covariance that outliers do not inflate (minimum covariance determinant). ``corrected``: correlated noise, then
    shrunk so that mean and covariance stay what they were. ``multiplicative``: a lognormal factor with mean 1; signs
    and zeros are kept. ``outlier-aware``: robust noise, and ``outlier_factor`` times its variance for records whose
    robust distance is beyond the 97.5 % point. ``orthogonal``: random rotations of records in blocks (ROMM), which
    keep mean and covariance exactly."""
    outlier_factor: Annotated[float, Field(ge=1, le=100)] = 4.0
    """Outlier-aware only: factor of the noise variance for outlying records."""

    def apply(self, data: Data, context: Context) -> Change:
        names, frame = self.chosen(data), data.table.frame
        matrix = matrix_of(frame, names)
        for number, rows in enumerate(self.parts(data)):
            random = context.rng.child(number).generator
            everything = len(rows) == data.rows
            part = matrix if everything else matrix[rows]
            self._mask(part, random)
            if not everything:
                matrix[rows] = part
        masked = [pl.Series(name, matrix[:, j], nan_to_null=True) for j, name in enumerate(names)]
        table = data.table.with_frame(frame.with_columns(masked))
        return Change(table=table, public=self.public_columns(names))

    def _mask(self, matrix: Floats, random: np.random.Generator) -> None:
        """Mask in place: ``matrix`` is a copy of this step's own."""
        ratio, part = self.variance_ratio, self.part_name()
        match self.variant:
            case "additive":
                for column in matrix.T:
                    mean, spread = moments(column[~np.isnan(column)][:, None], part)
                    column += np.sqrt(ratio * spread[0, 0]) * random.standard_normal(len(column))
            case "multiplicative":
                for column in matrix.T:
                    values = column[~np.isnan(column)]
                    _, spread = moments(values[:, None], part)
                    square = float((values**2).mean())
                    factor = ratio * spread[0, 0] / square if square > 0 else 0.0
                    scale = np.sqrt(np.log1p(factor))
                    column *= np.exp(scale * random.standard_normal(len(column)) - scale**2 / 2)
            case "correlated":
                _, covariance = moments(matrix, part)
                _add(matrix, square_root(ratio * covariance), random)
            case "corrected":
                mean, covariance = moments(matrix, part)
                _add(matrix, square_root(ratio * covariance), random)
                matrix -= mean
                matrix /= np.sqrt(1 + ratio)
                matrix += mean
            case "robust":
                _, covariance = robust_moments(matrix, part)
                _add(matrix, square_root(ratio * covariance), random)
            case "outlier-aware":
                mean, covariance = robust_moments(matrix, part)
                outlying = _outlying(matrix, mean, covariance)
                _add(matrix, square_root(ratio * covariance), random, np.where(outlying, self.outlier_factor**0.5, 1.0))
            case "orthogonal":
                rotate(matrix, ratio, random)

    @classmethod
    def channels(cls, published: Mapping[str, Any], knowledge: PublicKnowledge) -> tuple[StepChannel, ...]:
        """Gaussian, with the covariance of the published ratio; of the logarithms under ``multiplicative``.

        The original's moments are those of the known people, or follow from the release's if not all are known.
        """
        step = cls.build(dict(published["parameters"]))
        names = tuple(name for name in published["columns"] if name in knowledge.targets.columns)
        robust = step.variant in ("robust", "outlier-aware")
        whole = knowledge.complete and len(names) == len(published["columns"])
        if not names or step.strata or step.variant == "orthogonal" or (robust and not whole):
            return ()
        known, people, released = (
            frame.select(pl.col(names).cast(pl.Float64)).fill_null(np.nan).to_numpy()
            for frame in (knowledge.targets, knowledge.people, knowledge.released)
        )
        if step.variant in ("additive", "multiplicative"):
            return tuple(
                channel
                for place, name in enumerate(names)
                for channel in step._column(name, known[:, place], people[:, place], released[:, place], knowledge)
            )
        if any(np.isnan(side).any() for side in (known, people, released)):
            return ()
        part, spread = cls.part_name(), None
        if robust:
            mean, covariance = robust_moments(people, part)
            if step.variant == "outlier-aware":
                outlying = _outlying(people, mean, covariance)[knowledge.target_rows]
                spread = np.where(outlying, step.outlier_factor**0.5, 1.0)
        else:
            mean, covariance = moments(people if knowledge.complete else released, part)
            if step.variant == "correlated" and not knowledge.complete:
                covariance = covariance / (1 + step.variance_ratio)
        noise = step.variance_ratio * covariance
        if step.variant == "corrected":
            known = mean + (known - mean) / np.sqrt(1 + step.variance_ratio)
            noise /= 1 + step.variance_ratio
        # Columns in their own units, so that no direction is lost because another column has larger numbers.
        unit = np.sqrt(np.diag(noise))
        varied = unit > 0
        if not varied.any():
            return ()
        known, released, unit = known[:, varied], released[:, varied], unit[varied]
        values, vectors = np.linalg.eigh(noise[np.ix_(varied, varied)] / np.outer(unit, unit))
        kept = values > values.max() * 1e-10
        turn = vectors[:, kept] / np.sqrt(values[kept]) / unit[:, None]
        return (PointChannel(columns=names, known=known @ turn, released=released @ turn, spread=spread),)

    @classmethod
    def added_covariance(cls, published: Mapping[str, Any], released: pl.DataFrame) -> Floats | None:
        """From the published ratio, for variants whose noise follows from the covariance of the release."""
        step, names = cls.build(dict(published["parameters"])), tuple(published["columns"])
        if step.strata or step.variant not in ("additive", "correlated") or not set(names) <= set(released.columns):
            return None
        masked = moments(matrix_of(released, names), cls.part_name())[1]
        return np.asarray(masked - step.recover(released, names)[1])

    def _column(
        self, name: str, known: Floats, people: Floats, released: Floats, knowledge: PublicKnowledge
    ) -> tuple[StepChannel, ...]:
        """The channel of a column that is masked by itself; none if it is constant."""
        source = people if knowledge.complete else released
        source = source[~np.isnan(source)]
        if len(source) < 2:
            return ()
        variance, square = float(source.var(ddof=1)), float((source**2).mean())
        if not knowledge.complete:
            original = variance / (1 + self.variance_ratio)
            variance, square = original, square - (variance - original)
        if variance <= 0 or square <= 0:
            return ()
        if self.variant == "additive":
            scale, shift = np.sqrt(self.variance_ratio * variance), 0.0
        else:
            scale = np.sqrt(np.log1p(self.variance_ratio * variance / square))
            shift = scale**2 / 2
            # A zero stays zero; its logarithm is missing on both sides.
            known, released = (np.log(np.abs(np.where(side == 0, np.nan, side))) for side in (known, released))
        return (
            PointChannel(columns=(name,), known=(known[:, None] - shift) / scale, released=released[:, None] / scale),
        )

    def recover(self, masked: pl.DataFrame, columns: tuple[str, ...] | None = None) -> tuple[Floats, Floats]:
        """Unbiased estimates of the original's mean and covariance, from a release made by this step alone.

        ``columns`` are those that were masked (the manifest lists them); left out, those of the step or all numbers.
        """
        left = {*self.strata}
        numeric = tuple(n for n, dtype in masked.schema.items() if dtype.is_numeric() and n not in left)
        matrix = matrix_of(masked, columns or self.columns or numeric)
        mean, covariance = moments(matrix, self.part_name())
        if self.variant in ("robust", "outlier-aware"):
            raise BadParameter(
                f"noise: with `{self.variant}` the noise depends on a robust covariance that is not published.",
                fix="Use `corrected`, `correlated` or `additive` when users must recover the covariance.",
            )
        if self.variant in ("corrected", "orthogonal"):
            return mean, covariance
        # Noise is a share of the covariance within strata; the masked one within strata is 1 + ratio times that.
        share = self.variance_ratio / (1 + self.variance_ratio)
        added = share * (_within(matrix, split(masked, self.strata), self.part_name()) if self.strata else covariance)
        if self.variant == "correlated":
            return mean, covariance - added
        covariance[np.diag_indices_from(covariance)] -= np.diag(added)
        return mean, covariance


def _within(matrix: Floats, strata: Strata, part: str) -> Floats:
    """Covariance around the means of the strata."""
    total = np.zeros((matrix.shape[1], matrix.shape[1]))
    for rows in strata:
        total += (len(rows) - 1) * moments(matrix[rows], part)[1]
    return total / (len(matrix) - 1)


def _add(matrix: Floats, root: Floats, random: np.random.Generator, scale: Floats | None = None) -> None:
    for start in range(0, len(matrix), _CHUNK):
        rows = slice(start, start + _CHUNK)
        draw = random.standard_normal((len(matrix[rows]), len(root))) @ root.T
        matrix[rows] += draw if scale is None else draw * scale[rows, None]


def _outlying(matrix: Floats, mean: Floats, covariance: Floats) -> npt.NDArray[np.bool_]:
    from scipy.stats import chi2

    inverse = np.linalg.pinv(covariance, hermitian=True)
    away = np.nan_to_num(matrix - mean)
    distance = np.einsum("ij,jk,ik->i", away, inverse, away, optimize=True)
    outlying: npt.NDArray[np.bool_] = distance > chi2.ppf(0.975, np.linalg.matrix_rank(covariance, hermitian=True) or 1)
    return outlying
