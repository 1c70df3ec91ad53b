"""Request bodies of the REST interface. Unknown keys are refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from sfumato.dp.loss import PrivacyLoss
from sfumato.field_docs import DocumentedModel
from sfumato.ledger.accounts import Period
from sfumato.server.budgets import stated_cap
from sfumato.server.datasets import DatasetState
from sfumato.server.roles import AccountRole, Scope
from sfumato.server.service import MOST_QUERIES, MOST_SQL

Text = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x08\x0b-\x1f]*$")]
Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Holder = Annotated[str, Field(max_length=64, pattern=r"^(@?[a-z0-9][a-z0-9._-]*)?$")]
Amount = Annotated[str, Field(max_length=60, pattern=r"^[0-9]+(\.[0-9]+)?(/[1-9][0-9]*)?$")]
"""A decimal or a fraction: ``0.1``, ``1/3``."""


class _Body(DocumentedModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("epsilon", "delta", "rho", "max_epsilon", mode="before", check_fields=False)
    @classmethod
    def _as_text(cls, value: object) -> object:
        """Numbers are taken as they are written, not as binary fractions."""
        return (
            format(Decimal(repr(value)), "f")
            if isinstance(value, float)
            else str(value)
            if type(value) is int
            else value
        )


class _Asking(_Body):
    epsilon: Amount | None = None
    """The cost. With ``ERROR 5%`` in the query: the most it may cost."""
    delta: Amount | None = None
    """For Gaussian noise and private group keys."""
    rho: Amount | None = None
    """The cost in zero-concentrated differential privacy, instead of epsilon."""
    rows: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    groups: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_epsilon: Amount | None = None
    """The most that this question may cost."""

    def options(self) -> dict[str, Any]:
        """The options of the question."""
        return self.model_dump(exclude={"sql", "queries", "max_epsilon"}, exclude_none=True)


class QuestionBody(_Asking):
    """A question with its cost."""

    sql: Annotated[str, Field(min_length=1, max_length=MOST_SQL)]
    bounding: Literal["sample", "clip"] | None = None
    fit: Amount | None = None
    """Share of the cost that measures how many people the contribution bounds cut; 1/20 if left out."""


class WorkloadBody(_Asking):
    """Counting queries with their cost together."""

    queries: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=MOST_SQL)], ...],
        Field(min_length=1, max_length=MOST_QUERIES),
    ]


class Credentials(_Body):
    user: Annotated[str, Field(max_length=200)]
    password: Annotated[str, Field(max_length=2000)]


class Password(_Body):
    password: Annotated[str, Field(max_length=2000)]
    current: Annotated[str, Field(max_length=2000)] = ""
    """The password until now. It is not needed in a session that a one-time link opened."""


class TokenBody(_Body):
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    days: Annotated[float, Field(gt=0, le=366)]
    label: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f]*$")] = ""


class NewUser(_Body):
    name: Name
    roles: Annotated[tuple[AccountRole, ...], Field(min_length=1)]


class UserChange(_Body):
    roles: Annotated[tuple[AccountRole, ...], Field(min_length=1)] | None = None
    active: bool | None = None


class GroupBody(_Body):
    name: Name


class Registration(_Body):
    metadata: Annotated[str, Field(max_length=500_000)]
    """Text of the metadata file. Its paths start from the server's data folder."""


class StateChange(_Body):
    state: DatasetState
    why: Text


class Cap(_Body):
    """A budget: ``epsilon`` (with ``delta``) or ``rho``."""

    dataset: Annotated[str, Field(max_length=63)] = ""
    """Empty for all data sets."""
    holder: Holder = ""
    """An analyst, a group as ``@name``, or empty for the data set itself."""
    period: Literal["lifetime", "year", "month", "question"] = "lifetime"
    epsilon: Amount | None = None
    delta: Amount = "0"
    rho: Amount | None = None
    why: Text

    def loss(self) -> PrivacyLoss:
        """The budget as a loss."""
        return stated_cap(self.epsilon, self.rho, self.delta)

    def kind(self) -> Period:
        """The period of the cap."""
        return Period[self.period.upper()]


class RequestedCap(Cap):
    """A budget that an analyst asks for, for themselves."""

    holder: Literal[""] = ""
