"""The memory guard: work that does not fit is refused with the amount it needs, and no limit is met by it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato import memory
from sfumato.attacks.candidate_rows import compare
from sfumato.attacks.value_coverage import coverage
from sfumato.errors import OutOfMemory
from sfumato.evaluation import judge_limits, run
from sfumato.memory import available_memory, require_memory
from sfumato.recipe import Limits


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 200_000_000)


def test_there_is_some_memory() -> None:
    assert 0 < available_memory() < 2**50
    require_memory(1, "nothing")


@pytest.mark.usefixtures("little")
def test_a_refusal_says_how_much_is_needed() -> None:
    require_memory(150_000_000, "Something")
    with pytest.raises(OutOfMemory, match=r"Not measured: Something needs about 3\.0 GB of memory, and 0\.2 GB"):
        require_memory(3e9, "Something")


@pytest.mark.usefixtures("little")
def test_the_list_of_all_pairs_is_refused_and_their_number_is_not() -> None:
    """6,000 overlapping ranges over 6,000 values: 18 million pairs, which the measures never list."""
    values = pl.Series("x", np.arange(6000) + 0.5)
    ranges = pl.Series("x", [f"[0, {end}]" for end in range(6000)])
    assert int(coverage(values, ranges).counts.sum()) == 6000 * 5999 // 2
    with pytest.raises(OutOfMemory, match="label of `x` covers"):
        compare(values, ranges)


PEOPLE = pl.DataFrame({"age": np.arange(300) % 60, "ill": ["no", "yes", "no"] * 100})
RECIPE = {
    "sfumato": 1,
    "columns": {"age": "quasi", "ill": "sensitive"},
    "models": [{"k-anonymity": 5}],
    "steps": ["mondrian"],
    "limits": {"risk": 0.9},
}


@pytest.mark.usefixtures("little")
def test_attacks_and_measures_that_do_not_fit_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CELL_BYTES", 10**9)
    done = sfumato.protect(RECIPE, PEOPLE, seed=1)
    document = done.to_dict()
    for entry in [*document["attacks"], *document["measures"]]:
        assert entry.get("risk", entry.get("value")) is None
        assert "Not measured" in entry["reason"]
        assert "GB of memory" in entry["reason"]
    assert [limit["met"] for limit in document["limits"]] == [None]
    assert done.unmet


def test_memory_that_runs_out_in_spite_of_the_estimate_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(run, "evaluate_attack", full)
    done = sfumato.protect({**RECIPE, "measures": ["class-sizes"]}, PEOPLE, seed=1)
    outcomes = done.evaluation.attacks
    assert outcomes
    assert all(isinstance(outcome, OutOfMemory) for outcome in outcomes)
    assert judge_limits(Limits(risk=0.9), outcomes)[0].met is None
    assert done.to_dict()["measures"][0]["value"] is not None
