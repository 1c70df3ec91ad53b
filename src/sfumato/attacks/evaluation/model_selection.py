"""Selection of the strongest of several attacks on separate targets.

Which model discloses most depends on the release. Reporting the best of several results would count luck as risk. So
the strongest attack is selected on a quarter of the targets (at most 1,000) and evaluated on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Attack, Guesses
from sfumato.deadline import split_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import Progress

__all__ = ["selection_targets", "strongest"]

Rows = npt.NDArray[np.int64]

_SHARE = 4
_MOST = 1000


def selection_targets(attack: Attack, n_targets: int) -> int:
    """The number of additional targets for the selection; zero if there is nothing to select."""
    return min(_MOST, -(-n_targets // _SHARE)) if len(attack.alternatives) > 1 else 0


def strongest(
    attack: Attack,
    targets: Rows,
    n_targets: int,
    trial: Callable[[Attack, Rows, Progress], Guesses],
    correct: Callable[[Guesses, Rows], npt.NDArray[np.bool_] | npt.NDArray[np.float64]],
    progress: Progress,
) -> tuple[Attack, Rows, dict[str, Any]]:
    """The alternative that is correct most often on the first targets, the remaining targets, and the results.

    An alternative that does not apply or runs out of time is dropped. With too few targets the first one is selected.
    """
    alternatives = attack.alternatives
    count = min(selection_targets(attack, n_targets), len(targets) // _SHARE)
    if len(alternatives) < 2:
        return attack, targets[:n_targets], {}
    first, rest = targets[:count], targets[count:][:n_targets]
    shares: dict[str, float] = {}
    best, top = alternatives[0], -1.0
    for number, alternative in enumerate(alternatives if count else ()):
        # The evaluation afterwards gets as much time as each alternative.
        with suppress(NotApplicable):
            guesses = trial(alternative, first, split_deadline(progress, 1 + len(alternatives) - number))
            shares[alternative.setting] = share = float(correct(guesses, first[: len(guesses.made)]).mean())
            if share > top:
                best, top = alternative, share
    return best, rest, {"picked": best.setting, "picked on": len(first), "shares": shares}
