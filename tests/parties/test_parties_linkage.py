"""Who is in both tables: intersection sizes, encoded names and the attacks on them, and trails."""

from __future__ import annotations

import json
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import sfumato.demos.people
from sfumato.dp.loss import pure
from sfumato.errors import BadParameter, NoReceipt
from sfumato.ledger.charge import Charge, charge_run
from sfumato.parties.bloom_encoding import BloomEncoder, best_links, dice
from sfumato.parties.encoding_attacks import frequency_attack, pattern_attack
from sfumato.parties.intersection_size import (
    BlindedSet,
    IntersectionReply,
    PrivateSet,
    SizeNoise,
    hash_to_curve,
)
from sfumato.parties.trails import match_trails, rare_trails, suppress_visits

PRIME = 2**255 - 19


def on_curve(point: bytes) -> bool:
    u = int.from_bytes(point, "little")
    return pow(u**3 + 486_662 * u * u + u, (PRIME - 1) // 2, PRIME) == 1


def noisy_reply(own: PrivateSet, message: BlindedSet, epsilon: int, delta: str) -> IntersectionReply:
    noise = SizeNoise.for_budget(epsilon, delta)
    paid = charge_run(Charge(loss=noise.loss, unit="name", what="test"), ledger=None, dataset=None)
    return own.reply(message, noise=noise, receipt=paid)


@pytest.mark.parametrize("common", [0, 3, 40])
def test_the_exact_size_of_an_intersection(common: int) -> None:
    one = PrivateSet(f"a{i}" for i in range(40))
    other = PrivateSet([f"a{i}" for i in range(common)] + [f"b{i}" for i in range(25)])
    assert one.size(other.reply(one.blinded(), noise=None)).size == common


def test_blinded_items_are_on_the_curve_so_that_none_tells_a_bit_of_its_hash() -> None:
    one = PrivateSet(f"a{i}" for i in range(30))
    assert all(on_curve(hash_to_curve(f"a{i}")) for i in range(30))
    assert all(on_curve(point) for point in one.blinded().points)


def test_the_reply_has_no_order_and_a_size_that_tells_nothing() -> None:
    """Where the point of one item is, over 150 runs; without shuffling it would always be in the same place."""
    items = [f"a{i}" for i in range(6)]
    places = []
    for _ in range(150):
        one, other = PrivateSet(items), PrivateSet(["a0"])
        reply = other.reply(one.blinded(), noise=None)
        [only] = [one._secret.exchange(_public(point)) for point in reply.own]
        places.append(reply.both.index(only))
    assert stats.chisquare(np.bincount(places, minlength=6)).pvalue > 1e-7
    sizes = set()
    for _ in range(4):
        one, other = PrivateSet(items), PrivateSet(["a0", "zz"])
        reply = noisy_reply(other, one.blinded(), 2, "1e-3")
        sizes.add((len(reply.both), len(reply.own)))
    assert len(sizes) == 1


def _public(point: bytes) -> object:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    return X25519PublicKey.from_public_bytes(point)


def test_the_noise_of_an_intersection_is_discrete_laplace() -> None:
    """150 sizes at epsilon 1: a standard deviation of 1.36; exact sizes or noise twice as large are seen."""
    found = []
    for _ in range(150):
        one, other = PrivateSet(["x", "y"]), PrivateSet(["y", "z"])
        answer = one.size(noisy_reply(other, one.blinded(), 1, "1e-2"))
        assert abs(answer.size - 1) <= answer.radius
        found.append(answer.size)
    assert abs(np.mean(found) - 1) < 0.5
    assert 0.8 < np.std(found) < 2.1


def test_garbage_and_missing_noise_parameters_are_refused() -> None:
    one = PrivateSet(["x", "y"])
    blinded = one.blinded()
    for points in ((bytes(32),), (b"short",), (blinded.points[0],) * 2):
        with pytest.raises(BadParameter):
            PrivateSet(["z"]).reply(BlindedSet(points=points, base=blinded.base), noise=None)
    with pytest.raises(BadParameter, match="delta"):
        SizeNoise.for_budget(1, 0)
    noise = SizeNoise.for_budget(1, "1e-3")
    small = charge_run(Charge(loss=pure("1/2"), unit="name", what="test"), ledger=None, dataset=None)
    for receipt in (None, small):
        with pytest.raises(NoReceipt):
            PrivateSet(["z"]).reply(blinded, noise=noise, receipt=receipt)
    stranger = PrivateSet(["x", "y", "z"])
    with pytest.raises(BadParameter, match="another set"):
        one.size(PrivateSet(["z"]).reply(stranger.blinded(), noise=None))


@cache
def people(seed: int = 4) -> tuple[list[str], list[str], list[str], float]:
    """Family names of 2,000 people, those of a public list, years of birth, and the share of the commonest name."""
    lists = json.loads(Path(sfumato.demos.people.__file__).with_name("names.json").read_text(encoding="utf-8"))
    draw = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(lists["families"]) + 1)
    names = [str(name) for name in draw.choice(lists["families"], 2000, p=weights / weights.sum())]
    public = [str(name) for name in draw.choice(lists["families"], 20_000, p=weights / weights.sum())]
    years = [str(year) for year in draw.integers(1930, 2010, 2000)]
    return names, public, years, max(names.count(name) for name in set(names)) / len(names)


