"""Attack microdata: record linkage, inference and other attacks, each with its risk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.api.kinds.microdata.inputs import open_release
from sfumato.api.link import outside_table
from sfumato.api.results import AttackResults
from sfumato.attacks import Attack, AttackScenario, default_attacks, lineage_by_key
from sfumato.data import Table, read
from sfumato.dataset import Schema
from sfumato.deadline import Deadline
from sfumato.errors import BadParameter
from sfumato.evaluation import judge_limits, run_attacks, same_limit
from sfumato.evaluation.check import verdicts_of
from sfumato.evaluation.checks.several_rows import SeveralRows, judged_for_people
from sfumato.evaluation.column_attribution import column_attribution
from sfumato.evaluation.derived_columns import derived_columns
from sfumato.evaluation.subjects import TableSubject
from sfumato.progress import AUTO, Progress
from sfumato.registry import registry
from sfumato.release import Lineage
from sfumato.rng import Rng
from sfumato.wording import counted

__all__ = ["attack_microdata"]


def attack_microdata(
    release: Any,
    *,
    original: Any = None,
    attacks: Sequence[Attack | str] = (),
    auxiliary: Any = None,
    rename: Mapping[str, str] | None = None,
    control: Any = None,
    knows: Sequence[str] | None = None,
    secrets: Sequence[str] = (),
    schema: Schema | None = None,
    lineage: Lineage | str | Path | None = None,
    key: str | None = None,
    aligned: bool = False,
    people: Sequence[int] | None = None,
    seed: int | None = None,
    n_targets: int = 5000,
    seconds: float | None = None,
    limit: float | None = None,
    progress: Progress = AUTO,
    clock: Callable[[], float] = time.monotonic,
) -> AttackResults:
    """Attack a release and report the risk of each attack with its interval."""
    if seconds is not None:
        progress = Deadline(until=clock() + seconds, listener=progress, clock=clock)
    opened, truth, row_map = open_release(
        release, original=original, lineage=lineage, schema=schema, knows=knows, secrets=secrets
    )
    if key is not None:
        row_map = lineage_by_key(truth.table, opened.table, key)
        if key not in (knows or ()):
            # The key decides which guess is right: an attacker who held it would not have to guess.
            opened = replace(opened, table=opened.table.with_frame(opened.table.frame.drop(key)))
    if people is not None and not all(0 <= row < truth.rows for row in people):
        raise BadParameter(f"`people` names a row that does not exist: the original has {counted(truth.rows, 'row')}.")
    scenario = AttackScenario(
        original=truth,
        release=opened,
        lineage=row_map,
        aligned=aligned,
        auxiliary=_outside(auxiliary, rename or {}),
        control=read(control) if control is not None else None,
        knows=tuple(knows) if knows else None,
        targets=None if people is None else np.array(people, dtype=np.int64),
    )
    same_order = aligned and row_map is None and truth.rows == opened.table.rows
    derived = derived_columns(
        truth,
        opened.table,
        lineage=Lineage.identity(truth.rows) if same_order else row_map,
        together=bool(opened.manifest.get("models")),
    )
    chosen = [_part(item) for item in attacks] or list(default_attacks(scenario))
    rng = Rng(seed)
    outcomes = run_attacks(scenario, chosen, rng=rng, n_targets=n_targets, progress=progress)
    if limit is None:
        return AttackResults(
            outcomes=tuple(outcomes), derived=derived, readings=scenario.known_readings, manifest=opened.manifest
        )
    subject = TableSubject(
        schema=truth.schema,
        steps=opened.manifest.get("steps", ()),
        order=str(opened.manifest.get("order", "shuffled")),
        lineage=row_map,
        table=opened.table,
        original=truth,
    )
    for_people = judged_for_people(verdicts_of(SeveralRows(), subject))
    limits = judge_limits(same_limit(limit, outcomes), outcomes, for_people=for_people)
    outcomes = column_attribution(scenario, chosen, outcomes, limits, rng=rng, progress=progress)
    return AttackResults(
        outcomes=tuple(outcomes),
        limits=limits,
        derived=derived,
        readings=scenario.known_readings,
        manifest=opened.manifest,
    )


def _outside(auxiliary: Any, rename: Mapping[str, str]) -> Table | None:
    if auxiliary is None:
        if rename:
            raise BadParameter(
                "`rename` is for columns of an outside file, and there is none.", fix="Pass `auxiliary`."
            )
        return None
    return outside_table(auxiliary, rename)


def _part(item: Attack | str) -> Attack:
    part = registry("attack").get(item).build() if isinstance(item, str) else item
    assert isinstance(part, Attack)
    return part
