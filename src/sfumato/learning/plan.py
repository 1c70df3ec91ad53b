"""Learning plan: which model is learned from which columns of a data set, at which privacy loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from sfumato.data.source import Source
from sfumato.dataset import Column, RangeDomain, ValuesDomain
from sfumato.dataset.domain import Value
from sfumato.dataset.plan import DatasetPlan
from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.learning.catalogue import estimator, estimator_names
from sfumato.wording import did_you_mean

if TYPE_CHECKING:
    from sfumato.learning.base import PrivateEstimator
    from sfumato.learning.search import RandomizedSearch

_PAID = ("epsilon", "delta", "ledger", "dataset")
"""Parameters that a search has instead of its estimator."""


class ParameterSearch(DocumentedModel):
    """A search for hyper-parameters, whose whole cost is the plan's epsilon and delta."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    candidates: dict[str, list[object]]
    """Values to try of each parameter. They must not come from the data."""
    fits: Annotated[int, Field(ge=2, le=100)] = 10
    """Expected number of fits."""


class LearningPlan(DatasetPlan):
    """What is learned from a data set, at which privacy loss."""

    release_kind: ClassVar[str] = "model"

    learn: str
    """Name of the estimator."""
    features: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns that the model uses. The data set declares their domains."""
    target: str | None = None
    """The column to predict; for estimators that learn one."""
    epsilon: float | str
    """Privacy loss of one person."""
    delta: float | str
    """Probability with which the loss may be larger."""
    test: Source | None = None
    """Data that the model is measured on. Its figures are not covered by the guarantee."""
    control: Source | None = None
    """People who are not in the training data, for attacks. ``test`` if left out, unless that is the training data."""
    options: dict[str, object] = {}
    """Other parameters of the estimator."""
    search: ParameterSearch | None = None
    """A search for parameters instead of one fit."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.learn not in estimator_names():
            raise ValueError(f"no estimator is called `{self.learn}`. {did_you_mean(self.learn, estimator_names())}")
        if len(set(self.features)) < len(self.features):
            raise ValueError("a feature is listed twice")
        if self.target in self.features:
            raise ValueError("the target cannot be a feature")
        return self

    @property
    def columns(self) -> dict[str, Column]:
        """Features and target as the data set declares them."""
        people = self.people
        return {name: people.column(name) for name in (*self.features, *([self.target] if self.target else []))}

    def domain(self, name: str) -> ValuesDomain | RangeDomain:
        """The declared domain of a feature or the target."""
        domain = self.people.column(name).public_domain
        if isinstance(domain, ValuesDomain | RangeDomain):
            return domain
        raise BadParameter(
            f"The data set declares no values, and no low and high, of `{name}`.",
            fix="Declare `domain: {values: [...]}` or `{low: ..., high: ...}`. It must not come from the data.",
            column=name,
        )

    def public_domain(self) -> dict[str, str]:
        """The declared domain of every column in words."""
        return {name: str(self.domain(name)) for name in self.columns}

    def build(self) -> PrivateEstimator | RandomizedSearch:
        """The estimator with its public domain and budget. Other parameters are checked by name."""
        cls, people = estimator(self.learn), self.people
        known = set(cls().get_params())
        domains = {name: self.domain(name) for name in self.features}
        numbers = {name: (one.low, one.high) for name, one in domains.items() if isinstance(one, RangeDomain)}
        categories = {name: list(one.values) for name, one in domains.items() if isinstance(one, ValuesDomain)}
        own: dict[str, object] = {
            "epsilon": self.epsilon, "delta": self.delta, "bounds": numbers or None, "max_rows": people.max_rows,
            "dataset": self.account, "ledger": self.dataset.ledger,
        }  # fmt: skip
        if "categories" in known:
            own["categories"] = categories or None
        elif categories:
            raise BadParameter(f"{self.learn} takes numbers only, not {', '.join(sorted(categories))}.")
        own |= self._target(known)
        for name in self.options:
            if name not in known - set(own):
                raise BadParameter(
                    f"{self.learn} has no option `{name}`.", fix=did_you_mean(name, tuple(known - set(own)))
                )
        model: PrivateEstimator | RandomizedSearch
        if self.search is None:
            model = cls(**own, **self.options)
        else:
            from sfumato.learning.search import RandomizedSearch

            inner = {name: value for name, value in own.items() if name not in _PAID}
            model = RandomizedSearch(
                cls(**inner, **self.options), self.search.candidates, fits=self.search.fits, epsilon=self.epsilon,
                delta=self.delta, ledger=self.dataset.ledger, dataset=self.account,
            )  # fmt: skip
        model.unit = people.privacy_unit
        return model

    def _target(self, known: set[str]) -> dict[str, list[Value] | tuple[float, float]]:
        wanted = known & {"classes", "target_bounds"}
        if not wanted:
            if self.target is not None:
                raise BadParameter(f"{self.learn} learns no target.", fix="Leave `target` out.")
            return {}
        if self.target is None:
            raise BadParameter(f"{self.learn} needs a `target`: the column to predict.")
        domain = self.domain(self.target)
        if "classes" in wanted:
            if isinstance(domain, RangeDomain):
                raise BadParameter(f"{self.learn} learns classes: declare the `values` of `{self.target}`.")
            return {"classes": list(domain.values)}
        if isinstance(domain, ValuesDomain):
            raise BadParameter(f"{self.learn} learns a number: declare `low` and `high` of `{self.target}`.")
        return {"target_bounds": (domain.low, domain.high)}
