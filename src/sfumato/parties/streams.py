"""Streams of frames between the coordinator and one party, for computations of many messages.

A party alternates: it sends a frame of sealed messages and receives the next one, and in the end sends its shares of
the result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from io import BufferedIOBase
from queue import Queue
from typing import Protocol

from sfumato.errors import AnswerFailed, PartyFailed, SfumatoError

MESSAGES, RESULT, ERROR = b"m", b"r", b"e"
UPGRADE = "sfumato-compute"
"""The protocol that a connection switches to."""
_LARGEST = 1 << 30


class PartyStream(Protocol):
    """The coordinator's end. What is no frame, or a party that stopped, raises ``PartyFailed``."""

    def receive(self) -> tuple[bytes, bytes]:
        """The party's next frame: MESSAGES or RESULT, and its content."""

    def send(self, frame: bytes) -> None: ...

    def close(self) -> None: ...


def write_frame(file: BufferedIOBase, kind: bytes, content: bytes) -> None:
    file.write(kind + len(content).to_bytes(4, "big") + content)
    file.flush()


def read_frame(file: BufferedIOBase) -> tuple[bytes, bytes]:
    """One frame; an end before it, or something else, raises ``PartyFailed``."""
    head = file.read(5)
    size = int.from_bytes(head[1:], "big")
    if len(head) == 5 and head[:1] in (MESSAGES, RESULT, ERROR) and size <= _LARGEST:
        content = file.read(size)
        if len(content) == size:
            return head[:1], content
    raise PartyFailed("The other side stopped.")


class LocalStream:
    """A party that computes in a thread of this process."""

    def __init__(self, compute: Callable[[Callable[[bytes], bytes]], bytes]) -> None:
        self._frames: Queue[tuple[bytes, bytes] | SfumatoError] = Queue()
        self._answers: Queue[bytes | None] = Queue()
        self._compute = compute
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._frames.put((RESULT, self._compute(self._transfer)))
        except SfumatoError as error:
            self._frames.put(error)
        except Exception:
            self._frames.put(AnswerFailed("The party could not compute a reply."))

    def _transfer(self, frame: bytes) -> bytes:
        self._frames.put((MESSAGES, frame))
        answer = self._answers.get()
        if answer is None:
            raise PartyFailed("The coordinator stopped.")
        return answer

    def receive(self) -> tuple[bytes, bytes]:
        frame = self._frames.get()
        if isinstance(frame, SfumatoError):
            raise frame
        return frame

    def send(self, frame: bytes) -> None:
        self._answers.put(frame)

    def close(self) -> None:
        self._answers.put(None)
        self._thread.join()
