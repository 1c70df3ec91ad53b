"""Memory guard: work that would not fit in memory is refused before it begins, with the amount it needs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sfumato.errors import OutOfMemory

_CONTAINER = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def memory_ran_out() -> OutOfMemory:
    """The refusal of an attack or a measure that had not enough memory."""
    return OutOfMemory(
        "Not measured: memory ran out.", fix="Use a machine with more memory, fewer targets, or a sample of the rows."
    )


def available_memory() -> int:
    """Bytes that this process can still use: of the machine, its container and its own limit, the smallest."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        try:
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        except (ValueError, OSError, AttributeError):
            free = 4 << 30
    for limit, used in _CONTAINER:
        with suppress(OSError, ValueError):
            free = min(free, int(Path(limit).read_text()) - int(Path(used).read_text()))
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            free = min(free, most - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize())
    return max(free, 0)


def require_memory(needed: float, what: str) -> None:
    """Raise :class:`OutOfMemory` if the work needs more bytes than are available.

    >>> require_memory(1000, "Adding two numbers")
    """
    if needed < 100_000_000:
        return
    available = available_memory()
    if needed > available:
        raise OutOfMemory(
            f"Not measured: {what} needs about {needed / 1e9:,.1f} GB of memory, and {available / 1e9:,.1f} GB are "
            "available.",
            fix="Use a machine with more memory, fewer targets, or a sample of the rows.",
        )
