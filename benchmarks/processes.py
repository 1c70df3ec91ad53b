"""CPU seconds and memory of a process and of all it started: the Java machine of Spark, and the workers of either.

``ru_maxrss`` is not used: a child begins with the most that its parent had.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def tree(roots: Sequence[int]) -> list[int]:
    """The processes and all they started."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            found = stat(int(entry.name))
            if found is not None:
                parents.setdefault(int(found[1]), []).append(int(entry.name))
    seen, open_ = [], list(roots)
    while open_:
        pid = open_.pop()
        seen.append(pid)
        open_ += parents.get(pid, [])
    return seen


def stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def cpu(roots: Sequence[int]) -> float:
    """CPU seconds so far, those of ended children included."""
    found = [stat(pid) for pid in tree(roots)]
    return sum(int(field) for fields in found if fields is not None for field in fields[11:15]) / TICK


def peak(roots: Sequence[int]) -> float:
    """The most memory that each process had so far, added up, in GB."""
    total = 0
    for pid in tree(roots):
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return total / 2**20
