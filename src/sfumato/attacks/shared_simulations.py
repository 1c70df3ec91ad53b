"""Simulations of a masking that several attacks share.

Every attack by likelihood masks the same file with the published steps hundreds of times. Within
:func:`shared_simulations` each of these rounds is run once. The stream of a simulation depends on the file and the
steps alone, so an attack gives the same result whether or not another one ran before it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from hashlib import sha256
from threading import Lock, RLock

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.remasking import RecordInterpolation, mask_again
from sfumato.dataset import Data
from sfumato.masking.base import Step
from sfumato.progress import Progress
from sfumato.rng import Rng

_MOST = 4
"""Simulations that are kept: of the release, of the folds of cross-fitting, and of the last other file."""
_MOST_CELLS = 20_000_000
"""Cells of one simulation that are kept; later rounds are run again by each attack."""


class MaskingRounds:
    """Rounds of masking one file, each run when it is first asked for."""

    def __init__(self, data: Data, steps: Sequence[Step], rng: Rng) -> None:
        self.data = data
        self._steps = list(steps)
        self._rng = rng
        self._kept: dict[int, tuple[pl.DataFrame, npt.NDArray[np.int64]]] = {}
        self._varied: dict[int, MaskingRounds] = {}
        self._lock = RLock()
        self.counted: dict[str, object] = {}
        """What attacks counted in all rounds, by what they compare: the next attack need not count it again."""

    def round(self, number: int, progress: Progress) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
        """The masked values, and the row of the file that each comes from."""
        with self._lock:
            if number in self._kept:
                return self._kept[number]
            masked = mask_again(self.data, self._steps, self._rng.child("round", number), progress)
            if (len(self._kept) + 1) * self._size <= _MOST_CELLS:
                self._kept[number] = masked
            return masked

    def varied(self, number: int) -> MaskingRounds:
        """Rounds of masking a synthetic file similar to this one, another one for each number."""
        with self._lock:
            if number in self._varied:
                return self._varied[number]
            own = self._rng.child("varied", number)
            frame = self._interpolation.draw(self.data.rows, own.child("file"))
            data = Data(table=self.data.table.with_frame(frame), schema=self.data.schema)
            rounds = MaskingRounds(data, self._steps, own)
            if 2 * (len(self._varied) + 1) * self._size <= _MOST_CELLS:
                self._varied[number] = rounds
            return rounds

    @cached_property
    def _interpolation(self) -> RecordInterpolation:
        return RecordInterpolation(self.data.table.frame)

    @property
    def _size(self) -> int:
        return max(1, self.data.rows * len(self.data.table.columns))


_lock = Lock()
_shared: ContextVar[OrderedDict[str, MaskingRounds] | None] = ContextVar("shared_simulations", default=None)


@contextmanager
def shared_simulations() -> Iterator[None]:
    """Share the simulations of all attacks inside. They are dropped at the end of the outermost block."""
    if _shared.get() is not None:
        yield
        return
    token = _shared.set(OrderedDict())
    try:
        yield
    finally:
        _shared.reset(token)


def masking_rounds(data: Data, steps: Sequence[Step]) -> MaskingRounds:
    """The rounds of masking this file with these steps.

    The rows are put in the order of their hashes. Steps draw by position, so files of the same rows in different orders
    would otherwise share the draws of whichever attack came first.
    """
    hashes = data.table.frame.hash_rows(seed=0).to_numpy()
    order = np.argsort(hashes, kind="stable")
    data = Data(table=data.table.with_frame(data.table.frame[order]), schema=data.schema)
    rows = hashes[order]
    written = json.dumps([[step.part_name(), step.to_dict()] for step in steps], sort_keys=True, default=str)
    key = sha256(rows.tobytes() + "\x00".join(data.table.columns).encode() + written.encode()).hexdigest()
    shared = _shared.get()
    if shared is None:
        return MaskingRounds(data, steps, Rng(int(key[:15], 16)).child("simulation"))
    with _lock:
        if key not in shared:
            shared[key] = MaskingRounds(data, steps, Rng(int(key[:15], 16)).child("simulation"))
        shared.move_to_end(key)
        while len(shared) > _MOST:
            shared.popitem(last=False)
        return shared[key]
