"""Time limits: who is told, who stops, what is counted, and that no limit is met by silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize

from sfumato.api.attack import attack as attack_release
from sfumato.attacks import AttackScenario, Outcome, evaluate_attack, risk
from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import match
from sfumato.attacks.inference.intersection import Intersection
from sfumato.attacks.inference.model_inference import ModelInference
from sfumato.attacks.inference.posterior_inference import PosteriorInference
from sfumato.attacks.record_linkage.learned_linkage.attack import LearnedLinkage
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.cli import main
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.deadline import Deadline, batches, quiet, split_deadline
from sfumato.errors import OutOfTime
from sfumato.evaluation import judge_limits, run_attacks
from sfumato.masking.base import Context
from sfumato.masking.methods.swap import Swap
from sfumato.progress import SILENT
from sfumato.recipe import Limits
from sfumato.release import Release
from sfumato.rng import Rng


class Clock:
    """Each look at it takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def people(count: int) -> Data:
    """Half are alone with their town, half share one: linkage finds exactly the first half."""
    town = [f"town {number}" if number % 2 else "city" for number in range(count)]
    return Data.of(Table(frame=pl.DataFrame({"town": town})), Schema(columns={"town": Column(role="quasi")}))


def scenario(count: int = 400) -> AttackScenario:
    original = people(count)
    return AttackScenario(original=original, release=Release(table=original.table, manifest={}), aligned=True)


def test_a_deadline_raises_at_the_tick_and_at_the_next_task() -> None:
    until = Deadline(until=3.5, clock=Clock())

    def work() -> None:
        with until.task("work", 10) as tick:
            for _ in range(10):
                tick(1)

    with pytest.raises(OutOfTime, match="Stopped"):
        work()
    with pytest.raises(OutOfTime), until.task("more", 1):
        pass
    assert until.left == 0


def test_portions_end_early_and_shares_pass_on_what_is_left() -> None:
    until = Deadline(until=5.5, clock=Clock())
    assert [part.stop for part in batches(until, "work", 100, 7)] == [7, 14, 21, 28, 35]
    assert list(batches(until, "work", 100, 7)) == []
    clock = Clock()
    first = split_deadline(Deadline(until=101.0, clock=clock), 4)
    assert isinstance(first, Deadline)
    assert first.until == pytest.approx(27, abs=2)
    assert split_deadline(SILENT, 4) is SILENT
    assert quiet(SILENT) is SILENT


def test_those_reached_are_the_first_targets() -> None:
    targets = pl.DataFrame({"town": ["b", "a", "b", "c", "a", "d"]})
    found = match(View(release=Release(table=Table(frame=targets), manifest={}), targets=targets, knows=("town",)))
    assert [rows.tolist() for rows, _ in found.candidates()] == [[0, 2], [1, 4], [3], [5]]
    assert [found.reached(count) for count in range(5)] == [0, 1, 3, 5, 6]


def test_a_partial_run_is_a_random_sample_with_a_wider_interval() -> None:
    """Mean of 60 runs of about 100 people each: an error of the share above 0.02 (four standard errors) is seen.

    Counting combinations instead of people, or people in the order of the file, would give 1 or 0.25 instead.
    """
    whole = evaluate_attack(Linkage(), scenario(), rng=Rng(1))
    assert not whole.stopped
    found = []
    for seed in range(60):
        part = evaluate_attack(Linkage(), scenario(), rng=Rng(seed), progress=Deadline(until=52.0, clock=Clock()))
        assert part.stopped
        assert part.planned == 400
        assert risk(part).high - risk(part).low > risk(whole).high - risk(whole).low
        found.append((part.main.hits, part.main.trials))
    hits, tries = np.array(found).sum(axis=0)
    assert tries > 3000
    # The crowd of 200 is hit once in 200, so the true share is a little above one half.
    assert abs(hits / tries - (0.5 + 0.5 / 200)) < 0.035


