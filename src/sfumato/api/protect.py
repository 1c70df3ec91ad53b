"""``sfumato.protect``: run a recipe or plan of any kind, attack the release and measure it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from sfumato.api.kind import call, given, kind_of_plan
from sfumato.api.protection import Protection
from sfumato.data.key_file import Key
from sfumato.progress import AUTO, Progress


def protect(
    plan: object,
    data: object = None,
    *,
    seed: int | None = None,
    key: Key | None = None,
    n_targets: int | None = None,
    seconds: float | None = None,
    engine: str = "auto",
    memory: str = "4GB",
    suffix: str | None = None,
    workspace: Path | None = None,
    unmet: bool = False,
    progress: Progress = AUTO,
    clock: Callable[[], float] = time.monotonic,
) -> Protection:
    """Run a recipe or a plan, attack the release and measure it. Nothing is written until ``save``.

    Options that do not apply to a kind of release are refused.

    Parameters
    ----------
    plan
        A recipe or a plan: a path, YAML text, a mapping, or an object such as :class:`Recipe`. Its keys say which kind
        of release it is for (`sfumato methods --kind release-kind`); a recipe with ``columns`` and ``steps`` is for
        microdata. ``Recipe(schema=..., steps=[...], models=[...])`` needs no file.
    data
        A path, a database URL, or a pandas, Polars or Arrow table; for a graph also a networkx or igraph graph. The
        plan's own ``data`` if left out.
    seed
        Repeats a run, together with ``key``. The recipe's seed if left out.
    key
        The key of the run to repeat: ``key`` of its result, or the file ``run.key`` of its private folder. A new random
        key if left out. A seed alone determines nothing: whoever guesses it could undo the masking otherwise.
    n_targets
        The number of targets per attack.
    seconds
        Stop attacks and measures after this time, counted from the start; masking itself is not stopped. Inexpensive
        attacks come first. An attack without a result is returned as stopped, and a limit on its kind is not met.
    engine
        ``auto`` (memory if the file fits, DuckDB otherwise), ``memory``, or an engine that masks files: ``duckdb``,
        ``spark``, or one that another distribution registers.
    suffix
        The format of the data file, for example ``.csv`` or ``.parquet``: that of the data, or Parquet for an engine,
        if left out.
    memory, workspace
        For an engine: the memory limit, and the folder in which the masked file is written before ``save`` moves it (a
        temporary folder if left out).
    unmet
        Hand out ``data`` and ``release`` even if a model or a limit is not met; ``save`` has a parameter of its own.

    Returns
    -------
    MicrodataProtection
        The release with its evaluation: ``data``, ``attacks``, ``measures``, ``verdicts``, ``limits``, ``unmet``, and
        ``save(folder)``.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [31, 33, 38, 52, 54, 59] * 5, "ill": ["no", "yes"] * 15})
    >>> recipe = {"sfumato": 1, "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
    ...           "ill": "sensitive"}, "models": [{"k-anonymity": 5}], "steps": ["generalize"]}
    >>> protect(recipe, people, seed=1)
    <Protection: 30 rows released, not judged>
    """
    kind = kind_of_plan(plan)
    options = given(protect, locals()) | {"progress": progress} | ({} if data is None else {"data": data})
    return call(kind.protect, plan, what=f"a plan of kind `{kind.part_name()}`", options=options)
