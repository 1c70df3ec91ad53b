"""The examiner for tables with several rows per person: a guess is right when it names any row of that person."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Guesses, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.record_linkage.sparse_linkage.attack import SparseLinkage
from sfumato.attacks.scenario import AttackScenario
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["examine_units"]

Ints = npt.NDArray[np.int64]


def examine_units(attack: SparseLinkage, scenario: AttackScenario, rng: Rng, progress: Progress, tries: int) -> Outcome:
    """Seek people of whom a few events are known."""
    unit = scenario.original.schema.unit
    if unit is None or unit not in scenario.release.table.columns:
        raise NotApplicable(
            "This attack needs several rows per person, told apart by the privacy unit in original and release.",
            fix="Declare the column that says whose row it is as `unit`, and release it as a pseudonym.",
        )
    place = scenario.release_row
    if place is None:
        raise NotApplicable(
            "Nobody knows which row of the release is whose, so no guess of identity can be judged.",
            fix="Give the row map (`lineage`) that was written with the release.",
        )
    names = [name for name in (attack.item, attack.rating, attack.date) if name is not None]
    for table in (scenario.original.table, scenario.release.table):
        table.require(names)
    owner = scenario.original.table.column(unit).rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    present = np.flatnonzero(place >= 0)
    people = np.unique(owner[present])
    people = rng.child("targets").generator.permutation(people)[:tries]
    targets = _knowledge(attack, scenario, owner, people, names, rng)
    view = View(
        release=scenario.release, targets=targets, knows=tuple(names), secret=unit, transparent=attack.transparent
    )
    planned = len(people)
    guesses = attack.guess(view, rng.child("guess"), progress)
    if guesses.tried == 0:
        raise OutOfTime("Stopped: time was up before anybody had been sought.", fix="Allow more time.")
    guesses = guesses.reached
    assert guesses.row is not None
    people = people[: len(guesses.made)]
    # Whose is a released row: by the row map, the owner of the original row.
    release_owner = np.full(scenario.release.table.rows, -1, dtype=np.int64)
    release_owner[place[present]] = owner[present]
    hit = guesses.made & (release_owner[np.maximum(guesses.row, 0)] == people)
    everybody = np.unique(release_owner[release_owner >= 0])
    blind = rng.child("baseline").generator.choice(everybody, len(people)) == people
    return _outcome(attack, guesses, hit, blind, people, names, planned)


def _outcome(
    attack: SparseLinkage, guesses: Guesses, hit: Any, blind: Any, people: Ints, names: list[str], planned: int
) -> Outcome:
    order = np.argsort(people, kind="stable")
    return Outcome(
        planned=planned,
        attack=attack.part_name(),
        discloses=attack.discloses,
        main=Arm(hits=int(hit.sum()), tries=len(people)),
        baseline=Arm(hits=int(blind.sum()), tries=len(people)),
        claims=int(guesses.made.sum()),
        knows=tuple(names),
        parameters={name: value for name, value in attack.to_dict().items() if name != "knows"},
        detail=guesses.detail,
        threat=attack.summary(),
        rows=people[order],
        hit=hit[order],
        confidence=guesses.confidence[order],
    )


def _knowledge(
    attack: SparseLinkage, scenario: AttackScenario, owner: Ints, people: Ints, names: list[str], rng: Rng
) -> pl.DataFrame:
    """A few random events per person, with ratings and dates off by as much as the intruder's memory."""
    draw = rng.child("knowledge").generator
    mixed = draw.permutation(len(owner))
    order = mixed[np.argsort(owner[mixed], kind="stable")]
    starts = np.searchsorted(owner[order], people)
    stops = np.searchsorted(owner[order], people, side="right")
    chosen = [order[start : min(stop, start + attack.events)] for start, stop in zip(starts, stops, strict=True)]
    rows = np.concatenate(chosen)
    frame = scenario.original.table.frame[rows].select(names)
    if attack.rating is not None:
        off = draw.uniform(-attack.rating_error, attack.rating_error, len(rows))
        frame = frame.with_columns(pl.col(attack.rating).cast(pl.Float64) + off)
    if attack.date is not None:
        days = frame[attack.date]
        number = days.cast(pl.Date).cast(pl.Int32) if days.dtype.is_temporal() else days
        shift = draw.integers(-attack.date_error, attack.date_error + 1, len(rows))
        frame = frame.with_columns((number.cast(pl.Float64) + shift).alias(attack.date))
    from sfumato.attacks.normalize import canonical

    frame = frame.with_columns(canonical(frame[attack.item]))
    person = np.repeat(np.arange(len(people)), [len(part) for part in chosen])
    grouped = (
        frame.with_columns(pl.Series("\x00person", person)).group_by("\x00person", maintain_order=True).agg(pl.all())
    )
    return grouped.drop("\x00person")
