"""Secure aggregation: masks that hide every party's numbers and cancel in the sum of all.

For each question a party makes a fresh X25519 key and signs it with its long-lived Ed25519 key (:class:`Announcement`).
Each pair of parties derives one mask from its shared secret; one of the two adds it, the other subtracts it. The masks
are uniform modulo 2**128, so that the messages of any set of parties, not all, are uniform and independent of their
numbers, for everybody who does not know the masks.

A round is used once: the keys are fresh, and the derivation contains the hash of all announcements, so that the masks
of parties that were told different things do not cancel. If a party stops, the messages of the others stay uniform;
:mod:`~sfumato.parties.mask_recovery` opens their sum where the agreement allows for it. Otherwise the next
round has new keys and new noise and is charged anew: should the late message arrive after all, both are paid for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sfumato.errors import ExtraMissing, QueryRefused
from sfumato.extras import missing_extra
from sfumato.parties.residues import BYTES, Residues, add, from_bytes, subtract

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

_CONTEXT = b"sfumato parties 1 "


def no_cryptography(what: str) -> ExtraMissing:
    return missing_extra("parties", "cryptography", needed_by=what)


def _framed(*parts: bytes) -> bytes:
    """Parts with their lengths: no two lists give the same bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """A party's signed key for one round."""

    party: str
    question: str
    """Hash of the question and of the public agreement of the parties."""
    plan: str
    """Hash of the noise plan: parties whose versions would add other noise do not fit together."""
    key: bytes
    """Public X25519 key of this round, for the masks."""
    sealing: bytes
    """Public X25519 key of this round, for shares that other parties seal for this one."""
    signature: bytes = b""

    def signed(self) -> bytes:
        """The bytes that the signature is about."""
        texts = (self.party.encode(), self.question.encode(), self.plan.encode())
        return _CONTEXT + b"announcement " + _framed(*texts, self.key, self.sealing)

    def to_dict(self) -> dict[str, str]:
        return {
            "party": self.party, "question": self.question, "plan": self.plan,
            "key": self.key.hex(), "sealing": self.sealing.hex(), "signature": self.signature.hex(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, document: object) -> Announcement:
        """The inverse of :meth:`to_dict`; anything else is refused."""
        names = ("party", "question", "plan", "key", "sealing", "signature")
        given = document if isinstance(document, dict) else {}
        if set(given) == set(names) and all(isinstance(t, str) and len(t) <= 1000 for t in given.values()):
            try:
                key, sealing, signature = (bytes.fromhex(given[name]) for name in names[3:])
            except ValueError:
                key = sealing = signature = b""
            if (len(key), len(sealing), len(signature)) == (32, 32, 64):
                return cls(**{name: given[name] for name in names[:3]}, key=key, sealing=sealing, signature=signature)
        raise QueryRefused("An announcement of a party is not well-formed.", fix="Use the same version everywhere.")


@dataclass(frozen=True, kw_only=True)
class OpenRound:
    """A party's own side of a round: the announcement and the keys that belong to it. Use it once."""

    announcement: Announcement
    secret: X25519PrivateKey
    sealing: X25519PrivateKey | None = None

    def secret_bytes(self) -> bytes:
        return self.secret.private_bytes_raw()

    def mask(self, size: int, announcements: Sequence[Announcement], among: Collection[str] | None = None) -> Residues:
        """The sum of the masks with all other parties of the round, or with those ``among`` them.

        All parties' masks add up to zero.
        """
        own, salt = self.announcement.party, transcript(announcements)
        total = from_bytes(bytes(BYTES * size))
        for other in announcements:
            if other.party == own or (among is not None and other.party not in among):
                continue
            names = (own, other.party) if own < other.party else (other.party, own)
            key = pair_key(self.secret, other.key, salt=salt, use=b"mask", names=names, about=other.party)
            total = (add if own == names[0] else subtract)(total, expand(key, size))
        return total


def pair_key(
    secret: X25519PrivateKey | None, public: bytes, *, salt: bytes, use: bytes, names: tuple[str, str], about: str
) -> bytes:
    """The key that two parties share for one use in one round."""
    try:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise no_cryptography("Secure aggregation") from None
    assert secret is not None
    try:
        shared = secret.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # a point of small order
        raise QueryRefused(f"The key of party {about} is not usable.") from None
    info = _CONTEXT + use + b" " + _framed(*(name.encode() for name in names))
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=info).derive(shared)


def expand(key: bytes, size: int) -> Residues:
    """A key that is used for this one stream (so that the nonce may be constant) as uniform numbers."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    return from_bytes(Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(BYTES * size)))


def open_round(party: str, identity: Ed25519PrivateKey, *, question: str, plan: str) -> OpenRound:
    """Make fresh keys for one question and sign them."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    secret, sealing = (X25519PrivateKey.from_private_bytes(os.urandom(32)) for _ in range(2))
    public = (secret.public_key().public_bytes_raw(), sealing.public_key().public_bytes_raw())
    blank = Announcement(party=party, question=question, plan=plan, key=public[0], sealing=public[1])
    made = replace(blank, signature=identity.sign(blank.signed()))
    return OpenRound(announcement=made, secret=secret, sealing=sealing)


def transcript(announcements: Sequence[Announcement]) -> bytes:
    """Hash of all announcements, in the order of the parties' names."""
    parts = [_framed(each.signed(), each.signature) for each in sorted(announcements, key=lambda a: a.party)]
    return hashlib.sha256(_CONTEXT + b"transcript " + _framed(*parts)).digest()


def check_announcements(
    announcements: Sequence[Announcement], *, keys: Mapping[str, bytes], question: str, plan: str
) -> None:
    """Refuse a round unless its parties are known, differ, mean the same question and plan, and signed it."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    names = [each.party for each in announcements]
    if len(set(names)) < len(names) or len({each.key for each in announcements}) < len(names):
        raise QueryRefused("A party is named twice in the round.")
    for each in announcements:
        if each.party not in keys:
            raise QueryRefused("The round names a party that is not in the parties file.")
        if each.question != question:
            raise QueryRefused(f"Party {each.party} announced another question.", fix="Ask again.")
        if each.plan != plan:
            raise QueryRefused(
                f"Party {each.party} plans other noise for this query.",
                fix="Use the same version of sfumato everywhere.",
            )
        try:
            Ed25519PublicKey.from_public_bytes(keys[each.party]).verify(each.signature, each.signed())
        except InvalidSignature:
            raise QueryRefused(
                f"The signature of party {each.party} is wrong.", fix="Compare its key with the parties file."
            ) from None
