"""Computation on shares: results, and what a party sees of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from parties_sample import computed_together, opened
from sfumato.errors import PartyFailed
from sfumato.parties.prime_field import (
    PRIME,
    Elements,
    add,
    from_signed,
    multiply,
    subtract,
    to_signed,
    uniform,
)
from sfumato.parties.shared_computation import BITS, SharedComputation

EDGES = [0, 1, -1, 2, (1 << 60) - 1, -(1 << 60) + 1]


def test_arithmetic_is_that_of_whole_numbers_modulo_the_prime() -> None:
    corners = np.array([0, 1, 2, (1 << 32) - 1, 1 << 32, PRIME - 1, PRIME - 2, 1 << 60], np.uint64)
    one, other = (array.ravel() for array in np.meshgrid(np.concatenate([corners, uniform(30)]), corners))
    for made, exact in ((add, int.__add__), (subtract, int.__sub__), (multiply, int.__mul__)):
        assert made(one, other).tolist() == [exact(int(a), int(b)) % PRIME for a, b in zip(one, other, strict=True)]
    assert to_signed(from_signed(EDGES)).tolist() == EDGES


def test_uniform_numbers_fill_the_whole_range() -> None:
    drawn = uniform(4000)
    assert int(drawn.max()) < PRIME
    assert abs(float(drawn.astype(float).mean()) / PRIME - 0.5) < 5 / np.sqrt(12 * 4000)


@pytest.mark.parametrize("parties", [3, 4, 5])
def test_comparisons_products_and_orders_of_shared_numbers(parties: int) -> None:
    draw = np.random.default_rng(parties)
    numbers = from_signed(np.concatenate([EDGES, draw.integers(-(1 << 60) + 1, 1 << 60, 20)]))
    lengths = [5, 0, 11, 1, 2][:parties]
    lists = [np.sort(draw.integers(0, 1 << 60, length)).astype(np.uint64) for length in lengths]
    lists[2][:] = np.sort([*lists[2][1:], lists[0][2]])

    def program(computation: SharedComputation, place: int) -> list[Elements]:
        own = numbers if place == 1 else None
        [values] = computation.inputs(own, [numbers.shape if place == 1 else None for place in range(parties)])
        parts = computation.inputs(
            np.stack([lists[place], lists[place] + np.uint64(1)], axis=1), [(n, 2) for n in lengths]
        )
        rows = computation.sort_lists(np.concatenate(parts), lengths)
        return [
            computation.negative(values), computation.zero(values), computation.product(values, values),
            computation.total(from_signed([place, -1])), rows, computation.shuffled(rows),
        ]  # fmt: skip

    below, none, squares, total, rows, shuffled = opened(computed_together(parties, program))
    assert below.tolist() == (to_signed(numbers) < 0).tolist()
    assert none.tolist() == (numbers == 0).tolist()
    assert squares.tolist() == multiply(numbers, numbers).tolist()
    assert to_signed(total).tolist() == [sum(range(parties)), -parties]
    everything = np.sort(np.concatenate(lists))
    assert rows.tolist() == np.stack([everything, everything + np.uint64(1)], axis=1).tolist()
    assert sorted(shuffled.tolist()) == rows.tolist()


def test_a_shuffle_leaves_nothing_of_the_order() -> None:
    """Rank correlation and pairs of neighbours of 900 rows, at 5.5 standard deviations."""
    rows = from_signed(np.arange(900)[:, None])

    def program(computation: SharedComputation, place: int) -> list[Elements]:
        [first] = computation.inputs(rows if place == 0 else None, [rows.shape, None, None])
        return [computation.shuffled(first)]

    [shuffled] = opened(computed_together(3, program))
    order = shuffled[:, 0].astype(float)
    assert sorted(order) == list(range(900))
    assert abs(np.corrcoef(order, np.arange(900))[0, 1]) < 5.5 / np.sqrt(900)
    assert (np.abs(np.diff(order)) == 1).sum() < 16  # Poisson with mean 2


def seen(numbers: Sequence[int], **changed: Any) -> list[Elements]:
    """All numbers that each of three parties receives while the last one's numbers are compared and sorted."""
    messages: list[list[bytes]] = [[], [], []]
    values = from_signed(np.sort(numbers))

    def program(computation: SharedComputation, place: int) -> list[Elements]:
        for name, method in changed.items():
            setattr(computation, name, method)
        own = values if place == 2 else from_signed(np.zeros(len(values), np.int64))
        lists = computation.inputs(own[:, None], [(len(values), 1)] * 3)
        rows = computation.sort_lists(np.concatenate(lists), [len(values)] * 3)
        return [computation.zero(rows[:, 0]), computation.shuffled(rows)]

    computed_together(3, program, heard=lambda place, got: messages[place].extend(got))
    return [np.frombuffer(b"".join(parts), "<u8") for parts in messages]


def unevenness(values: Elements) -> float:
    """Chi-square statistic of 64 equal intervals, in standard deviations."""
    counts = np.bincount((values >> np.uint64(55)).astype(np.int64), minlength=64)
    expected = len(values) / 64
    return float((((counts - expected) ** 2 / expected).sum() - 63) / np.sqrt(126))


@pytest.mark.parametrize("numbers", [[0] * 4, [(1 << 59) + i for i in range(4)]])
def test_what_a_party_receives_is_uniform_whatever_the_others_have(numbers: list[int]) -> None:
    for values in seen(numbers)[:2]:
        assert len(values) > 10_000
        assert unevenness(values) < 6


def test_numbers_that_are_not_hidden_are_seen() -> None:
    """Mutants: shares without random coefficients; numbers opened without a mask, all of them below 2**55."""

    def bare(secret: Elements) -> list[Elements]:
        return [secret] * 3

    assert unevenness(seen([5] * 4, split=bare)[0]) > 100
    opening = SharedComputation.opened
    told: list[Elements] = []

    def telling(self: SharedComputation, shares: Elements) -> Elements:
        told.append(opening(self, shares))
        return told[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SharedComputation, "opened", telling)
        seen([5] * 16)
        assert unevenness(np.unique(np.concatenate(told))) < 6
        told.clear()
        seen([5] * 16, random_bits=lambda count: np.zeros((count, BITS), np.uint64))
        assert unevenness(np.concatenate(told)) > 100


def test_shares_of_too_few_parties_tell_nothing() -> None:
    """Two of five parties hold t = 2 shares: independent of the secret; three determine it."""
    computation = SharedComputation(place=0, parties=5, exchange=lambda messages: messages)
    for secret in (0, PRIME - 1):
        shares = computation.split(np.full(3000, secret, np.uint64))
        for one, other in combinations(range(5), 2):
            assert unevenness(shares[one]) < 6
            assert unevenness(add(shares[one], shares[other])) < 6
            assert unevenness(subtract(multiply(shares[one], np.uint64(other + 1)),
                                       multiply(shares[other], np.uint64(one + 1)))) < 6  # fmt: skip
        assert (opened([[share] for share in shares])[0] == secret).all()


def test_a_message_of_the_wrong_length_ends_the_computation() -> None:
    computation = SharedComputation(place=0, parties=3, exchange=lambda messages: [b"", b"1234567", b""])
    with pytest.raises(PartyFailed, match="wrong length"):
        computation.total(from_signed([1]))
