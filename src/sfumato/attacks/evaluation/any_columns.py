"""Evaluation of an adversary who may know any of the released columns.

The evaluation, not the attack, searches for the columns, because it looks for the worst adversary: it counts with the
row correspondence how many people each set of columns finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Attack, Guesses
from sfumato.attacks.column_codes import CodedPeople, ColumnCodes, code_columns, common_columns, consistent_columns
from sfumato.attacks.column_search import ColumnSet, class_sizes, search_columns
from sfumato.attacks.evaluation.identity import correspondence_missing, evaluate_identity
from sfumato.attacks.evaluation.outcome import Outcome
from sfumato.attacks.evaluation.trial import outcome_of, random_row
from sfumato.attacks.scenario import AttackScenario, Targets
from sfumato.data.row_codes import number_rows
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import Progress
from sfumato.rng import Rng

Rows = npt.NDArray[np.int64]

_SELECTION = 400
"""Targets on which the strongest of several linkage methods is selected."""
_COMPETING = 2000
"""Up to this many people, methods in which targets compete for rows are selected with all of them."""
_MAX_PAIRS = 200_000_000
"""Pairs of target and row that an assignment compares at most."""


def evaluate_any_columns(
    attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int
) -> Outcome:
    """Find the released columns that identify most people, and attack with them.

    Where looking up the values is the attack, the expected number of people found is computed over all people. Else the
    columns are linked by the methods that the attack names, on ``n_targets`` targets.
    """
    people = _people(attack, scenario, progress)
    detail: dict[str, object] = {}
    options: list[tuple[ColumnCodes, ...]]
    if not people.columns:
        options, detail["searched"] = [()], "no released column distinguishes rows"
    elif getattr(attack, "most", "all") == "all":
        options = [people.columns]
        detail["searched"] = f"all {len(people.columns)} columns that distinguish rows, together"
    else:
        search = search_columns(people, attack.most, progress)  # type: ignore[attr-defined]
        options = [_named(people, found) for found in (search.best, *search.of_size)]
        detail |= {"searched": search.searched, "sets": [_entry(found) for found in (search.best, *search.others)]}
    if all(column.exact for column in options[0]):
        columns, outcome = options[0], _computed(attack, scenario, people, options[0])
    else:
        if all(column.true for column in options[0]):
            options = options[:1]
        columns, outcome = _linked(attack, scenario, list(dict.fromkeys(options)), rng, progress, n_targets)
    kept = {key: value for key, value in outcome.detail.items() if key not in ("columns", "left out")}
    return replace(
        outcome,
        attack=attack.part_name(),
        knows=tuple(column.name for column in columns),
        any_columns=True,
        parameters={name: value for name, value in attack.to_dict().items() if name != "knows"},
        setting=attack.setting,
        threat=attack.summary(),
        detail={**kept, **detail},
    )


def _named(people: CodedPeople, found: ColumnSet) -> tuple[ColumnCodes, ...]:
    return tuple(column for column in people.columns if column.name in found.columns)


def _people(attack: Attack, scenario: AttackScenario, progress: Progress) -> CodedPeople:
    if scenario.synthetic:
        raise NotApplicable(
            "All rows of the release are synthetic, so none belongs to a person.",
            fix="Attack a sensitive column (`model-inference`), or membership with people who are not in the data "
            "(`control`).",
        )
    names = common_columns(scenario)
    if attack.knows is not None:
        for table in (scenario.original.table, scenario.release.table):
            table.require(attack.knows)
        names = attack.knows
    if not names:
        raise NotApplicable("Original and release have no column in common.", fix="Check the names of the columns.")
    if scenario.release_row is not None or scenario.truthful:
        people = code_columns(scenario, names, progress)
    else:
        found = consistent_columns(scenario, names, progress)
        if found is None:
            raise correspondence_missing()
        people = found
    if len(people.rows) == 0:
        raise NotApplicable("None of the targets is in the release.")
    return people


def _entry(found: ColumnSet) -> dict[str, object]:
    return {"columns": list(found.columns), "share": round(found.share, 4)}


def _computed(
    attack: Attack, scenario: AttackScenario, people: CodedPeople, columns: tuple[ColumnCodes, ...]
) -> Outcome:
    """The expected outcome over all people: one over the number of rows that look alike."""
    count, size = len(people.rows), people.released_rows
    sizes = class_sizes(people, columns) if columns else np.full(count, size, dtype=np.int64)
    chance = np.where(sizes > 0, 1 / np.maximum(sizes, 1), 0.0)
    person = None if scenario.people is None else scenario.people[people.rows]
    if person is not None:
        chance *= _own_rows(people, columns, person)
    guesses = Guesses(made=sizes > 0, confidence=chance)
    targets = Targets(frame=scenario.original.table.frame.clear(), rows=people.rows, knows=())
    truth = "row map" if scenario.lineage is not None else "aligned rows"
    truth = "size of matching class" if people.own is None else truth
    baseline = random_row(count, size, person)
    planned = count if person is None else len(np.unique(person))
    outcome = outcome_of(
        attack, targets, people.rows, guesses, chance, baseline, truth=truth, planned=planned, people=person
    )
    return replace(outcome, computed=True)


def _own_rows(people: CodedPeople, columns: tuple[ColumnCodes, ...], person: Rows) -> Rows:
    """For each row the number of rows of its person that look the same in these columns."""
    shown = [column.known if people.own is None else column.released[people.own] for column in columns]
    number, count = number_rows([person, *(np.maximum(codes, 0) for codes in shown)])
    return np.bincount(number, minlength=count)[number]


def _linked(
    attack: Attack,
    scenario: AttackScenario,
    options: Sequence[tuple[ColumnCodes, ...]],
    rng: Rng,
    progress: Progress,
    n_targets: int,
) -> tuple[tuple[ColumnCodes, ...], Outcome]:
    """The strongest of several sets of columns and linkage methods, selected on a few targets, and its outcome."""
    inside = replace(scenario, auxiliary=None, knows=None)
    trials = [
        (columns, linker)
        for columns in options
        for linker in attack.linkers(  # type: ignore[attr-defined]
            [column.name for column in columns],
            [column.name for column in columns if column.true],
            bool(scenario.steps),
        )
    ]
    chosen = trials[0]
    if len(trials) > 1:
        rates = [_rate(linker, inside, rng, progress, n_targets) for _, linker in trials]
        chosen = trials[int(np.argmax(rates))]
    outcome = evaluate_identity(chosen[1], inside, rng, progress, _targets(chosen[1], inside, n_targets))
    return chosen[0], replace(outcome, detail={**outcome.detail, "linked by": _name(chosen[1])})


def _name(linker: Attack) -> str:
    return f"{linker.part_name()}, {linker.setting}" if linker.setting else linker.part_name()


def _targets(linker: Attack, scenario: AttackScenario, n_targets: int) -> int:
    """More targets for linkers in which they compete for rows, as many as all pairs can be compared of."""
    affordable = _MAX_PAIRS // max(1, scenario.release.table.rows)
    return max(n_targets, min(linker.min_targets, affordable))


def _rate(linker: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int) -> float:
    """What a linker finds among a few targets; among all of them if they compete for rows and are not too many."""
    few = min(_SELECTION, n_targets)
    some = _COMPETING if linker.min_targets and scenario.original.rows <= _COMPETING else few
    try:
        return evaluate_identity(linker, scenario, rng.child("selection"), progress, some).main.rate
    except OutOfTime:
        raise
    except NotApplicable:
        return -1.0
