"""Compare methods for k-anonymity on a sample of a table, to propose the one that keeps the most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Data, Role, Schema
from sfumato.errors import SfumatoError
from sfumato.evaluation import make_release, run_measures
from sfumato.masking.base import Step
from sfumato.measures.base import Measure, ReleasePair
from sfumato.progress import SILENT
from sfumato.recipe import Recipe
from sfumato.registry import registry
from sfumato.rng import Rng

_MOST_CELLS = 100_000
"""Rows × columns of the sample. The work is bounded, not the time: the same file gets the same proposal everywhere."""
_EVALUATIONS = 2000
"""Combinations of levels that generalization may try."""
_MOST_ROWS = 50_000
"""Rows beyond which microaggregation, whose time is quadratic, is not proposed."""
_MEASURES = ("pairs", "marginals")
"""The first decides, the second breaks ties."""


@dataclass(frozen=True, kw_only=True)
class MethodTrial:
    """One method on the sample: what it lost, or why it has no result."""

    step: Mapping[str, object]
    """The step as in a recipe: ``{"mondrian": {}}``."""
    losses: Mapping[str, float]
    """Loss by each measure: total variation distance of pairs of columns and of single columns, 0 is best."""
    reason: str = ""
    """Why there is no result."""

    @property
    def method(self) -> str:
        return next(iter(self.step))

    def to_dict(self) -> dict[str, object]:
        return {
            "step": dict(self.step),
            "losses": dict(self.losses),
            **({"reason": self.reason} if self.reason else {}),
        }


@dataclass(frozen=True, kw_only=True)
class MethodComparison:
    """All methods that were tried, the best first."""

    k: int
    rows: int
    """Rows of the sample."""
    whole: int
    """Rows of the table."""
    trials: tuple[MethodTrial, ...]

    def lines(self) -> tuple[str, ...]:
        """The comparison as lines of text, for the comments of a recipe."""
        part = f"a sample of {self.rows} rows" if self.rows < self.whole else f"all {self.rows} rows"
        head = f"Methods compared on {part} at k = {self.k}, by the distance of pairs of columns and of single columns"
        wide = max(len(trial.method) for trial in self.trials)
        lines = [f"{head} (0 is best):"]
        for trial in self.trials:
            figures = "  ".join(f"{trial.losses[name]:.3f}" for name in _MEASURES) if trial.losses else trial.reason
            lines.append(f"  {trial.method:<{wide}}  {figures}{'  proposed' if trial is self.best else ''}")
        return *lines, "Other methods and settings were not compared."

    @property
    def best(self) -> MethodTrial | None:
        """The method with the least loss; None if no method has a result."""
        return self.trials[0] if self.trials and self.trials[0].losses else None

    def to_dict(self) -> dict[str, object]:
        """The comparison as plain data, as in the JSON document of ``sfumato init --json``."""
        best = self.best
        return {
            "k": self.k,
            "rows": self.rows,
            "chosen": best.method if best is not None else None,
            "methods": [trial.to_dict() for trial in self.trials],
        }


def compare_methods(recipe: Recipe, data: Table, *, k: int, rows: int = 5000, seed: int = 0) -> MethodComparison | None:
    """Mask a sample by generalization, local recoding, Mondrian and microaggregation, and compare what they lose.

    Every method meets the same k-anonymity in the quasi-identifiers of the recipe. The sample has at most ``rows``
    rows, and fewer if there are many columns, so all methods lose more on it than on the whole table; only the order of
    the methods is used. None if there is no quasi-identifier, or if there are fewer than 2 k rows.
    """
    columns = {name: column for name, column in recipe.schema.columns.items() if column.role is Role.QUASI}
    frame = pl.DataFrame([data.column(name) for name in columns]) if columns else pl.DataFrame()
    if frame.height < 2 * k:
        return None
    rows = min(rows, max(2 * k, _MOST_CELLS // frame.width))
    if frame.height > rows:
        frame = frame[Rng(seed).child("comparison").generator.choice(frame.height, rows, replace=False)]
    sample = Data.of(Table(frame=frame), Schema(columns=columns))
    trials = []
    for step in _steps(k):
        if "microaggregate" in step and data.rows > _MOST_ROWS:
            trials.append(
                MethodTrial(step=step, losses={}, reason="too slow: its time grows with the square of the rows")
            )
        else:
            trials.append(_trial(step, sample, k, seed))
    order = sorted(trials, key=lambda trial: (not trial.losses, *(trial.losses.get(name, 0) for name in _MEASURES)))
    return MethodComparison(k=k, rows=sample.rows, whole=data.rows, trials=tuple(order))


def _steps(k: int) -> tuple[dict[str, dict[str, object]], ...]:
    return (
        {"generalize": {"search": "heuristic", "evaluations": _EVALUATIONS, "suppression": 0.05, "metric": "loss"}},
        {"local-recode": {}},
        {"mondrian": {}},
        {"microaggregate": {"k": k}},
    )


def _trial(step: Mapping[str, object], sample: Data, k: int, seed: int) -> MethodTrial:
    [(name, setting)] = step.items()
    try:
        part = registry("method").get(name).build(setting)
        assert isinstance(part, Step)
        model = registry("model").get("k-anonymity").build(k)
        recipe = Recipe(schema=sample.schema, steps=(part,), models=(model,), seed=seed)  # type: ignore[arg-type]
        made = make_release(recipe, sample, rng=Rng(seed), progress=SILENT)
        if not made.masked.holds:
            return MethodTrial(step=step, losses={}, reason=f"the result is not {k}-anonymous")
        pair = ReleasePair(original=sample, release=made.release, lineage=made.masked.lineage)
        measures = [part for name in _MEASURES if isinstance(part := registry("measure").get(name).build(), Measure)]
        results = run_measures(pair, measures, rng=Rng(seed), progress=SILENT)
    except SfumatoError as refusal:
        return MethodTrial(step=step, losses={}, reason=str(refusal))
    losses = {result.measure: float(result.value) for result in results if result.value is not None}
    if "marginals" not in losses:
        return MethodTrial(step=step, losses={}, reason=next(r.reason for r in results if r.reason) or "not measured")
    losses.setdefault("pairs", losses["marginals"])  # one column has no pairs
    return MethodTrial(step=step, losses=losses)
