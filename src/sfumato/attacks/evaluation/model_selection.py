"""The strongest of several intruders: found on some people, counted on others.

Which of several models gives away most depends on the release, and no intruder of ours should be weak for want of the
right one. To report the best of three as it turned out would count luck as risk; so a quarter of the people (at most
1,000) show which is best, and the others, whom nobody has looked at, how good it is.
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

__all__ = ["for_picking", "strongest"]

Rows = npt.NDArray[np.int64]

_SHARE = 4
_MOST = 1000


def for_picking(attack: Attack, tries: int) -> int:
    """How many people are needed besides those on whom the attack is counted; none when there is nothing to pick."""
    return min(_MOST, -(-tries // _SHARE)) if len(attack.rivals) > 1 else 0


def strongest(
    attack: Attack,
    people: Rows,
    tries: int,
    trial: Callable[[Attack, Rows, Progress], Guesses],
    right: Callable[[Guesses, Rows], npt.NDArray[np.bool_]],
    progress: Progress,
) -> tuple[Attack, Rows, dict[str, Any]]:
    """The rival that was right most often on the first of these people, the people left, and the account of it.

    A rival that does not apply, or had no time, is out. Where there are too few people to pick on, it is the first.
    """
    count = min(for_picking(attack, tries), len(people) // _SHARE)
    if len(attack.rivals) < 2:
        return attack, people[:tries], {}
    shown, left = people[:count], people[count:][:tries]
    shares: dict[str, float] = {}
    best, top = attack.rivals[0], -1.0
    for number, rival in enumerate(attack.rivals if count else ()):
        # As much is left for counting as each rival may take.
        with suppress(NotApplicable):
            guesses = trial(rival, shown, split_deadline(progress, 1 + len(attack.rivals) - number))
            shares[rival.setting] = found = float(right(guesses, shown[: len(guesses.made)]).mean())
            if found > top:
                best, top = rival, found
    return best, left, {"picked": best.setting, "picked on": len(shown), "shares": shares}
