"""Seedable random number streams for masking, attacks and sampling. Differential privacy does not use them.

Every consumer has a stream of its own, with its own name. Adding a step to a recipe or an attack to a study therefore
does not change the random numbers of the others.
"""

from __future__ import annotations

import hashlib
import json
from os import urandom
from secrets import randbits

import numpy as np

from sfumato.errors import BadParameter
from sfumato.secret import Permit, SecretValue


class Rng:
    """A tree of random streams that the seed alone determines: for attacks, measures, samples and simulations.

    >>> a = Rng(7).child("rank-swap").generator.integers(100)
    >>> b = Rng(7).child("rank-swap").generator.integers(100)
    >>> bool(a == b)
    True

    Whoever guesses the seed has the same numbers, so nothing that is released may depend on such a stream: releases
    are drawn from a :class:`KeyedRng`. The seed is not part of the ``repr`` and is never written to a release.
    """

    __slots__ = ("_path", "_seed", "generator")

    def __init__(self, seed: int | None = None, *, _path: tuple[str, ...] = ()) -> None:
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise BadParameter("A seed must be a whole number, 0 or larger.")
        self._seed = randbits(128) if seed is None else int(seed)
        self._path = _path
        self.generator = np.random.Generator(np.random.PCG64DXSM(self._entropy()))
        """The stream itself: a :class:`numpy.random.Generator`."""

    def _entropy(self) -> np.random.SeedSequence:
        words = hashlib.sha256("\x1f".join(self._path).encode()).digest()
        key = tuple(int.from_bytes(words[i : i + 4], "little") for i in range(0, 16, 4))
        return np.random.SeedSequence(self._seed, spawn_key=key if self._path else ())

    def child(self, *names: object) -> Rng:
        """The independent stream of that name. The same name gives the same stream."""
        return Rng(self._seed, _path=(*self._path, *map(str, names)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'/'.join(self._path) or 'root'}>"


class KeyedRng(Rng):
    """A tree of random streams that need a secret key besides the seed: for everything that is released.

    Seeds are short and typed by people, so an adversary who knows method and parameters tries them all. Here a stream
    is derived by the keyed hash BLAKE2b from seed and name. Without the key, 32 bytes of the operating system, all
    seeds look alike; with seed and key, the owner repeats a run.

    >>> first = KeyedRng(7)
    >>> again = KeyedRng(7, key=first.key)
    >>> bool(first.generator.integers(2**60) == again.generator.integers(2**60))
    True
    >>> bool(KeyedRng(7).generator.integers(2**60) == KeyedRng(7).generator.integers(2**60))
    False
    """

    __slots__ = ("key",)

    def __init__(
        self, seed: int | None = None, *, key: SecretValue[bytes] | None = None, _path: tuple[str, ...] = ()
    ) -> None:
        self.key = SecretValue(urandom(32)) if key is None else key
        """The key, for the private folder of the release."""
        super().__init__(seed, _path=_path)

    def _entropy(self) -> np.random.SeedSequence:
        key = self.key.open(Permit("drawing the random numbers of a release"))
        name = "\x1f".join((str(self._seed), *self._path)).encode()
        digest = hashlib.blake2b(name, key=hashlib.sha512(key).digest(), digest_size=32).digest()
        return np.random.SeedSequence(int.from_bytes(digest, "little"), pool_size=8)

    def child(self, *names: object) -> KeyedRng:
        return KeyedRng(self._seed, key=self.key, _path=(*self._path, *map(str, names)))

    def of_run(self, plan: object, contents: str | None) -> KeyedRng:
        """The streams of one plan (plain data) on one table (its digest): only that very run is repeated by a key.

        Two releases of a table that share draws undo each other: the noise of x + 0.1 z and x + 0.2 z cancels. Without
        a digest, as for the rows of a database that are masked where they lie, every run draws anew.
        """
        text = json.dumps(plan, sort_keys=True, default=str)
        return self.child("run", hashlib.sha256(text.encode()).hexdigest(), contents or urandom(32).hex())
