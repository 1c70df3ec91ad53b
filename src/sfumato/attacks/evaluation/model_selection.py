"""Selection of the strongest of several attacks on separate targets.

Which model discloses most depends on the release. Reporting the best of several results would count luck as risk. So
the strongest attack is selected on a quarter of the targets (at most 1,000) and evaluated on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Attack, Guesses
from sfumato.deadline import split_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import Progress

Rows = npt.NDArray[np.int64]

_SHARE = 4
_MOST = 1000
_REFINED = 4
"""Number of alternatives of which the refinements are tried: the strongest that have any."""


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
) -> tuple[Attack, Rows, dict[str, object]]:
    """The alternative that is correct most often on the first targets, the remaining targets, and the results.

    An alternative that does not apply or runs out of time is dropped. With too few targets the first one is selected.
    """
    alternatives = attack.alternatives
    count = min(selection_targets(attack, n_targets), len(targets) // _SHARE)
    if len(alternatives) < 2:
        return attack, targets[:n_targets], {}
    first, rest = targets[:count], targets[count:][:n_targets]
    shares: dict[str, float] = {}

    def tried(some: Sequence[Attack], later: int) -> list[tuple[float, Attack]]:
        """The alternatives that apply, in descending order. What comes afterwards gets as much time as each of them."""
        results = []
        for number, alternative in enumerate(some if count else ()):
            with suppress(NotApplicable):
                guesses = trial(alternative, first, split_deadline(progress, later + len(some) - number))
                share = float(correct(guesses, first[: len(guesses.made)]).mean())
                shares[alternative.setting] = share
                results.append((share, alternative))
                if share >= 1:  # none is stronger
                    break
        return sorted(results, key=lambda pair: -pair[0])

    ranked = tried(alternatives, 1 + _REFINED)
    promising = [alternative for _, alternative in ranked if alternative.refinements and ranked[0][0] < 1]
    refined = [variant for alternative in promising[:_REFINED] for variant in alternative.refinements]
    best = max([*ranked, *tried(refined, 1)], key=lambda pair: pair[0], default=(0.0, alternatives[0]))[1]
    return best, rest, {"picked": best.setting, "picked on": len(first), "shares": shares}
