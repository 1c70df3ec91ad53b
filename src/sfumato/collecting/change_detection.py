"""Change detection: an observer of all of a person's reports tells whether and when their answer changed.

A memoized report repeats until the answer changes, so that a new report gives the change away with certainty, although
neither answer is known. Fresh reports hide a change behind their noise, and lose the answer itself by averaging
(:mod:`~sfumato.collecting.longitudinal`): neither is safe for answers that change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.errors import BadParameter
from sfumato.rng import Rng


@dataclass(frozen=True, kw_only=True)
class ChangeDetection:
    """How often an observer notices a change, and how often they see one where there is none."""

    reports: int
    detected: float
    """Share of the people whose answer changed of whom the observer says so."""
    false_alarms: float
    """Share of the people whose answer stayed the same of whom the observer says that it changed (control arm)."""
    right_day: float
    """Share of the people whose answer changed of whom the observer also names the right report."""

    @property
    def advantage(self) -> float:
        """Detected minus false alarms: 0 for an observer who learns nothing, 1 for one who is always right."""
        return self.detected - self.false_alarms


def change_detection_attack(
    protocol: FrequencyProtocol,
    *,
    reports: int,
    memoized: bool,
    rng: Rng,
    people: int = 1000,
    false_alarms: float = 0.05,
) -> ChangeDetection:
    """Half of the people change their answer once, at a random report; the observer sees all reports of everybody.

    The observer uses the likelihood ratio of the best change to no change; the threshold gives ``false_alarms`` among
    other people who do not change. Of memoized reports they see directly whether one differs from the one before.
    """
    if reports < 2 or people < 2 or protocol.values < 2 or not 0 < false_alarms < 1:
        raise BadParameter("A change needs at least two reports, two people, two values and a rate of false alarms.")
    draw = rng.child("changes").generator
    before = draw.integers(0, protocol.values, people)
    after = (before + draw.integers(1, protocol.values, people)) % protocol.values
    day = draw.integers(1, reports, people)
    if memoized:
        changed = _differs(protocol.randomize(before), protocol.randomize(after))
        # Without a change the device repeats its report: there is nothing to see, and no false alarm.
        share = float(changed.mean())
        return ChangeDetection(reports=reports, detected=share, false_alarms=0.0, right_day=share)
    scores, days = _change_scores(protocol, np.where(np.arange(reports)[:, None] < day, before, after))
    still, _ = _change_scores(protocol, np.tile(before, (reports, 1)))
    calibration, _ = _change_scores(protocol, np.tile(after, (reports, 1)))
    threshold = float(np.quantile(calibration, 1 - false_alarms))
    seen = scores > threshold
    return ChangeDetection(
        reports=reports,
        detected=float(seen.mean()),
        false_alarms=float((still > threshold).mean()),
        right_day=float((seen & (days == day)).mean()),
    )


def _differs(one: npt.NDArray[np.generic], other: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """Whether two reports of a person differ, whatever a report consists of."""
    different = np.asarray(one != other)
    found: npt.NDArray[np.bool_] = np.asarray(different.reshape(len(different), -1).any(axis=1))
    return found


def _change_scores(protocol: FrequencyProtocol, answers: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """For each person (column) the log-likelihood ratio of the best change to no change, and the report it is at."""
    rate = np.log(float(protocol.ratio()))
    support = np.stack([protocol.supported(protocol.randomize(row)) for row in answers]) * rate
    until = np.cumsum(support, axis=0)
    whole = until[-1]
    best = until[:-1].max(axis=2) + (whole - until[:-1]).max(axis=2)
    return best.max(axis=0) - whole.max(axis=1), best.argmax(axis=0) + 1
