"""Contract of an attack: it succeeds on an unmasked release, gains nothing from an unrelated one, and stops in time."""

from __future__ import annotations

import json
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.attacks import Attack, AttackScenario, Discloses, Outcome, Stage, evaluate_attack, risk
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.deadline import Deadline
from sfumato.errors import OutOfTime, SfumatoError
from sfumato.masking.base import Context, Step
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.rng import Rng
from sfumato.stats import wilson
from sfumato.testing.measures import ODD_RELEASES
from sfumato.testing.parts import check_part
from sfumato.testing.population import population, population_frame

_ROWS = 400
_RELEASED = Rng(11)
"""Random numbers of the releases. No key is mixed in, as in a real release: a seed can be guessed here."""


def check_attack(attack: Attack) -> None:
    """Raise AssertionError unless ``attack`` keeps the contract of an attack.

    It finds nearly everybody in an unmasked release and no more than the baseline in a release about other people; the
    same seed gives the same outcome; counts are consistent; at a deadline it reports what it reached, and never a risk
    of zero for what it did not; odd releases give an outcome or a refusal. An attack that exploits a masking method is
    tried on a release by that method, with the parameters of ``weak_masking``.
    """
    check_part(attack)
    bench = AttackBench(attack)
    for check in ATTACK_CHECKS:
        check(bench)


class AttackBench:
    """An attack with the releases it is tried on. They and the first outcome are made once."""

    def __init__(self, attack: Attack) -> None:
        self.attack = attack
        self._masked: dict[int, tuple[pl.DataFrame, list[dict[str, object]]]] = {}

    @cached_property
    def weak_step(self) -> Step | None:
        """The step that the attack exploits, with parameters that protect almost nobody; None for a general attack."""
        if self.attack.weak_masking is None:
            exploited = self.attack.exploited({"step": name} for name in registry("method").names())
            assert not exploited, "`weak_masking` is missing: the attack exploits a masking method"
            return None
        [(name, parameters)] = self.attack.weak_masking.items()
        step = registry("method").get(name).build(parameters)
        assert isinstance(step, Step), "`weak_masking` names no masking method"
        assert self.attack.exploits(type(step)), "the attack does not exploit the method of `weak_masking`"
        return step

    def unmasked(self) -> AttackScenario:
        """A release of the people themselves, hardly masked where the attack needs a method."""
        return self._events(seed=1) if self.attack.by_unit else self._rows(seed=1)

    def unrelated(self) -> AttackScenario:
        """A release about other people, of which the row map claims that it is about ours."""
        return self._events(seed=9) if self.attack.by_unit else self._rows(seed=9)

    def run(self, scenario: AttackScenario) -> Outcome:
        """The outcome on a scenario, always by the same seed."""
        return evaluate_attack(self.attack, scenario, rng=Rng(5), n_targets=_ROWS)

    @cached_property
    def outcome(self) -> Outcome:
        """The outcome on the unmasked release."""
        return self.run(self.unmasked())

    def _rows(self, seed: int) -> AttackScenario:
        original = population(_ROWS)
        if seed not in self._masked:
            self._masked[seed] = self._mask(population(_ROWS, seed=seed))
        table, steps = self._masked[seed]
        order = _RELEASED.child("order").generator.permutation(_ROWS)
        control = self.attack.discloses is Discloses.MEMBERSHIP
        return AttackScenario(
            original=original,
            release=Release(table=Table(frame=table.drop("name")[order]), manifest={"steps": steps} if steps else {}),
            lineage=Lineage(order),
            control=Table(frame=population_frame(_ROWS, seed=2)) if control else None,
        )

    def _mask(self, people: Data) -> tuple[pl.DataFrame, list[dict[str, object]]]:
        step = self.weak_step
        if step is None:
            return people.table.frame, []
        # Methods that search for a privacy model get a weak one.
        change = step.apply(people, Context(rng=_RELEASED.child(0, step.part_name()), models=(KAnonymity(k=2),)))
        return change.table.frame, [{"step": step.part_name(), "parameters": step.public(), **change.public}]

    def _events(self, seed: int) -> AttackScenario:
        pseudonym = np.random.default_rng(5).permutation(100)
        events = _events(seed).table.frame
        table = events.with_columns(pl.col("user").map_elements(lambda user: int(pseudonym[user]), pl.Int64))
        release = Release(table=Table(frame=table), manifest={})
        return AttackScenario(original=_events(1), release=release, aligned=True)


def _events(seed: int) -> Data:
    """A hundred people with a dozen rated films each."""
    draw = np.random.default_rng(seed)
    rows = 1200
    table = pl.DataFrame(
        {
            "user": np.repeat(np.arange(100), 12),
            "film": [f"film {number}" for number in draw.integers(0, 300, rows)],
            "stars": draw.integers(1, 6, rows),
            "day": draw.integers(0, 700, rows),
        }
    )
    return Data.of(Table(frame=table), Schema(columns={"film": Column(role=Role.QUASI)}, unit="user"))


def unmasked_release_is_disclosed(bench: AttackBench) -> None:
    assert bench.outcome.main.trials > 0, "no target was tried"
    assert risk(bench.outcome).high >= 0.999, f"an unmasked release is hardly disclosed: {bench.outcome.to_dict()}"


def unrelated_release_gives_no_more_than_the_baseline(bench: AttackBench) -> None:
    outcome = bench.run(bench.unrelated())
    measured = risk(outcome, level=0.999)
    assert outcome.baseline is not None, "the outcome has no baseline"
    baseline = wilson(outcome.baseline.hits, outcome.baseline.trials, 0.999)[1]
    assert measured.low <= baseline, f"a release about other people raises the risk: {outcome.to_dict()}"
    if bench.attack.discloses is Discloses.IDENTITY:
        assert measured.value <= 0.05, f"a release about other people identifies ours: {outcome.to_dict()}"


