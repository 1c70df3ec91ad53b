"""The auditor at scale, through the SQL front: every query of a sequence is parsed, decided, stored and answered.

    python benchmarks/audit.py [--record]  all of the following
    python benchmarks/audit.py ranges      one million people, 100 ranges of one column, 10 values
    python benchmarks/audit.py boxes       one million people, 100 boxes over two columns, 10 values
    python benchmarks/audit.py crossing    people in random halves and in crossing partitions: small atoms
    python benchmarks/audit.py extremes    MAX and then MIN over overlapping sets, a million possible numbers

Prints CPU seconds for opening the session, for all answers and for the slowest one. No peer has an exact auditor to
compare with.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import numpy as np
import numpy.typing as npt
import polars as pl
from record import Figures

from sfumato.auditing.policies.audit import Audit
from sfumato.dataset import Column, Domain, Kind, RangeDomain, Role, Schema
from sfumato.errors import AnswerDenied
from sfumato.ledger.ledger import Ledger
from sfumato.query.plan.catalog import Catalog, PrivateTable
from sfumato.query.session import Session

FIGURES = Figures(
    "audit",
    "front",
    {"problem": "", "opening": ".1f", "seconds": ".1f", "slowest": ".2f", "decisions": ""},
    {"opening": "CPU seconds, opening", "seconds": "CPU seconds, all answers", "slowest": "slowest"},
)


def play(name: str, frame: pl.DataFrame, queries: list[str], policy: Audit, domain: Domain | None = None) -> None:
    """Ask all queries in turn; answered ones stay, refused ones do not."""
    columns = {
        column: Column(kind=Kind.of(dtype), role=Role.SENSITIVE, domain=domain)
        if column == "v"
        else Column(kind=Kind.of(dtype), role=Role.PLAIN)
        for column, dtype in frame.schema.items()
    }
    catalog = Catalog(dataset="t", private={"t": PrivateTable(name="t", schema=Schema(columns=columns))})
    before = time.process_time()
    session = Session(catalog, {"t": frame}, ledger=Ledger.open(":memory:"), analyst="a", policy=policy)
    opening = time.process_time() - before
    decided: Counter[str] = Counter()
    slowest, start = 0.0, time.process_time()
    for sql in queries:
        before = time.process_time()
        try:
            session.ask(sql)
            decided["answered"] += 1
        except AnswerDenied as denial:
            decided["out of effort" if "ran out" in str(denial) else "refused"] += 1
        slowest = max(slowest, time.process_time() - before)
    total = time.process_time() - start
    words = ", ".join(f"{count} {what}" for what, count in decided.items())
    FIGURES.add(problem=name, opening=opening, seconds=total, slowest=slowest, decisions=words)


def values(count: int, kinds: int, rng: np.random.Generator, skew: float = 1.0) -> list[str]:
    weights = 1 / np.arange(1, kinds + 1) ** skew
    codes: npt.NDArray[np.int64] = rng.choice(kinds, count, p=weights / weights.sum())
    return [f"v{code}" for code in codes]


def ranges(columns: int, k: int, skew: float) -> None:
    rng = np.random.default_rng(5)
    count = 1_000_000
    names = ["x", "y"][:columns]
    high = 1_000_000 if columns == 1 else 1000
    frame = pl.DataFrame({name: rng.integers(0, high, count) for name in names} | {"v": values(count, 10, rng, skew)})
    queries = []
    for number in range(100):
        ends = [np.sort(rng.integers(0, high, 2)).tolist() for _ in names]
        where = " AND ".join(f"{name} BETWEEN {a} AND {b}" for name, (a, b) in zip(names, ends, strict=True))
        queries.append(f"SELECT COUNT(*) FROM t WHERE v = 'v{number % 10}' AND {where}")
    shape = "ranges of one column" if columns == 1 else "boxes over two columns"
    play(f"{count:,} people, 100 counts over {shape}, 10 values (skew {skew:g}), k = {k}", frame, queries, Audit(k=k))


def crossing() -> None:
    for count, asked, kinds in ((200, 16, 3), (1200, 10, 5)):
        rng = np.random.default_rng(7)
        sides = {f"r{number}": rng.integers(0, 2, count) for number in range(asked)}
        frame = pl.DataFrame(sides | {"v": values(count, kinds, rng)})
        queries = [f"SELECT v FROM t WHERE r{number} = 1" for number in range(asked)]
        play(f"{count:,} people, {asked} lists of random halves, {kinds} values, k = 2", frame, queries, Audit(k=2))
    for side, partitions in ((24, 2), (10, 3)):
        rng = np.random.default_rng(8)
        i, j = np.divmod(np.arange(side * side), side)
        lines = {"i": i, "j": j, "d": (i + j) % side}
        frame = pl.DataFrame(lines | {"v": values(side * side, 5, rng)})
        queries = [f"SELECT v FROM t WHERE {n} = {at}" for n in ("i", "j", "d")[:partitions] for at in range(side)]
        play(f"{side * side} people, {partitions} crossing partitions, 5 values, k = 2", frame, queries, Audit(k=2))


def extremes() -> None:
    rng = np.random.default_rng(9)
    count = 1500
    frame = pl.DataFrame({"x": np.arange(count), "v": rng.uniform(0, 1, count).round(6)})
    queries = []
    for kind in ("MAX", "MIN"):
        for _ in range(10):
            low = int(rng.integers(0, count - 300))
            queries.append(f"SELECT {kind}(v) FROM t WHERE x BETWEEN {low} AND {low + 299}")
    name = f"{count:,} people, 10 MAX and 10 MIN over 300 people each, a million possible numbers, k = 2"
    play(name, frame, queries, Audit(k=2), RangeDomain(low=0, high=1, step=1e-6))


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["ranges", "boxes", "crossing", "extremes"]
    if "ranges" in chosen:
        ranges(1, 3, 1.0)
        ranges(1, 10, 2.0)
    if "boxes" in chosen:
        ranges(2, 3, 1.0)
    if "crossing" in chosen:
        crossing()
    if "extremes" in chosen:
        extremes()
