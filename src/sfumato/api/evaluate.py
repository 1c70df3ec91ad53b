"""Try a release: attack it and measure it, ours or somebody else's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.api.column_attribution import column_attribution
from sfumato.api.limits import judge_limits, one_limit
from sfumato.api.results import AttackResults, MeasureResults
from sfumato.attacks import Attack, AttackScenario, Outcome, default_attacks, evaluate_attack, lineage_by_key
from sfumato.data import Table, read
from sfumato.deadline import Deadline, split_deadline
from sfumato.errors import BadParameter, NotApplicable, OutOfTime
from sfumato.measures.base import Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.release.folder import load_lineage, load_release
from sfumato.rng import Rng
from sfumato.schema import Column, Dataset, Schema

__all__ = ["attack", "attack_scenario", "attack_to_dict", "default_measures", "measure", "measure_pair"]

DEFAULT_MEASURES = ("class-sizes", "uniqueness", "prosecutor", "ncp", "marginals", "pairs")
"""What is measured when a recipe names nothing."""


def attack(
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
    tries: int = 5000,
    seconds: float | None = None,
    limit: float | None = None,
    progress: Progress = SILENT,
    clock: Callable[[], float] = time.monotonic,
) -> AttackResults:
    """Attack a release: a folder of ours, anybody's file or frame, a ``Release``, or what ``protect`` returned.

    ``original`` is what is true: the data the release was made of. What ``protect`` returned knows it already.

    What does not apply is returned as such, never as a risk of 0. After ``seconds`` the attacks stop where they are:
    the people sought so far, in random order, are counted, and an attack that had reached nobody is returned as
    :class:`~sfumato.errors.OutOfTime`. Each attack may take a third of the time that is left when it begins. With a
    ``limit`` the strongest attack beyond it is repeated without each column it knew, to say what it owes to which.

    Roles come from ``schema``, else from the release's manifest; for a release without one, ``knows`` names the
    quasi-identifiers and ``secrets`` the sensitive columns. The row map is found beside a release folder, given as
    ``lineage``, or made from a column ``key`` that identifies rows in both files. ``people`` are the rows of the
    original that are sought; everybody if left out. ``rename`` gives columns of the outside file (``auxiliary``) the
    names that the original has for them, the one that identifies people among them.
    """
    if seconds is not None:
        progress = Deadline(until=clock() + seconds, listener=progress, clock=clock)
    release, original, lineage = _unpacked(release, original, lineage)
    made, found = _opened(release, lineage)
    truth = _dataset(original, made, schema, knows, secrets)
    if key is not None:
        found = lineage_by_key(truth.table, made.table, key)
    if people is not None and not all(0 <= row < truth.rows for row in people):
        raise BadParameter(f"A row that is sought does not exist: the original has {truth.rows} rows.")
    scenario = AttackScenario(
        original=truth,
        release=made,
        lineage=found,
        aligned=aligned,
        auxiliary=_outside(auxiliary, rename or {}),
        control=read(control) if control is not None else None,
        knows=tuple(knows) if knows else None,
        people=None if people is None else np.array(people, dtype=np.int64),
    )
    chosen = [_attack(item) for item in attacks] or list(default_attacks(scenario))
    rng = Rng(seed)
    outcomes = attack_scenario(scenario, chosen, rng=rng, tries=tries, progress=progress)
    if limit is None:
        return AttackResults(outcomes)
    judged = judge_limits(one_limit(limit, outcomes), outcomes)
    return AttackResults(column_attribution(scenario, chosen, outcomes, judged, rng=rng, progress=progress))


def measure(
    release: Any,
    *,
    original: Any = None,
    measures: Sequence[Measure | str] = (),
    knows: Sequence[str] | None = None,
    secrets: Sequence[str] = (),
    schema: Schema | None = None,
    lineage: Lineage | str | Path | None = None,
    seed: int | None = None,
    progress: Progress = SILENT,
) -> MeasureResults:
    """Measure disclosure risk and utility of a release against its original.

    The release is a folder of ours, anybody's file or frame, a ``Release``, or what ``protect`` returned, which knows
    its original. Roles are told as in :func:`attack`.
    """
    release, original, lineage = _unpacked(release, original, lineage)
    made, found = _opened(release, lineage)
    pair = ReleasePair(original=_dataset(original, made, schema, knows, secrets), release=made, lineage=found)
    chosen = [_measure(item) for item in measures] or default_measures()
    return MeasureResults(measure_pair(pair, chosen, rng=Rng(seed), progress=progress))


def attack_scenario(
    scenario: AttackScenario, attacks: Iterable[Attack], *, rng: Rng, tries: int, progress: Progress
) -> list[Outcome | NotApplicable]:
    """Run attacks one after the other; the n-th draws from the stream of its own.

    When ``progress`` is a :class:`~sfumato.deadline.Deadline`, each attack gets a third of the time that is left, the
    last ones more, so that what one does not need goes to the next. What time did not allow is returned as such.
    """
    listed = list(attacks)
    outcomes: list[Outcome | NotApplicable] = []
    shown = progress.listener if isinstance(progress, Deadline) else progress
    with shown.task("attacking", len(listed)) as tick:
        for number, item in enumerate(listed):
            own = split_deadline(progress, min(3, len(listed) - number))
            try:
                outcomes.append(
                    evaluate_attack(item, scenario, rng=rng.child("attacks", number), progress=own, tries=tries)
                )
            except NotApplicable as refusal:
                refusal.facts["attack"] = item.part_name()
                refusal.facts["discloses"] = str(item.discloses)
                refusal.facts["setting"] = item.setting
                outcomes.append(refusal)
            tick(1)
    return outcomes


def measure_pair(
    pair: ReleasePair, measures: Iterable[Measure], *, rng: Rng, progress: Progress
) -> list[MeasureResult]:
    """Run measures one after the other; one that does not apply gives its reason and no value."""
    listed = list(measures)
    found: list[MeasureResult] = []
    with progress.task("measuring", len(listed)) as tick:
        for number, item in enumerate(listed):
            name = item.part_name()
            try:
                found.append(item.of(pair, rng.child("measures", number, name), SILENT))
            except NotApplicable as refusal:
                found.append(MeasureResult(measure=name, value=None, reason=str(refusal)))
            tick(1)
    return found


def attack_to_dict(item: Outcome | NotApplicable) -> dict[str, Any]:
    if isinstance(item, Outcome):
        return item.to_dict()
    setting = item.facts.get("setting")
    return {
        "attack": item.facts.get("attack"),
        **({"setting": setting} if setting else {}),
        "discloses": item.facts.get("discloses"),
        "risk": None,
        **({"stopped": True} if isinstance(item, OutOfTime) else {}),
        "reason": str(item),
    }


def _unpacked(release: Any, original: Any, lineage: Any) -> tuple[Any, Any, Any]:
    """A :class:`~sfumato.api.Protection` brings its original and its row map along."""
    if hasattr(release, "protected") and hasattr(release, "lineage"):
        lineage = release.lineage if lineage is None and original is None else lineage
        return release.release, release.original if original is None else original, lineage
    if original is None:
        raise BadParameter("Nothing says what is true.", fix="Name the data that the release was made of: original=...")
    return release, original, lineage


def _opened(release: Any, lineage: Lineage | str | Path | None) -> tuple[Release, Lineage | None]:
    made = release if isinstance(release, Release) else load_release(release)
    if isinstance(lineage, str | Path):
        found = load_lineage(Path(lineage))
        if found is None:
            raise BadParameter(f"{lineage} is not a row map.", fix="It is `lineage.parquet` in the private folder.")
        return made, found
    if lineage is None and isinstance(release, str | Path) and Path(release).is_dir():
        return made, load_lineage(Path(release))
    return made, lineage


def _dataset(
    original: Any, release: Release, schema: Schema | None, knows: Sequence[str] | None, secrets: Sequence[str]
) -> Dataset:
    table = read(original) if not isinstance(original, Dataset) else original.table
    if isinstance(original, Dataset):
        return original
    if schema is None:
        declared = release.manifest.get("recipe", {}).get("columns") or {
            name: {"role": "quasi"} for name in knows or ()
        }
        for name in secrets:
            declared = {**declared, name: {**declared.get(name, {}), "role": "sensitive"}}
        schema = Schema(columns={name: Column.model_validate(value) for name, value in declared.items()})
    return Dataset.of(table, schema)


def _outside(auxiliary: Any, rename: Mapping[str, str]) -> Table | None:
    if auxiliary is None:
        if rename:
            raise BadParameter("Columns of an outside file are renamed, but there is none.", fix="Give `auxiliary`.")
        return None
    table = read(auxiliary)
    table.require(tuple(rename))
    kept = [name for name in table.columns if name in rename or name not in rename.values()]
    return table.with_frame(table.frame.select(kept).rename(dict(rename)))


def _attack(item: Attack | str) -> Attack:
    part = registry("attack").get(item).build() if isinstance(item, str) else item
    assert isinstance(part, Attack)
    return part


def _measure(item: Measure | str) -> Measure:
    part = registry("measure").get(item).build() if isinstance(item, str) else item
    assert isinstance(part, Measure)
    return part


def default_measures() -> list[Measure]:
    """The measures that are taken when nobody named any."""
    return [_measure(name) for name in DEFAULT_MEASURES]
