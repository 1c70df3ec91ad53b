"""Evidence: the log-likelihood ratio of a released row for a person, summed over all known columns.

The score of a pair is log P(row | person) - log P(row | anybody), column by column. By Bayes' rule the posterior of a
person over the rows is proportional to its exponential: the other rows of the release have nothing to do with the
person, so the probability of each is that for anybody.

| column | P(row \\| person) |
|---|---|
| changed by no published step, or coarsened truthfully | 1 if the released label contains the known value, else 0 |
| changed by one step that states its channel | the channel (:mod:`sfumato.masking.channel`) |
| changed by several steps that state channels | their composition (:mod:`sfumato.attacks.posterior.composition`) |
| changed by a step without a channel | estimated by rerunning the steps (:class:`Likelihood`) |
| steps not known | a mixture of usual ones, learned from the files (:mod:`sfumato.attacks.posterior.unknown`) |
| order of rows kept | that of the row's place if the removed rows were removed at random |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import match
from sfumato.attacks.counterfeit_weights import counterfeit_weights
from sfumato.attacks.likelihood import Likelihood
from sfumato.attacks.posterior.composition import PublishedStep, composed, without_certain_start
from sfumato.attacks.posterior.scores import ChannelTerms, RowEvidence, Singles
from sfumato.attacks.posterior.unknown import MixtureColumn, learned, unknown_column
from sfumato.attacks.remasking import coarsened, proxy, runnable_steps
from sfumato.errors import NotApplicable
from sfumato.masking.base import method_of
from sfumato.masking.channel import PublicKnowledge, StepChannel, image
from sfumato.progress import Progress

_RANK_CELLS = 200
"""Rank intervals in which simulated perturbations are counted."""


def collect(view: View, progress: Progress) -> RowEvidence:
    """All evidence of the known columns."""
    if not view.knows:
        raise NotApplicable("The attacker knows no column of the release.", fix="Name columns with `knows`.")
    # Without published steps nothing is known to be true, and no row can be excluded.
    exact = view.untouched if view.steps else ()
    perturbed = tuple(name for name in view.knows if name not in exact)
    stated = _stated(view, perturbed, progress)
    rest = tuple(name for name in perturbed if name not in stated.columns)
    matched = None
    if exact:
        try:
            matched = match(replace(view, knows=exact), in_release=True)
        except NotApplicable:
            if not perturbed:
                raise
    collected = _Terms(view)
    for channel in stated.channels:
        collected.add(channel)
    collected.tables += stated.composed.values()
    learned_names = collected.estimate(rest, progress) if rest else ()
    if matched is None and collected.empty and view.position is None:
        raise NotApplicable("No known column can be compared with the release.", columns=view.knows)
    if matched is not None:
        collected.bonus += np.log(np.maximum(matched.weights(np.arange(len(collected.bonus))), 1e-300))
    real = counterfeit_weights(view)
    if real is not None:
        collected.bonus += np.log(real)
    used = {
        *stated.columns,
        *learned_names,
        *(name for name in exact if matched is not None and name not in matched.left_out),
    }
    return RowEvidence(
        targets=view.targets.height,
        rows=view.release.table.rows,
        columns=tuple(name for name in view.knows if name in used),
        bonus=collected.bonus,
        matched=matched,
        equal=tuple(collected.equal),
        tables=tuple(collected.tables),
        points=tuple(collected.points),
        forgiving=view.blanks_unknown or bool(coarsened(view)),
        position=view.position,
        estimated=learned_names,
        rounds=collected.rounds,
        unknown=tuple(collected.unknown),
    )


@dataclass(frozen=True, kw_only=True)
class _Stated:
    """What follows from the channels of the steps."""

    channels: tuple[StepChannel, ...]
    composed: Mapping[str, tuple[Ints, Ints, Singles]]
    """Columns that several steps changed: known and released values, and their likelihood ratios."""

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({*self.composed, *(name for channel in self.channels for name in channel.columns)})


def _stated(view: View, perturbed: tuple[str, ...], progress: Progress) -> _Stated:
    """The channels of the steps that alone changed their columns, and what follows for columns of several steps."""
    changed: dict[str, int] = {}
    truthful: set[str] = set()
    for step in view.steps:
        for name in method_of(step).changed_columns(step, view.knows):
            changed[name] = changed.get(name, 0) + 1
            truthful |= {name} if step.get("truthful", False) else set()
    alone = tuple(name for name in perturbed if changed.get(name) == 1)
    channels = tuple(channel for step in view.steps for channel in _of_step(step, _knowledge(view, alone, step)))
    several = tuple(name for name in perturbed if changed.get(name, 0) > 1 and name not in truthful)
    entries = [step for step in view.steps if set(method_of(step).changed_columns(step, several))]
    names = tuple(name for name in perturbed if name not in truthful)
    steps = [own for entry in entries if (own := PublishedStep.of(entry, names)) is not None]
    if not steps or len(steps) < len(entries):
        return _Stated(channels=channels, composed={})
    return _of_steps(view, steps, several, _knowledge(view, names, entries[0]), channels, progress)


def _of_steps(
    view: View,
    steps: Sequence[PublishedStep],
    several: tuple[str, ...],
    first: PublicKnowledge,
    channels: tuple[StepChannel, ...],
    progress: Progress,
) -> _Stated:
    """Columns of several steps. A step after others without randomness is the only one for their result; the channels
    of several random ones are composed. ``first`` is what is known of the people of the first step."""
    if not first.complete:
        return _Stated(channels=channels, composed={})
    left, people = without_certain_start(steps, first.people)
    own = people[first.target_rows]
    count = {name: sum(step.changes(name) for step in left) for name in several}
    certain = (image((name,), own.select(name), first.released) for name in several if count[name] == 0)
    single: list[StepChannel] = []
    for step in left:
        names = [name for name in several if count[name] == 1 and step.changes(name)]
        if names:
            known = replace(
                _knowledge(view, tuple(names), step.entry),
                targets=own.select(names),
                people=people.select(names),
                target_rows=first.target_rows,
                complete=True,
            )
            single += _of_step(step.entry, known)
    rest = [name for name in several if count[name] > 1]
    found = dict(composed(left, people, first.target_rows, first.released, rest, progress))
    return _Stated(channels=(*channels, *certain, *single), composed=found)


def _of_step(step: Mapping[str, Any], knowledge: PublicKnowledge) -> tuple[StepChannel, ...]:
    """The channels of a step for the columns of the knowledge that it changed."""
    if step.get("truthful", False) or not method_of(step).changed_columns(step, knowledge.targets.columns):
        return ()
    return method_of(step).channels(step, knowledge)


def _knowledge(view: View, names: tuple[str, ...], step: Mapping[str, Any]) -> PublicKnowledge:
    """What the adversary knows of the people on whom a step was run: everybody, if rows were removed later."""
    released = view.release.table.frame
    people, rows = (view.targets, np.arange(view.targets.height)) if view.everybody is None else view.everybody
    complete = people.height == released.height
    before = view.steps[: view.steps.index(step)]
    if view.population is not None and all(method_of(earlier).keeps_rows for earlier in before):
        (people, rows), complete = view.population, True
    persons = None
    if view.household is not None:
        number, column = view.household
        persons = number, view.release.table.column(column).rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
    return PublicKnowledge(
        targets=view.targets.select(names),
        people=people.select(names),
        target_rows=rows,
        released=released.select(names),
        complete=complete and not view.blanks_unknown,
        persons=persons,
    )


class _Terms(ChannelTerms):
    """The terms of the score, as they are added."""

    def __init__(self, view: View) -> None:
        super().__init__(view.release.table.rows)
        self._view = view
        self.unknown: list[tuple[MixtureColumn, Singles]] = []
        self.rounds = 0

    @property
    def empty(self) -> bool:
        return super().empty and not self.unknown

    def estimate(self, names: tuple[str, ...], progress: Progress) -> tuple[str, ...]:
        """Add columns without a channel: by rerunning the published steps, else by what is learned from the files."""
        if not self._view.steps:
            return tuple(self.learn(names, progress))
        view = replace(self._view, knows=names)
        labels = {name for name in coarsened(view) if view.release.table.column(name).dtype == pl.String}
        simulated = replace(view, knows=tuple(name for name in names if name not in labels))
        done: list[str] = []
        if simulated.knows:
            try:
                steps = runnable_steps(simulated)
                learned = Likelihood.learn(simulated, proxy(simulated), steps, progress, cells=_RANK_CELLS)
            except NotApplicable:
                pass
            else:
                self.rounds = learned.rounds
                known, seen = learned.places(view.targets), learned.places(view.release.table.frame)
                for place, scale in enumerate(learned.scales):
                    table = learned.table[place]
                    self.tables.append((known[:, place], seen[:, place], table))
                    done.append(scale.name)
        done += self.learn(tuple(name for name in names if name not in done), progress)
        return tuple(done)

    def learn(self, names: tuple[str, ...], progress: Progress) -> list[str]:
        """Add columns whose masking is not known, with weights learned from all of them together."""
        view = self._view
        published = view.release.manifest.get("columns", {}) if view.transparent else {}
        made = [
            unknown_column(
                view.targets.get_column(name),
                view.release.table.column(name),
                published.get(name, {}).get("hierarchy"),
                recoding=view.recodings.get(name),
                blanks_unknown=view.blanks_unknown,
            )
            for name in names
        ]
        columns = [column for column in made if column is not None]
        if columns:
            columns = learned(view.targets.height, view.release.table.rows, columns, progress)
        self.unknown += [(column, column.log) for column in columns]
        return [column.name for column in columns]
