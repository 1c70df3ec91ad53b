"""The recipe: one document that says what the data is, what is done to it, and what must hold afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from sfumato.attacks.base import Attack
from sfumato.data.read_write import read
from sfumato.data.source import Source
from sfumato.data.yaml_documents import document_in, document_of, yaml_text
from sfumato.dataset import Column, Data, Schema
from sfumato.dataset.data import HUGE
from sfumato.field_docs import DocumentedModel
from sfumato.masking.base import Step
from sfumato.masking.model import PrivacyModel
from sfumato.measures.base import Measure
from sfumato.params import Part, percent_hint
from sfumato.recipe.about import AboutRelease

VERSION = 1
"""The version of the recipe language, the value of the key ``sfumato``."""


def _share(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("must be a share between 0 and 1" + percent_hint(value))
    return value


Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_share)]
Words = Annotated[str, Field(min_length=1), StringConstraints(strip_whitespace=True)]


class Accepted(DocumentedModel):
    """Acceptance of attackers who know released columns that are not declared as known. Every report shows it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: Words
    """Who decided: a name or an office."""
    reason: Words
    """Why no attacker is expected to know these columns, or why the risk is tolerable."""

    def to_dict(self) -> dict[str, str]:
        return {"by": self.by, "reason": self.reason}


class Limits(DocumentedModel):
    """What must not be exceeded. A limit that is exceeded ends a command with exit code 1."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True)

    risk: Share | None = None
    """The largest share of people whose row any attack may find, judged by the upper end of its interval."""
    attribute: Share | None = None
    """The largest share of sensitive values that an attack may learn beyond what it gets right of people who are not
    in the release (or, without such people, by the best blind guess)."""
    membership: Share | None = None
    """The same for who is in the data at all."""
    singling_out: Annotated[Share | None, Field(alias="singling-out")] = None
    """The same for descriptions that fit exactly one person; ``singling-out`` in a recipe."""
    link: Share | None = None
    """The same for friendships between two people of a graph."""
    result: Share | None = None
    """The same for results that were hidden."""
    accepted: Accepted | None = None
    """Who accepts that the limit on risk holds only for attackers who know the quasi-identifiers, and why."""

    @classmethod
    def names(cls) -> dict[str, str]:
        """What each limit is called in a recipe, and the field that holds it."""
        return {field.alias or name: name for name, field in cls.model_fields.items() if name != "accepted"}

    def items(self) -> dict[str, float]:
        """The limits that are set, by the names that a recipe gives them."""
        named = {name: getattr(self, held) for name, held in self.names().items()}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Roles, models, steps, attacks, measures and limits: the same for the next month's file."""

    schema: Schema
    models: Sequence[PrivacyModel] = ()
    steps: Sequence[Step] = ()
    attacks: Sequence[Attack] = ()
    measures: Sequence[Measure] = ()
    limits: Limits = field(default_factory=Limits)
    source: Source | None = None
    seed: int | None = None
    order: Literal["shuffled", "kept"] = "shuffled"
    title: str | None = None
    path: Path | None = field(default=None, compare=False)
    """The file that the recipe was read from."""
    about: AboutRelease = field(default_factory=AboutRelease)
    """Purpose, recipient, legal basis, re-evaluation date and sign-off of the release."""
    account: tuple[str, str] | None = field(default=None, compare=False)
    """The ledger, and the data set in it, that steps with a guarantee charge and in whose register the release is
    entered; None if no ledger is named."""

    def __post_init__(self) -> None:
        for name in ("models", "steps", "attacks", "measures"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read and validate a recipe file; all its problems are reported at once, with line numbers."""
        from sfumato.recipe.validate import recipe_from_document

        document = document_in(path, kind="recipe", fix="`sfumato init FILE` writes one.")
        return replace(recipe_from_document(document, base=Path(path).parent), path=Path(path))

    @classmethod
    def parse(cls, document: str | Mapping[str, object], *, base: Path | None = None) -> Recipe:
        """A recipe from YAML text or from plain data."""
        from sfumato.recipe.validate import recipe_from_document

        return recipe_from_document(document_of(document, source="recipe"), base=base)

    def uncharged(self) -> Recipe:
        """The recipe for evaluations and trials, whose results never leave: no ledger is charged for them."""
        return replace(self, account=None)

    @property
    def formal_guarantee(self) -> bool:
        """Whether a step has a guarantee about one person, such as differential privacy."""
        return any(step.formal_guarantee for step in self.steps)

    def open(self, source: Any, **options: Any) -> Data:
        """The data set that the recipe is about. A column that a recipe file does not name or decide is refused.

        Where a step has a guarantee, the table is read as it is declared, and nothing about it is found from its rows.
        """
        from sfumato.profiling.undecided import refuse_undecided

        if self.formal_guarantee:
            data = Data.declared(source, self.schema, whole=self.path is not None, **options)
            refuse_undecided(self.schema, data.table.frame.clear(), recipe=self.path, guarantee=True)
            return data
        data = Data.of(read(source, **options), self.schema)
        if self.schema.key is not None:
            data.table.require([self.schema.key])
            keys = data.table.frame[self.schema.key]
            self.schema.refuse_repeated_key(repeated=keys.drop_nulls().n_unique() < len(keys))
        refuse_undecided(self.schema, data.table.frame, recipe=self.path)
        floats = (column for column in data.table.frame if column.dtype.is_float())
        self.schema.refuse_huge_numbers([one.name for one in floats if (one.is_finite() & (one.abs() > HUGE)).any()])
        return data

    def to_dict(self) -> dict[str, Any]:
        """The recipe as plain data; ``Recipe.parse`` gives it back."""
        plain: dict[str, object] = {"sfumato": VERSION}
        if self.title:
            plain["title"] = self.title
        if self.source is not None:
            plain["data"] = self.source.to_dict()
        if self.seed is not None:
            plain["seed"] = self.seed
        if self.schema.declared_unit is not None:
            plain["unit"] = self.schema.declared_unit
        plain["order"] = self.order
        plain["columns"] = {name: _column_to_dict(column) for name, column in self.schema.columns.items()}
        if self.about.to_dict():
            plain["about"] = self.about.to_dict()
        for key in ("models", "steps", "attacks", "measures"):
            parts: Sequence[Part] = getattr(self, key)
            plain[key] = [{part.part_name(): part.to_dict()} for part in parts]
        accepted = self.limits.accepted
        if self.limits.items() or accepted:
            plain["limits"] = {**self.limits.items(), **({"accepted": accepted.to_dict()} if accepted else {})}
        return plain

    def public(self) -> dict[str, Any]:
        """What a release says of its recipe: everything but the seed, file locations and keys."""
        return {
            "sfumato": VERSION,
            **({"unit": self.schema.declared_unit} if self.schema.declared_unit is not None else {}),
            "columns": {name: _column_to_dict(column, public=True) for name, column in self.schema.columns.items()},
            "models": [{model.part_name(): model.public()} for model in self.models],
            "steps": [{step.part_name(): step.public()} for step in self.steps],
            "order": self.order,
            **({"about": self.about.public()} if self.about.public() else {}),
        }

    def draws(self) -> dict[str, Any]:
        """What decides about the released values: all but the data, the seed, and how the release is judged."""
        judged = ("title", "data", "seed", "about", "attacks", "measures", "limits")
        plain = {key: value for key, value in self.to_dict().items() if key not in judged}
        return {"recipe": plain, "contents of files": self.public()["steps"]}

    def to_yaml(self) -> str:
        """The recipe as a YAML document."""
        return yaml_text(self.to_dict())


def _column_to_dict(column: Column, *, public: bool = False) -> dict[str, object]:
    plain = column.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    plain["role"] = str(column.role)
    if not column.missing_codes:
        plain.pop("missing_codes", None)
    if column.hierarchy is not None:
        hierarchy = column.hierarchy
        plain["hierarchy"] = hierarchy.public() if public else {hierarchy.part_name(): hierarchy.to_dict()}
    return plain
