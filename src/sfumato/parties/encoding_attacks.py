"""Attacks on Bloom-filter encodings by somebody without the key: frequency alignment and pattern mining.

Frequency attack (Niedermeyer, Steinmetzer, Kroll and Schnell 2014, doi:10.29012/jpc.v6i2.640): records of the same name
have the same encoding, so the most frequent encoding is the most frequent name. Pattern attack (after Christen,
Ranbaduge, Vatsalan and Schnell 2017, doi:10.1007/978-3-319-57454-7_49): the bits of a few aligned names tell which bits
each q-gram sets, and these bits read all other names. Both need a public list of names with their frequencies, no key.

Random flips do not stop them: encodings of the same name stay similar, records are clustered first, and the majority of
each cluster has few flips left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.errors import BadParameter
from sfumato.parties.bloom_encoding import Bits, dice, qgrams

_ROUNDS = 8
_SEEDS = 8


@dataclass(frozen=True, kw_only=True)
class EncodingAttack:
    """The name that the attack gives to each record; empty where it gives none."""

    names: tuple[str, ...]

    def right(self, truth: Sequence[str]) -> float:
        """Share of all records that are named right."""
        if len(truth) != len(self.names):
            raise BadParameter("there must be one true name per record.")
        return sum(one == other for one, other in zip(self.names, truth, strict=True)) / max(len(truth), 1)


def frequency_attack(encodings: Bits, population: Sequence[str] | Mapping[str, int]) -> EncodingAttack:
    """Give the k-th largest group of alike encodings the k-th most frequent name of the population.

    ``population`` is a list of people's names, or how many people have each.
    """
    group, _ = _groups(encodings)
    ranked = [name for name, _ in Counter(population).most_common()]
    return EncodingAttack(names=tuple(ranked[number] if number < len(ranked) else "" for number in group))


def pattern_attack(encodings: Bits, population: Sequence[str] | Mapping[str, int], *, q: int = 2) -> EncodingAttack:
    """Name the most frequent groups by frequency, learn the bits of their q-grams, read all groups, and repeat.

    A group is given the name whose q-grams explain its bits and whose frequency explains its size best; each name is
    given once. The clearest matches are what the next round learns from.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.stats import poisson

    group, kinds = _groups(encodings)
    frequencies = Counter(population)
    names = sorted(frequencies)
    grams = {gram: place for place, gram in enumerate(sorted({g for name in names for g in qgrams(name, q)}))}
    holds = np.zeros((len(names), len(grams)))
    for row, name in enumerate(names):
        holds[row, [grams[gram] for gram in qgrams(name, q)]] = 1
    sizes = np.bincount(group, minlength=len(kinds))
    expected = np.array([frequencies[name] for name in names]) * (len(encodings) / frequencies.total())
    by_size = poisson.logpmf(sizes[:, None], np.maximum(expected, 0.5)[None, :])
    ranked = np.argsort(-expected, kind="stable")
    known = np.array([(place, ranked[place]) for place in range(min(_SEEDS, len(kinds), len(names)))])
    guess = np.full(len(kinds), -1)
    for turn in range(_ROUNDS):
        # Rounded: equal scores stay equal, whatever the order in which a processor adds.
        score = np.round(by_size + _bit_scores(kinds, holds, known), 6)
        groups, chosen = linear_sum_assignment(-score)
        guess = np.full(len(kinds), -1)
        guess[groups] = chosen
        others = score[groups].copy()
        others[np.arange(len(groups)), chosen] = -np.inf
        margin = score[groups, chosen] - others.max(axis=1)
        clearest = np.argsort(-margin, kind="stable")[: _SEEDS * 2 ** (turn + 1)]
        known = np.stack([groups[clearest], chosen[clearest]], axis=1)
    return EncodingAttack(names=tuple("" if guess[number] < 0 else names[guess[number]] for number in group))


def _groups(encodings: Bits) -> tuple[Ints, Floats]:
    """The group of each record, the largest first, and the bits that most records of a group have.

    Equal encodings are a group. Where hardly any are equal, similar ones are: each record joins the one with the most
    neighbours that it is similar to.
    """
    packed = np.packbits(encodings, axis=1)
    _, group = np.unique(packed, axis=0, return_inverse=True)
    group = group.ravel()
    if group.max(initial=0) + 1 > 0.9 * len(encodings):
        group = _clusters(encodings)
    order = np.argsort(-np.bincount(group), kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    group = rank[group].astype(np.int64)
    bits = np.zeros((len(order), encodings.shape[1]))
    np.add.at(bits, group, encodings)
    return group, (bits / np.bincount(group)[:, None] > 0.5).astype(np.float64)


def _clusters(encodings: Bits) -> Ints:
    alike = dice(encodings, encodings)
    np.fill_diagonal(alike, 0)
    near = alike > _two_classes(alike)
    np.fill_diagonal(near, True)
    group = np.full(len(encodings), -1, dtype=np.int64)
    for number, leader in enumerate(np.argsort(-near.sum(axis=1), kind="stable")):
        if group[leader] < 0:
            group[near[leader] & (group < 0)] = number
    _, group = np.unique(group, return_inverse=True)
    return group.ravel()


def _two_classes(values: npt.NDArray[np.float32]) -> float:
    """Otsu's threshold between two classes of values."""
    counts, edges = np.histogram(values, bins=200)
    middle = (edges[:-1] + edges[1:]) / 2
    below, total = np.cumsum(counts), np.cumsum(counts * middle)
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (total / below - (total[-1] - total) / above) ** 2
    return float(middle[int(np.nanargmax(between[:-1]))])


def _bit_scores(kinds: Floats, holds: Floats, known: Ints) -> Floats:
    """Log-likelihood of each group's bits for each name, by the q-grams of the names known so far.

    A bit belongs to a q-gram if it is on in (nearly) all known names with the q-gram and rarely elsewhere. Bits that
    only unknown q-grams could set have the average rate.
    """
    bits, has = kinds[known[:, 0]], holds[known[:, 1]]
    count = has.sum(axis=0)[:, None]
    on = has.T @ bits
    elsewhere = (bits.sum(axis=0)[None, :] - on) / np.maximum(len(known) - count, 1)
    sets = ((on >= 0.8 * count) & (count > 0)) * np.clip(1 - elsewhere, 0, 1)
    unknown = (count[:, 0] == 0).astype(np.float64)
    average = kinds.mean()
    miss = holds @ np.log(np.clip(1 - sets, 0.05, 1)) + (holds @ unknown)[:, None] * np.log(1 - average / 6)
    chance = np.clip(1 - np.exp(miss), 0.01, 0.97)
    scores: Floats = kinds @ np.log(chance).T + (1 - kinds) @ np.log(1 - chance).T
    return scores