def test_each_attack_gets_its_part_and_silence_meets_no_limit() -> None:
    attacks = [Linkage(), Linkage(), Linkage()]
    until = Deadline(until=300.0, clock=Clock())
    outcomes = run_attacks(scenario(), attacks, rng=Rng(1), n_targets=5000, progress=until)
    tried = [outcome.main.trials for outcome in outcomes if isinstance(outcome, Outcome)]
    assert len(tried) == 3
    assert max(tried) < 400
    late = run_attacks(scenario(), attacks, rng=Rng(1), n_targets=5000, progress=Deadline(until=0.0, clock=Clock()))
    assert all(isinstance(outcome, OutOfTime) for outcome in late)
    harmless = evaluate_attack(Linkage(), scenario(4), rng=Rng(1))
    [entry] = judge_limits(Limits(risk=1.0), [harmless, *late])
    assert (entry.met, entry.stopped) == (None, ("linkage",) * 3)
    [entry] = judge_limits(Limits(risk=0.01), [harmless, *late])
    assert entry.met is False
    [entry] = judge_limits(Limits(risk=1.0), [harmless])
    assert entry.met is True
    assert "stopped" not in entry.to_dict()


def test_the_verb_takes_seconds_from_the_clock_it_is_given() -> None:
    original = people(400)
    found = attack_release(
        Release(table=original.table, manifest={}),
        original=original,
        aligned=True,
        attacks=["linkage"],
        seconds=60,
        clock=Clock(),
    )
    [outcome] = found
    assert isinstance(outcome, Outcome)
    assert outcome.stopped


