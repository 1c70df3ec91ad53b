"""Seedable random number streams for masking, attacks and sampling. Differential privacy does not use them.

Every consumer has a stream of its own, with its own name. Adding a step to a recipe or an attack to a study therefore
does not change the random numbers of the others.
"""

from __future__ import annotations

import hashlib
from secrets import randbits

import numpy as np

from sfumato.errors import BadParameter

__all__ = ["Rng"]


class Rng:
    """A tree of reproducible random streams.

    >>> a = Rng(7).child("rank-swap").generator.integers(100)
    >>> b = Rng(7).child("rank-swap").generator.integers(100)
    >>> bool(a == b)
    True

    The seed is a secret of the data holder: an adversary who knows method, parameters *and* seed can undo a masking.
    It is not part of the ``repr`` and is never written to a release.
    """

    __slots__ = ("_path", "_seed", "generator")

    def __init__(self, seed: int | None = None, *, _path: tuple[str, ...] = ()) -> None:
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise BadParameter("A seed must be a whole number, 0 or larger.")
        self._seed = randbits(128) if seed is None else int(seed)
        self._path = _path
        words = hashlib.sha256("\x1f".join(_path).encode()).digest()
        key = tuple(int.from_bytes(words[i : i + 4], "little") for i in range(0, 16, 4))
        self.generator = np.random.Generator(
            np.random.PCG64DXSM(np.random.SeedSequence(self._seed, spawn_key=key if _path else ()))
        )
        """The stream itself: a :class:`numpy.random.Generator`."""

    def child(self, *names: object) -> Rng:
        """The independent stream of that name. The same name gives the same stream."""
        return Rng(self._seed, _path=(*self._path, *map(str, names)))

    def __repr__(self) -> str:
        return f"<Rng {'/'.join(self._path) or 'root'}>"
