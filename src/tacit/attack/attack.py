"""The contract of an attack: one class per attack in ``attack/attacks``.

An attack sees a :class:`View`, which holds only what the intruder holds, and returns :class:`Guesses`. It never learns
whether it was right: that is :mod:`tacit.attack.examine`, which holds the truth and runs every attack's main,
baseline and control arms in the same way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.params import Part
from tacit.progress import SILENT, Progress
from tacit.release import Release
from tacit.rng import Rng

__all__ = ["Attack", "Discloses", "Guesses", "View"]


class Discloses(StrEnum):
    """What an attack gives away when it succeeds."""

    IDENTITY = "identity"
    """Which row is this person's."""
    ATTRIBUTE = "attribute"
    """What sensitive value a person has."""
    MEMBERSHIP = "membership"
    """Whether a person is in the data at all."""


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

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        """The published steps, or nothing for an intruder who does not know the method."""
        return tuple(self.release.manifest.get("steps", ())) if self.transparent else ()


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """One guess per target, or none.

    ``row`` is the release row guessed (identity), -1 for no guess; ``value`` the guessed value (attribute), with
    ``made`` false for no guess; ``member`` the guessed membership. ``confidence`` is the attack's own probability.
    """

    row: npt.NDArray[np.int64] | None = None
    value: pl.Series | None = None
    member: npt.NDArray[np.bool_] | None = None
    made: npt.NDArray[np.bool_]
    confidence: npt.NDArray[np.float64]


class Attack(Part):
    """An intruder. The docstring of each subclass is its threat model: who, knowing what, wanting what."""

    discloses: ClassVar[Discloses]

    @abstractmethod
    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        """For each target, the best guess from the view alone."""
