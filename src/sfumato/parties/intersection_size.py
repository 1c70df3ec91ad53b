"""Private set intersection size: how many items two parties have in common, and nothing about which.

Diffie-Hellman over Curve25519 (Meadows 1986; size only: Huberman, Franklin and Hogg 1999, doi:10.1145/336992.337012;
for semi-honest parties under the decisional Diffie-Hellman assumption, with SHA-512 as a random oracle). The first
party sends its items, hashed to points and raised to its secret. The second raises them to its own secret, shuffles
them and sends them back with its own items. The first raises those to its secret too and counts equal points.

X25519 of `cryptography` multiplies by secrets that are multiples of the cofactor, so that all results lie in the
subgroup of prime order. Items are hashed to points of the curve, never of its twist, because a point would tell the
difference: one bit of each item's hash.

The exact size is not private: a set of one item tells whether the other party has it. The second party therefore hides
the size in noise: it adds random points, of which a discrete Laplace number match. The sizes of both sets are public.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from sfumato.dp.loss import PrivacyLoss, approximate
from sfumato.dp.noise_sums import laplace_radius
from sfumato.dp.os_random import below
from sfumato.dp.rational_bounds import exp_bracket
from sfumato.dp.receipt import Receipt, require
from sfumato.dp.sampler import discrete_laplace
from sfumato.errors import BadParameter
from sfumato.parties.secure_sum import no_cryptography
from sfumato.rationals import Number

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

_PRIME = 2**255 - 19
_A = 486_662


def hash_to_curve(item: str) -> bytes:
    """The u-coordinate of a point on Curve25519 that depends on the item like a random one."""
    for counter in range(256):
        digest = hashlib.sha512(b"sfumato set item " + bytes([counter]) + item.encode()).digest()
        u = int.from_bytes(digest, "little") % _PRIME
        # On the curve, not on its twist: u³ + A·u² + u is a square (Euler's criterion).
        if pow(u * (u * u + _A * u + 1), (_PRIME - 1) // 2, _PRIME) == 1:
            return u.to_bytes(32, "little")
    raise AssertionError("an event of probability 2**-256 happened")


@dataclass(frozen=True, kw_only=True)
class BlindedSet:
    """What the first party sends: its blinded items in random order, and the public key of its secret."""

    points: tuple[bytes, ...]
    base: bytes


@dataclass(frozen=True, kw_only=True)
class IntersectionReply:
    """What the second party sends back: the first one's items blinded twice, and its own blinded once, shuffled."""

    both: tuple[bytes, ...]
    own: tuple[bytes, ...]
    offset: int
    """Expected number of matching random points, which the count contains."""
    radius: int
    """The noise is at most this large in absolute value."""


@dataclass(frozen=True, kw_only=True)
class IntersectionSize:
    """The size of an intersection, with the most that noise can have changed it."""

    size: int
    radius: int


@dataclass(frozen=True, kw_only=True)
class SizeNoise:
    """Noise of an intersection size: discrete Laplace noise, cut off at ``offset``."""

    loss: PrivacyLoss
    """What the size costs."""
    offset: int
    """Noise beyond this is cut off. Cutting happens with probability c, which costs delta = (1 + e^epsilon)·c."""

    @classmethod
    def for_budget(cls, epsilon: Number, delta: Number) -> SizeNoise:
        """The noise under which the size is (epsilon, delta)-private."""
        loss = approximate(epsilon, delta)
        if loss.size <= 0 or not 0 < loss.delta < 1:
            raise BadParameter("noise for an intersection needs an epsilon above 0 and a delta between 0 and 1.")
        chance = loss.delta / (1 + exp_bracket(loss.size)[1])
        return cls(loss=loss, offset=ceil(laplace_radius(1 / loss.size, Fraction(1), chance)))


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The secret that opens the reply, and the number of items that were sent. Nobody else may have it."""

    secret: bytes = field(repr=False)
    items: int

    def size(self, reply: IntersectionReply) -> IntersectionSize:
        """How many points of the reply match."""
        if len(reply.both) != self.items + 2 * reply.offset:
            raise BadParameter("the reply belongs to another set.")
        secret = _key(self.secret)
        theirs = Counter(_raised(secret, point) for point in reply.own)
        common = sum((theirs & Counter(reply.both)).values())
        return IntersectionSize(size=common - reply.offset, radius=reply.radius)


class PrivateSet:
    """One party's items under a secret that is used for one run.

    >>> one, other = PrivateSet(["ada", "bo", "cy"]), PrivateSet(["bo", "cy", "di", "eve"])
    >>> one.size(other.reply(one.blinded(), noise=None))
    IntersectionSize(size=2, radius=0)
    """

    def __init__(self, items: Iterable[str]) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        except ImportError:
            raise no_cryptography("The size of an intersection") from None
        self._points = [hash_to_curve(item) for item in sorted(set(items))]
        self._secret = X25519PrivateKey.from_private_bytes(os.urandom(32))

    @property
    def opening(self) -> Opening:
        """What the first party keeps between its message and the reply."""
        return Opening(secret=self._secret.private_bytes_raw(), items=len(self._points))

    def blinded(self) -> BlindedSet:
        """The first message."""
        points = _shuffled([_raised(self._secret, point) for point in self._points])
        return BlindedSet(points=points, base=self._secret.public_key().public_bytes_raw())

    def reply(self, other: BlindedSet, *, noise: SizeNoise | None, receipt: Receipt | None = None) -> IntersectionReply:
        """The second message, with noise: (epsilon, delta)-differential privacy when one item is replaced by another.

        Noise needs a ``receipt`` of its cost. ``noise=None`` adds none: the first party then learns the exact size.
        """
        check_blinded(other)
        if noise is not None:
            require(receipt, noise.loss)
        both = [_raised(self._secret, point) for point in other.points]
        own = [_raised(self._secret, point) for point in self._points]
        offset = 0 if noise is None else noise.offset
        if noise is not None:
            drawn = int(discrete_laplace(1 / noise.loss.size, 1)[0])
            matching = min(max(offset + drawn, 0), 2 * offset)
            for place in range(2 * offset):
                first = second = os.urandom(32)
                if place >= matching:
                    second = os.urandom(32)
                both.append(_raised(self._secret, _raised(_key(first), other.base)))
                own.append(_raised(self._secret, _key(second).public_key().public_bytes_raw()))
        return IntersectionReply(both=_shuffled(both), own=_shuffled(own), offset=offset, radius=offset)

    def size(self, reply: IntersectionReply) -> IntersectionSize:
        """The first party's result."""
        return self.opening.size(reply)


def check_blinded(message: BlindedSet) -> None:
    """Refuse a first message that is no set. Called before budget is reserved."""
    if len(set(message.points)) < len(message.points):
        raise BadParameter("the other party sent an item twice.", fix="Each item counts once.")


def _key(secret: bytes) -> X25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(secret)


def _raised(secret: X25519PrivateKey, point: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    try:
        return secret.exchange(X25519PublicKey.from_public_bytes(point))
    except ValueError:
        raise BadParameter("the other party sent something that is no point.") from None


def _shuffled(points: Sequence[bytes]) -> tuple[bytes, ...]:
    """A uniformly random order (Fisher-Yates)."""
    order = list(points)
    for last in range(len(order) - 1, 0, -1):
        other = int(below(last + 1, 1)[0])
        order[last], order[other] = order[other], order[last]
    return tuple(order)
