"""Computation on Shamir shares: products, comparisons and sorting of numbers that no party knows.

The protocol of Ben-Or, Goldwasser and Wigderson (1988, doi:10.1145/62212.62213) with the degree reduction of Gennaro,
Rabin and Rabin (1998, doi:10.1145/277697.277716). Numbers are shared by polynomials of degree t with 2·t < parties, so
that what any t parties see together is uniform. It is for parties that follow the protocol (semi-honest).

Every party runs the same program on its own shares. One exchange sends each other party a message and receives one from
each; its size depends on public facts only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from sfumato.dp.os_random import bits
from sfumato.errors import PartyFailed
from sfumato.parties.prime_field import (
    PRIME,
    Elements,
    add,
    from_bits,
    interpolation_weights,
    multiply,
    scaled,
    subtract,
    uniform,
    weighted_sum,
)

Exchange = Callable[[Sequence[bytes]], Sequence[bytes]]
"""Sends one message to each party and returns one from each, both in the order of the parties; the own one is empty."""
Places = npt.NDArray[np.int64]
BITS = 61
_ONE = np.uint64(1)


def degree_for(parties: int) -> int:
    """The largest number of parties from which shares hide everything: fewer than half.

    >>> [degree_for(parties) for parties in (2, 3, 4, 5)]
    [0, 1, 1, 2]
    """
    return (parties - 1) // 2


class SharedComputation:
    """One party's side: ``place`` is its index among ``parties``. Arrays hold one share per number."""

    def __init__(self, *, place: int, parties: int, exchange: Exchange) -> None:
        self.place, self.parties, self.degree = place, parties, degree_for(parties)
        self._exchange = exchange

    # Shares

    def split(self, secret: Elements) -> list[Elements]:
        """Fresh shares of numbers that this party knows, one array for each party."""
        coefficients = [uniform(*secret.shape) for _ in range(self.degree)]
        made = []
        for point in range(1, self.parties + 1):
            value = np.zeros_like(secret)
            for coefficient in reversed(coefficients):
                value = scaled(add(value, coefficient), point)
            made.append(add(value, secret))
        return made

    def exchange_arrays(
        self, outgoing: Sequence[Elements] | None, shapes: Sequence[tuple[int, ...] | None]
    ) -> list[Elements | None]:
        """Send an array to each party, or nothing; receive one of the given shape from each, or nothing."""
        nothing = [b""] * self.parties
        messages = nothing if outgoing is None else [array.astype("<u8").tobytes() for array in outgoing]
        own = None if outgoing is None else outgoing[self.place]
        messages = [b"" if place == self.place else message for place, message in enumerate(messages)]
        received: list[Elements | None] = []
        for place, (message, shape) in enumerate(zip(self._exchange(messages), shapes, strict=True)):
            if place == self.place:
                received.append(own)
            elif len(message) != (0 if shape is None else 8 * int(np.prod(shape))):
                raise PartyFailed("A party sent a message of the wrong length.")
            else:
                received.append(None if shape is None else _elements(message).reshape(shape))
        return received

    def inputs(self, own: Elements | None, shapes: Sequence[tuple[int, ...] | None]) -> list[Elements]:
        """Shares of what the parties with a shape know, in the order of the parties."""
        received = self.exchange_arrays(None if own is None else self.split(own), shapes)
        return [part for part in received if part is not None]

    def total(self, own: Elements) -> Elements:
        """Shares of the sum over all parties of numbers that each knows."""
        parts = self.inputs(own, [own.shape] * self.parties)
        return weighted_sum([1] * len(parts), parts)

    def opened(self, shares: Elements) -> Elements:
        """The numbers themselves, for every party. Only masked numbers may be opened."""
        tellers = range(self.degree + 1)
        own = [shares] * self.parties if self.place in tellers else None
        received = self.exchange_arrays(own, [shares.shape if place in tellers else None for place in self._places])
        parts = [part for place, part in enumerate(received) if place in tellers and part is not None]
        return weighted_sum(interpolation_weights([place + 1 for place in tellers]), parts)

    def product(self, one: Elements, other: Elements) -> Elements:
        """Shares of products: the product of two shares lies on a polynomial of degree 2·t, which is shared anew."""
        return self._shared_anew(multiply(one, other), range(2 * self.degree + 1))

    def _shared_anew(self, value: Elements, dealers: Sequence[int]) -> Elements:
        own = self.split(value) if self.place in dealers else None
        received = self.exchange_arrays(own, [value.shape if place in dealers else None for place in self._places])
        parts = [part for part in received if part is not None]
        return weighted_sum(interpolation_weights([place + 1 for place in dealers]), parts)

    @property
    def _places(self) -> range:
        return range(self.parties)

    # Bits and comparisons

    def random_bits(self, count: int) -> Elements:
        """Shares of ``count`` times 61 fair bits: the exclusive or of the bits of t + 1 parties.

        As a number, 61 bits are 0 .. 2**61 - 1, and the last one, the prime, is the element 0 a second time: as masks,
        they are uniform up to a statistical distance of 2**-61.
        """
        dealers, shape = range(self.degree + 1), (count, BITS)
        own = bits(count * BITS).astype(np.uint64).reshape(shape) if self.place in dealers else None
        drawn, *others = self.inputs(own, [shape if place in dealers else None for place in self._places])
        for other in others:
            drawn = subtract(add(drawn, other), scaled(self.product(drawn, other), 2))
        return drawn

    def _masked(self, values: Elements) -> tuple[Elements, Elements]:
        """Values plus uniform numbers, opened, as bits, and the shares of the bits of these numbers."""
        drawn = self.random_bits(len(values))
        opened = self.opened(add(values, from_bits(drawn)))
        return (opened[:, None] >> np.arange(BITS, dtype=np.uint64)) & _ONE, drawn

    def negative(self, values: Elements) -> Elements:
        """Shares of 1 where a number is below 0, else 0. Numbers lie within -2**60 + 1 .. 2**60 - 1.

        A number is negative if its double, modulo the odd prime, is odd (Nishide and Ohta 2007,
        doi:10.1007/978-3-540-71677-8_23). The lowest bit is that of the opened sum and of the mask, and changes once
        more if the sum has wrapped around, that is if it is below the mask. That is also right of the mask whose bits
        are those of the prime: every sum with it wraps around and is below it.
        """
        opened, drawn = self._masked(add(values, values))
        above = np.where(opened == 1, np.uint64(0), drawn)  # at this bit alone, the mask is above the sum
        same = _xor_public(drawn, _ONE - opened)
        while above.shape[1] > 1:  # pairs of (low, high) neighbours; the highest may have none
            even = above.shape[1] // 2 * 2
            left, right = np.s_[:, 0:even:2], np.s_[:, 1:even:2]
            both = self.product(np.concatenate([same[right], same[right]]), np.concatenate([above[left], same[left]]))
            half = len(both) // 2
            above = np.concatenate([add(above[right], both[:half]), above[:, even:]], axis=1)
            same = np.concatenate([both[half:], same[:, even:]], axis=1)
        lowest = _xor_public(drawn[:, 0], opened[:, 0])
        wrapped = above[:, 0]
        return subtract(add(lowest, wrapped), scaled(self.product(lowest, wrapped), 2))

    def zero(self, values: Elements) -> Elements:
        """Shares of 1 where a number is 0, else 0: where the opened sum is the mask, bit by bit.

        Another number is never taken for 0. A 0 is missed with probability 2**-61: if the bits of the mask are those of
        the prime, the opened sum is 0.
        """
        opened, drawn = self._masked(values)
        same = _xor_public(drawn, _ONE - opened)
        while same.shape[1] > 1:
            even = same.shape[1] // 2 * 2
            both = self.product(same[:, 0:even:2], same[:, 1:even:2])
            same = np.concatenate([both, same[:, even:]], axis=1)
        return same[:, 0]

    # Order

    def sort_lists(self, columns: Elements, lengths: Sequence[int]) -> Elements:
        """Rows of ``columns`` in ascending order of their first number, below 2**60; the lists are sorted already.

        Batcher's odd-even merge sort: which places are compared depends on the lengths only. Lists are thought to be
        filled up to a power of two with rows that are larger than all others, which is public.
        """
        width = 1 << max(0, (max(lengths, default=1) - 1).bit_length())
        lists = 1 << max(0, (len(lengths) - 1).bit_length())
        size = width * lists
        rows = np.full(size, -1, np.int64)  # the index of the row at each place; -1 for a filler
        ends = np.cumsum([0, *lengths])
        for number, length in enumerate(lengths):
            rows[number * width : number * width + length] = np.arange(ends[number], ends[number] + length)
        columns = columns.copy()
        places = np.arange(size)
        span = width
        while span < size:
            step = span
            while step:
                start = step % span
                lower = places[(places >= start) & ((places - start) % (2 * step) < step) & (places + step < size)]
                lower = lower[lower // (2 * span) == (lower + step) // (2 * span)]
                upper = lower + step
                blank = (rows[lower] < 0) & (rows[upper] >= 0)
                rows[lower[blank]], rows[upper[blank]] = rows[upper[blank]], -1
                both = rows[upper] >= 0
                self._order(columns, rows[lower[both]], rows[upper[both]])
                step //= 2
            span *= 2
        return columns[rows[rows >= 0]]

    def _order(self, columns: Elements, one: Places, other: Places) -> None:
        """Exchange two rows each where the second has the smaller first number."""
        if not len(one):
            return
        swapped = self.negative(subtract(columns[other, 0], columns[one, 0]))
        apart = subtract(columns[other], columns[one])
        moved = self.product(np.repeat(swapped[:, None], columns.shape[1], axis=1), apart)
        columns[one], columns[other] = add(columns[one], moved), subtract(columns[other], moved)

    def shuffled(self, columns: Elements) -> Elements:
        """Rows in an order that no t parties know (Laur, Willemson and Zhang 2011, doi:10.1007/978-3-642-24861-0_18).

        Each group of parties - t permutes its shares by an order of its own and shares them anew; any t parties are
        outside of one group.
        """
        for group in combinations(self._places, self.parties - self.degree):
            leader, inside = group[0], self.place in group
            order: list[Elements] | None = None
            if self.place == leader:
                drawn_here = uniform(len(columns))
                order = [drawn_here if place in group else uniform(0) for place in self._places]
            shape = (len(columns),) if inside and self.place != leader else None
            shapes = [shape if place == leader else None for place in self._places]
            drawn = self.exchange_arrays(order, shapes)[leader]
            value = columns if not inside or drawn is None else columns[np.argsort(drawn, kind="stable")]
            columns = self._shared_anew(value, group[: self.degree + 1])
        return columns


def recombined(shares: Sequence[bytes]) -> Elements:
    """The numbers behind all parties' shares; shares that do not lie on one polynomial raise ``PartyFailed``."""
    known = degree_for(len(shares)) + 1
    places = range(1, known + 1)
    if len({len(part) for part in shares}) == 1 and len(shares[0]) % 8 == 0:
        parts = [_elements(part) for part in shares]
        others = range(known + 1, len(shares) + 1)
        if all(
            (weighted_sum(interpolation_weights(places, place), parts[:known]) == parts[place - 1]).all()
            for place in others
        ):
            return weighted_sum(interpolation_weights(places), parts[:known])
    raise PartyFailed("The parties' shares of the result do not fit together.")


def _elements(message: bytes) -> Elements:
    """Numbers as they were received. Any 64 bits become an element."""
    return np.frombuffer(message, "<u8").astype(np.uint64) % np.uint64(PRIME)


def _xor_public(shares: Elements, known: Elements) -> Elements:
    """Exclusive or of shared bits with public ones."""
    return np.where(known == 1, subtract(np.ones_like(shares), shares), shares)
