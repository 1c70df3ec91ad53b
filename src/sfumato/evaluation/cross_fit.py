"""Cross-fitting: a control group for a release, made by applying its recipe without some of the people.

Attribute and membership risk need people who are not in the release and are like those who are. Suppressed rows are
not: they were suppressed because they are unlike the others. So a random fifth of the people is held out, the recipe is
applied to the rest, and the same with another fifth. A fold that large costs some precision; a half would leave too
little of the data and make the release of a fold less accurate than the release itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from sfumato.attacks import AttackScenario
from sfumato.data.row_codes import value_codes
from sfumato.dataset import Data, Role
from sfumato.deadline import seconds_left
from sfumato.errors import OutOfTime, SfumatoError
from sfumato.progress import Progress
from sfumato.rng import Rng

_FOLDS = 2
_HELD_OUT = 5
"""One of so many people is held out."""
_MIN_ROWS = 200
_MAX_SECONDS = 60.0
"""Recipes that took longer than this are not applied again."""


def folds_of(data: Data, rng: Rng) -> Iterator[tuple[Data, Data]]:
    """The data without a random fifth of the people, and this fifth; then the same with another fifth.

    Rows of one household or privacy unit stay together.
    """
    schema = data.schema
    groups = [name for name in (*schema.names(Role.HOUSEHOLD), schema.unit) if name and name in data.table.columns]
    unit = value_codes(data.table.column(groups[0]))[0] if groups else np.arange(data.rows)
    count = int(unit.max(initial=-1)) + 1
    order = rng.child("folds").generator.permutation(count)
    for number in range(_FOLDS):
        held_out = np.zeros(count, dtype=np.bool_)
        held_out[order[number * count // _HELD_OUT : (number + 1) * count // _HELD_OUT]] = True
        kept, rest = (data.with_frame(data.table.frame.filter(side)) for side in (~held_out[unit], held_out[unit]))
        yield kept, rest


def with_folds(
    scenario: AttackScenario,
    release: Callable[[Data, Rng], AttackScenario],
    *,
    rng: Rng,
    progress: Progress,
    seconds: float,
) -> AttackScenario:
    """The scenario with the releases of the folds of its original.

    ``release`` makes the release of a data set; it took ``seconds`` on the whole one. Folds are left out, with the
    reason, if there are too few rows or no time, or if the recipe refuses part of the data.
    """
    own = rng.child("cross-fit")
    if scenario.original.rows < _MIN_ROWS:
        return replace(scenario, why_no_control=f"No control group: the data has fewer than {_MIN_ROWS} rows.")
    if seconds > seconds_left(progress, 4 * _MAX_SECONDS) / 4:
        return replace(scenario, why_no_control="No control group: the recipe takes too long to be applied again.")
    try:
        folds = tuple(
            replace(release(kept, own.child(number)), control=rest.table)
            for number, (kept, rest) in enumerate(folds_of(scenario.original, own))
        )
    except OutOfTime:
        return replace(scenario, why_no_control="No control group: time was up before the recipe was applied again.")
    except SfumatoError as refusal:
        return replace(
            scenario, why_no_control=f"No control group: the recipe refuses part of the data ({refusal.code})."
        )
    return replace(scenario, folds=folds)
