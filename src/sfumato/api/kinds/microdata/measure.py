"""Measure disclosure risk and utility of microdata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.api.kinds.microdata.inputs import open_release
from sfumato.api.results import MeasureResults
from sfumato.dataset import Schema
from sfumato.evaluation import run_measures
from sfumato.evaluation.class_risk import class_measures, fits_in_memory
from sfumato.measures import Measure, ReleasePair, default_measures
from sfumato.progress import AUTO, Progress
from sfumato.registry import registry
from sfumato.release import Lineage
from sfumato.rng import Rng


def measure_microdata(
    release: object,
    *,
    original: object = None,
    measures: Sequence[Measure | str] = (),
    knows: Sequence[str] | None = None,
    secrets: Sequence[str] = (),
    schema: Schema | None = None,
    lineage: Lineage | str | Path | None = None,
    seed: int | None = None,
    engine: str = "auto",
    memory: str = "4GB",
    progress: Progress = AUTO,
) -> MeasureResults:
    """Measure disclosure risk and utility of a release against its original."""
    found, schema = open_release(
        release, original=original, lineage=lineage, schema=schema, knows=knows, secrets=secrets
    )
    chosen = [registry("measure").part(item, Measure) for item in measures] or default_measures()
    engine = found.engine(engine)
    if engine != "memory":
        with found.opened(schema, engine=engine, memory=memory) as subject:
            if not fits_in_memory(memory, subject.release, subject.original):
                return MeasureResults(results=class_measures(subject, chosen))
    pair = ReleasePair(original=found.truth(schema), release=found.release, lineage=found.lineage)
    return MeasureResults(results=tuple(run_measures(pair, chosen, rng=Rng(seed), progress=progress)))
