"""Contract of a masking method: input unchanged, repeatable by seed, valid row map, public account without data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

import numpy as np
import polars as pl

from sfumato.arrays import Array
from sfumato.dataset import Data
from sfumato.errors import SfumatoError
from sfumato.masking.base import Context, Step
from sfumato.masking.channel import IMPOSSIBLE, EqualChannel, PointChannel, PublicKnowledge, StepChannel, TableChannel
from sfumato.masking.methods._masking import Masking
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.release import Change
from sfumato.rng import Rng
from sfumato.testing.masking_sample import UNTOUCHED, all_missing, constant, masking_frame, masking_sample
from sfumato.testing.parts import check_part
from sfumato.testing.sample import sample


def check_step(step: Step, data: Data | None = None) -> None:
    """Raise AssertionError unless ``step`` keeps the contract of a masking method.

    The input is not changed; the same seed gives the same table and all randomness comes from ``context.rng``; the row
    map is valid; the public account is plain JSON without a value of the data; columns that the account does not name
    stay as they are; what the method declares of itself is so; tables of one row, constant and empty columns work or
    are refused by a SfumatoError. With ``data`` the checks that fit any table run on that table instead.
    """
    check_part(step)
    if data is not None:
        basic_contract(step, data)
        return
    for check in STEP_CHECKS:
        check(step)


class _RecordingRng(Rng):
    """A random stream that records whether it or one of its children was used."""

    __slots__ = ("_stream", "used")

    def __init__(self, seed: int) -> None:
        self.used = False
        super().__init__(seed)
        self.used = False

    @property
    def generator(self) -> np.random.Generator:
        self.used = True
        return self._stream

    @generator.setter
    def generator(self, stream: np.random.Generator) -> None:
        self._stream = stream

    def child(self, *names: object) -> Rng:
        self.used = True
        return super().child(*names)


def _run(step: Step, data: Data, rng: Rng | None = None, *, k: int = 3) -> Change:
    return step.apply(data, Context(rng=rng or Rng(7), models=(KAnonymity(k=k),)))


def _kept(change: Change, data: Data) -> tuple[Array, Array]:
    """The row map, and the released rows that belong to a row of the input."""
    rows = np.arange(data.rows) if change.rows is None else change.rows
    return rows, np.flatnonzero(rows >= 0)


def _leaves(node: object) -> list[object]:
    """All keys and values of nested plain data."""
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in [key, *_leaves(value)]]
    if isinstance(node, list | tuple):
        return [leaf for value in node for leaf in _leaves(value)]
    return [node]


def basic_contract(step: Step, data: Data | None = None) -> None:
    """What holds on any table, here the public :func:`~sfumato.testing.sample`."""
    run = partial(_run, step, k=2)
    people = _accepted(step) if data is None else data
    before = people.table.frame.clone()
    first = run(people, Rng(1).child(step.part_name()))
    assert people.table.frame.equals(before), "the input table was changed"
    if "repeatable by seed" not in step.exempt:
        again = run(people, Rng(1).child(step.part_name()))
        assert first.table.frame.equals(again.table.frame), "the same seed gave another table"
    _check_row_map(first, people)
    text = json.dumps([dict(first.public), step.public()])
    names = people.table.column(people.identifiers[0]).to_list() if people.identifiers else []
    assert not any(f'"{name}"' in text for name in names), "the public account names a person"
    for edge in (sample(1), sample(40, missing=False), _without_values(people)):
        try:
            change = run(edge, Rng(1).child(step.part_name()))
        except SfumatoError as refusal:
            assert str(refusal), "a refusal has no message"
        else:
            _check_row_map(change, edge)


def _accepted(step: Step) -> Data:
    """The sample with missing values, or without them for a step that refuses those."""
    try:
        _run(step, sample(), Rng(1), k=2)
    except SfumatoError:
        return sample(missing=False)
    return sample()


def _without_values(data: Data) -> Data:
    """The same rows with one quasi-identifier all missing."""
    name = data.quasi[0]
    frame = data.table.frame
    return data.with_frame(frame.with_columns(frame[name].clear(n=frame.height).alias(name)))


def _check_row_map(change: Change, data: Data) -> None:
    if change.rows is None:
        assert change.table.rows == data.rows, "rows were added or dropped without a row map"
        return
    assert len(change.rows) == change.table.rows, "the row map does not fit the table"
    assert bool(np.all((change.rows >= -1) & (change.rows < data.rows))), "the row map points outside the input"
    known = change.rows[change.rows >= 0]
    assert len(np.unique(known)) == len(known), "the row map names a row twice"


def input_is_unchanged(step: Step) -> None:
    data = masking_sample()
    before = data.table.frame.clone()
    _run(step, data)
    assert data.table.frame.equals(before), "the input table was changed"
    assert data.table.frame.schema == before.schema, "the types of the input table were changed"


def repeatable_by_seed_and_random_only_by_its_stream(step: Step) -> None:
    if "repeatable by seed" in step.exempt:
        return
    data, stream = masking_sample(), _RecordingRng(7)
    first = _run(step, data, stream).table.frame
    assert _run(step, data).table.frame.equals(first), "the same seed gave another table"
    others = [_run(step, data, Rng(seed)).table.frame for seed in (8, 9, 10)]
    if not stream.used:
        assert all(other.equals(first) for other in others), "the table changes, but `context.rng` was not used"
    elif "differs by seed" not in step.exempt:
        assert not all(other.equals(first) for other in others), "`context.rng` was used, but the seed has no effect"


def row_map_is_valid(step: Step) -> None:
    data = masking_sample()
    _check_row_map(_run(step, data), data)


def public_account_is_plain_and_holds_no_data(step: Step) -> None:
    data = masking_sample()
    public = json.loads(json.dumps(_run(step, data).public, allow_nan=False))
    if "no data value in public" in step.exempt:
        return
    published = {*_leaves(public)} - {*data.table.columns} - {*map(str, _leaves(step.to_dict()))}
    for series in data.table.frame:
        if series.dtype == pl.String or (series.dtype.is_float() and series.name != "weight"):
            values = {*series.drop_nulls().to_list()}
        else:
            values = {*series.cast(pl.String).drop_nulls().to_list()} if series.dtype.is_temporal() else set()
        assert not values & published, f"the public account shows values of {series.name}"


def other_columns_stay_identical(step: Step) -> None:
    data = masking_sample()
    change = _run(step, data)
    declared = {str(leaf) for leaf in _leaves(json.loads(json.dumps(change.public)))}
    rows, kept = _kept(change, data)
    assert kept.size or change.rows is not None, "no row is left"
    for name in UNTOUCHED if kept.size else ():
        if name not in declared and name in change.table.columns:
            before = data.table.column(name).gather(rows[kept])
            assert change.table.column(name).gather(kept).equals(before), f"{name} changed; `public` does not name it"


def missing_stays_missing(step: Step) -> None:
    """For methods that change values in place."""
    if not isinstance(step, Masking) or "missing stays missing" in step.exempt:
        return
    data = masking_sample()
    change = _run(step, data)
    rows, kept = _kept(change, data)
    for name in ("income", "region"):
        missing = data.table.column(name).is_null().gather(rows[kept])
        assert change.table.column(name).gather(kept).filter(missing).is_null().all(), f"{name}: a value was invented"


def edge_tables_work_or_are_refused(step: Step) -> None:
    for data in (masking_sample(masking_frame(1)), constant(), all_missing()):
        before = data.table.frame.clone()
        try:
            change = _run(step, data)
        except SfumatoError as refusal:
            assert str(refusal), "a refusal has no message"
            names = data.table.frame["name"]
            assert not any(str(name) in str(refusal) for name in names), "a refusal names a person"
        else:
            _check_row_map(change, data)
        assert data.table.frame.equals(before), "the input table was changed"


def strata_are_masked_by_themselves(step: Step) -> None:
    """For methods with ``strata``: the result in one stratum does not depend on the values of another."""
    kind = type(step)
    if "strata" not in kind.model_fields or "strata" in kind.exempt:
        return
    stratified = kind.build({**step.to_dict(), "strata": ["stratum"]})
    data = masking_sample()
    try:
        change = _run(stratified, data)
    except SfumatoError as refusal:
        assert "strat" in str(refusal) or "rows" in str(refusal), "the refusal does not speak of strata"
        return
    urban = pl.col("stratum") == "urban"
    other = data.table.frame.with_columns(
        pl.when(urban).then(pl.col(name)).otherwise(pl.col(name) * 2).alias(name)
        for name in ("age", "height", "income", "rent")
    )
    again = _run(stratified, masking_sample(other)).table.frame
    assert change.table.frame.filter(urban).equals(again.filter(urban)), "one stratum changes the result in another"


def declarations_are_true(step: Step) -> None:
    """``adds_rows``, ``truthful``, ``simulable`` and ``changed_columns`` against what the method does."""
    data = masking_sample()
    change = _run(step, data)
    may_change = type(step).changed_columns({**change.public, "parameters": step.public()}, data.quasi)
    rows, kept = _kept(change, data)
    assert step.adds_rows is bool(0 < len(kept) < len(rows)), "`adds_rows` is wrong"
    if step.keeps_rows:
        assert change.rows is None or np.array_equal(change.rows, np.arange(data.rows)), "`keeps_rows` is wrong"
    truthful = change.public.get("truthful", step.truthful)
    assert not (truthful and step.simulable), "`simulable` is for methods that alter values, `truthful` for others"
    for name in data.quasi if len(kept) else ():
        if name not in change.table.columns:
            continue
        before, after = data.table.column(name).gather(rows[kept]), change.table.column(name).gather(kept)
        assert name in may_change or after.equals(before), f"`changed_columns` is wrong: {name} changed"
        if truthful and after.dtype == before.dtype and after.dtype != pl.String:
            same = (after == before).fill_null(True) | after.is_null() | before.is_null()
            assert same.all(), f"`truthful` is wrong: {name} was altered"


def simulable_methods_rerun_from_what_they_publish(step: Step) -> None:
    if step.simulable:
        again = type(step).build(step.public())
        first, second = (_run(one, masking_sample()).table.frame for one in (step, again))
        assert first.equals(second), "the published parameters give another table"
        entry = {**_run(step, masking_sample()).public, "parameters": step.public()}
        for name in entry.get("columns", ()):
            type(step).build(type(step).restricted(entry, (name,)))


def questions_are_answered(step: Step) -> None:
    """What attacks, advice and reports ask of a method."""
    kind = type(step)
    declared = {name for base in kind.__mro__ if base is not Step and issubclass(base, Step) for name in vars(base)}
    assert "simulable" in declared, "declare `simulable`"
    grouped = [example.get("groups", ()) for example in kind.examples]
    nested = {field for groups in grouped if not isinstance(groups, dict) for group in groups for field in group}
    assert set(kind.stronger) <= set(kind.model_fields) | nested, "`stronger` names something that is no parameter"
    assert set(kind.stronger.values()) <= {"more", "less"}, '`stronger` says "more" or "less"'
    assert kind.pooled_label({}) is None or kind.truthful, "a pooled label is for truthful methods"
    assert kind.joint_columns({}) == (), "`joint_columns` invents columns for an empty entry"


def channels_are_calibrated(step: Step) -> None:
    """The stated likelihood of released values is that of the method's own draws."""
    check_channels(step)


