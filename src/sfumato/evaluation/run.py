"""Run attacks and measures on a release, one after the other, each with a random stream of its own."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Any

from sfumato.attacks import Attack, AttackScenario, Outcome, evaluate_attack
from sfumato.attacks.shared_simulations import shared_simulations
from sfumato.deadline import Deadline, check_deadline, quiet, split_deadline
from sfumato.errors import NotApplicable, OutOfMemory, OutOfTime
from sfumato.evaluation.limits import judged_risk, reference_rate
from sfumato.measures.base import Measure, MeasureResult, ReleasePair
from sfumato.memory import require_memory
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.threads import map_tasks

__all__ = ["attack_to_dict", "run_attacks", "run_measures"]


_CELL_BYTES = 100
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
    first: int = 0,
    competing: bool = True,
) -> list[Outcome | NotApplicable]:
    """Run attacks in order. An attack that does not apply is returned as its refusal, never as a risk of 0.

    With a :class:`~sfumato.deadline.Deadline`, each attack gets a third of the time that is left, the last two more;
    unused time goes to the next attack. An attack without a result in time is returned as
    :class:`~sfumato.errors.OutOfTime`. ``first`` is the number of the random stream of the first attack.
    ``competing`` is that of :func:`~sfumato.attacks.evaluate_attack`.
    """
    queue = list(enumerate(attacks))

    def run(item: tuple[int, Attack], own: Progress) -> Outcome | NotApplicable:
        number, attack = item
        try:
            _require_rows(scenario.original.rows)
            require_memory(_CELL_BYTES * scenario.cells, f"`{attack.part_name()}`")
            return evaluate_attack(
                attack,
                scenario,
                rng=rng.child("attacks", first + number),
                progress=own,
                n_targets=n_targets,
                competing=competing,
            )
        except (NotApplicable, MemoryError) as problem:
            refusal = problem if isinstance(problem, NotApplicable) else _memory_ran_out()
            refusal.facts |= {
                "attack": attack.part_name(),
                "discloses": str(attack.discloses),
                "setting": attack.setting,
                "any_columns": attack.any_columns,
            }
            return refusal

    listener = progress.listener if isinstance(progress, Deadline) else progress
    results: Generator[Outcome | NotApplicable, None, None]
    if isinstance(progress, Deadline) or scenario.cells > _TOGETHER:
        results = (run(item, split_deadline(progress, min(3, len(queue) - item[0]))) for item in queue)
    else:
        results = map_tasks(lambda item: run(item, SILENT), queue)
    outcomes = []
    with shared_simulations(), closing(results), listener.task("attacking", len(queue)) as tick:
        for outcome in results:
            outcomes.append(outcome)
            tick(1)
    return outcomes


def run_measures(
    pair: ReleasePair, measures: Iterable[Measure], *, rng: Rng, progress: Progress
) -> list[MeasureResult]:
    """Run measures in order. A measure that does not apply, or was not reached in time, has a reason and no value."""
    queue = list(measures)
    results: list[MeasureResult] = []
    listener = progress.listener if isinstance(progress, Deadline) else progress
    with listener.task("measuring", len(queue)) as tick:
        for number, measure in enumerate(queue):
            name = measure.part_name()
            try:
                check_deadline(progress)
                _require_rows(pair.original.rows)
                require_memory(_CELL_BYTES * pair.cells, f"`{name}`")
                results.append(measure.of(pair, rng.child("measures", number, name), quiet(progress)))
            except (NotApplicable, MemoryError) as problem:
                refusal = problem if isinstance(problem, NotApplicable) else _memory_ran_out()
                results.append(MeasureResult(measure=name, value=None, reason=str(refusal)))
            tick(1)
    return results


def _require_rows(rows: int) -> None:
    """A table without rows is no failure: beside a differentially private release, that it has none is not told."""
    if not rows:
        raise NotApplicable("The original has no rows.")


def _memory_ran_out() -> OutOfMemory:
    return OutOfMemory(
        "Not measured: memory ran out.", fix="Use a machine with more memory, fewer targets, or a sample of the rows."
    )


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