CLASSIC, FLIPPED = BloomEncoder(key=b"secret"), BloomEncoder(key=b"secret", flip="0.05")


def test_frequencies_and_patterns_read_keyed_encodings_without_the_key() -> None:
    by_pattern = []
    for seed in (0, 1, 4):
        names, public, _, commonest = people(seed)
        encoded = CLASSIC.encode(names)
        by_frequency = frequency_attack(encoded, public).right(names)
        by_pattern.append(pattern_attack(encoded, public).right(names))
        assert by_pattern[-1] > by_frequency > commonest + 0.2
    assert np.mean(by_pattern) > 0.65, by_pattern


def test_flipped_bits_alone_do_not_stop_the_attacks() -> None:
    names, public, _, commonest = people()
    assert pattern_attack(FLIPPED.encode(names), public).right(names) > commonest + 0.1


def test_the_hardened_encoding_leaves_no_more_than_a_guess() -> None:
    names, public, years, commonest = people()
    encoded = FLIPPED.encode(names, years)
    for attack in (frequency_attack, pattern_attack):
        assert attack(encoded, public).right(names) < commonest + 0.03


def test_hardening_costs_the_links_whose_salt_is_wrong() -> None:
    draw = np.random.default_rng(8)
    firsts = ["anna", "maria", "judith", "helen", "oskar", "peter", "ludwig", "konrad", "ottilie", "franz"]
    full = [f"{first} {name}" for name in sorted(set(people()[0]))[:40] for first in firsts]
    wrong = [name[:3] + "x" + name[4:] if draw.random() < 0.3 else name for name in full]
    years = [str(year) for year in draw.integers(1930, 2010, len(full))]
    noted = [year if draw.random() > 0.1 else "1900" for year in years]
    truth = list(range(len(full)))
    plain = best_links(dice(CLASSIC.encode(wrong), CLASSIC.encode(full)), truth)
    hard = best_links(dice(FLIPPED.encode(wrong, noted), FLIPPED.encode(full, years)), truth)
    assert plain.f1 > 0.95
    assert 0.85 < hard.recall < 0.93
    assert hard.precision > 0.95


def test_encodings_without_a_key_or_with_useless_parameters_are_refused() -> None:
    for wrong in ({"key": b""}, {"flip": "1/2"}, {"hashes": 0}, {"bits": 3}):
        with pytest.raises(BadParameter):
            BloomEncoder(**{"key": b"k", **wrong})  # type: ignore[arg-type]
    assert CLASSIC.epsilon_per_bit() is None
    assert FLIPPED.epsilon_per_bit() == pytest.approx(np.log(19))


def trails(people: int, sites: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(people)
    visits = draw.random((people, sites)) < 0.3
    return visits, draw.permutation(people)


def test_unique_trails_are_linked_and_all_links_are_right() -> None:
    visits, owners = trails(300, 9)
    found = match_trails(visits, visits[owners], complete=True)
    assert len(found.pairs) > 30
    assert found.right(owners.tolist()) == len(found.pairs)
    assert len(found.pairs) == round(rare_trails(visits, k=2) * (visits.any(axis=1)).sum())


def test_incomplete_trails_are_linked_by_elimination() -> None:
    people = [[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
    found = match_trails(people, [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], complete=False)
    assert found.pairs == ((0, 1), (1, 0), (2, 2))


@pytest.mark.parametrize("k", [2, 3, 7])
def test_after_suppression_every_trail_is_shared_and_nobody_is_linked(k: int) -> None:
    visits, owners = trails(300, 9)
    samples = visits[owners]
    kept = suppress_visits(samples, k=k)
    assert not (kept.visits & ~samples).any()
    assert rare_trails(kept.visits, k=k) == 0
    assert kept.suppressed == samples.sum() - kept.visits.sum()
    assert kept.suppressed < samples.sum() / 2
    for complete in (True, False):
        found = match_trails(visits, kept.visits, complete=complete)
        assert found.right(owners.tolist()) == 0
    assert len(match_trails(visits, kept.visits, complete=False).pairs) == 0


def test_no_assignment_singles_out_a_sample_after_suppression() -> None:
    """All assignments of six samples to six people, one by one: each sample keeps at least two possible owners."""
    for seed in range(20):
        visits = np.random.default_rng(seed).random((6, 4)) < 0.5
        kept = suppress_visits(visits, k=2).visits
        possible: list[set[int]] = [set() for _ in range(6)]
        for order in permutations(range(6)):
            if all(not (kept[sample] & ~visits[person]).any() for sample, person in enumerate(order)):
                for sample, person in enumerate(order):
                    possible[sample].add(person)
        assert all(len(possible[sample]) >= 2 for sample in range(6) if kept[sample].any())
