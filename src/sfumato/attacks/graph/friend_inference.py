"""Attack: infer somebody's attribute from the values of their friends."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.attacks.graph._base import FriendGuessing, GraphView
from sfumato.rng import Rng


class FriendInference(FriendGuessing):
    """An attacker who has found the target's node infers a value that the target keeps secret from their friends.

    The guess is the value that occurs among the friends most often, relative to how often it occurs in the release
    (friends tend to be alike). Other people's values are released; the target's own value is not used.
    """

    reference = "Zheleva, Getoor (2009), To join or not to join, doi:10.1145/1526709.1526781"

    def values(self, view: GraphView, column: str, rng: Rng) -> pl.Series:
        released = view.release.nodes[column].cast(pl.String)
        known = released.drop_nulls()
        names = known.unique().sort()
        code = released.replace_strict(names, pl.Series(range(len(names)), dtype=pl.Int64), default=-1)
        codes = code.fill_null(-1).to_numpy().copy()
        codes[view.targets] = -1
        frequency = np.bincount(codes[codes >= 0], minlength=len(names)) + 1.0
        prior = np.log(frequency / frequency.sum())
        guess = np.empty(len(view.targets), dtype=np.int64)
        alike = self._alike(view, codes, len(names))
        for number, node in enumerate(view.targets):
            friends = codes[view.release.neighbours(int(node))]
            counts = np.bincount(friends[friends >= 0], minlength=len(names))
            # Naive Bayes: a friend has the target's value with probability `alike`, otherwise any value.
            gain = np.log(alike / np.exp(prior) + (1 - alike)) - np.log(1 - alike)
            guess[number] = int(np.argmax(prior + counts * gain))
        return names.gather(guess)

    @staticmethod
    def _alike(view: GraphView, codes: np.ndarray, count: int) -> float:
        """How much more often friends have the same value than two random people, from the released values."""
        ends = codes[view.release.edges()]
        ends = ends[(ends >= 0).all(axis=1)]
        if not len(ends):
            return 1e-6
        shares = np.bincount(ends.ravel(), minlength=count) / ends.size
        chance = float((shares**2).sum())
        same = float((ends[:, 0] == ends[:, 1]).mean())
        return float(np.clip((same - chance) / max(1 - chance, 1e-9), 1e-6, 0.99))
