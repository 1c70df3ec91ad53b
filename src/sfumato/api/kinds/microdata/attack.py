"""Attack microdata: record linkage, inference and other attacks, each with its risk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sfumato.api.kinds.microdata.inputs import Released, open_release, refuse_row_options
from sfumato.api.link import outside_table
from sfumato.api.results import AttackResults
from sfumato.attacks import Attack, AttackScenario, default_attacks, lineage_by_key
from sfumato.data import Table, read
from sfumato.dataset import Data, Schema
from sfumato.deadline import stopping
from sfumato.errors import BadParameter
from sfumato.evaluation import LimitResult, judge_limits, run_attacks, same_limit
from sfumato.evaluation.check import Subject, judged_for_people, verdicts_of
from sfumato.evaluation.checks.several_rows import SeveralRows
from sfumato.evaluation.class_risk import counted_attacks, fits_in_memory
from sfumato.evaluation.column_attribution import column_attribution
from sfumato.evaluation.derived_columns import derived_columns
from sfumato.evaluation.run import attack_to_dict
from sfumato.progress import AUTO, Progress
from sfumato.recipe import Limits
from sfumato.registry import registry
from sfumato.release import Lineage
from sfumato.rng import Rng
from sfumato.wording import counted


def attack_microdata(
    release: object,
    *,
    original: object = None,
    attacks: Sequence[Attack | Mapping[str, object] | str] = (),
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
    seed: int | None = None,
    n_targets: int = 5000,
    seconds: float | None = None,
    limit: float | None = None,
    engine: str = "auto",
    memory: str = "4GB",
    progress: Progress = AUTO,
    clock: Callable[[], float] = time.monotonic,
) -> AttackResults:
    """Attack a release and report the risk of each attack with its interval."""
    progress = stopping(progress, seconds, clock=clock)
    found, schema = open_release(
        release, original=original, lineage=lineage, schema=schema, knows=knows, secrets=secrets
    )
    chosen = [registry("attack").part(item, Attack) for item in attacks]
    engine = found.engine(engine)
    if engine != "memory":
        with found.opened(schema, engine=engine, memory=memory) as subject:
            if not fits_in_memory(memory, subject.release, subject.original):
                needs = {"auxiliary": auxiliary, "control": control, "key": key, "aligned": aligned, "people": people}
                refuse_row_options(needs)
                return _attack_counts(subject, found, chosen, knows, limit)
    opened, truth, row_map = found.release, found.truth(schema), found.lineage
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
    released = Data(table=opened.table, schema=truth.schema)
    derived = derived_columns(
        truth,
        released,
        truth.schema,
        lineage=Lineage.identity(truth.rows) if same_order else row_map,
        together=bool(opened.manifest.get("models")),
    )
    chosen = chosen or list(default_attacks(scenario))
    rng = Rng(seed)
    outcomes = run_attacks(scenario, chosen, rng=rng, n_targets=n_targets, progress=progress)
    limits: tuple[LimitResult, ...] = ()
    if limit is not None:
        subject = replace(found, lineage=row_map).subject(released, truth, truth.schema)
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


def _attack_counts(
    subject: Subject, found: Released, attacks: Sequence[Attack], knows: Sequence[str] | None, limit: float | None
) -> AttackResults:
    """Attacks on a release that is too large for memory: those that follow from class sizes; others are not judged."""
    assert subject.original is not None
    names = {attack.part_name() for attack in attacks}
    outcomes = tuple(
        item
        for item in counted_attacks(subject, found.manifest, attacks, Limits(), knows=knows)
        if not names or attack_to_dict(item)["attack"] in names
    )
    derived = derived_columns(
        subject.original,
        subject.release,
        subject.schema,
        lineage=subject.lineage,
        together=bool(found.manifest.get("models")),
    )
    for_people = limit is None or judged_for_people(verdicts_of(SeveralRows(), subject))
    judged = AttackResults.judged(outcomes, limit, for_people=for_people, manifest=found.manifest)
    return replace(judged, derived=derived)


def _outside(auxiliary: object, rename: Mapping[str, str]) -> Table | None:
    if auxiliary is None:
        if rename:
            raise BadParameter(
                "`rename` is for columns of an outside file, and there is none.", fix="Pass `auxiliary`."
            )
        return None
    return outside_table(auxiliary, rename)
