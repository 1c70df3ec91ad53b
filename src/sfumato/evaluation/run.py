"""Run attacks and measures on a release, one after the other, each with a random stream of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sfumato.attacks import Attack, AttackScenario, Outcome, evaluate_attack
from sfumato.attacks.evaluation.loop import AttackRun, Results, run_loop
from sfumato.attacks.shared_simulations import shared_simulations
from sfumato.deadline import Deadline, check_deadline, quiet
from sfumato.errors import NotApplicable, OutOfMemory, OutOfTime
from sfumato.evaluation.limits import judged_risk, reference_rate
from sfumato.measures.base import Measure, MeasureResult, ReleasePair
from sfumato.memory import memory_ran_out, require_memory
from sfumato.progress import Progress
from sfumato.rng import Rng

CELL_BYTES = 100
"""Memory per cell of both tables that any attack or measure needs: codes, sorted copies and text of the values."""
_TOGETHER = 2_000_000
"""Cells of both tables up to which attacks run beside each other. In larger ones each attack uses all cores itself, and
two would need twice the memory."""


def run_attacks(
    scenario: AttackScenario,
    attacks: Iterable[Attack],
    *,
    rng: Rng,
    n_targets: int,
    progress: Progress,
    streams: Sequence[int] | None = None,
    competing: bool = True,
    enough: Callable[[Results], bool] | None = None,
) -> Results:
    """Run attacks on a table in order (:func:`~sfumato.attacks.evaluation.loop.run_loop`), one result for each.

    ``streams`` are the numbers of the attacks' random streams, their positions if left out. ``competing`` says whether
    attacks in which targets compete for rows get more targets, as in :func:`~sfumato.attacks.evaluate_attack`.
    """

    def prepared(number: int, attack: Attack, setting: str) -> AttackRun:
        def run(own: Progress) -> Iterator[Outcome]:
            _require_rows(scenario.original.rows)
            require_memory(CELL_BYTES * scenario.cells, f"`{attack.part_name()}`")
            outcome = evaluate_attack(
                attack,
                scenario,
                rng=rng.child("attacks", number),
                progress=own,
                n_targets=n_targets,
                competing=competing,
            )
            yield replace(outcome, setting=setting)

        return AttackRun(
            attack=attack.part_name(),
            discloses=attack.discloses,
            setting=setting,
            any_columns=attack.any_columns,
            run=run,
        )

    queue = list(attacks)
    numbers = streams or range(len(queue))
    runs = [prepared(*one) for one in zip(numbers, queue, distinct_settings(queue), strict=True)]
    with shared_simulations():
        return run_loop(runs, progress=progress, together=scenario.cells <= _TOGETHER, enough=enough)


def distinct_settings(attacks: Sequence[Attack]) -> list[str]:
    """What distinguishes each attack in a list of results: its setting, and the parameters in which it differs from
    attacks with the same name and setting.

    >>> from sfumato.attacks import DistanceLinkage, Linkage
    >>> distinct_settings([Linkage(), DistanceLinkage(), DistanceLinkage(metric="mahalanobis")])
    ['', 'metric euclidean', 'metric mahalanobis']
    """
    parameters = [attack.to_dict() for attack in attacks]

    def setting(number: int) -> str:
        own = attacks[number]
        alike = [
            parameters[n]
            for n, other in enumerate(attacks)
            if type(other) is type(own) and other.setting == own.setting
        ]
        keys = [
            key for key in type(own).model_fields if any(one.get(key) != parameters[number].get(key) for one in alike)
        ]
        # The secret has a place of its own in every list.
        words = [f"{key} {_words(parameters[number].get(key))}" for key in keys if key != "secret"]
        return ", ".join(filter(None, (own.setting, *words)))

    return [setting(number) for number in range(len(attacks))]


def _words(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else "default" if value is None else str(value)


def run_measures(
    pair: ReleasePair, measures: Iterable[Measure], *, rng: Rng, progress: Progress
) -> list[MeasureResult]:
    """Run measures in order. A measure that does not apply, or was not reached in time, has a reason and no value."""

    def prepared(number: int, measure: Measure) -> tuple[str, Callable[[], MeasureResult]]:
        name = measure.part_name()

        def run() -> MeasureResult:
            _require_rows(pair.original.rows)
            require_memory(CELL_BYTES * pair.cells, f"`{name}`")
            return measure.compute(pair, rng.child("measures", number, name), quiet(progress))

        return name, run

    return measured([prepared(*item) for item in enumerate(measures)], progress)


def measured(runs: Sequence[tuple[str, Callable[[], MeasureResult]]], progress: Progress) -> list[MeasureResult]:
    """Run measures of any kind of release in order, each with its name."""
    results: list[MeasureResult] = []
    listener = progress.listener if isinstance(progress, Deadline) else progress
    with listener.task("measuring", len(runs)) as tick:
        for name, run in runs:
            try:
                check_deadline(progress)
                results.append(run())
            except (NotApplicable, MemoryError) as problem:
                refusal = problem if isinstance(problem, NotApplicable) else memory_ran_out()
                results.append(MeasureResult(measure=name, value=None, reason=str(refusal)))
            tick(1)
    return results


def _require_rows(rows: int) -> None:
    """A table without rows is no failure: beside a differentially private release, that it has none is not told."""
    if not rows:
        raise NotApplicable("The original has no rows.")


def attack_to_dict(item: Outcome | NotApplicable) -> dict[str, Any]:
    """One entry of the ``attacks`` list; ``judged`` is what limits are compared with, ``reference`` what it deducts."""
    if isinstance(item, Outcome):
        return {**item.to_dict(), "reference": reference_rate(item), "judged": judged_risk(item)}
    setting = item.facts.get("setting")
    return {
        "attack": item.facts.get("attack"),
        **({"setting": setting} if setting else {}),
        "discloses": item.facts.get("discloses"),
        **({"any_columns": True} if item.facts.get("any_columns") else {}),
        "risk": None,
        **({"stopped": True} if isinstance(item, (OutOfTime, OutOfMemory)) else {}),
        "reason": str(item),
    }
