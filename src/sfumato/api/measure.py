"""``sfumato.measure``: disclosure risk and utility of a release of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.api.kind import given, kind_of_release
from sfumato.api.protection import judge_release
from sfumato.api.results import MeasureResults
from sfumato.dataset import Schema
from sfumato.progress import AUTO, Progress
from sfumato.release import Lineage


def measure(
    release: object,
    *,
    original: object = None,
    measures: Sequence[object] = (),
    knows: Sequence[str] | None = None,
    secrets: Sequence[str] = (),
    schema: Schema | None = None,
    lineage: Lineage | str | Path | None = None,
    label: str | None = None,
    seed: int | None = None,
    engine: str = "auto",
    memory: str = "4GB",
    progress: Progress = AUTO,
) -> MeasureResults:
    """Measure disclosure risk and utility of a release against its original.

    Options that do not apply to a kind of release are refused.

    Parameters
    ----------
    release
        The result of :func:`protect`, a release folder of any kind, any file, database URL or frame, or a ``Release``.
    original
        What the release was made from: the table; the recipe or plan of a graph or of tables; test data or training
        data of a model. The result of :func:`protect` brings its own.
    measures
        Names or parts, for example ``["marginals", "pairs"]``. The default measures if left out.
    knows, secrets, schema, lineage
        Roles and row map, as in :func:`attack`.
    label
        Of a model that does not name it: the column that it predicts.
    engine, memory
        Where the rows lie, as in :func:`check`. Of tables that exceed the memory limit, measures that follow from class
        sizes are computed; others have a reason and no value.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [30, 30, 41, 52]})
    >>> measure(people, original=people, knows=["age"], measures=["uniqueness"]).to_frame()["value"].item()
    0.5
    """
    kind = kind_of_release(release)
    return judge_release(kind, kind.measure, release, given(measure, locals()) | {"progress": progress})
