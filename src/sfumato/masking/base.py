"""The contract of a masking method: one class per method in ``protect/methods``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from sfumato.masking.model import PrivacyModel
from sfumato.params import Part
from sfumato.progress import SILENT, Progress
from sfumato.release import Change
from sfumato.rng import Rng
from sfumato.schema import Dataset

__all__ = ["Context", "Step"]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What surrounds a step when it runs: the models to meet, its own random stream, who shows progress."""

    rng: Rng
    models: tuple[PrivacyModel, ...] = ()
    progress: Progress = SILENT


class Step(Part):
    """One masking method with its parameters.

    Each subclass says in its docstring what it preserves and what it does not protect. Its parameters are public:
    assume that the attacker knows them.
    """

    truthful: ClassVar[bool] = False
    """Whether a released row still says nothing false of its person: values are coarsened or left out, never altered.
    Published with the step, because an intruder may rely on it."""

    stronger: ClassVar[Mapping[str, Literal["more", "less"]]] = {}
    """Parameters that protect more when there is more, or less, of them: what to turn when an attack succeeds."""

    exempt: ClassVar[Mapping[str, str]] = {}
    """Checks of the contract that cannot hold for this method, each with the reason: ``{check: reason}``."""

    @abstractmethod
    def apply(self, data: Dataset, context: Context) -> Change:
        """The masked table. ``data`` is left as it is; all randomness comes from ``context.rng``."""
