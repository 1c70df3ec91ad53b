"""Base classes of attacks on releases.

An attack is one class in one file below ``record_linkage``, ``transparency`` or ``inference``. It receives a
:class:`View`, which contains only what the adversary has, and returns :class:`Guesses`. It never learns whether a guess
was correct: :func:`sfumato.attacks.evaluation.evaluate.evaluate_attack` compares the guesses with the truth and runs
the main, baseline and control arms in the same way for every attack.

An attack also states what other modules need to know about it: what it discloses, when it belongs to the default
battery (:meth:`Attack.defaults`), whether it is fast enough to be repeated, and what would prevent it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.recoding import Recoding
from sfumato.masking.base import Step, method_of
from sfumato.params import InputFile, Part
from sfumato.progress import SILENT, Progress
from sfumato.release import Release
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario


class Discloses(StrEnum):
    """The kind of disclosure that a successful attack causes."""

    IDENTITY = "identity"
    """Which released row belongs to a person (re-identification)."""
    ATTRIBUTE = "attribute"
    """The value of a sensitive column for a person."""
    MEMBERSHIP = "membership"
    """Whether a person is in the data."""
    SINGLING_OUT = "singling-out"
    """A predicate that is true for exactly one person of the original."""
    LINK = "link"
    """Whether two people are linked in a graph."""
    RESULT = "result"
    """A result of data mining that the release was changed to hide."""


class Stage(IntEnum):
    """When an attack runs in the default battery: stages in ascending order, so that cheap attacks run first.

    The position of an attack is also the number of its random stream. ``OTHER`` is last: an attack of another package
    leaves the figures of the attacks before it unchanged.
    """

    LOOKUP = 1
    """Rows that are consistent with the known values."""
    INFERENCE = 2
    """Sensitive values; all attacks on one column, then all on the next."""
    SIMILARITY = 3
    """Rows that are similar to the known values."""
    POPULATION = 4
    """Predicates and membership."""
    METHOD = 5
    """Knowledge of a published masking step."""
    LEARNING = 6
    """Distances learned from known matches."""
    ANY_COLUMNS = 7
    """Columns that nobody declared as known."""
    SEEDS = 9
    """Random numbers of the masking."""
    OTHER = 10


@dataclass(frozen=True, kw_only=True)
class View:
    """What the adversary has: the release with its public manifest, and known values of the targets."""

    release: Release
    targets: pl.DataFrame
    """One row per target, with the columns that the adversary knows."""
    knows: tuple[str, ...]
    """Columns of ``targets`` that are also in the release: the columns to link on."""
    secret: str | None = None
    """For attribute disclosure: the released column whose value is to be inferred."""
    transparent: bool = True
    """Whether the adversary knows the method and its parameters (the manifest's steps)."""
    blanks_unknown: bool = False
    """Whether a blank in ``targets`` means that the value is unknown to the adversary (an external file), rather than
    known to be missing (the original's own values)."""
    recodings: Mapping[str, Recoding] = field(default_factory=dict)
    """Columns whose released numbers are bands, and the rule: what the adversary sees from the frequencies."""
    household: tuple[npt.NDArray[np.int64], str] | None = None
    """For attacks on households: the number of each target's household (members are consecutive), and the released
    column that groups the rows of a household, whose values are meaningless to the adversary."""
    people: pl.DataFrame | None = None
    """All people whose values the adversary knows, if ``targets`` are some of them: for scales and covariances."""
    everybody: tuple[pl.DataFrame, npt.NDArray[np.int64]] | None = None
    """The known values of everybody in the release, if the adversary has them, and the row of each target there."""
    population: tuple[pl.DataFrame, npt.NDArray[np.int64]] | None = None
    """If rows of the original were removed: the known values of all people of the original, and the row of each target
    there."""
    position: tuple[npt.NDArray[np.int64], int] | None = None
    """For releases in the order of the original: the place of each target there, and how many rows were removed."""
    known_matches: tuple[pl.DataFrame, npt.NDArray[np.int64]] | None = None
    """For attacks that learn: known values of people whose release row the adversary knows, and these rows."""

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        """The published steps; empty if the adversary does not know the method."""
        return tuple(self.release.manifest.get("steps", ())) if self.transparent else ()

    @property
    def untouched(self) -> tuple[str, ...]:
        """The known columns that no published step perturbed."""
        return unperturbed(self.steps, self.knows)


def unperturbed(steps: Iterable[Mapping[str, Any]], columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that no published step perturbed, so that their released values are true.

    A step that does not list its columns is assumed to have changed all of them, unless it is truthful.
    """
    perturbed: set[str] = set()
    for step in steps:
        if not step.get("truthful", False):
            perturbed.update(step.get("columns", columns))
    return tuple(name for name in columns if name not in perturbed)


@dataclass(frozen=True, kw_only=True)
class Predicate:
    """A conjunction of conditions on columns."""

    conditions: tuple[tuple[str, str, Any], ...]
    """Column, operator ("=", "<=" or ">=") and a released value, which may be coarse if the operator is "="."""


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """At most one guess per target.

    ``row`` is the guessed release row (identity), -1 for no guess; ``value`` the guessed value (attribute); ``member``
    the guessed membership. ``made`` is false for a target without a guess. ``confidence`` is the attack's own estimate
    of the probability that the guess is correct.
    """

    row: npt.NDArray[np.int64] | None = None
    value: pl.Series | None = None
    member: npt.NDArray[np.bool_] | None = None
    predicates: tuple[Predicate, ...] = ()
    """For singling out and hidden results: one predicate per guess."""
    by_chance: npt.NDArray[np.float64] | None = None
    """For predicates: the probability that each is true of exactly one person without what the attack exploits. It is
    the baseline; without it, the attack is repeated on a release whose columns were shuffled."""
    made: npt.NDArray[np.bool_]
    confidence: npt.NDArray[np.float64]
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Further results as plain data, for example weights; contains column names but never values. Numbers under
    ``columns`` are the contributions of the columns."""
    tried: int | None = None
    """Number of targets, from the first on, that were processed before the deadline; all of them if None. Targets come
    in random order, so the processed ones are a random sample."""
    chance: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]] | None = None
    """For attacks that choose at random among equally good rows: given a row for each of the first targets, the
    probability that the attack names it. The evaluation then counts expected hits instead of one random choice."""

    @classmethod
    def of_rows(
        cls,
        row: npt.NDArray[np.int64],
        confidence: npt.NDArray[np.float64],
        detail: Mapping[str, object] | None = None,
        tried: int | None = None,
        chance: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]] | None = None,
    ) -> Guesses:
        """Guesses of identity; a negative row means no guess."""
        made = row >= 0
        confidence = np.where(made, confidence, 0.0)
        return cls(row=row, made=made, confidence=confidence, detail=detail or {}, tried=tried, chance=chance)

    def hit_probability(self, true_row: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """For each target the probability that the attack names this row: 0 or 1 unless it chooses among ties."""
        assert self.row is not None
        named: npt.NDArray[np.float64]
        if self.chance is not None:
            named = np.where(self.made & (true_row >= 0), self.chance(true_row), 0.0)
        else:
            named = np.where(self.made & (self.row == true_row), 1.0, 0.0)
        return named

    @property
    def reached(self) -> Guesses:
        """The guesses for the targets that were processed in time."""
        return self if self.tried is None or self.tried >= len(self.made) else self.part(slice(self.tried))

    def part(self, targets: slice) -> Guesses:
        """The guesses for consecutive targets."""
        chance, skipped = self.chance, targets.start or 0
        if chance is not None and skipped:
            own = chance
            chance = lambda rows: own(np.concatenate([np.full(skipped, -1), rows]))[skipped:]  # noqa: E731
        return replace(
            self,
            row=None if self.row is None else self.row[targets],
            value=None if self.value is None else self.value[targets],
            member=None if self.member is None else self.member[targets],
            chance=chance,
            made=self.made[targets],
            confidence=self.confidence[targets],
        )


class Attack(Part):
    """Base class of attacks on a release.

    The docstring of a subclass is its threat model, which reports and documentation show: who the adversary is, what
    they know, what they want to learn and how they proceed.
    """

    discloses: ClassVar[Discloses]
    stage: ClassVar[Stage] = Stage.OTHER
    """When the attack runs in the default battery."""
    order_in_stage: ClassVar[int] = 0
    """Position within the stage; attacks with the same position run in the order of their names."""
    cheap: ClassVar[bool] = False
    """Whether the attack is fast enough to be repeated once per known column (leave-one-out column attribution)."""
    bounded_by_k: ClassVar[bool] = True
    """Whether k-anonymity of single rows limits the success of this attack on truthful releases."""
    weak_masking: ClassVar[Mapping[str, Mapping[str, Any]] | None] = None
    """For attacks that exploit a method: a step, as in a recipe, whose parameters protect almost nobody. The contract
    tests apply it and expect the attack to succeed."""
    pairwise: ClassVar[bool] = False
    """Whether every target is compared with every row; then fewer targets are drawn on very large releases."""
    min_targets: ClassVar[int] = 0
    """Draw at least this many targets if there are as many: for attacks in which targets compete for rows."""
    uses_everything: ClassVar[bool] = False
    """Whether the adversary also uses everybody's known values, the rows of a person or household together, and the
    order of the rows."""
    by_unit: ClassVar[bool] = False
    """Whether targets are privacy units with several rows each, instead of rows."""
    looks_up: ClassVar[bool] = False
    """Whether the attack names one of the rows whose values fit. If the released values are true, its success is then
    known from the number of fitting rows alone, without the row correspondence."""
    any_columns: ClassVar[bool] = False
    """Whether the adversary knows released columns that the owner did not declare: those that disclose most. Such
    attacks run beside every battery, and a limit on identity risk holds for them too unless the owner accepts them."""

    knows: tuple[str, ...] | None = None
    """Columns that the attacker knows about the targets; all quasi-identifiers if omitted."""
    transparent: bool = True
    """Whether the attacker knows the masking method and its parameters, as published with the release."""

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        """Whether the attack uses the fact that this masking method was published; false for general attacks."""
        return False

    @classmethod
    def exploited(cls, steps: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
        """Names of the published steps (entries of a manifest) that this attack exploits."""
        return tuple(str(step.get("step")) for step in steps if cls.exploits(method_of(step)))

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """The configured attacks of this class that belong to the default battery for a scenario.

        By default one attack without parameters if the release publishes a method that it exploits.
        """
        return (cls(),) if cls.exploited(scenario.steps) else ()

    @classmethod
    def remedy(cls, detail: Mapping[str, object]) -> str | None:
        """What the data owner can change to prevent this attack in particular, in one or two sentences.

        ``detail`` is :attr:`Guesses.detail` of the attack. None if the general advice for the kind of disclosure is
        all there is.
        """
        return None

    @property
    def setting(self) -> str:
        """A few words that distinguish this configuration from others of the same attack; empty for the usual one."""
        return ""

    @property
    def alternatives(self) -> tuple[Attack, ...]:
        """Attacks of which the strongest represents this one. The evaluation selects it on targets that are not
        counted afterwards. Empty for an attack that represents itself."""
        return ()

    @property
    def refinements(self) -> tuple[Attack, ...]:
        """Variants of an alternative that cost more. They are tried if it is one of the strongest alternatives."""
        return ()

    def thorough(self, selected: Attack) -> Attack:
        """The variant of a selected alternative that is run once, on all targets; it may cost more."""
        return selected

    @abstractmethod
    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        """The best guess for each target, from the view alone.

        Long loops tick ``progress``, which may raise :class:`~sfumato.errors.OutOfTime`. An attack that processes its
        targets one after the other reports in ``tried`` how many it reached.
        """


class Linking(Attack):
    """Base class of attacks that link a file about people to the release: an external file, or the original's own
    quasi-identifiers."""

    auxiliary: InputFile | None = None
    """External file with identified people, for example a voter list; the original's own values if omitted, which is
    the worst case."""
    identity: str | None = None
    """Column that identifies a person in the external file and in the original, used to decide which guess is correct;
    the original's identifier columns if omitted. The attack itself never sees it."""
    rename: dict[str, str] = Field(default_factory=dict)
    """Columns of the external file under other names than in the original: {name in the file: name in the original}."""


class UnitLinking(Attack):
    """Base class of attacks on tables with several rows (events) per person, grouped by the privacy unit.

    Targets are privacy units. ``View.targets`` has one row per target with lists of known values; ``View.secret`` is
    the released column of the privacy unit.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    by_unit: ClassVar[bool] = True

    @property
    @abstractmethod
    def event_columns(self) -> tuple[str, ...]:
        """The columns of an event that the adversary knows."""

    @abstractmethod
    def known_events(
        self, original: pl.DataFrame, owner: npt.NDArray[np.int64], people: npt.NDArray[np.int64], rng: Rng
    ) -> pl.DataFrame:
        """What the adversary knows about each target: one row per target, a list of values per column.

        ``owner`` is the number of the person of each row of the original; ``people`` are the numbers of the targets.
        """


class Inference(Linking):
    """Base class of attacks that infer the value of one sensitive column."""

    discloses: ClassVar[Discloses] = Discloses.ATTRIBUTE

    secret: str | None = None
    """The column to infer; may be omitted if exactly one released column is declared sensitive."""
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """For numbers: how far a guess may be off and still count as correct, as a share of the true value."""

    @classmethod
    def suits(cls, scenario: AttackScenario, secret: str) -> bool:
        """Whether the attack belongs to the default battery for this sensitive column."""
        return False

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """One attack per sensitive column that it suits."""
        return tuple(
            cls(secret=name, tolerance=tolerance)
            for name, tolerance in scenario.secrets.items()
            if cls.suits(scenario, name)
        )
