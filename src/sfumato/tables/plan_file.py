"""Reading a plan from a YAML file, and the budget that plans with a guarantee name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import polars as pl
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from sfumato.data.yaml_documents import YamlDocument, parse_yaml, read_text_file
from sfumato.dp.contribution_bounds import Enforced, bound_rows
from sfumato.dp.loss import PrivacyLoss, concentrated
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter, InvalidRecipe
from sfumato.field_docs import DocumentedModel
from sfumato.ledger.charge import Charge, charge_run
from sfumato.params import plain_message
from sfumato.progress import SILENT, Progress
from sfumato.rationals import rational
from sfumato.release import Verdict
from sfumato.release.guarantee import Guarantee

__all__ = ["STRICT", "PlanFile", "PositiveNumber", "PublishedFigures", "ReleaseBudget", "Weight", "place"]

STRICT = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
_DELTA = Fraction(1, 10**6)


def _weight(value: object) -> Fraction:
    try:
        number = rational(value)  # type: ignore[arg-type]
    except BadParameter:
        raise ValueError("must be a number or a fraction such as 1/3") from None
    if number < 0:
        raise ValueError("must not be negative")
    return number


def _positive(value: object) -> Fraction:
    number = _weight(value)
    if number == 0:
        raise ValueError("must be above 0")
    return number


Weight = Annotated[Fraction, BeforeValidator(_weight)]
"""A share in proportion to the others; none is negative."""
PositiveNumber = Annotated[Fraction, BeforeValidator(_positive)]


@dataclass(frozen=True, kw_only=True)
class PublishedFigures:
    """Tables that a plan publishes, with public facts about them and the verdict on their protection."""

    tables: Mapping[str, pl.DataFrame]
    """The tables by name, which is also that of their file."""
    facts: Mapping[str, Any]
    """The method, its parameters and its guarantee, for readers of the tables."""
    verdicts: tuple[Verdict, ...] = ()
    guarantee: Guarantee | None = None
    """The guarantee of differential privacy, if there is one."""

    @property
    def frame(self) -> pl.DataFrame:
        """The first table."""
        return next(iter(self.tables.values()))


class PlanFile(DocumentedModel):
    """A plan: a YAML file that names its data relative to itself."""

    model_config = STRICT
    release_kind: ClassVar[str] = "tables"

    data: str
    """The microdata: a file, relative to the plan, or a database URL."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan file; all problems in one error, with their lines."""
        text = read_text_file(path, kind="table plan", fix="Write one as docs/tables.md shows.")
        return cls.of(parse_yaml(text, source=str(path))).placed(Path(path).parent)

    @classmethod
    def of(cls, document: YamlDocument) -> Self:
        """The plan in a document."""
        try:
            return cls.model_validate(document.value)
        except ValidationError as failure:
            problems = [document.problem([*error["loc"]], plain_message(error)) for error in failure.errors()]
            raise InvalidRecipe(problems, source=document.source) from None

    @abstractmethod
    def run(self, progress: Progress = SILENT) -> PublishedFigures:
        """Publish what the plan lists. Everything that can be refused is refused before a budget is charged."""

    def placed(self, folder: Path) -> Self:
        """The plan with its files in a folder."""
        return self.model_copy(update={"data": place(self.data, folder)})


def place(name: str, folder: Path) -> str:
    """A file relative to the plan, or a URL as it is."""
    return name if "://" in name else str(folder / name)


class ReleaseBudget(DocumentedModel):
    """The privacy budget of a release and the ledger that it is charged to.

    The unit of privacy is one row. With ``person`` and ``max_rows`` it is a person: of each, that many rows at random
    are used, and the loss of a person is ``max_rows``² times rho, by group privacy.
    """

    model_config = STRICT

    rho: PositiveNumber
    """Budget in zero-concentrated differential privacy."""
    person: str | None = None
    """The column that identifies a person. Left out: every row is a unit of its own."""
    max_rows: Annotated[int, Field(ge=1)] | None = None
    """How many rows of one person are used."""
    ledger: str | None = None
    """The budget ledger: a file relative to the plan. Without one, nobody adds up several releases."""
    dataset: str | None = None
    """The data set of the ledger that is charged."""

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.ledger is None) != (self.dataset is None):
            raise ValueError("`ledger` and `dataset` belong together")
        if (self.person is None) != (self.max_rows is None):
            raise ValueError("`person` and `max_rows` belong together")
        return self

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one row."""
        return concentrated(self.rho)

    def placed(self, folder: Path) -> ReleaseBudget:
        """The budget with its ledger in a folder."""
        return self if self.ledger is None else self.model_copy(update={"ledger": place(self.ledger, folder)})

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of the column that is read for the budget, where it names a person."""
        return {} if self.person is None else {self.person: "category"}

    def bounded(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, Enforced | None]:
        """The rows that are used: of each person, so many as the budget says."""
        if self.person is None or self.max_rows is None:
            return frame, None
        return bound_rows(frame, self.person, self.max_rows)

    def charge(self, plan: BaseModel, *, what: str, bounds: Enforced | None) -> Receipt:
        """Charge the ledger for a plan. Everything that can be refused was checked before."""
        run = Charge.of_run(self.loss, unit="row", name=what, public={"plan": repr(plan)}, bounds=bounds)
        return charge_run(run, ledger=self.ledger, dataset=self.dataset)

    def guarantee(self, receipt: Receipt, *, proof: str, bounds: Enforced | None) -> Guarantee:
        """The guarantee of the release."""
        loss = self.loss if bounds is None else self.loss.for_group(bounds.rows)
        stated = replace(loss.at(_DELTA), curve=loss.composable())
        if bounds is None:
            return Guarantee(loss=stated, unit="row", proof=proof).charged(receipt)
        proof = f"{proof}; group privacy: {bounds.rows}² times the loss of a row (Bun, Steinke 2016, Proposition 1.9)"
        return Guarantee(loss=stated, unit=bounds.unit, max_rows=bounds.rows, proof=proof).charged(receipt)
