"""Composition attack: intersection of several releases about the same people."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from sfumato.attacks.base import Discloses, Guesses, Linking, View
from sfumato.attacks.inference._class_votes import Votes
from sfumato.attacks.normalize import canonical
from sfumato.deadline import batches, check_deadline
from sfumato.errors import NotApplicable
from sfumato.params import InputFile
from sfumato.progress import SILENT, Progress
from sfumato.release.folder import load_release
from sfumato.rng import Rng


class Intersection(Linking):
    """An attacker with several anonymized releases about the same people intersects the possible sensitive values.

    Each release leaves a set of possible values for a person. If the person is in all releases, the true value is in
    every set, and the intersection is often a single value, however large the equivalence classes are (the composition
    attack). For each value the attack multiplies its shares in the matching equivalence classes of all releases and
    guesses the value with the largest product. People who are in one release only are targets too; for them the attack
    fails, because the attacker does not know it.
    """

    discloses: ClassVar[Discloses] = Discloses.ATTRIBUTE
    examples = ({},)
    reference: ClassVar[str] = (
        "Ganta, S. R., Kasiviswanathan, S. P., Smith, A. (2008). Composition attacks and auxiliary information in data "
        "privacy. KDD. doi:10.1145/1401890.1401926"
    )

    releases: tuple[InputFile, ...] = ()
    """The other releases: folders written by `sfumato protect`, or data files."""
    secret: str | None = None
    """The column to infer; may be omitted if exactly one released column is declared sensitive."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        views = [view, *(_other(view, path) for path in self.releases)]
        values = (
            pl.concat([canonical(one.release.table.column(view.secret)).drop_nulls() for one in views]).unique().sort()
        )
        place = {value: number for number, value in enumerate(values.to_list())}
        # Log of the product of shares; a value that a release excludes can only win if all are excluded.
        score = np.zeros((view.targets.height, len(values)))
        made = np.zeros(view.targets.height, dtype=np.bool_)
        alone = np.ones((view.targets.height, len(values)), dtype=np.bool_)
        votes = []
        for one in views:
            check_deadline(progress)
            votes.append(Votes.of(one))
        codes = [np.array([place[value] for value in canonical(each.index).to_list()]) for each in votes]
        casts = [each.cast() for each in votes]
        done = [0] * len(votes)
        # All releases are processed side by side, so that each target reached in time was looked up in all of them.
        longest = max(each.matched.persons for each in votes)
        for part in batches(progress, "intersection", longest):
            for number, each in enumerate(votes):
                while done[number] < -(-part.stop * each.matched.persons // longest):
                    targets, voted, count = next(casts[number])
                    done[number] += 1
                    if len(voted) == 0:
                        continue
                    made[targets] = True
                    share = np.full(len(values), 1e-6)
                    share[codes[number][voted]] += count / count.sum()
                    score[targets] += np.log(share)
                    allowed = np.zeros(len(values), dtype=np.bool_)
                    allowed[codes[number][voted]] = True
                    alone[targets] &= allowed
        tried = min(each.matched.reached(count) for each, count in zip(votes, done, strict=True))
        score, made, alone = score[:tried], made[:tried], alone[:tried]
        best = score.argmax(axis=1)
        chance = np.exp(score - score.max(axis=1, keepdims=True))
        confidence = np.where(alone.sum(axis=1) == 1, 1.0, np.minimum(0.999, 1 / chance.sum(axis=1)))
        guess = values.gather(best).alias(view.secret)
        detail = {"releases": len(views), "one_value_left": int((made & (alone.sum(axis=1) == 1)).sum())}
        return Guesses(value=guess, made=made, confidence=np.where(made, confidence, 0.0), detail=detail, tried=tried)


def _other(view: View, path: Path) -> View:
    """The same targets with another release, on the columns it shares."""
    release = load_release(path)
    names = tuple(name for name in view.knows if name in release.table.columns)
    if not names or view.secret not in release.table.columns:
        raise NotApplicable(
            f"The release at {path} lacks `{view.secret}` or all columns that the attacker knows.", columns=view.knows
        )
    return View(
        release=release,
        targets=view.targets.select(names),
        knows=names,
        secret=view.secret,
        transparent=view.transparent,
        blanks_unknown=view.blanks_unknown,
    )
