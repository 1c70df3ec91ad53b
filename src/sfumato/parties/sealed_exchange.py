"""Messages between parties, relayed by the coordinator, who can neither read nor change them.

Each pair of parties has a key for each direction, from the X25519 keys that both announced for the round. Messages are
numbered: one that is left out, repeated, exchanged or of another round does not open, and the computation ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sfumato.errors import PartyFailed
from sfumato.parties.secure_sum import Announcement, OpenRound, pair_key, transcript


class SealedExchange:
    """One party's side; ``transfer`` sends a frame to the coordinator and returns the next one from it."""

    def __init__(
        self, opened: OpenRound, announcements: Sequence[Announcement], transfer: Callable[[bytes], bytes]
    ) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        by_name = {each.party: each for each in announcements}
        self.names, self._transfer = sorted(by_name), transfer
        self.place = self.names.index(opened.announcement.party)
        salt, own = transcript(announcements), opened.announcement.party

        def cipher(other: str, sender: str, receiver: str) -> ChaCha20Poly1305:
            return ChaCha20Poly1305(pair_key(
                opened.sealing, by_name[other].sealing, salt=salt, use=b"compute", names=(sender, receiver), about=other
            ))  # fmt: skip

        others = [name for name in self.names if name != own]
        self._outgoing = [cipher(other, own, other) for other in others]
        self._incoming = [cipher(other, other, own) for other in others]
        self._others, self._number = others, 0

    def __call__(self, messages: Sequence[bytes]) -> list[bytes]:
        """Send one message to each party and receive one from each; the party's own is empty."""
        from cryptography.exceptions import InvalidTag

        nonce = self._number.to_bytes(12, "big")
        self._number += 1
        plain = [message for place, message in enumerate(messages) if place != self.place]
        sealed = [key.encrypt(nonce, message, None) for key, message in zip(self._outgoing, plain, strict=True)]
        received = split_frame(self._transfer(joined_frame(sealed)), len(self._others))
        opened = []
        for name, key, message in zip(self._others, self._incoming, received, strict=True):
            try:
                opened.append(key.decrypt(nonce, message, None))
            except InvalidTag:
                raise PartyFailed(f"A message of party {name} does not belong to this round.") from None
        opened.insert(self.place, b"")
        return opened


def joined_frame(parts: Sequence[bytes]) -> bytes:
    """Messages with their lengths.

    >>> split_frame(joined_frame([b"one", b""]), 2)
    [b'one', b'']
    """
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def split_frame(frame: bytes, count: int) -> list[bytes]:
    """The inverse of :func:`joined_frame`; anything else is refused."""
    parts, start = [], 0
    for _ in range(count):
        end = start + 4 + int.from_bytes(frame[start : start + 4], "big")
        if end > len(frame):
            break
        parts.append(frame[start + 4 : end])
        start = end
    if len(parts) != count or start != len(frame):
        raise PartyFailed("A message between parties is not well-formed.")
    return parts


def redistributed(frames: Mapping[str, bytes]) -> dict[str, bytes]:
    """What the coordinator does with one frame of each party: the messages for a party become its next frame."""
    names = sorted(frames)
    messages = {
        sender: dict(zip([n for n in names if n != sender], split_frame(frames[sender], len(names) - 1), strict=True))
        for sender in names
    }
    return {to: joined_frame([messages[sender][to] for sender in names if sender != to]) for to in names}
