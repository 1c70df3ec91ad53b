"""A custom measure: any function of a table, and a divergence."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.errors import BadParameter, NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Custom(Measure):
    """Divergence between what your function says of the original and what it says of the release.

    IL_f(X, X') = divergence(f(X), f(X')). The function takes a Polars frame and returns a number, a sequence of
    numbers, or a mapping of names to numbers; it is named as ``package.module:function`` and imported from there.
    A result that is not a finite number makes the measure not applicable.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "function"
    examples = ({"function": "sfumato.measures.utility.custom:mean_of_numbers"},)
    reference: ClassVar[str] = (
        "Torra: Guide to Data Privacy (2022), section on information loss, doi:10.1007/978-3-031-12837-0"
    )

    function: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    """Where the function is: ``package.module:function``."""
    divergence: Literal["relative", "absolute", "euclidean"] = "relative"
    """``relative``: mean of |a-b| / max(|a|, 1e-9 of the largest). ``absolute``: mean of |a-b|. ``euclidean``: root
    of the sum of squares."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        module, _, name = self.function.partition(":")
        try:
            function = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            raise BadParameter(
                f"custom: there is no function `{self.function}`.", fix="Install the package that defines it."
            ) from None
        common = list(pair.common)
        before = _flat(function(pair.original.table.frame.select(common)))
        after = _flat(function(pair.masked.select(common)))
        if before.keys() != after.keys():
            raise NotApplicable("custom: the function returned different things for the original and the release.")
        old, new = np.array(list(before.values())), np.array(list(after.values()))
        if not len(old) or not (np.isfinite(old).all() and np.isfinite(new).all()):
            raise NotApplicable("custom: the function returned nothing, or something that is not a finite number.")
        gaps = np.abs(old - new)
        if self.divergence == "relative":
            gaps = gaps / np.maximum(np.abs(old), max(1e-9 * float(np.abs(old).max()), 1e-300))
        value = float(np.sqrt((gaps**2).sum())) if self.divergence == "euclidean" else float(gaps.mean())
        columns = dict(zip(before, gaps.tolist(), strict=True)) if len(before) > 1 else {}
        return MeasureResult(measure=self.part_name(), value=value, columns=columns)


def _flat(result: object) -> dict[str, float]:
    if isinstance(result, dict):
        return {str(key): float(value) for key, value in result.items()}
    return {str(number): float(value) for number, value in enumerate(np.atleast_1d(np.asarray(result, dtype=float)))}


def mean_of_numbers(frame: pl.DataFrame) -> dict[str, float]:
    """The mean of every number column: an example of such a function."""
    means = frame.select(pl.selectors.numeric().cast(pl.Float64).mean()).to_dict(as_series=False)
    return {name: mean for name, [mean] in means.items() if mean is not None}
