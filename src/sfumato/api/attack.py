"""``sfumato.attack``: attack a release of any kind and report the risk of each attack."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sfumato.api.kind import given, kind_of_release
from sfumato.api.protection import judge_release
from sfumato.api.results import AttackResults
from sfumato.dataset import Schema
from sfumato.progress import AUTO, Progress
from sfumato.rationals import Number
from sfumato.release import Lineage


def attack(
    release: object,
    *,
    original: object = None,
    attacks: Sequence[object] = (),
    auxiliary: object = None,
    rename: Mapping[str, str] | None = None,
    control: object = None,
    knows: Sequence[str] | None = None,
    secrets: Sequence[str] = (),
    schema: Schema | None = None,
    lineage: Lineage | str | Path | None = None,
    key: str | None = None,
    aligned: bool = False,
    people: Sequence[int] | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    epsilon: Number | None = None,
    budget: Number | None = None,
    seed: int | None = None,
    n_targets: int | None = None,
    seconds: float | None = None,
    limit: float | None = None,
    engine: str = "auto",
    memory: str = "4GB",
    progress: Progress = AUTO,
    clock: Callable[[], float] = time.monotonic,
) -> AttackResults:
    """Attack a release and report the risk of each attack with its interval.

    Options that do not apply to a kind of release are refused.

    Parameters
    ----------
    release
        The result of :func:`protect`, a release folder of any kind, any file, database URL or frame, a ``Release``, a
        stored model (``model.skops``), or the document of a data set that answers queries.
    original
        What the release was made from: the table, the recipe of a graph, the training data of a model. The result of
        :func:`protect` brings its own.
    attacks
        Names or parts, for example ``["linkage"]``. A set that fits the release if left out.
    auxiliary, rename
        A file with names that the attacker holds, and its columns that the original calls otherwise
        (``{their name: our name}``).
    control
        People who are not in the release, with the columns of the original.
    knows, secrets, schema
        Roles: the columns the attacker knows and the sensitive columns, or a schema. Taken from the release's manifest
        if left out.
    lineage, key, aligned
        The row correspondence, which identity risk needs: a row map, a column that identifies rows in both tables, or
        ``aligned=True`` if both have the same order. The row map beside a release folder is found by itself.
    people
        Rows of the original (from 0) to attack; all if left out.
    label, features
        Of a model: the column that it predicts, and its columns in order, if it has no names.
    epsilon, budget
        Of queries that are answered with differential privacy: the cost of each, and of all.
    n_targets
        The number of targets drawn per attack; each kind of release has its own default.
    seconds
        Stop after this time. Targets are attacked in random order, so those reached are a random sample. An attack
        without any result is returned as :class:`~sfumato.errors.OutOfTime`.
    limit
        The largest acceptable risk. The result then has ``limits`` and ``advice``, and the strongest inexpensive attack
        beyond the limit also reports its risk with each known column removed.
    engine, memory
        Where the rows lie, as in :func:`check`. Of tables that exceed the memory limit, risks that follow from class
        sizes are computed, and all other attacks are not judged.

    Returns
    -------
    AttackResults
        One entry per attack. An attack that does not apply is returned with its reason, never as a risk of 0.
        ``derived`` are released columns from which a masked or removed column can be computed.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [30, 30, 41, 52], "ill": ["no", "yes", "no", "no"]})
    >>> results = attack(people, original=people, knows=["age"], secrets=["ill"], aligned=True, seed=1)
    >>> results.to_frame().select("attack", "risk").row(0)
    ('linkage', 0.75)
    """
    kind = kind_of_release(release)
    return judge_release(kind, kind.attack, release, given(attack, locals()) | {"progress": progress})
