"""Hierarchies that ``init`` proposes: rounded, nested, and present for every ordered quasi-identifier."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.dataset import Kind, Role
from sfumato.dataset.hierarchy import hierarchy_from_dict
from sfumato.profiling import propose
from sfumato.profiling.detectors.facts import Facts
from sfumato.profiling.hierarchy_proposal import propose_hierarchy

DRAW = np.random.default_rng(4)
DAYS = [date(1950, 1, 1) + timedelta(days=int(n)) for n in DRAW.integers(0, 20_000, 300)]
INCOME = DRAW.lognormal(10, 1.4, 3000).round()


def proposed(values: pl.Series, kind: Kind | None = None) -> Any:
    facts = Facts(name="x", series=values)
    return propose_hierarchy(facts, kind or facts.kind)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (DRAW.integers(18, 92, 500), {"intervals": [5, 10, 20, 40]}),
        (DRAW.integers(1, 8, 500), {"intervals": [2, 4]}),
        (DRAW.normal(170, 10, 500), {"intervals": [5, 10, 20, 40]}),
        (np.tile([0.0, 0.5, 1.0, 2.5], 50), {"intervals": [2]}),
        ([0, 1] * 50, None),
        ([7] * 50, None),
        (DAYS, {"dates": ["month", "year", "decade"]}),
        ([date(2020, 1, 1) + timedelta(days=n) for n in range(700)], {"dates": ["month", "quarter", "year"]}),
        (["18-24", "25-34", "35-44", "65+", "<18"] * 9,
         {"groups": {"order": ["<18", "18-24", "25-34", "35-44", "65+"], "sizes": [2, 2]}}),
        (["red", "green", "blue"] * 9, None),
        (["12 Main St", "14 Main St", "5 Oak Rd"] * 9, None),
    ],
)  # fmt: skip
def test_the_proposed_hierarchy(values: Any, expected: Any) -> None:
    assert proposed(pl.Series(values)) == expected


def test_an_enumeration_is_grouped_in_its_order() -> None:
    values = pl.Series(["low", "high", "middle", "top"] * 5, dtype=pl.Enum(["low", "middle", "high", "top"]))
    assert proposed(values) == {"groups": {"order": ["low", "middle", "high", "top"], "sizes": [2]}}


def test_skewed_numbers_get_quantile_bands_that_share_the_rows_evenly() -> None:
    hierarchy = hierarchy_from_dict(proposed(pl.Series(INCOME)))
    assert hierarchy is not None
    assert hierarchy.part_name() == "breaks"
    bound = hierarchy.bind("income", pl.Series(INCOME))
    shares = np.bincount(bound.levels[1].codes[bound.encode(pl.Series(INCOME))]) / len(INCOME)
    assert shares.max() < 0.12
    for points in hierarchy.to_dict()["levels"]:
        assert all(float(f"{point:.2g}") == point for point in points)


@pytest.mark.parametrize(
    "draw", ["normal", "lognormal", "integers", "few", "tiny", "huge", "negative", "constant but one"]
)
def test_every_proposal_binds_to_its_own_column(draw: str) -> None:
    values = {
        "normal": DRAW.normal(size=400),
        "lognormal": DRAW.lognormal(3, 2, 400),
        "integers": DRAW.integers(-50, 3000, 400),
        "few": DRAW.integers(0, 4, 400),
        "tiny": DRAW.normal(size=400) * 1e-9,
        "huge": DRAW.normal(size=400) * 1e12,
        "negative": -DRAW.lognormal(3, 2, 400),
        "constant but one": np.concatenate([np.zeros(398), [1.0, 1e6]]),
    }[draw]
    series = pl.Series(values)
    found = proposed(series)
    hierarchy = hierarchy_from_dict(found)
    assert hierarchy is not None
    sizes = [level.size for level in hierarchy.bind("x", series.unique()).levels]
    assert sizes[-1] == 1
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) >= 3


def test_every_ordered_quasi_identifier_of_a_proposal_has_a_hierarchy() -> None:
    rows = 400
    people = pl.DataFrame(
        {
            "age": DRAW.integers(18, 90, rows).astype(np.int8),
            "birth_date": [date(1950, 1, 1) + timedelta(days=int(n)) for n in DRAW.integers(0, 20_000, rows)],
            "income": DRAW.lognormal(10, 1, rows),
            "height_cm": DRAW.normal(170, 10, rows).round(1),
            "education_years": DRAW.integers(8, 20, rows),
            "number_of_children": DRAW.integers(0, 7, rows),
        }
    )
    columns = [c for c in propose(people).columns if c.role in (Role.QUASI, Role.UNDECIDED)]
    assert len(columns) >= 4
    assert [c.name for c in columns if c.hierarchy is None] == []
