"""Evaluation of an adversary who may know any of the released columns.

The evaluation, not the attack, searches for the columns, because it looks for the worst adversary: it counts with the
row correspondence how many people each set of columns finds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.attacks.base import Attack, Guesses
from sfumato.attacks.column_codes import CodedColumn, CodedPeople, code_columns, common_columns
from sfumato.attacks.column_search import ColumnSet, class_sizes, search_columns
from sfumato.attacks.evaluation.identity import evaluate_identity
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.trial import outcome_of
from sfumato.attacks.scenario import AttackScenario, Targets
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["evaluate_any_columns"]

_SELECTION = 400
"""Targets on which the stronger of two linkage methods is selected."""


def evaluate_any_columns(
    attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int
) -> Outcome:
    """Find the released columns that identify most people, and attack with them.

    Where looking up the values is the attack, the expected number of people found is computed over all people. Else the
    columns are linked by the methods that the attack names, on ``n_targets`` targets.
    """
    people = _people(attack, scenario, progress)
    detail: dict[str, Any] = {}
    if not people.columns:
        columns: tuple[CodedColumn, ...] = ()
        detail["searched"] = "no released column distinguishes rows"
    elif getattr(attack, "most", None) is None:
        columns = people.columns
        detail["searched"] = f"all {len(columns)} columns that distinguish rows, together"
    else:
        search = search_columns(people, attack.most, progress)  # type: ignore[attr-defined]
        columns = tuple(column for column in people.columns if column.name in search.best.columns)
        detail |= {"searched": search.searched, "sets": [_entry(found) for found in (search.best, *search.others)]}
    names = tuple(column.name for column in columns)
    if all(column.exact for column in columns):
        outcome = _computed(attack, scenario, people, columns)
    else:
        outcome = _linked(attack, scenario, columns, rng, progress, n_targets)
    kept = {key: value for key, value in outcome.detail.items() if key not in ("columns", "left out")}
    return replace(
        outcome,
        attack=attack.part_name(),
        knows=names,
        any_columns=True,
        parameters=attack.to_dict(),
        setting=attack.setting,
        threat=attack.summary(),
        detail={**kept, **detail},
    )


def _people(attack: Attack, scenario: AttackScenario, progress: Progress) -> CodedPeople:
    if scenario.synthetic:
        raise NotApplicable(
            "All rows of the release are synthetic, so none belongs to a person.",
            fix="Attack a sensitive column (`model-inference`), or membership with people who are not in the data "
            "(`control`).",
        )
    if scenario.release_row is None and not scenario.truthful:
        raise NotApplicable(
            "Identity risk needs the row correspondence between original and release.",
            fix="Pass the row map (`lineage`) that was written with the release, state that its rows are in the order "
            "of the original (`aligned`), or name a column that identifies rows in both (`key`).",
        )
    names = common_columns(scenario)
    if attack.knows is not None:
        for table in (scenario.original.table, scenario.release.table):
            table.require(attack.knows)
        names = attack.knows
    if not names:
        raise NotApplicable("Original and release have no column in common.", fix="Check the names of the columns.")
    people = code_columns(scenario, names, progress)
    if len(people.rows) == 0:
        raise NotApplicable("None of the targets is in the release.")
    return people


def _entry(found: ColumnSet) -> dict[str, Any]:
    return {"columns": list(found.columns), "share": round(found.share, 4)}


def _computed(
    attack: Attack, scenario: AttackScenario, people: CodedPeople, columns: tuple[CodedColumn, ...]
) -> Outcome:
    """The expected outcome over all people: one over the number of rows that look alike."""
    count, size = len(people.rows), people.released_rows
    sizes = class_sizes(people, columns) if columns else np.full(count, size, dtype=np.int64)
    chance = np.where(sizes > 0, 1 / np.maximum(sizes, 1), 0.0)
    guesses = Guesses(made=sizes > 0, confidence=chance)
    targets = Targets(frame=scenario.original.table.frame.clear(), rows=people.rows, knows=())
    truth = "row map" if scenario.lineage is not None else "aligned rows"
    truth = "size of matching class" if people.own is None else truth
    baseline = Arm(hits=count / size, trials=count)
    outcome = outcome_of(attack, targets, people.rows, guesses, chance, baseline, truth=truth, planned=count)
    return replace(outcome, computed=True)


def _linked(
    attack: Attack,
    scenario: AttackScenario,
    columns: tuple[CodedColumn, ...],
    rng: Rng,
    progress: Progress,
    n_targets: int,
) -> Outcome:
    """The outcome of the stronger linkage method, selected on a few targets."""
    inside = replace(scenario, auxiliary=None, knows=None)
    known = [column.name for column in columns]
    linkers = attack.linkers(known, [column.name for column in columns if column.true])  # type: ignore[attr-defined]
    scores: list[tuple[float, int]] = []
    refusal = None
    for number, linker in enumerate(linkers if len(linkers) > 1 else ()):
        try:
            trial = evaluate_identity(linker, inside, rng.child("selection"), progress, min(_SELECTION, n_targets))
            scores.append((-trial.main.rate, number))
        except OutOfTime:
            raise
        except NotApplicable as why:
            refusal = why
    if len(linkers) > 1 and not scores:
        assert refusal is not None
        raise refusal
    chosen = linkers[min(scores)[1]] if scores else linkers[0]
    outcome = evaluate_identity(chosen, inside, rng, progress, n_targets)
    return replace(outcome, detail={**outcome.detail, "linked by": chosen.part_name()})
