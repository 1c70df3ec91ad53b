"""Measure disclosure risk and utility of microdata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.api.kinds.microdata.inputs import open_release
from sfumato.api.results import MeasureResults
from sfumato.dataset import Schema
from sfumato.evaluation import run_measures
from sfumato.measures import Measure, ReleasePair, default_measures
from sfumato.progress import AUTO, Progress
from sfumato.registry import registry
from sfumato.release import Lineage
from sfumato.rng import Rng

__all__ = ["measure_microdata"]


def measure_microdata(
    release: Any,
    *,
    original: Any = None,
    measures: Sequence[Measure | str] = (),
    knows: Sequence[str] | None = None,
    secrets: Sequence[str] = (),
    schema: Schema | None = None,
    lineage: Lineage | str | Path | None = None,
    seed: int | None = None,
    progress: Progress = AUTO,
) -> MeasureResults:
    """Measure disclosure risk and utility of a release against its original."""
    opened, truth, row_map = open_release(
        release, original=original, lineage=lineage, schema=schema, knows=knows, secrets=secrets
    )
    pair = ReleasePair(original=truth, release=opened, lineage=row_map)
    chosen = [_part(item) for item in measures] or default_measures()
    return MeasureResults(results=tuple(run_measures(pair, chosen, rng=Rng(seed), progress=progress)))


def _part(item: Measure | str) -> Measure:
    part = registry("measure").get(item).build() if isinstance(item, str) else item
    assert isinstance(part, Measure)
    return part
