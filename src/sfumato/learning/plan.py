"""Learning plan: the file that `sfumato learn` reads, with the public domain of every column and the budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from sfumato.data.yaml_documents import YamlDocument, parse_yaml, read_text_file
from sfumato.errors import BadParameter, InvalidRecipe
from sfumato.field_docs import DocumentedModel
from sfumato.learning.catalogue import estimator, estimator_names
from sfumato.params import plain_message
from sfumato.wording import did_you_mean

__all__ = ["LearningPlan", "ParameterSearch", "PublicColumn", "TargetColumn"]

_STRICT = ConfigDict(frozen=True, extra="forbid")


class PublicColumn(DocumentedModel):
    """The public domain of a column: all values of a category, or the bounds of a number."""

    model_config = _STRICT

    values: tuple[Any, ...] | None = None
    """All values of a category. Values that are not listed count as none of them."""
    low: float | None = None
    """Smallest number. Smaller ones are raised to it."""
    high: float | None = None
    """Largest number. Larger ones are lowered to it."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.values is None) == (self.low is None or self.high is None):
            raise ValueError("a domain is either {values: [...]} or {low: ..., high: ...}")
        return self

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" if self.values is None else ", ".join(map(str, self.values))


class TargetColumn(PublicColumn):
    """The column to predict, with its public domain."""

    column: str


class ParameterSearch(DocumentedModel):
    """A search for hyper-parameters, whose whole cost is the plan's epsilon and delta."""

    model_config = _STRICT

    candidates: dict[str, list[Any]]
    """Values to try of each parameter. They must not come from the data."""
    fits: Annotated[int, Field(ge=2, le=100)] = 10
    """Expected number of fits."""


class LearningPlan(DocumentedModel):
    """What is learned from which data, with which public knowledge, at which privacy loss."""

    model_config = _STRICT
    release_kind: ClassVar[str] = "model"

    learn: str
    """Name of the estimator."""
    data: str
    """The training data: a file relative to the plan, or a database URL."""
    test: str | None = None
    """Data that the model is measured on. Its figures are not covered by the guarantee."""
    control: str | None = None
    """People who are not in the training data, for attacks. ``test`` if left out, unless that is ``data``."""
    unit: str
    """``row``, or the column that identifies a person."""
    max_rows: Annotated[int, Field(ge=1)] | None = None
    """The largest number of rows of one person that is used; required if ``unit`` is a column."""
    epsilon: float | str
    """Privacy loss of one unit."""
    delta: float | str
    """Probability with which the loss may be larger."""
    columns: dict[str, PublicColumn]
    """The features with their public domains."""
    target: TargetColumn | None = None
    """The column to predict; for estimators that learn one."""
    options: dict[str, Any] = {}
    """Other parameters of the estimator."""
    search: ParameterSearch | None = None
    """A search for parameters instead of one fit."""
    ledger: str | None = None
    """The budget ledger: a file relative to the plan, or a database URL."""
    dataset: str | None = None
    """The data set of the ledger that is charged."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.learn not in estimator_names():
            raise ValueError(f"no estimator is called `{self.learn}`. {did_you_mean(self.learn, estimator_names())}")
        if not self.columns:
            raise ValueError("`columns` names no feature")
        if (self.unit == "row") != (self.max_rows is None):
            raise ValueError("`max_rows` is required if `unit` is a column, and has no meaning for `unit: row`")
        if (self.ledger is None) != (self.dataset is None):
            raise ValueError("`ledger` and `dataset` belong together")
        named = {self.unit, self.target.column if self.target else ""}
        if named & set(self.columns):
            raise ValueError("the unit and the target cannot be features")
        return self

    @classmethod
    def load(cls, path: str | Path) -> LearningPlan:
        """Read a plan; all problems in one error, with their lines."""
        text = read_text_file(path, kind="learning plan", fix="Write one as docs/learning.md shows.")
        return cls.of(parse_yaml(text, source=str(path)))

    @classmethod
    def of(cls, document: YamlDocument) -> LearningPlan:
        """The plan in a document."""
        try:
            return cls.model_validate(document.value)
        except ValidationError as failure:
            problems = [
                document.problem(list(error["loc"]), plain_message(error, cls if len(error["loc"]) == 1 else None))
                for error in failure.errors()
            ]
            raise InvalidRecipe(problems, source=document.source) from None

    def public_domain(self) -> dict[str, str]:
        """The declared domain of every column in words."""
        target = {} if self.target is None else {self.target.column: self.target}
        return {name: str(column) for name, column in {**self.columns, **target}.items()}

    def build(self, *, base: Path) -> Any:
        """The estimator with its public domain and budget. Other parameters are checked by name."""
        cls = estimator(self.learn)
        known = set(cls().get_params())
        numbers = {name: (one.low, one.high) for name, one in self.columns.items() if one.values is None}
        categories = {name: list(one.values) for name, one in self.columns.items() if one.values is not None}
        own: dict[str, Any] = {
            "epsilon": self.epsilon, "delta": self.delta, "bounds": numbers or None, "max_rows": self.max_rows or 1,
            "dataset": self.dataset, "ledger": None if self.ledger is None else place(self.ledger, base),
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
        if self.search is None:
            model = cls(**own, **self.options)
        else:
            from sfumato.learning.search import RandomizedSearch

            paid = {name: own.pop(name) for name in ("epsilon", "delta", "ledger", "dataset")}
            model = RandomizedSearch(cls(**own, **self.options), self.search.candidates, fits=self.search.fits, **paid)
        model.unit = self.unit
        return model

    def _target(self, known: set[str]) -> dict[str, Any]:
        wanted = known & {"classes", "target_bounds"}
        if not wanted:
            if self.target is not None:
                raise BadParameter(f"{self.learn} learns no target.", fix="Leave `target` out.")
            return {}
        if self.target is None:
            raise BadParameter(f"{self.learn} needs a `target`: the column to predict, with its public domain.")
        if "classes" in wanted:
            if self.target.values is None:
                raise BadParameter(f"{self.learn} learns classes: list them as `values` of the target.")
            return {"classes": list(self.target.values)}
        if self.target.values is not None:
            raise BadParameter(f"{self.learn} learns a number: declare `low` and `high` of the target.")
        return {"target_bounds": (self.target.low, self.target.high)}


def place(source: str, base: Path) -> str:
    """A file relative to the plan, or a URL as it is."""
    return source if "://" in source else str(base / source)
