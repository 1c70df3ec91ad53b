"""The contract of a masking method, as a check that anyone can run on their own."""

from __future__ import annotations

import json

import numpy as np

from sfumato.errors import SfumatoError
from sfumato.masking.base import Context, Step
from sfumato.masking.model import PrivacyModel
from sfumato.registry import registry
from sfumato.release import Change
from sfumato.rng import Rng
from sfumato.schema import Dataset
from sfumato.testing.sample import sample

__all__ = ["check_step"]


def check_step(step: Step, data: Dataset | None = None) -> None:
    """Raise AssertionError unless ``step`` keeps the contract of a masking method.

    The input stays as it was; the same seed gives the same table; the row map fits; what is said in public is plain
    JSON and holds no identifier of the data; tables of one row and empty columns work or are refused by a SfumatoError.
    """
    people = _accepted(step) if data is None else data
    before = people.table.frame.clone()
    first = _run(step, people, 1)
    assert people.table.frame.equals(before), "the input table was changed"
    again = _run(step, people, 1)
    assert first.table.frame.equals(again.table.frame), "the same seed gave another table"
    _check_rows(first, people)
    text = json.dumps([dict(first.public), step.public()])
    names = people.table.column(people.identifiers[0]).to_list() if people.identifiers else []
    assert not any(f'"{name}"' in text for name in names), "what the step says in public names a person"
    for odd in (sample(1), sample(40, missing=False), _emptied(people)):
        try:
            change = _run(step, odd, 1)
        except SfumatoError as refusal:
            assert str(refusal), "a refusal says nothing"
        else:
            _check_rows(change, odd)


def _accepted(step: Step) -> Dataset:
    """The sample with empty cells, or without them for a step that refuses those."""
    try:
        _run(step, sample(), 1)
    except SfumatoError:
        return sample(missing=False)
    return sample()


def _run(step: Step, data: Dataset, seed: int) -> Change:
    k = registry("model").get("k-anonymity").build(2)
    assert isinstance(k, PrivacyModel)
    return step.apply(data, Context(rng=Rng(seed).child(step.part_name()), models=(k,)))


def _check_rows(change: Change, data: Dataset) -> None:
    if change.rows is None:
        assert change.table.rows == data.rows, "rows came or went and the step does not say which"
        return
    assert len(change.rows) == change.table.rows, "the row map does not fit the table"
    assert bool(np.all((change.rows >= -1) & (change.rows < data.rows))), "the row map points outside the input"


def _emptied(data: Dataset) -> Dataset:
    """The same people with one quasi-identifier all missing."""
    name = data.quasi[0]
    frame = data.table.frame
    return data.with_frame(frame.with_columns(frame[name].clear(n=frame.height).alias(name)))