def same_seed_same_outcome_and_inputs_unchanged(bench: AttackBench) -> None:
    scenario = bench.unmasked()
    before, released = scenario.original.table.frame.clone(), scenario.release.table.frame.clone()
    assert bench.run(scenario).to_dict() == bench.outcome.to_dict(), "the same seed gave another outcome"
    assert scenario.original.table.frame.equals(before), "the original was changed"
    assert scenario.release.table.frame.equals(released), "the release was changed"


def counts_are_consistent(bench: AttackBench) -> None:
    outcome, attack = bench.outcome, bench.attack
    for arm in filter(None, (outcome.main, outcome.baseline, outcome.control)):
        assert 0 <= arm.hits <= arm.trials, "an arm has more hits than trials"
    assert outcome.certain_hits <= outcome.certain <= outcome.claims <= outcome.main.trials, "claims do not add up"
    assert outcome.certain_hits <= outcome.main.hits, "more certain hits than hits"
    plain = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    assert plain["low"] <= plain["risk"] <= plain["high"], "the interval does not contain the risk"
    assert plain["attack"] == attack.part_name(), "the outcome names another attack"
    assert plain["discloses"] == attack.discloses.value, "the outcome names another kind of disclosure"
    assert plain["tried"] == outcome.main.trials, "the document counts other trials"


class _Clock:
    """A clock that stands still and jumps past any deadline at the n-th reading."""

    def __init__(self, readings: int) -> None:
        self.left = readings

    def __call__(self) -> float:
        self.left -= 1
        return 0.0 if self.left >= 0 else 1e9


def stops_at_the_deadline(bench: AttackBench) -> None:
    """Targets reached by then are counted. If there are none, the attack raises OutOfTime; a risk of 0 is wrong."""
    for readings in (0, 3, 10, 40):
        deadline = Deadline(until=1.0, clock=_Clock(readings))
        try:
            outcome = evaluate_attack(bench.attack, bench.unmasked(), rng=Rng(5), n_targets=_ROWS, progress=deadline)
        except OutOfTime as stopped:
            assert "Stopped" in str(stopped), "the message does not say that the attack was stopped"
        else:
            assert readings, "an attack without any time has an outcome"
            _check_stopped(outcome, bench.outcome)


def _check_stopped(outcome: Outcome, whole: Outcome) -> None:
    trials = outcome.main.trials
    assert outcome.planned == whole.main.trials, "`planned` is not the number of targets without a deadline"
    assert 0 < trials <= whole.main.trials, "an outcome at the deadline needs targets that were reached"
    assert outcome.stopped == (trials < whole.main.trials), "`stopped` is wrong"
    assert len(outcome.rows) == len(outcome.hit) == len(outcome.confidence) == trials, "arrays of different lengths"
    if outcome.stopped:
        plain = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
        assert (plain["stopped"], plain["planned"]) == (True, whole.main.trials), "the document hides the stop"
        assert risk(outcome).high >= 0.99, "a stopped attack on an unmasked release reports a low risk"
        unsure = outcome.main.hits < trials or risk(outcome).low <= risk(whole).low
        assert unsure, "fewer trials give a narrower interval"


def threat_model_is_documented(bench: AttackBench) -> None:
    assert len(bench.attack.summary()) > 40, "the first sentence of the docstring must state the threat model"


def odd_releases_are_judged_or_refused(bench: AttackBench) -> None:
    """Any release gives a consistent outcome or a refusal that says why; never a crash."""
    if bench.attack.by_unit:
        return
    for name, spoil in ODD_RELEASES.items():
        scenario = bench.unmasked()
        table = spoil(scenario.release.table.frame)
        assert scenario.lineage is not None
        spoilt = AttackScenario(
            original=scenario.original,
            release=Release(table=Table(frame=table), manifest=scenario.release.manifest),
            lineage=Lineage(scenario.lineage.rows[: table.height]),
            control=scenario.control,
        )
        try:
            outcome = evaluate_attack(bench.attack, spoilt, rng=Rng(1), n_targets=60)
        except SfumatoError as refusal:
            text = str(refusal)
        else:
            assert 0 <= outcome.main.hits <= outcome.main.trials, f"{name}: more hits than trials"
            text = json.dumps(outcome.to_dict(), allow_nan=False)
        assert len(text) > 20, f"{name}: the refusal says nothing"


def classifies_itself(bench: AttackBench) -> None:
    kind = type(bench.attack)
    assert isinstance(kind.discloses, Discloses), "`discloses` is missing"
    assert isinstance(kind.stage, Stage), "`stage` is no Stage"
    for name in ("cheap", "bounded_by_k", "pairwise", "by_unit", "any_columns"):
        assert isinstance(getattr(kind, name), bool), f"`{name}` is neither true nor false"
    assert kind.exploited([{"step": "a-method-that-is-not-installed"}]) == (), "it exploits a method it cannot know"
    remedy = kind.remedy({})
    assert remedy is None or remedy.endswith("."), "`remedy` is no sentence"
    for scenario in (bench.unmasked(), bench.unrelated()):
        for attack in kind.defaults(scenario):
            assert type(attack) is kind, "`defaults` gives attacks of another class"


ATTACK_CHECKS = (
    classifies_itself,
    unmasked_release_is_disclosed,
    unrelated_release_gives_no_more_than_the_baseline,
    same_seed_same_outcome_and_inputs_unchanged,
    counts_are_consistent,
    stops_at_the_deadline,
    threat_model_is_documented,
    odd_releases_are_judged_or_refused,
)