def test_the_command_ends_with_1_when_there_was_no_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "people.csv"
    people(40).table.frame.write_csv(file)
    wanted = ["attack", str(file), "--original", str(file), "--aligned", "--knows", "town", "--limit", "1"]
    wanted += ["--attack", "linkage"]
    assert main([*wanted, "--seconds", "0", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["attacks"][0]["risk"] is None
    assert document["attacks"][0]["stopped"] is True
    assert document["limits"][0]["met"] is None
    assert main([*wanted, "--seconds", "0"]) == 1
    assert "out of time without a result: linkage" in capsys.readouterr().out
    assert main(wanted) == 0


def test_intersection_gives_what_it_found_by_then(tmp_path: Path) -> None:
    """Whoever was reached was looked up in every release, as the whole run did."""
    draw = np.random.default_rng(3)
    frame = pl.DataFrame(
        {"age": draw.integers(0, 100, 600), "ill": [f"i{value}" for value in draw.integers(0, 40, 600)]}
    )
    schema = Schema(columns={"age": Column(role="quasi"), "ill": Column(role="sensitive")})
    for step in (7, 10):
        low = pl.col("age") // step * step
        frame.with_columns(age=pl.format("{}-{}", low, low + step - 1)).write_csv(tmp_path / f"{step}.csv")
    original = Data.of(Table(frame=frame), schema)
    first = Release(table=Table(frame=pl.read_csv(tmp_path / "7.csv")), manifest={})
    where = AttackScenario(original=original, release=first, aligned=True)
    attack = Intersection(releases=(tmp_path / "10.csv",))
    whole = evaluate_attack(attack, where, rng=Rng(1))
    part = evaluate_attack(attack, where, rng=Rng(1), progress=Deadline(until=40.0, clock=Clock()))
    assert part.stopped
    assert 0 < part.main.trials < whole.main.trials == 600
    both = dict(zip(whole.rows, whole.hit, strict=True))
    assert all(both[row] == hit for row, hit in zip(part.rows, part.hit, strict=True))


def test_half_of_the_time_learns_and_the_other_half_links() -> None:
    """A learner that has no time to finish links by what it had; without a limit it links as many or more."""
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({name: draw.normal(size=150) for name in "abc"})
    released = frame.with_columns(pl.col("a") + draw.normal(0, 1, 150), pl.col("b", "c") + draw.normal(0, 0.05, 150))
    schema = Schema(columns=dict.fromkeys("abc", Column(role="quasi")))
    where = AttackScenario(
        original=Data.of(Table(frame=frame), schema),
        release=Release(table=Table(frame=released), manifest={}),
        aligned=True,
    )
    attack = LearnedLinkage(taught=1)
    whole = evaluate_attack(attack, where, rng=Rng(1))
    part = evaluate_attack(attack, where, rng=Rng(1), progress=Deadline(until=1000.0, clock=Clock()))
    assert part.main.trials == 150
    assert 0.3 < part.main.rate <= whole.main.rate


def test_a_solver_gets_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever learns a distance with a second left gives no linear program, and no proof, more than that."""
    given: list[float] = []

    def spy(name: str) -> None:
        solve = getattr(optimize, name)

        def solved(*arguments: Any, options: dict[str, float], **more: Any) -> Any:
            given.append(options["time_limit"])
            return solve(*arguments, options=options, **more)

        monkeypatch.setattr(optimize, name, solved)

    spy("linprog")
    spy("milp")
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({name: draw.normal(size=60) for name in "abc"})
    released = frame.with_columns(pl.all() + pl.Series(draw.normal(0, 0.7, 60)))
    schema = Schema(columns=dict.fromkeys("abc", Column(role="quasi")))
    where = AttackScenario(
        original=Data.of(Table(frame=frame), schema),
        release=Release(table=Table(frame=released), manifest={}),
        aligned=True,
    )
    attack = LearnedLinkage(distance="weighted", taught=1, proof=60)
    evaluate_attack(attack, where, rng=Rng(1), progress=Deadline(until=1e9, clock=lambda: 1e9 - 1.0))
    assert len(given) > 1
    assert max(given) <= 1.0
    given.clear()
    evaluate_attack(attack, where, rng=Rng(1))
    assert max(given) == 60.0


def test_boosting_keeps_the_trees_it_had_time_for() -> None:
    pytest.importorskip("sklearn")
    draw = np.random.default_rng(0)
    frame = pl.DataFrame({"age": draw.uniform(0, 1, 300)}).with_columns(ill=pl.col("age") > 0.5)
    schema = Schema(columns={"age": Column(role="quasi"), "ill": Column(role="sensitive")})
    where = AttackScenario(
        original=Data.of(Table(frame=frame), schema),
        release=Release(table=Table(frame=frame), manifest={}),
        aligned=True,
    )
    attack = ModelInference(model="boosting")
    part = evaluate_attack(attack, where, rng=Rng(1), progress=Deadline(until=9.0, clock=Clock()))
    assert part.main.rate > 0.95
    with pytest.raises(OutOfTime):
        evaluate_attack(attack, where, rng=Rng(1), progress=Deadline(until=2.0, clock=Clock()))


def test_a_masking_is_simulated_as_often_as_time_allows() -> None:
    draw = np.random.default_rng(0)
    frame = pl.DataFrame({name: draw.normal(size=300) for name in "ab"} | {"ill": draw.choice(["x", "y"], 300)})
    roles = {"a": Column(role="quasi"), "b": Column(role="quasi"), "ill": Column(role="sensitive")}
    original = Data.of(Table(frame=frame), Schema(columns=roles))
    step = Swap(rate=0.1, columns=("a", "b"))  # it states no channel, so it is rerun
    change = step.apply(original, Context(rng=Rng(1)))
    steps = [{"step": "swap", "parameters": step.public(), "truthful": False, **change.public}]
    where = AttackScenario(
        original=original, release=Release(table=change.table, manifest={"steps": steps}), aligned=True
    )
    for attack in (PosteriorLinkage(), PosteriorInference()):
        outcome = evaluate_attack(attack, where, rng=Rng(1), progress=Deadline(until=60.0, clock=Clock()))
        assert 0 < outcome.detail["rounds"] < 60
        assert outcome.main.rate > 0.5
