"""Reading a plan from a YAML file, and the budget that plans with a guarantee name."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from sfumato.data.yaml_documents import parse_yaml, read_text_file
from sfumato.dp.loss import PrivacyLoss, concentrated
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter, InvalidRecipe
from sfumato.field_docs import DocumentedModel
from sfumato.ledger.run_account import charge_run
from sfumato.params import plain_message
from sfumato.rationals import rational
from sfumato.release.guarantee import Guarantee

__all__ = ["STRICT", "PlanFile", "PositiveNumber", "ReleaseBudget", "Weight", "place"]

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


class PlanFile(DocumentedModel):
    """A plan: a YAML file that names its data relative to itself."""

    model_config = STRICT

    data: str
    """The microdata: a file, relative to the plan, or a database URL."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan; all problems in one error, with their lines."""
        text = read_text_file(path, kind="table plan", fix="Write one as docs/tables.md shows.")
        document = parse_yaml(text, source=str(path))
        try:
            plan = cls.model_validate(document.value)
        except ValidationError as failure:
            problems = [document.problem([*error["loc"]], plain_message(error)) for error in failure.errors()]
            raise InvalidRecipe(problems, source=str(path)) from None
        return plan.placed(Path(path).parent)

    def placed(self, folder: Path) -> Self:
        """The plan with its files in a folder."""
        return self.model_copy(update={"data": place(self.data, folder)})


def place(name: str, folder: Path) -> str:
    """A file relative to the plan, or a URL as it is."""
    return name if "://" in name else str(folder / name)


class ReleaseBudget(DocumentedModel):
    """The privacy budget of a release and the ledger that it is charged to. The unit of privacy is one row."""

    model_config = STRICT

    rho: PositiveNumber
    """Budget in zero-concentrated differential privacy."""
    ledger: str | None = None
    """The budget ledger: a file relative to the plan. Without one, nobody adds up several releases."""
    dataset: str | None = None
    """The data set of the ledger that is charged."""

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.ledger is None) != (self.dataset is None):
            raise ValueError("`ledger` and `dataset` belong together")
        return self

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one row."""
        return concentrated(self.rho)

    def placed(self, folder: Path) -> ReleaseBudget:
        """The budget with its ledger in a folder."""
        return self if self.ledger is None else self.model_copy(update={"ledger": place(self.ledger, folder)})

    def charge(self, plan: BaseModel, *, what: str) -> Receipt:
        """Charge the ledger for a plan. Everything that can be refused was checked before."""
        return charge_run(
            self.loss, ledger=self.ledger, dataset=self.dataset, unit="row", name=what, public={"plan": repr(plan)}
        )

    def guarantee(self, receipt: Receipt, *, proof: str) -> Guarantee:
        """The guarantee of the release."""
        stated = replace(self.loss.at(_DELTA), curve=self.loss.composable())
        return Guarantee(loss=stated, unit="row", proof=proof).charged(receipt)
