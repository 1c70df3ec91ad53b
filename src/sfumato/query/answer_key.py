"""Keys of stored answers: the same query on the same data at the same cost gets the same answer again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sfumato.engines.choice import is_address, without_password
from sfumato.query.plan.noise import NoisePlan

__all__ = ["answer_key", "data_version"]


def data_version(sources: Iterable[Any], *, public: str, declared: object, session: str) -> str:
    """Changes when the data changes: a file by its size and time, a frame with every session, a database when the
    owner declares another version."""
    parts = [public]
    for source in sources:
        if is_address(source):
            parts.append(f"{without_password(source)} {declared}")
        elif isinstance(source, str | Path):
            facts = Path(source).stat()
            parts.append(f"{Path(source).resolve()} {facts.st_size} {facts.st_mtime_ns}")
        else:
            parts.append(session)
    return "\n".join(parts)


def answer_key(dataset: str, version: str, plan: NoisePlan) -> str:
    """The key of a plan's answer."""
    parts = [
        dataset, version, plan.query.fingerprint(),
        repr(plan.cost), str(plan.rows), str(plan.groups), plan.bounding,
        # A later release may plan other noise: its intervals would be wrong for a stored number.
        repr([(measurement.aggregate, measurement.mechanism) for measurement in plan.measurements]),
    ]  # fmt: skip
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
