"""Contract of every registered privacy model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import NotApplicable
from sfumato.evaluation.counts import count_classes
from sfumato.evaluation.rules import verify
from sfumato.masking.equivalence_classes import compress
from sfumato.masking.model import PrivacyModel
from sfumato.registry import registry
from sfumato.release import State
from sfumato.testing import check_model, check_part
from sfumato.testing.models import MODEL_CHECKS, model_sample, model_samples

CASES = [
    pytest.param(kind, parameters, id=f"{kind.part_name()}-{number}")
    for kind in registry("model")
    for number, parameters in enumerate(kind.examples)
]


def built(kind: type[PrivacyModel], parameters: dict[str, Any], folder: Path) -> PrivacyModel:
    pl.concat([data.table.frame for data in model_samples()]).write_csv(folder / "population.csv")
    return kind.build(parameters, base=folder)


@pytest.mark.parametrize("check", [check_part, *MODEL_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize(("kind", "parameters"), CASES)
def test_contract(
    kind: type[PrivacyModel], parameters: dict[str, Any], check: Callable[[PrivacyModel], None], tmp_path: Path
) -> None:
    model = built(kind, parameters, tmp_path)
    check(model)
    assert kind.build(model.to_dict()) == model


@pytest.mark.parametrize(("kind", "parameters"), CASES)
def test_the_check_takes_a_table(kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path) -> None:
    model = built(kind, parameters, tmp_path)
    check_model(model, model_sample())
    assert model.part_name() in registry("model")


def test_a_model_that_is_not_installed_is_not_checked() -> None:
    counts = count_classes(model_sample(), quasi=("zip", "sex"))
    [verdict] = verify([{"of-another-package": {"k": 2}}], counts)
    assert verdict.state is State.NOT_CHECKED
    assert "No independent check" in verdict.reason


@pytest.mark.parametrize(
    ("limit", "least"), [(1.0, 1), (0.5, 2), (0.34, 3), (0.3333, 4), (0.09, 12), (0.05, 20), (0.1, 10)]
)
def test_a_risk_as_a_number_of_rows(limit: float, least: int) -> None:
    """1 / limit rounded up, in exact numbers: 0.1 is a tenth and asks for 10 rows, not 9 or 11."""
    model = registry("model").get("maximum-risk").build(limit)
    assert model.bind(compress(model_sample())).min_class_size == least  # type: ignore[attr-defined]


def test_a_sensitive_column_must_be_named_when_there_are_two() -> None:
    data = model_sample()
    columns = {**data.schema.columns, "sex": Column(role=Role.SENSITIVE)}
    two = Data(table=data.table, schema=Schema(columns=columns))
    table = compress(two)
    model = registry("model").get("t-closeness").build({"t": 0.3})
    with pytest.raises(NotApplicable, match="column"):
        model.bind(table)  # type: ignore[attr-defined]
    assert registry("model").get("t-closeness").build({"t": 0.3, "column": "sex"}).bind(table).columns == ("sex",)  # type: ignore[attr-defined]
