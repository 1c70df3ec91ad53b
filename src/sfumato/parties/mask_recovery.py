"""Mask recovery: a sum can still be opened when a few parties stop (Bonawitz et al. 2017, doi:10.1145/3133956.3133982).

Each party adds a mask of its own to its numbers, besides the masks with the others, and hands out Shamir shares of two
secrets: of that self-mask, and of the key of its masks with the others. When the sum is opened, every party reveals one
share about each party of the round: of the self-mask of one that contributed, of the key of one that stopped, never
both. The masks of a party that stopped can then be removed from the sum of the others, and its own message, should it
arrive late, stays hidden by its self-mask.

With n parties of which c collude with the coordinator, ``threshold`` shares open a secret, and 2·threshold > n + c. The
n - c honest parties each reveal one share about a party, so that both secrets together, 2·(threshold - c) shares beyond
those of the colluding parties, cannot be had, whatever the coordinator tells to whom: no message is ever opened alone,
and one set of parties is opened per round.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.errors import PartyFailed, QueryRefused
from sfumato.parties.residues import Residues, add, subtract
from sfumato.parties.secure_sum import Announcement, OpenRound, expand, pair_key, transcript

PRIME = (1 << 521) - 1
_SHARE = 66


def split(secret: bytes, *, threshold: int, shares: int) -> list[bytes]:
    """Shamir shares of a secret of 32 bytes: any ``threshold`` of them give it, fewer tell nothing.

    >>> parts = split(bytes(range(32)), threshold=2, shares=3)
    >>> recover({1: parts[0], 3: parts[2]}) == bytes(range(32))
    True
    """
    polynomial = [int.from_bytes(secret, "big"), *(_uniform() for _ in range(threshold - 1))]
    made = []
    for place in range(1, shares + 1):
        value = 0
        for coefficient in reversed(polynomial):
            value = (value * place + coefficient) % PRIME
        made.append(value.to_bytes(_SHARE, "big"))
    return made


def _uniform() -> int:
    while True:
        value = int.from_bytes(os.urandom(_SHARE), "big") & PRIME
        if value < PRIME:
            return value


def recover(shares: Mapping[int, bytes]) -> bytes | None:
    """The secret by Lagrange interpolation at 0, or None if the shares do not fit together."""
    total = 0
    for place, share in shares.items():
        weight = 1
        for other in shares:
            if other != place:
                weight = weight * other * pow(other - place, -1, PRIME) % PRIME
        total = (total + weight * int.from_bytes(share, "big")) % PRIME
    return total.to_bytes(_SHARE, "big")[-32:] if total < 1 << 256 else None


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """What a party keeps of a round between handing out shares and opening the sum."""

    announcements: tuple[Announcement, ...]
    seed: bytes = field(repr=False)
    """Of the self-mask."""
    own: tuple[bytes, bytes] = field(repr=False)
    """Its own share of its self-mask, and of its key."""

    @property
    def names(self) -> list[str]:
        return sorted(each.party for each in self.announcements)

    def mask(self, size: int) -> Residues:
        return expand(self.seed, size)


def deal(opened: OpenRound, announcements: Sequence[Announcement], threshold: int) -> tuple[Dealt, dict[str, bytes]]:
    """A fresh self-mask, and the sealed shares for every other party."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    seed, names = os.urandom(32), sorted(each.party for each in announcements)
    parts = [split(secret, threshold=threshold, shares=len(names)) for secret in (seed, opened.secret_bytes())]
    shares = {name: (parts[0][place], parts[1][place]) for place, name in enumerate(names)}
    own = opened.announcement.party
    sealed = {}
    for other in announcements:
        if other.party != own:
            key = _sealing_key(opened, other, announcements, sender=own, receiver=other.party)
            # The key is used for this one message, so that the nonce may be constant.
            sealed[other.party] = ChaCha20Poly1305(key).encrypt(bytes(12), b"".join(shares[other.party]), None)
    return Dealt(announcements=tuple(announcements), seed=seed, own=shares[own]), sealed


def receive(opened: OpenRound, dealt: Dealt, sealed: Mapping[str, bytes]) -> dict[str, tuple[bytes, bytes]]:
    """The shares that the other parties sealed for this one; a message of another round is refused."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    own = opened.announcement.party
    if set(sealed) != {name for name in dealt.names if name != own}:
        raise QueryRefused("The round lacks the shares of a party.", fix="Ask again.")
    shares = {own: dealt.own}
    for other in dealt.announcements:
        if other.party == own:
            continue
        key = _sealing_key(opened, other, dealt.announcements, sender=other.party, receiver=own)
        try:
            plain = ChaCha20Poly1305(key).decrypt(bytes(12), sealed[other.party], None)
        except InvalidTag:
            plain = b""
        if len(plain) != 2 * _SHARE:
            raise QueryRefused(f"The shares of party {other.party} do not belong to this round.", fix="Ask again.")
        shares[other.party] = plain[:_SHARE], plain[_SHARE:]
    return shares


def _sealing_key(
    opened: OpenRound, other: Announcement, announcements: Sequence[Announcement], *, sender: str, receiver: str
) -> bytes:
    return pair_key(
        opened.sealing, other.sealing, salt=transcript(announcements), use=b"shares", names=(sender, receiver),
        about=other.party,
    )  # fmt: skip


def open_sum(
    total: Residues,
    *,
    announcements: Sequence[Announcement],
    survivors: Collection[str],
    revealed: Mapping[str, Mapping[str, bytes]],
    threshold: int,
) -> Residues:
    """Remove the masks that are left in the sum of the survivors' messages; ``revealed`` has each one's shares."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    names = sorted(each.party for each in announcements)
    places = {name: place for place, name in enumerate(names, 1)}
    some = sorted(revealed)[:threshold]
    size = len(total)
    for each in announcements:
        secret = recover({places[name]: revealed[name][each.party] for name in some})
        if secret is None:
            raise _wrong(each.party)
        if each.party in survivors:
            total = subtract(total, expand(secret, size))
            continue
        key = X25519PrivateKey.from_private_bytes(secret)
        if key.public_key().public_bytes_raw() != each.key:
            raise _wrong(each.party)
        total = add(total, OpenRound(announcement=each, secret=key).mask(size, announcements, among=survivors))
    return total


def _wrong(party: str) -> PartyFailed:
    return PartyFailed(f"The shares of party {party} do not fit together; no answer can be computed.")
