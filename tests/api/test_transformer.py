"""Masking steps as scikit-learn transformers."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from sfumato.data.key_file import write_key
from sfumato.errors import BadParameter, NotApplicable, SfumatoError
from sfumato.masking import Generalize, Noise, Round
from sfumato.masking.transformer import MaskingTransformer
from sfumato.registry import registry
from sfumato.secret import SecretValue

draw = np.random.default_rng(2)
ARRAY = draw.normal(50, 20, (300, 3))
BATCH = "The noise depends on the whole table that is transformed, not on each row alone."


def test_it_passes_the_checks_of_scikit_learn() -> None:
    check_estimator(MaskingTransformer({"round": {"base": 0.5}}), on_skip=None)


def key_file(folder: Path) -> str:
    write_key(folder / "mask.key", SecretValue(bytes(32)))
    return str(folder / "mask.key")


def test_a_random_step_passes_them_but_for_invariance(tmp_path: Path) -> None:
    names = ("check_methods_subset_invariance", "check_methods_sample_order_invariance", "check_fit2d_1sample")
    reasons = dict.fromkeys(names, BATCH)
    noisy = MaskingTransformer(Noise(variance_ratio=0.1), random_state=1, key=key_file(tmp_path))
    check_estimator(noisy, expected_failed_checks=reasons, on_skip=None)


def test_frames_and_arrays_come_back_as_they_came() -> None:
    rounded = np.round(ARRAY / 5) * 5
    masker = MaskingTransformer(Round(base=5))
    np.testing.assert_allclose(masker.fit_transform(ARRAY), rounded)
    frame = pd.DataFrame(ARRAY, columns=["a", "b", "c"], index=range(7, 307))
    masked = masker.fit_transform(frame)
    assert masked.index.equals(frame.index)
    np.testing.assert_allclose(masked.to_numpy(), rounded)
    assert masker.get_feature_names_out().tolist() == ["a", "b", "c"]
    assert isinstance(masker.fit_transform(pl.DataFrame(ARRAY, schema=["a", "b", "c"])), pl.DataFrame)
    holes = ARRAY.copy()
    holes[3, 1] = np.nan
    assert np.isnan(masker.fit_transform(holes)).sum() == 1


def test_it_works_in_a_pipeline_and_repeats_with_seed_and_key(tmp_path: Path) -> None:
    frame = pd.DataFrame(ARRAY, columns=["a", "b", "c"])
    noisy = MaskingTransformer({"noise": {"variance_ratio": 0.5}}, random_state=3, key=key_file(tmp_path))
    only = ColumnTransformer([("mask", noisy, ["a"])], remainder="passthrough")
    model = make_pipeline(only, LinearRegression()).fit(frame, ARRAY[:, 0])
    assert 0.3 < model.score(frame, ARRAY[:, 0]) < 0.95
    same, other = clone(noisy), clone(noisy).set_params(random_state=4)
    np.testing.assert_array_equal(noisy.fit_transform(ARRAY), same.fit_transform(ARRAY))
    assert (noisy.fit_transform(ARRAY) != other.fit_transform(ARRAY)).all()
    alone = clone(noisy).set_params(key=None)
    assert (alone.fit_transform(ARRAY) != noisy.fit_transform(ARRAY)).all()  # a seed alone determines nothing
    np.testing.assert_array_equal(alone.transform(ARRAY), pickle.loads(pickle.dumps(alone)).transform(ARRAY))
    assert pickle.loads(pickle.dumps(noisy)).get_params() == noisy.get_params()
    assert clone(MaskingTransformer(Noise(variance_ratio=0.1))).step == Noise(variance_ratio=0.1)


@pytest.mark.parametrize("kind", list(registry("method")), ids=lambda kind: kind.part_name())
def test_every_step_masks_in_place_or_is_refused(kind: Any) -> None:
    """No step slips through that needs a verdict of a privacy model, or that changes rows or columns."""
    frame = pl.DataFrame({"x": ARRAY[:, 0], "y": ARRAY[:, 1], "c": np.tile(["a", "b", "c"], 100)})
    try:
        step = kind.build(kind.examples[0])
    except SfumatoError:
        return
    masker = MaskingTransformer(step, random_state=1)
    if kind.coarsens or kind.adds_rows:
        with pytest.raises(NotApplicable, match=r"sfumato\.protect"):
            masker.fit(frame)
        return
    try:
        masked = masker.fit_transform(frame)
    except SfumatoError:  # refused, or its example names other columns
        return
    assert masked.shape == frame.shape
    assert masked.columns == frame.columns


def test_what_is_refused() -> None:
    with pytest.raises(NotApplicable, match="privacy models that a transformer does not check"):
        MaskingTransformer(Generalize()).fit(ARRAY)
    for name, parameters in (("sample", {"fraction": 0.5}), ("synthesize", {}), ("remove", {"columns": ["x0"]})):
        with pytest.raises(NotApplicable, match="changes the rows or columns"):
            MaskingTransformer({name: parameters}).fit_transform(ARRAY)
    with pytest.raises(BadParameter, match="base"):
        MaskingTransformer({"round": {"base": -1}}).fit(ARRAY)


def test_scikit_learn_is_needed_only_here() -> None:
    code = "import sys; sys.modules['sklearn'] = None\nimport sfumato.masking\nimport sfumato.masking.transformer"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ExtraMissing" in done.stderr
    assert "scikit-learn" in done.stderr
