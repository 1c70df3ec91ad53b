"""Workers: the threads that plan and answer, and what one person may take of them.

Both doors use the same workers. One person has a quarter of the threads at a time, a number of requests a minute, and
seconds of computing a minute, whichever verb they use: what is free, such as ``EXPLAIN`` or a list of questions, still
takes time from others. Who lately computed more than their share gives way: while others ask, they compute a quarter of
the time. What the machine has left for this server does not matter to that rule.
Answers and everything else have threads of their own: who waits for an answer can read and cancel meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from ipaddress import IPv6Address, ip_address
from math import exp
from typing import TypeVar
from weakref import WeakValueDictionary

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from sfumato.errors import TooManyRequests
from sfumato.server.metrics import Metrics
from sfumato.server.settings import ServerSettings

Result = TypeVar("Result")
_SHARE = 4
_FREE_SECONDS = 1.0
"""Seconds of computing, lately, for which nobody gives way."""
_LATELY_SECONDS = 10.0
"""What was computed counts less and less: after so long, a third of it."""
_MORE = 1.2
"""Who computed so many times what those who are there computed on average has had more than their share."""
_ACTIVE_SECONDS = 2.0
"""So long after a question of theirs, others are taken to be there."""
_LONGEST_PAUSE = 5.0
_elsewhere = threading.local()


def note_computing(seconds: float) -> None:
    """Count what another process computed for the work of this thread."""
    _elsewhere.seconds = getattr(_elsewhere, "seconds", 0.0) + seconds


def counted_address(address: str) -> str:
    """The address by which attempts are counted; a text that is none as it is.

    >>> counted_address("2001:db8::1:2:3:4"), counted_address("::ffff:192.0.2.1"), counted_address("192.0.2.1")
    ('2001:db8::', '192.0.2.1', '192.0.2.1')
    """
    try:
        known = ip_address(address)
    except ValueError:
        return address[:100]
    if not isinstance(known, IPv6Address):
        return str(known)
    return str(known.ipv4_mapped or IPv6Address(int(known) >> 64 << 64))


class Workers:
    """The threads of one server process."""

    def __init__(self, settings: ServerSettings | None = None) -> None:
        given = settings or ServerSettings()
        self.metrics = Metrics()
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._request_limit, self._sign_in_limit = parse(given.request_limit), parse(given.sign_in_limit)
        self._seconds = given.compute_seconds
        self._threads = {
            answering: ThreadPoolExecutor(given.workers, thread_name_prefix="question" if answering else "request")
            for answering in (True, False)
        }
        self.each = max(1, given.workers // _SHARE)
        """How many threads one person may have at a time."""
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._used: dict[str, tuple[float, float, float]] = {}
        """By person: seconds that counted against them when their last work ended, when that was, and how long it took.
        """
        self._recent: dict[str, tuple[float, float]] = {}
        """By person: seconds that they computed lately, and when that was."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Wait for what runs; what waits is not started."""
        for threads in self._threads.values():
            threads.shutdown(wait=True, cancel_futures=True)

    def count_request(self, person: str) -> None:
        """Refuse too many requests of one person."""
        if not self._limiter.hit(self._request_limit, "request", person):
            raise TooManyRequests("Too many requests in a short time.", fix="Wait, then go on.")

    def count_sign_in(self, address: str) -> None:
        """Refuse too many attempts to sign in from one address."""
        if not self._limiter.hit(self._sign_in_limit, "sign-in", address):
            raise TooManyRequests("Too many attempts to sign in.", fix="Wait, then try again.")

    @asynccontextmanager
    async def turn(self, person: str, *, answering: bool = True) -> AsyncIterator[None]:
        """A turn of a person, of which each has a few at a time."""
        key = f"{person} {answering}"
        turns = self._turns.get(key)
        if turns is None:
            turns = self._turns[key] = asyncio.Semaphore(self.each)
        async with turns:
            pause = self._pause(person)
            if pause:
                await asyncio.sleep(pause)
            yield

    async def run(self, person: str, work: Callable[[], Result], *, answering: bool = False) -> Result:
        """Run something for a person in a worker, when it is their turn, if they have computing time left."""
        self.check_computing(person)
        return await self.go_on(person, work, answering=answering)

    async def go_on(self, person: str, work: Callable[[], Result], *, answering: bool = True) -> Result:
        """Run what has begun, when it is the person's turn, whatever else they computed meanwhile."""
        async with self.turn(person, answering=answering):
            return await self.start(person, work, answering=answering)

    def start(self, person: str, work: Callable[[], Result], *, answering: bool = True) -> asyncio.Future[Result]:
        """Run something for a person in a worker at once; for those who hold a turn."""
        return asyncio.get_running_loop().run_in_executor(self._threads[answering], self._counted(person, work))

    def _counted(self, person: str, work: Callable[[], Result]) -> Callable[[], Result]:
        def counted() -> Result:
            start, _elsewhere.seconds = time.thread_time(), 0.0
            try:
                return work()
            finally:
                used = time.thread_time() - start + _elsewhere.seconds
                with self._lock:
                    self._used[person] = self._level(person) + used, time.monotonic(), used
                    self._recent[person] = self._lately(person) + used, time.monotonic()

        return counted

    def _level(self, person: str) -> float:
        """Seconds that count against a person: a minute's seconds drain within a minute."""
        used, at, _ = self._used.get(person, (0.0, 0.0, 0.0))
        return max(0.0, used - (time.monotonic() - at) * self._seconds / 60)

    def _lately(self, person: str) -> float:
        """Seconds that a person computed, those of long ago hardly counted."""
        seconds, at = self._recent.get(person, (0.0, 0.0))
        return seconds * exp((at - time.monotonic()) / _LATELY_SECONDS)

    def _pause(self, person: str) -> float:
        """How long a person gives way to others before they compute again, on one of their threads."""
        with self._lock:
            own, since = self._lately(person), time.monotonic() - _ACTIVE_SECONDS
            others = [self._lately(name) for name, (_, at, _) in self._used.items() if at > since and name != person]
            if not others or own < _FREE_SECONDS or own < _MORE * (own + sum(others)) / (1 + len(others)):
                return 0.0
            return min(self._used[person][2] * (_SHARE * self.each - 1), _LONGEST_PAUSE)

    def check_computing(self, person: str) -> None:
        """Refuse a person whose requests computed for too long."""
        with self._lock:
            level = self._level(person)
            if len(self._used) > 10_000:
                self._used = {name: used for name, used in self._used.items() if self._level(name)}
                self._recent = {name: recent for name, recent in self._recent.items() if name in self._used}
        if level > self._seconds:
            raise TooManyRequests("Your requests took too much computing time.", fix="Wait a minute, then go on.")
