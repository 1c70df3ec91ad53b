"""The contract of an attack: one class per attack in ``attack/attacks``.

An attack sees a :class:`View`, which holds only what the intruder holds, and returns :class:`Guesses`. It never learns
whether it was right: that is :mod:`sfumato.attacks.evaluation.evaluate`, which holds the truth and runs every attack's
main, baseline and control arms in the same way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.masking.base import method_of
from sfumato.params import InputFile, Part
from sfumato.progress import SILENT, Progress
from sfumato.release import Release
from sfumato.rng import Rng

__all__ = ["Attack", "Discloses", "Guesses", "Linking", "Predicate", "View"]


class Discloses(StrEnum):
    """What an attack gives away when it succeeds."""

    IDENTITY = "identity"
    """Which row is this person's."""
    ATTRIBUTE = "attribute"
    """What sensitive value a person has."""
    MEMBERSHIP = "membership"
    """Whether a person is in the data at all."""
    SINGLING_OUT = "singling-out"
    """A description that fits exactly one person of the original, whoever that is."""


@dataclass(frozen=True, kw_only=True)
class View:
    """What the intruder holds: the release with its public manifest, and a file about the people sought."""

    release: Release
    targets: pl.DataFrame
    """One row per person sought, with the columns the intruder knows of them."""
    knows: tuple[str, ...]
    """Columns of ``targets`` that the release has too: what can be linked on."""
    secret: str | None = None
    """For attribute disclosure: the released column whose value is sought."""
    transparent: bool = True
    """Whether the intruder knows method and parameters (the manifest's steps)."""
    blanks_unknown: bool = False
    """Whether a blank in ``targets`` means that the intruder does not know the value (an outside file), rather than
    that he knows it to be missing (the original's own values)."""
    household: tuple[npt.NDArray[np.int64], str] | None = None
    """For attacks on households: the number of each target's household (targets of one stand together), and the
    released column that says which rows belong together, whose values mean nothing to the intruder."""
    taught: tuple[pl.DataFrame, npt.NDArray[np.int64]] | None = None
    """People whose release row the intruder already knows: their values, and their rows. For attacks that learn."""

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        """The published steps, or nothing for an intruder who does not know the method."""
        return tuple(self.release.manifest.get("steps", ())) if self.transparent else ()

    @property
    def untouched(self) -> tuple[str, ...]:
        """Known columns that no published step perturbed: what they say of a row is true of its person.

        A step that does not say which columns it changed is taken to have changed all, unless it is truthful.
        """
        perturbed: set[str] = set()
        for step in self.steps:
            if not step.get("truthful", False):
                perturbed.update(step.get("columns", self.knows))
        return tuple(name for name in self.knows if name not in perturbed)


@dataclass(frozen=True, kw_only=True)
class Predicate:
    """A description of a person: conditions that must all hold."""

    conditions: tuple[tuple[str, str, Any], ...]
    """Column, sign ("=", "<=" or ">=") and a released value, which may be coarse when the sign is "="."""


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """One guess per target, or none.

    ``row`` is the release row guessed (identity), -1 for no guess; ``value`` the guessed value (attribute), with
    ``made`` false for no guess; ``member`` the guessed membership. ``confidence`` is the attack's own probability.
    """

    row: npt.NDArray[np.int64] | None = None
    value: pl.Series | None = None
    member: npt.NDArray[np.bool_] | None = None
    predicates: tuple[Predicate, ...] = ()
    """For singling out: the descriptions, one per guess."""
    made: npt.NDArray[np.bool_]
    confidence: npt.NDArray[np.float64]
    detail: Mapping[str, Any] = field(default_factory=dict)
    """What the attack learned besides, as plain data that names columns and never values: weights, for example.
    Numbers under ``columns`` say how much each column helped."""
    tried: int | None = None
    """How many targets, from the first on, were reached before time was up; all of them when None. The examiner hands
    targets over in random order, so those reached are a random sample."""

    @classmethod
    def of_rows(
        cls,
        row: npt.NDArray[np.int64],
        confidence: npt.NDArray[np.float64],
        detail: Mapping[str, Any] | None = None,
        tried: int | None = None,
    ) -> Guesses:
        """Guesses of identity; a negative row is no guess."""
        made = row >= 0
        return cls(row=row, made=made, confidence=np.where(made, confidence, 0.0), detail=detail or {}, tried=tried)

    @property
    def reached(self) -> Guesses:
        """The guesses about those targets alone that were reached in time."""
        if self.tried is None or self.tried >= len(self.made):
            return self
        stop = self.tried
        return replace(
            self,
            row=None if self.row is None else self.row[:stop],
            value=None if self.value is None else self.value[:stop],
            member=None if self.member is None else self.member[:stop],
            made=self.made[:stop],
            confidence=self.confidence[:stop],
        )


class Attack(Part):
    """An intruder. The docstring of each subclass is its threat model: who, knowing what, wanting what."""

    discloses: ClassVar[Discloses]
    exploits: ClassVar[frozenset[str]] = frozenset()
    """Names of the masking methods whose publication this attack uses; empty for attacks on any release."""
    simulates: ClassVar[bool] = False
    """Whether the attack reruns published methods, so that it exploits every method that is simulable."""
    pairwise: ClassVar[bool] = False
    """Whether every person is compared with every row; then fewer people are tried on very large releases."""
    together: ClassVar[int] = 0
    """So many people at least are sought where there are as many: for attacks in which people stand in each other's
    way, so that a sample of them would tell too little."""
    by_household: ClassVar[bool] = False
    """Whether people are sought household by household, all members known."""
    by_unit: ClassVar[bool] = False
    """Whether the attack seeks privacy units with several rows each, instead of rows."""

    knows: tuple[str, ...] | None = None
    """Columns the intruder knows of the people sought; all quasi-identifiers when left out."""
    transparent: bool = True
    """Whether the intruder knows the method and its parameters, as published with the release."""

    @classmethod
    def exploited(cls, steps: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        """Names of the published steps (entries of a manifest) that this attack exploits."""
        return tuple(
            str(step.get("step"))
            for step in steps
            if step.get("step") in cls.exploits or (cls.simulates and method_of(step).simulable)
        )

    @property
    def setting(self) -> str:
        """A few words that tell this intruder from others of the same attack; nothing when there is no need."""
        return ""

    @property
    def rivals(self) -> tuple[Attack, ...]:
        """Attacks of which the strongest stands for this one; the examiner finds it on people of whom none is counted.
        Nothing for an attack that stands for itself."""
        return ()

    @abstractmethod
    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        """For each target, the best guess from the view alone.

        Long loops tick ``progress``, which may raise :class:`~sfumato.errors.OutOfTime`; an attack that goes through
        its targets one after the other says with ``tried`` how many it reached.
        """


class Linking(Attack):
    """An intruder who links a file about people to the release: somebody else's file, or the true quasi-identifiers."""

    auxiliary: InputFile | None = None
    """Outside file with names, a voter list for example; the original's own values when left out (the worst case)."""
    identity: str | None = None
    """Column that names a person in the outside file and in the original, and so tells which guess was right; the
    original's identifier columns when left out. The attack itself never sees it."""
    rename: Annotated[dict[str, str], Field(default_factory=dict)]
    """Columns of the outside file that the original calls otherwise: {outside name: name in the original}."""
