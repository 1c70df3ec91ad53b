"""Seed guessing: the published steps are replayed with every seed that a person would type, and undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.features import numbers
from sfumato.attacks.nearest_neighbours import BoxTree
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import NotApplicable, OutOfTime, SfumatoError
from sfumato.masking.base import Context, Step, method_of
from sfumato.progress import SILENT, Progress
from sfumato.registry import registry
from sfumato.release import Release
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_TYPED = (*range(10), 42, 123, 1234, 12345, 123456, 100, 1000, 99, 2023, 2024, 2025, 2026, 4242, 1337, 31337)
"""Seeds that people type, besides the small whole numbers."""
_SEEDS = 100
_WORK = 1_500_000
"""Cells that are replayed over all seeds; fewer seeds are tried on larger releases."""
_FEWEST = 40
"""Seeds that are tried on a release of any size: the wrong ones are what the right one is compared with."""
_WITNESSES = 64
"""Targets by whose nearest recovered row a seed is judged."""
_SURE = 6.0
"""Deviation from the other seeds, in their standard deviations, at which a seed counts as found: a wrong one of 100
gets there less than once in a million releases."""


class SeedGuessing(Linking):
    """An attacker who knows the method tries the seeds that people type, undoes the masking and links the rest.

    For each candidate the attacker puts the rows back into their order, runs the published steps again with the random
    numbers of that seed, and subtracts what these numbers explain of the release, or takes the values that a second
    exchange gives back. The right seed explains much more than all others, or moves the rows onto known people; then
    every person is linked to the nearest recovered row. If no seed stands out, nobody is named.

    Releases are drawn from a seed *and* a secret key, so no seed is to be found. Only numeric columns are tested, and
    the releases of an engine, whose rows are in another order, are not.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.SEEDS
    weak_masking: ClassVar = {"noise": {"variance_ratio": 0.3, "variant": "correlated"}}
    examples = ({}, {"seeds": 50})
    reference: ClassVar[str] = (
        "After the transparency principle: Torra, V. (2017). Data Privacy: Foundations, New Developments and the Big "
        "Data Challenge. doi:10.1007/978-3-319-57358-8"
    )

    seeds: Annotated[int, Field(ge=40, le=1_000_000)] | None = None
    """Number of seeds to try, likely ones first; if omitted, 100, and fewer on large releases."""

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        return method.simulable and method.draws

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        changed = set[str]()
        for step in scenario.steps:
            if cls.exploits(method_of(step)):
                changed.update(step.get("columns", scenario.known))
        table = scenario.release.table
        return (
            (cls(),)
            if any(name in changed and table.column(name).dtype.is_numeric() for name in scenario.known)
            else ()
        )

    @classmethod
    def remedy(cls, detail: Mapping[str, object]) -> str | None:
        return "Run `sfumato protect` again: it mixes the seed with a secret key." if detail.get("found") else None

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        replays = _Replays.of(view)
        count = self.seeds or max(_FEWEST, min(_SEEDS, _WORK // max(1, replays.released.size)))
        likely = list(islice(dict.fromkeys((*_TYPED, *range(count))), count))
        draw = rng.child("witnesses").generator
        people = replays.targets[draw.permutation(len(replays.targets))[:_WITNESSES]]
        scores = np.empty((len(likely), 3))
        with progress.task("guessing seeds", len(likely)) as tick:  # what was not tried is not reported as safe
            for number, seed in enumerate(likely):
                scores[number] = replays.tried(seed, people, progress)
                tick(1)
        spread = 1.4826 * np.median(np.abs(scores - np.median(scores, axis=0)), axis=0)
        outlying = (scores - np.median(scores, axis=0)) / np.where(spread > 0, spread, np.inf)
        best = int(outlying.max(axis=1).argmax())
        if outlying[best].max() < _SURE:
            nobody = np.full(view.targets.height, -1, dtype=np.int64)
            return Guesses.of_rows(nobody, np.zeros(len(nobody)), {"seeds": len(likely), "found": False})
        subtracted, again = replays.undone(likely[best], progress)
        recovered = again if outlying[best].argmax() == 2 else subtracted
        found = DistanceLinkage().guess(replace(view, release=replays.with_values(recovered)), rng, progress)
        return replace(found, detail={**found.detail, "seeds": len(likely), "found": True})


@dataclass(frozen=True, kw_only=True)
class _Replays:
    """A release whose published steps can be run again under any seed."""

    release: Release
    steps: tuple[tuple[int, Step], ...]
    """The steps that draw, each with its position, which is part of the name of its stream."""
    columns: tuple[str, ...]
    """Known numeric columns that these steps changed."""
    released: Floats
    targets: Floats

    @classmethod
    def of(cls, view: View) -> _Replays:
        steps, changed = [], set[str]()
        for position, published in enumerate(view.steps):
            method = method_of(published)
            if not SeedGuessing.exploits(method):
                continue
            names = published.get("columns", view.release.table.columns)
            parameters = dict(published.get("parameters", {}))
            if "columns" in method.model_fields and "columns" in published and not parameters.get("groups"):
                parameters["columns"] = list(names)
            try:
                step = registry("method").get(str(published["step"])).build(parameters)
            except SfumatoError as refusal:
                raise NotApplicable(f"The published step `{published['step']}` cannot be replayed: {refusal}") from None
            assert isinstance(step, Step)
            steps.append((position, step))
            changed.update(names)
        if not steps:
            raise NotApplicable("No published step draws random numbers, so no seed can be guessed.")
        known = {name: (numbers(view.targets[name]), numbers(view.release.table.column(name))) for name in view.knows}
        used = {
            name: (mine, other)
            for name, (mine, other) in known.items()
            if name in changed and mine is not None and other is not None
        }
        if not used or view.release.table.rows < 2:
            raise NotApplicable("No known column holds numbers that a published step changed: no seed can be verified.")
        return cls(
            release=view.release,
            steps=tuple(steps),
            columns=tuple(used),
            released=np.nan_to_num(np.column_stack([other for _, other in used.values()])),
            targets=np.nan_to_num(np.column_stack([mine for mine, _ in used.values()])),
        )

    def undone(self, seed: int, progress: Progress) -> tuple[Floats, Floats]:
        """The released values without what the numbers of this seed explain, and the values of a second exchange."""
        rng, table = Rng(seed), self.release.table
        # The masked row `place[i]` was released as row i.
        place: Ints = np.arange(table.rows)
        if self.release.manifest.get("order", "shuffled") == "shuffled":
            place = rng.child("order").generator.permutation(table.rows)
        schema = Schema(columns={name: Column(role=Role.QUASI) for name in table.columns})
        data = Data(table=table.with_frame(table.frame[np.argsort(place)]), schema=schema)
        for position, step in self.steps:
            try:
                change = step.apply(data, Context(rng=rng.child(position, step.part_name()), progress=progress))
            except OutOfTime:
                raise
            except SfumatoError as refusal:
                raise NotApplicable(f"The published step `{step.part_name()}` cannot be replayed: {refusal}") from None
            if change.table.rows != table.rows or not set(self.columns) <= set(change.table.columns):
                raise NotApplicable(f"The published step `{step.part_name()}` changes rows or columns.")
            data = Data(table=change.table, schema=schema)
        columns = [numbers(data.table.column(name)[place]) for name in self.columns]
        if any(column is None for column in columns):
            raise NotApplicable("A replayed column holds no numbers.")
        again = np.nan_to_num(np.column_stack(columns))  # type: ignore[arg-type]
        drawn = again - self.released
        centred = drawn - drawn.mean(axis=0)
        power = (centred**2).sum(axis=0)
        weight = (centred * (self.released - self.released.mean(axis=0))).sum(axis=0) / np.where(power > 0, power, 1)
        return self.released - weight * drawn, again

    def tried(self, seed: int, people: Floats, progress: Progress) -> tuple[float, float, float]:
        """How well the numbers of a seed explain the release: correlation, and nearness of recovered rows to people."""
        subtracted, again = self.undone(seed, progress)
        scale = self.released.std(axis=0)
        scale = np.where(scale > 0, scale, 1)
        explained = 1 - subtracted.var(axis=0) / scale**2
        sign = np.sign(((again - self.released) * (self.released - self.released.mean(axis=0))).sum(axis=0))
        near = [
            -float(np.sqrt(BoxTree.of(rows / scale).near(people / scale, 1)[1]).mean()) for rows in (subtracted, again)
        ]
        return float((sign * np.sqrt(np.clip(explained, 0, 1))).mean()), near[0], near[1]

    def with_values(self, values: Floats) -> Release:
        """The release with recovered values."""
        recovered = [pl.Series(name, values[:, place]) for place, name in enumerate(self.columns)]
        table = self.release.table
        return Release(table=table.with_frame(table.frame.with_columns(recovered)), manifest=self.release.manifest)
