"""Keys of stored answers: the same query on the same data at the same cost gets the same answer again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from sfumato.data.url import file_and_options
from sfumato.engines.choice import is_address, without_password
from sfumato.query.execute.executor import NoisyTable
from sfumato.query.file_contents import contents_digest
from sfumato.query.plan.noise import NoisePlan


def data_version(
    sources: Iterable[object], *, public: str, declared: object, session: str, contents: bool = False
) -> str:
    """Changes when the data changes: a file by its size and time, or by its ``contents``, a frame with every session, a
    database when the owner declares another version."""
    parts = [public]
    for source in sources:
        if is_address(source):
            parts.append(f"{without_password(source)} {declared}")
        elif isinstance(source, str | Path):
            file = Path(file_and_options(source)[0])
            facts = file.stat()
            state = contents_digest(file) if contents else f"{facts.st_size} {facts.st_mtime_ns}"
            parts.append(f"{Path(source).resolve()} {state}")
        else:
            parts.append(session)
    return "\n".join(parts)


def answer_key(dataset: str, version: str, plan: NoisePlan) -> str:
    """The key of a plan's answer."""
    parts = [
        dataset, version, plan.query.fingerprint[0],
        repr(plan.cost), str(plan.rows), str(plan.groups), plan.bounding,
        # A later release may plan other noise: its intervals would be wrong for a stored number.
        repr([(measurement.aggregate, measurement.mechanism) for measurement in plan.measurements]),
    ]  # fmt: skip
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def store_table(plan: NoisePlan, table: NoisyTable) -> str:
    """A table as it is stored: with its keys in the order of the fingerprint."""
    return _arranged(plan, table, plan.query.fingerprint[1]).to_json()


def restore_table(plan: NoisePlan, stored: str) -> NoisyTable:
    """A stored table with the keys in the order of this query, and its rows sorted by them."""
    order = plan.query.fingerprint[1]
    own = tuple(sorted(range(len(order)), key=lambda place: order[place]))
    return _arranged(plan, NoisyTable.from_json(stored), own)


def _arranged(plan: NoisePlan, table: NoisyTable, order: Sequence[int]) -> NoisyTable:
    if list(order) == sorted(order):
        return table
    keys = [tuple(key[place] for place in order) for key in table.keys]
    rows = range(len(keys)) if plan.top_keys else sorted(range(len(keys)), key=lambda row: keys[row])
    values = {
        i: column if i == plan.query.fitting else tuple(column[row] for row in rows)
        for i, column in table.values.items()
    }
    return NoisyTable(keys=tuple(keys[row] for row in rows), values=values)