def check_channels(step: Step, published: Mapping[str, object] | None = None) -> tuple[str, ...]:
    """Compare the channels of a step with its own draws, and return the columns that they cover.

    ``published`` are the parameters that the adversary reads; those of the step if left out. Tests pass wrong ones,
    which must fail. On 4,000 rows, a standard deviation that is wrong by 5 % is found in a column, and a window of
    ranks that is wrong by 10 %.
    """
    data = masking_sample(masking_frame(4600).drop_nulls().head(4000))
    change = _run(step, data)
    frame = data.table.frame.drop(data.identifiers)
    rows, kept = _kept(change, data)
    entry = {**change.public, "step": step.part_name(), "parameters": dict(published or step.public())}
    names = [name for name in frame.columns if name in change.table.columns]
    if change.public.get("truthful", step.truthful) or not len(kept):
        return ()
    knowledge = PublicKnowledge(
        targets=frame.select(names),
        people=frame.select(names),
        target_rows=np.arange(data.rows),
        released=change.table.frame.select(names),
        complete=change.table.rows == data.rows,
    )
    covered: list[str] = []
    for channel in type(step).channels(entry, knowledge):
        covered += channel.columns
        _check_channel(channel, rows[kept], kept)
    return tuple(covered)


def _check_channel(channel: StepChannel, known: Array, row: Array) -> None:
    """The likelihood of the true pairs is as often high and low as it says."""
    from scipy.stats import kstest

    where = ", ".join(channel.columns)
    if isinstance(channel, EqualChannel):
        assert (channel.known[known] == channel.released[row]).all(), f"{where}: the result is not the stated one"
    elif isinstance(channel, PointChannel):
        gap = channel.released[row] - channel.known[known]
        if channel.spread is not None:
            gap = gap / channel.spread[known][:, None]
        for coordinate in gap[np.isfinite(gap).all(axis=1)].T:
            error = np.sqrt(2 / len(coordinate))
            assert abs(coordinate.mean()) < 4.5 * error, f"{where}: the mean of the noise is not the stated one"
            assert abs(coordinate.var() - 1) < 4.5 * error, f"{where}: the variance of the noise is not the stated one"
    elif isinstance(channel, TableChannel):
        probability = np.exp(channel.log)
        left, right = channel.known[known], channel.released[row]
        assert (channel.log[left, right] > IMPOSSIBLE + 1).all(), f"{where}: an impossible value was released"
        if np.allclose(probability.sum(axis=1)[left], 1, atol=1e-3):
            upper = np.cumsum(probability, axis=1)[left, right]
            place = upper - probability[left, right] * np.random.default_rng(3).random(len(left))
            assert kstest(place, "uniform").pvalue > 1e-5, f"{where}: the probabilities are not the stated ones"


STEP_CHECKS = (
    basic_contract,
    input_is_unchanged,
    repeatable_by_seed_and_random_only_by_its_stream,
    row_map_is_valid,
    public_account_is_plain_and_holds_no_data,
    other_columns_stay_identical,
    missing_stays_missing,
    edge_tables_work_or_are_refused,
    strata_are_masked_by_themselves,
    declarations_are_true,
    simulable_methods_rerun_from_what_they_publish,
    questions_are_answered,
    channels_are_calibrated,
)
