"""The evaluation of one release: what attacks achieve, what measures say, which models and limits are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sfumato.attacks import Attack, AttackScenario, Discloses, Outcome
from sfumato.attacks.base import Stage
from sfumato.deadline import split_deadline
from sfumato.errors import NotApplicable
from sfumato.evaluation.advice import Advice, advice
from sfumato.evaluation.battery import battery_of
from sfumato.evaluation.check import judged_for_people
from sfumato.evaluation.column_attribution import column_attribution
from sfumato.evaluation.limits import LimitResult, judge_limits
from sfumato.evaluation.run import attack_to_dict, run_attacks, run_measures
from sfumato.evaluation.ways_out import WayOut, ways_out
from sfumato.masking.pipeline import protect as run_steps
from sfumato.measures.base import Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Limits
from sfumato.release import Judgement, Release, Verdict
from sfumato.release.decisions import ColumnDecision, column_decisions
from sfumato.release.public_folder import promised
from sfumato.release.standing import judge_entries
from sfumato.rng import Rng

_BEFORE_TARGETS = 1000
"""Targets of an attack on the original, which is for comparison only: an interval of ±3 points."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """All results about one release. API, command line, out-of-core files, studies and reports read them from here."""

    manifest: Mapping[str, Any]
    """The public manifest of the release."""
    attacks: tuple[Outcome | NotApplicable, ...] = ()
    attacks_before: tuple[Outcome | NotApplicable, ...] = ()
    """The same attacks on the original without identifiers."""
    measures: tuple[MeasureResult, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    limit_set: Limits = field(default_factory=Limits)

    @property
    def decisions(self) -> tuple[ColumnDecision, ...]:
        """The role of each column, who decided it and why, and whether the column leaves unchanged."""
        return column_decisions(self.manifest)

    @cached_property
    def limits(self) -> tuple[LimitResult, ...]:
        """Every limit of the recipe with its result."""
        return judge_limits(self.limit_set, self.attacks, for_people=judged_for_people(self.verdicts))

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """What to change about attacks that exceed their limit. For the owner of the data only."""
        document = [attack_to_dict(item) for item in self.attacks]
        return advice(document, [limit.to_dict() for limit in self.limits], self.manifest)

    @cached_property
    def ways_out(self) -> tuple[WayOut, ...]:
        """The decisions that remain if only attackers with any columns exceed the limit on risk, or nobody has said
        whose rows they are."""
        return ways_out(
            [attack_to_dict(item) for item in self.attacks],
            [one.to_dict() for one in self.limits],
            self.manifest,
            [verdict.to_dict() for verdict in self.verdicts],
        )

    @property
    def deciding(self) -> tuple[Verdict, ...]:
        """The verdicts that decide whether the release may leave.

        Beside a promise of differential privacy, those that compare with the original do not: whether the release
        appears would tell their outcome. They are for the owner, as are limits on attacks.
        """
        return tuple(verdict for verdict in self.verdicts if not (verdict.exact and promised(self.manifest)))

    @property
    def holds(self) -> bool:
        """Whether every privacy model was checked and holds."""
        return all(verdict.holds for verdict in self.deciding)

    @property
    def unmet(self) -> tuple[str, ...]:
        """Every privacy model that does not hold and every limit that is not met, in words: why a release is refused.

        Limits do not decide about a release that promises differential privacy (see :attr:`deciding`).
        """
        limits = () if promised(self.manifest) else self.limits
        return (
            *(verdict.words for verdict in self.deciding if not verdict.holds),
            *(limit.words for limit in limits if not limit.met),
        )

    @cached_property
    def judgement(self) -> Judgement:
        """The standing of the release: publish, not met, or not judged."""
        verdicts = [verdict.to_dict() for verdict in self.verdicts]
        return judge_entries(verdicts, [limit.to_dict() for limit in self.limits], promised=promised(self.manifest))

    def riskiest_rows(self, count: int = 10) -> tuple[int, ...]:
        """Row numbers (from 1) of the original's records that identity attacks find most reliably.

        Each hit is weighted by its probability, the attack's confidence and its precision, so records found by several
        attacks come before records found by one attack by chance.
        """
        score: dict[int, float] = {}
        for outcome in self.attacks:
            if isinstance(outcome, Outcome) and outcome.discloses is Discloses.IDENTITY and outcome.claims:
                precision = outcome.main.hits / outcome.claims
                weight = precision * outcome.confidence * outcome.hit
                for row, value in zip(outcome.rows[weight > 0], weight[weight > 0], strict=True):
                    score[int(row)] = score.get(int(row), 0.0) + float(value)
        return tuple(row + 1 for row in sorted(score, key=lambda row: (-score[row], row))[:count])

    def to_dict(self) -> dict[str, Any]:
        """The results as plain data, as ``sfumato protect --json`` prints them."""
        return {
            "standing": str(self.judgement.standing),
            "decisions": [decision.to_dict() for decision in self.decisions],
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "attacks_before": [attack_to_dict(item) for item in self.attacks_before],
            "attacks": [attack_to_dict(item) for item in self.attacks],
            "measures": [result.to_dict() for result in self.measures],
            "limits": [limit.to_dict() for limit in self.limits],
            "advice": [item.to_dict() for item in self.advice],
        }


def evaluate(
    scenario: AttackScenario,
    *,
    attacks: Sequence[Attack] = (),
    measures: Sequence[Measure] = (),
    limits: Limits | None = None,
    verdicts: Sequence[Verdict] = (),
    rng: Rng,
    n_targets: int,
    before: bool = False,
    attribute_columns: bool = True,
    progress: Progress = SILENT,
) -> Evaluation:
    """Attack and measure a release.

    The attacks are those of :func:`~sfumato.evaluation.battery.battery_of`. ``before`` also runs them on the original
    without identifiers. ``attribute_columns`` repeats the strongest inexpensive attack beyond each limit without each
    column.

    With a :class:`~sfumato.deadline.Deadline`, the attacks on the release come first and get two thirds of the time.
    What was not reached is returned as stopped, never as a risk of 0.
    """
    limits = limits or Limits()
    chosen = battery_of(scenario, attacks, limits)
    pair = ReleasePair(original=scenario.original, release=scenario.release, lineage=scenario.lineage)
    outcomes = run_attacks(scenario, chosen, rng=rng, n_targets=n_targets, progress=split_deadline(progress, 1.5))
    taken = run_measures(pair, measures, rng=rng, progress=split_deadline(progress, 2))
    if attribute_columns:
        results = judge_limits(limits, outcomes)
        part = split_deadline(progress, 2)
        outcomes = column_attribution(scenario, chosen, outcomes, results, rng=rng, progress=part)
    naive = _unprotected(scenario) if before else None
    return Evaluation(
        manifest=scenario.release.manifest,
        attacks=tuple(outcomes),
        attacks_before=()
        if naive is None
        else tuple(
            run_attacks(
                naive,
                # What links the original is known from its values. There is no masking to learn.
                [attack for attack in chosen if attack.stage is not Stage.LEARNING and not attack.any_columns],
                rng=rng,
                n_targets=min(n_targets, _BEFORE_TARGETS),
                progress=progress,
                competing=False,
            )
        ),
        measures=tuple(taken),
        verdicts=tuple(verdicts),
        limit_set=limits,
    )


def _unprotected(scenario: AttackScenario) -> AttackScenario:
    """The naive release: identifiers removed, nothing else done. A unit that the release shows becomes a number."""
    protected = run_steps(scenario.original, steps=(), rng=Rng(0), order="kept")
    manifest = {"columns": {}, "steps": [step.public() for step in protected.steps], "rows": protected.data.rows}
    table, unit = protected.data.table, scenario.original.schema.unit
    if unit is not None and unit not in table.columns and unit in scenario.release.table.columns:
        number = scenario.original.table.column(unit).rank("dense")
        table = table.with_frame(table.frame.with_columns(number.alias(unit)))
    return AttackScenario(
        original=scenario.original,
        release=Release(table=table, manifest=manifest),
        lineage=protected.lineage,
        control=scenario.control,
        folds=tuple(_unprotected(fold) for fold in scenario.folds),
        why_no_control=scenario.why_no_control,
    )
