"""Loop over attacks: each gets its share of the time, and a refusal is a result.

Attacks on tables, graphs, models and query services are run here, so that time, memory and refusals mean the same
everywhere. What a run needs is given by :class:`AttackRun`; the kind of view that an attack gets is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from sfumato.attacks.base import Discloses
from sfumato.attacks.evaluation.outcome import Outcome
from sfumato.deadline import Deadline, check_deadline, split_deadline
from sfumato.errors import NotApplicable
from sfumato.memory import memory_ran_out
from sfumato.progress import SILENT, Progress
from sfumato.threads import map_tasks

Results = list[Outcome | NotApplicable]


@dataclass(frozen=True, kw_only=True)
class AttackRun:
    """One attack that is to be run, and what is said of it if it has no result."""

    attack: str
    discloses: Discloses
    run: Callable[[Progress], Iterable[Outcome]]
    """Gives the outcomes one after the other; those before a refusal are kept."""
    setting: str = ""
    any_columns: bool = False

    def results(self, progress: Progress) -> Results:
        """The outcomes. An attack that does not apply gives its refusal, never a risk of 0."""
        results: Results = []
        try:
            check_deadline(progress)
            for outcome in self.run(progress):
                results.append(outcome)
        except (NotApplicable, MemoryError) as problem:
            refusal = problem if isinstance(problem, NotApplicable) else memory_ran_out()
            refusal.facts |= {
                "attack": self.attack,
                "discloses": str(self.discloses),
                "setting": self.setting,
                "any_columns": self.any_columns,
            }
            results.append(refusal)
        return results


def run_loop(
    runs: Sequence[AttackRun],
    *,
    progress: Progress,
    together: bool = False,
    enough: Callable[[Results], bool] | None = None,
) -> Results:
    """Run attacks in order.

    With a :class:`~sfumato.deadline.Deadline`, each attack gets a third of the time that is left, the last two more;
    unused time goes to the next attack. An attack without a result in time is returned as
    :class:`~sfumato.errors.OutOfTime`. ``together`` allows attacks beside each other where there is no deadline.
    Once ``enough`` says so of the results, the remaining attacks are not run.
    """
    listener = progress.listener if isinstance(progress, Deadline) else progress
    found: Generator[Results, None, None]
    if together and enough is None and not isinstance(progress, Deadline):
        found = map_tasks(lambda run: run.results(SILENT), runs)
    else:
        shares = (split_deadline(progress, min(3, len(runs) - number)) for number in range(len(runs)))
        found = (run.results(share) for run, share in zip(runs, shares, strict=True))
    results: Results = []
    with closing(found), listener.task("attacking", len(runs)) as tick:
        while enough is None or not enough(results):
            more = next(found, None)
            if more is None:
                break
            results += more
            tick(1)
    return results
