"""COUNT and clipped SUM by city: 10 million rows, 1 million users, 1,000 cities, at most 2 cities per user, epsilon 1.

Each contender runs in a process of its own, so that CPU seconds and peak memory are its own, imports included. OpenDP's
Polars path needs a Polars below 2 and so a virtual environment of its own: name its Python with --opendp-python.

Run: python benchmarks/query.py [--rows 10000000] [--opendp-python .venv-peers/bin/python]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CITIES = [f"c{i:04d}" for i in range(1000)]


def make(path: Path, rows: int) -> None:
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(1)
    weight = 1 / np.arange(1, 1001) ** 0.8
    city = np.array(CITIES)[rng.choice(1000, rows, p=weight / weight.sum())]
    pl.DataFrame(
        {"user": rng.integers(0, max(1, rows // 10), rows), "city": city, "amount": rng.gamma(2.0, 20.0, rows)}
    ).write_parquet(path)


def plain(path: Path) -> float:
    import duckdb

    start = time.process_time()
    sql = f"SELECT city, COUNT(*), SUM(greatest(least(amount, 100), 0)) FROM '{path}' GROUP BY city"
    assert len(duckdb.connect().execute(sql).fetchall()) == 1000
    return time.process_time() - start


def ours(path: Path, bounding: str) -> float:
    from tacit.answer import Catalog, PrivateTable, Session
    from tacit.dp.ledger import Ledger
    from tacit.dp.loss import approximate
    from tacit.schema import Column, Domain, Kind, Role, Schema

    def column(kind: Kind, domain: Domain | None = None) -> Column:
        return Column(role=Role.PLAIN, kind=kind, domain=domain)

    columns = {
        "user": column(Kind.INTEGER),
        "city": column(Kind.CATEGORY, Domain(values=tuple(CITIES))),
        "amount": column(Kind.NUMBER, Domain(low=0, high=100)),
    }
    table = PrivateTable(name="t", schema=Schema(columns=columns, unit="user"), rows=1, groups=2)
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10, "1e-4"), dataset="d")
    session = Session(Catalog(dataset="d", private={"t": table}), {"t": path}, ledger=book, analyst="a")
    delta = "1e-6" if bounding == "clip" else 0
    start = time.process_time()
    sql = "SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM t GROUP BY city"
    answer = session.ask(sql, epsilon=1, delta=delta, bounding=bounding)
    spent = time.process_time() - start
    total, noise = answer.frame["s"].sum(), [round(n.error, 1) for n in answer.explanation.noises]
    print(f"  kept {answer.frame['n'].sum():,.0f} rows and a sum of {total:,.0f}; noise 95 %: {noise}", file=sys.stderr)
    start = time.process_time()
    assert session.ask(sql, epsilon=1, delta=delta, bounding=bounding).cached
    print(f"  the same again: {1000 * (time.process_time() - start):.1f} ms CPU", file=sys.stderr)
    return spent


OPENDP = """
import json, resource, sys, time
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib", "honest-but-curious")
context = dp.Context.compositor(
    data=pl.scan_parquet(sys.argv[1]),
    privacy_unit=dp.unit_of(contributions=1, identifier="user"),
    privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1,
    margins=[dp.polars.Margin(by=(), max_length=20_000_000)])
keys = pl.LazyFrame({"city": [f"c{i:04d}" for i in range(1000)]})
start = time.process_time()
query = (context.query().truncate_per_group(1, by=["city"]).truncate_num_groups(2, by=["city"], keep="first")
         .group_by("city").agg(dp.len(), pl.col("amount").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 100.0)))
         .with_keys(keys))
query.release().collect()
spent = time.process_time() - start
print("  noise scales:", query.summarize()["scale"].to_list(), file=sys.stderr)
print(json.dumps({"query": spent, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
"""
"""Keeps the first two groups: keeping two at random (the default) fails in OpenDP 0.16 with the Polars it installs."""


def measured(command: list[str]) -> tuple[float, float, float] | str:
    """CPU seconds of the query, of the whole process, and peak memory in GB; or why it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stderr.write("".join(line + "\n" for line in child.stderr.splitlines() if line.startswith("  ")))
    if child.returncode:
        return (child.stderr.strip().splitlines() or ["failed"])[-1][:100]
    document = json.loads(child.stdout.strip().splitlines()[-1])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return document["query"], cpu, document["peak"]


def one(name: str, path: Path) -> None:
    spent = plain(path) if name == "plain" else ours(path, name)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"query": spent, "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--opendp-python", default=None)
    parser.add_argument("--one", nargs=2, default=None)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one[0], Path(arguments.one[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        make(path, arguments.rows)
        print(f"{'contender':<28}{'query CPU s':>12}{'process CPU s':>15}{'peak GB':>9}")
        contenders = {"DuckDB, not private": "plain", "tacit, sampled": "sample", "tacit, norm clipped": "clip"}
        commands = {title: [sys.executable, __file__, "--one", name, str(path)] for title, name in contenders.items()}
        if arguments.opendp_python:
            commands["OpenDP, Polars"] = [arguments.opendp_python, "-c", OPENDP, str(path)]
        for title, command in commands.items():
            found = measured(command)
            if isinstance(found, str):
                print(f"{title:<28}{found}")
            else:
                print(f"{title:<28}{found[0]:>12.2f}{found[1]:>15.2f}{found[2]:>9.2f}")


if __name__ == "__main__":
    main()
