"""Base class of masking methods. A method is one class in one file of ``masking/methods``.

A method classifies itself: what attacks, reports and checks have to know about it is a class variable or a class method
here, with an answer on each method. No other module keeps a list of method names.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sfumato.arrays import Floats
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import NotApplicable, SfumatoError, UnknownPart
from sfumato.masking.channel import PublicKnowledge, StepChannel, image, same_values
from sfumato.masking.model import PrivacyModel
from sfumato.params import Part, Protection
from sfumato.progress import SILENT, Progress
from sfumato.registry import registry
from sfumato.release import Change, Verdict
from sfumato.rng import Rng

if TYPE_CHECKING:
    import polars as pl

    from sfumato.engines.stored_table import StoredTable

_MAX_RERUN = 20_000
"""Known people up to whom a step without randomness is rerun to find its result for each of them."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """Inputs of a step besides the data: the privacy models to satisfy, a random stream, and progress reporting."""

    rng: Rng
    models: tuple[PrivacyModel, ...] = ()
    progress: Progress = SILENT
    before: int = 0
    """Number of steps that changed the table before this one."""
    account: tuple[str, str] | None = None
    """The ledger, and the data set in it, that a step with a guarantee charges; None in rehearsals and simulations, and
    where the recipe names no ledger."""

    @property
    def class_models(self) -> tuple[PrivacyModel, ...]:
        """The models that are conditions on equivalence classes."""
        return tuple(model for model in self.models if model.on_classes)


@dataclass(frozen=True, kw_only=True)
class StoredChange:
    """What one step did to a table in an engine; the counterpart of :class:`~sfumato.release.Change`."""

    table: StoredTable
    public: Mapping[str, Any] = field(default_factory=dict)
    private: Mapping[str, Any] = field(default_factory=dict)
    touched: frozenset[str] = frozenset()


class Step(Part):
    """One masking method with its parameters.

    The docstring of each subclass states what the method preserves and what it does not protect. Parameters are public:
    assume that the adversary knows them. The defaults of the class variables are the answers that lead to the most
    attacks, so a method that declares nothing is attacked by simulation.
    """

    protection: ClassVar[Protection | None] = "data-driven"

    truthful: ClassVar[bool] = False
    """Whether released values are true: coarsened or removed, never altered. Published with the step, because an
    adversary may rely on it."""

    simulable: ClassVar[bool] = True
    """Whether the method alters values and can be rerun on similar data from its published parameters. Attacks by
    simulation are then run by default."""

    draws: ClassVar[bool] = True
    """Whether random numbers decide what becomes of a value, so that a replay with the right seed undoes the method. If
    it is also simulable, the seeds that people type are tried by default."""

    coarsens: ClassVar[bool] = False
    """Whether the method coarsens or empties cells until a privacy model holds. If the published step is also truthful,
    attacks match the coarse values and do not rerun the step."""

    tight_labels: ClassVar[bool] = False
    """Whether each group of rows gets the smallest range that covers its values, so that the ends of ranges are values
    of people."""

    minimal_labels: ClassVar[bool] = False
    """Whether labels of hierarchies are as fine as the models allow: the lowest common group of each group of rows, or
    levels from which no column can be refined."""

    leaves_values: ClassVar[bool] = False
    """Whether the values of all quasi-identifiers stay unchanged."""

    meaningless_values: ClassVar[bool] = False
    """Whether the released values of the columns that it names mean nothing to outsiders, such as pseudonyms."""

    formal_guarantee: ClassVar[bool] = False
    """Whether the release has a guarantee about one person, such as differential privacy. The table is then read as
    the recipe declares it (:mod:`sfumato.data.declared`): nothing about it is found by looking at rows."""

    keeps_rows: ClassVar[bool] = True
    """Whether row i of the result is row i of the input: no row is removed, added or moved."""

    adds_rows: ClassVar[bool] = False
    """Whether the method adds fabricated rows, assembled from real ones, that belong to no person."""

    synthetic: ClassVar[bool] = False
    """Whether all rows of the result are drawn from a model and none belongs to a person."""

    covers_people: ClassVar[bool] = False
    """Whether :meth:`verify_release` judges people by all their released rows together."""

    out_of_core: ClassVar[bool] = False
    """Whether the method can mask files larger than memory: :meth:`column_passes` or :meth:`apply_stored` say how."""

    stronger: ClassVar[Mapping[str, Literal["more", "less"]]] = {}
    """Parameters that protect more when raised ("more") or lowered ("less"). Reports suggest these changes when an
    attack exceeds its limit."""

    report_phrase: ClassVar[str] = ""
    """What the method does to a value, for reports and codebooks, with the names of parameters in braces: "rounded to
    multiples of {base:g}". Default: the name of the method."""

    exempt: ClassVar[Mapping[str, str]] = {}
    """Contract checks that cannot hold for this method, each with the reason: ``{check: reason}``."""

    @abstractmethod
    def apply(self, data: Data, context: Context) -> Change:
        """Return the masked table. ``data`` is not modified; all randomness comes from ``context.rng``."""

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        """How the step runs on a file larger than memory, by columns: steps that together do the same, one after the
        other, each with the columns that it needs in memory. Empty if the step needs the whole table.

        ``data`` has the columns and types of the table and no rows.
        """
        return ()

    def apply_stored(self, table: StoredTable, context: Context) -> StoredChange:
        """Mask a table that lies in an engine. By default the columns of :meth:`column_passes` are loaded; a method
        overrides this if it works by SQL or on counts."""
        from sfumato.masking.by_columns import apply_by_columns

        return apply_by_columns(self, table, context)

    @classmethod
    def verify_release(cls, published: Mapping[str, object], release: pl.DataFrame) -> tuple[Verdict, ...]:
        """What the step guarantees, recomputed from the released table alone; empty if it guarantees nothing.

        ``published`` is the step's entry in the manifest. The check shares no code with :meth:`apply`. It runs on the
        final table, because later steps may undo a guarantee, and again in ``sfumato check``.
        """
        return ()

    @classmethod
    def column_in_words(cls, published: Mapping[str, Any], column: str, declared: Column) -> str:
        """What a published step did to a column, in words; empty if it left the column as it was.

        ``published`` is the step's entry in the manifest and ``declared`` the column's, so the words are public.
        """
        if column not in published.get("columns", ()):
            return ""
        try:
            return cls.report_phrase.format(**published.get("parameters", {})) or f"changed by {cls.part_name()}"
        except (KeyError, ValueError, TypeError):  # a manifest of another version
            return f"changed by {cls.part_name()}"

    @classmethod
    def rows_in_words(cls, published: Mapping[str, object]) -> str:
        """What a published step did to the rows, in words; empty if it kept all of them.

        ``published`` is the step's entry in the manifest, so the words are public.
        """
        return ""

    @classmethod
    def changed_columns(cls, published: Mapping[str, Any], columns: Iterable[str]) -> tuple[str, ...]:
        """The columns among these that a published step may have changed. One that lists none may have changed all.

        ``published`` is the step's entry in the manifest.
        """
        if cls.leaves_values:
            return ()
        named = published.get("columns")
        return tuple(name for name in columns if named is None or name in named)

    @classmethod
    def joint_columns(cls, published: Mapping[str, object]) -> tuple[tuple[str, ...], ...]:
        """Groups of columns that a published step masked together, so that no column can be rerun without the others.

        ``published`` is the step's entry in the manifest. Empty if each column is masked by itself.
        """
        return ()

    @classmethod
    def restricted(cls, published: Mapping[str, Any], columns: Collection[str]) -> dict[str, Any]:
        """The published parameters without the columns that are not among these, for a rerun on fewer columns.

        ``published`` is the step's entry in the manifest. A method whose parameters list columns under another name
        than ``columns`` overrides this.
        """
        parameters = dict(published.get("parameters", {}))
        if published.get("columns") and "columns" in cls.model_fields:
            parameters["columns"] = [name for name in published["columns"] if name in columns]
        return parameters

    @classmethod
    def channels(cls, published: Mapping[str, object], knowledge: PublicKnowledge) -> tuple[StepChannel, ...]:
        """log P(released | original) under the published parameters, for the columns of ``knowledge`` that the step
        masked; empty if no formula is known. Attacks then estimate it by rerunning the step.

        By default a step without randomness has one possible result for each person (:meth:`certain_result`).
        """
        return () if cls.draws or cls.synthetic else cls.certain_result(published, knowledge)

    @classmethod
    def added_covariance(cls, published: Mapping[str, Any], released: pl.DataFrame) -> Floats | None:
        """The covariance that the step added to that of its published columns, estimated from the release of the step;
        None if this is not known, or if it is not noise."""
        return None

    @classmethod
    def certain_result(cls, published: Mapping[str, Any], knowledge: PublicKnowledge) -> tuple[StepChannel, ...]:
        """The result of a step without randomness for each person: it is rerun on the known people. None if the result
        is not what was released."""
        if not knowledge.complete or published.get("truthful", False):
            return ()
        names = tuple(name for name in published.get("columns", ()) if name in knowledge.people.columns)
        if len(names) < len(published.get("columns", ())) or not names or knowledge.people.height > _MAX_RERUN:
            return ()
        schema = Schema(columns={name: Column(role=Role.QUASI) for name in knowledge.people.columns})
        data = Data(table=Table(frame=knowledge.people), schema=schema)
        try:
            step = cls.build(dict(published.get("parameters", {})))
            masked = step.apply(data, Context(rng=Rng(0))).table.frame.select(names)
        except SfumatoError:
            return ()
        if not same_values(masked, knowledge.released.select(names)):
            return ()
        return (image(names, masked[knowledge.target_rows], knowledge.released),)

    @classmethod
    def pooled_label(cls, parameters: Mapping[str, object]) -> str | None:
        """The label that replaces several different values which have no common parent in a hierarchy, or None."""
        return None


class UnknownStep(Step):
    """A published method that is not installed. Nothing is assumed about its released values."""

    simulable = False

    @classmethod
    def column_in_words(cls, published: Mapping[str, Any], column: str, declared: Column) -> str:
        return f"changed by {published.get('step')}" if column in published.get("columns", ()) else ""

    def apply(self, data: Data, context: Context) -> Change:
        raise NotApplicable("The method of this step is not installed.")


def method_of(published: Mapping[str, object]) -> type[Step]:
    """The method class of a manifest's step entry, or :class:`UnknownStep` if that method is not installed.

    >>> method_of({"step": "generalize"}).coarsens, method_of({"step": "of-another-package"}).simulable
    (True, False)
    """
    try:
        method = registry("method").get(str(published.get("step")))
    except (UnknownPart, ImportError):
        return UnknownStep
    return method if issubclass(method, Step) else UnknownStep
