"""Results of data mining that must not come out of a release, and the algorithms that look for them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Any, Self

import numpy as np
import polars as pl
from pydantic import ConfigDict, Field, model_validator

from sfumato.arrays import Mask
from sfumato.data.row_codes import value_codes
from sfumato.errors import BadParameter, NotApplicable
from sfumato.extras import missing_extra
from sfumato.field_docs import DocumentedModel
from sfumato.masking.item_sets import Item, ItemSet, item_rows, least_count

_FOLDS = 5


class _Result(DocumentedModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class RuleResult(_Result):
    """The association rule "rows with these values also have those": {if: {bread: true}, then: {milk: true}}."""

    given: dict[str, Any] = Field(alias="if", min_length=1)
    """Values of the antecedent, by column."""
    then: dict[str, Any] = Field(min_length=1)
    """Values of the consequent, by column."""

    @model_validator(mode="after")
    def _disjoint(self) -> Self:
        if set(self.given) & set(self.then):
            raise ValueError("a rule has no column on both sides")
        return self

    @property
    def antecedent(self) -> ItemSet:
        return frozenset(self.given.items())

    @property
    def items(self) -> ItemSet:
        return frozenset({**self.given, **self.then}.items())

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.given, *self.then)


class ItemsTogether(_Result):
    """The frequent item set "many rows have all of these values": {together: {bread: true, milk: true}}."""

    together: dict[str, Any] = Field(min_length=1)
    """The values, by column."""

    @property
    def items(self) -> ItemSet:
        return frozenset(self.together.items())

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.together)


class Accuracy(_Result):
    """The accuracy with which a decision tree predicts a column: {predict: income, using: [age, job], at_most: 0.7}."""

    predict: str
    """The column that must not be predictable."""
    using: tuple[str, ...] = Field(min_length=1)
    """Columns that the classifier may use."""
    at_most: Annotated[float, Field(gt=0, lt=1)]
    """The largest accuracy, in cross-validation, that counts as hidden."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.predict, *self.using)


class Correlation(_Result):
    """Pearson's correlation of two columns of numbers: {correlation: [age, income], at_most: 0.2}."""

    correlation: tuple[str, str]
    """The two columns."""
    at_most: Annotated[float, Field(ge=0, lt=1)]
    """The largest absolute value that counts as hidden."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.correlation


HiddenResult = RuleResult | ItemsTogether | Accuracy | Correlation


def supporting_rows(frame: pl.DataFrame, items: Iterable[Item]) -> Mask:
    """The rows that contain all items."""
    inside = np.ones(frame.height, dtype=np.bool_)
    for item in items:
        inside &= item_rows(frame, item)
    return inside


def comes_out(result: HiddenResult, frame: pl.DataFrame, *, support: float | None, confidence: float | None) -> bool:
    """Whether the algorithm, applied to the table, gives the result.

    >>> baskets = pl.DataFrame({"bread": [1, 1, 1, 0], "milk": [1, 1, 0, 1]})
    >>> rule = RuleResult.model_validate({"if": {"bread": 1}, "then": {"milk": 1}})
    >>> comes_out(rule, baskets, support=0.5, confidence=0.6), comes_out(rule, baskets, support=0.5, confidence=0.7)
    (True, False)
    """
    match result:
        case RuleResult() | ItemsTogether():
            assert support is not None
            count = int(supporting_rows(frame, result.items).sum())
            if count < least_count(support, frame.height):
                return False
            if isinstance(result, ItemsTogether):
                return True
            assert confidence is not None
            base = int(supporting_rows(frame, result.antecedent).sum())
            return bool(count >= Fraction(str(confidence)) * base)
        case Accuracy():
            return accuracy(frame, result) > result.at_most
        case Correlation():
            found = correlation(frame, result)
            return found is not None and abs(found) > result.at_most


def correlation(frame: pl.DataFrame, result: Correlation) -> float | None:
    """Pearson's correlation over the rows with both values; None if one of the columns is constant there."""
    one, other = (_numbers(frame, name) for name in result.correlation)
    both = ~(np.isnan(one) | np.isnan(other))
    one, other = one[both], other[both]
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _numbers(frame: pl.DataFrame, name: str) -> Any:
    column = frame.get_column(name)
    if not column.dtype.is_numeric() and column.dtype != pl.Boolean:
        raise NotApplicable(f"Column `{name}` has no numbers, so it has no correlation.", column=name)
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def accuracy(frame: pl.DataFrame, result: Accuracy) -> float:
    """Share of rows that a decision tree predicts correctly in cross-validation. The order of rows has no influence."""
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise missing_extra("learning", "scikit-learn", needed_by="the accuracy of a classifier") from None

    known = frame.filter(pl.col(result.predict).is_not_null()).sort(result.columns)
    if known.height < 2 * _FOLDS:
        raise NotApplicable(f"A classifier needs at least {2 * _FOLDS} rows with a value of `{result.predict}`.")
    target = known.get_column(result.predict)
    if target.dtype.is_float():
        raise BadParameter(
            f"`{result.predict}` is a number; accuracy is about categories.", fix="Categorize it, or name another."
        )
    labels = value_codes(target.cast(pl.String))[0]
    features = np.column_stack([_feature(known.get_column(name)) for name in result.using])
    fold = np.arange(known.height) % _FOLDS
    correct = 0
    for number in range(_FOLDS):
        inside = fold != number
        tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=5, random_state=0)
        tree.fit(features[inside], labels[inside])
        correct += int((tree.predict(features[~inside]) == labels[~inside]).sum())
    return correct / known.height


def _feature(column: pl.Series) -> Any:
    """Numbers as they are, other values by their code; missing values below all others."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64).fill_null(-1e30).fill_nan(-1e30).clip(-1e30, 1e30).to_numpy().astype("f4")
    return value_codes(column.cast(pl.String))[0]
