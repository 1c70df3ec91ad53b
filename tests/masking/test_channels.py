"""Channels of masking methods: calibrated against their own draws, and wrong ones are noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.masking.base import Context, Step
from sfumato.masking.channel import PointChannel, PublicKnowledge
from sfumato.masking.methods.noise import Noise
from sfumato.registry import registry
from sfumato.rng import Rng
from sfumato.testing.steps import check_channels

NOISE = {"columns": ["age", "height", "rent"]}
STATED: list[tuple[str, dict[str, Any], set[str]]] = [
    *(
        ("noise", {"variance_ratio": 0.3, "variant": variant, **NOISE}, {"age", "height", "rent"})
        for variant in ("additive", "correlated", "corrected", "multiplicative", "robust", "outlier-aware")
    ),
    *(
        ("rank-swap", {"p": 10, "variant": variant, "columns": ["age", "rent"]}, {"age", "rent"})
        for variant in ("classic", "literal", "p-buckets", "p-distribution")
    ),
    ("pram", {"keep": 0.8, "columns": ["diagnosis"]}, {"diagnosis"}),
    ("pram", {"keep": 0.8, "columns": ["diagnosis"], "invariant": True}, {"diagnosis"}),
    ("microaggregate", {"k": 5, "columns": ["age", "height", "rent"]}, {"age", "height", "rent"}),
    ("microaggregate", {"k": 5, "fuzzy": 2.0, "columns": ["age", "height", "rent"]}, {"age", "height", "rent"}),
    ("round", {"base": 100, "columns": ["rent"]}, {"rent"}),
    ("top-bottom-code", {"top": 8000, "columns": ["rent"]}, {"rent"}),
    ("shift-dates", {"days": 30, "columns": ["birth", "admitted"]}, {"birth", "admitted"}),
]


def step(name: str, parameters: dict[str, Any]) -> Step:
    kind = registry("method").get(name)
    assert issubclass(kind, Step)
    return kind.build(parameters)


@pytest.mark.parametrize(
    ("name", "parameters", "columns"),
    STATED,
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value)[:40],
)
def test_a_channel_covers_its_columns_and_is_calibrated(
    name: str, parameters: dict[str, Any], columns: set[str]
) -> None:
    assert set(check_channels(step(name, parameters))) == columns


def test_correlated_noise_uses_columns_of_any_size() -> None:
    """A column of small numbers is not lost beside one of large numbers."""
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({"small": draw.normal(size=200), "large": 1e12 * draw.normal(size=200)})
    knowledge = PublicKnowledge(targets=frame, people=frame, target_rows=np.arange(200), released=frame, complete=True)
    published = {"columns": ["small", "large"], "parameters": {"variance_ratio": 0.3, "variant": "correlated"}}
    [channel] = Noise.channels(published, knowledge)
    assert isinstance(channel, PointChannel)
    assert channel.known.shape == (200, 2)


@pytest.mark.parametrize(
    ("name", "parameters", "wrong"),
    [
        ("noise", {"variance_ratio": 0.3, **NOISE}, {"variance_ratio": 0.35}),
        ("noise", {"variance_ratio": 0.3, **NOISE}, {"variance_ratio": 0.26}),
        ("noise", {"variance_ratio": 0.3, "variant": "correlated", **NOISE}, {"variance_ratio": 0.35}),
        ("noise", {"variance_ratio": 0.3, "variant": "multiplicative", **NOISE}, {"variance_ratio": 0.35}),
        ("rank-swap", {"p": 10, "columns": ["rent"]}, {"p": 9}),
        ("rank-swap", {"p": 10, "columns": ["rent"]}, {"p": 12}),
        ("rank-swap", {"p": 10, "columns": ["rent"]}, {"variant": "p-buckets"}),
        ("microaggregate", {"k": 5, "fuzzy": 2.0, "columns": ["age", "rent"]}, {"fuzzy": 1.5}),
        ("shift-dates", {"days": 30, "columns": ["birth"]}, {"days": 25}),
    ],
    ids=str,
)
def test_a_channel_with_wrong_parameters_is_noticed(
    name: str, parameters: dict[str, Any], wrong: dict[str, Any]
) -> None:
    with pytest.raises(AssertionError):
        check_channels(step(name, parameters), {**step(name, parameters).public(), **wrong})


@pytest.mark.parametrize("variant", ["additive", "correlated"])
def test_the_covariance_that_noise_adds_follows_from_the_release(variant: str) -> None:
    """Within 8 % on 20,000 rows; half as much noise again is noticed."""
    draw = np.random.default_rng(3)
    frame = pl.DataFrame(draw.normal(size=(20_000, 2)) @ np.array([[3.0, 1.0], [0.0, 0.5]]), schema=["a", "b"])
    data = Data.of(Table(frame=frame), Schema(columns={name: Column(role="quasi") for name in frame.columns}))
    masking = Noise(variance_ratio=0.4, variant=variant)
    released = masking.apply(data, Context(rng=Rng(1))).table.frame
    actual = np.cov((released - frame).to_numpy(), rowvar=False)
    for ratio, near in ((0.4, True), (0.6, False)):
        entry = {"columns": ["a", "b"], "parameters": {**masking.public(), "variance_ratio": ratio}}
        added = Noise.added_covariance(entry, released)
        assert added is not None
        assert np.allclose(np.diag(added), np.diag(actual), rtol=0.08) is near
    robust = {"columns": ["a"], "parameters": {"variance_ratio": 0.1, "variant": "robust"}}
    assert Noise.added_covariance(robust, released) is None
