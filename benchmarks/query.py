"""COUNT and clipped SUM by city: 10 million rows, 1 million users, 1,000 cities, at most 2 cities per user, epsilon 1.

Each contender runs in a process of its own, so that CPU seconds and peak memory are its own, imports included. It runs
on a small table first and is measured the second time, so that byte code and compiled kernels lie ready as they do
after installation. OpenDP's Polars path needs a Polars
below 2, Tumult a NumPy below 2 and Java: each needs a virtual environment of its own, whose Python is named.

Then small questions, of 10 rows and of 1,000 public keys: milliseconds of a question that is new and of one that was
asked before, with the ledger in a file. ``--tiny`` runs these alone.

Run: python benchmarks/query.py [--rows 10000000] [--opendp-python o/bin/python] [--tumult-python t/bin/python]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

CITIES = [f"c{i:04d}" for i in range(1000)]
SMALL = "small.parquet"
SAID = tuple(f"  {word}" for word in ("kept", "the same", "another", "noise"))
"""How the lines begin that are passed on."""
PROCESS: dict[str, float] = {}
"""CPU seconds of the process when its first answer was there, where it asks more than that."""


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
    from sfumato.dataset import Column, Domain, Kind, RangeDomain, Role, Schema, ValuesDomain
    from sfumato.dp.loss import approximate
    from sfumato.engines.backends.duckdb.engine import Duckdb
    from sfumato.ledger.ledger import Ledger
    from sfumato.query import Catalog, PrivateTable, Session

    def column(kind: Kind, domain: Domain | None = None) -> Column:
        return Column(role=Role.PLAIN, kind=kind, domain=domain)

    columns = {
        "user": column(Kind.INTEGER),
        "city": column(Kind.CATEGORY, ValuesDomain(values=tuple(CITIES))),
        "amount": column(Kind.NUMBER, RangeDomain(low=0, high=100)),
    }
    table = PrivateTable(name="t", schema=Schema(columns=columns, unit="user"), rows=1, groups=2)
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10, "1e-4"), dataset="d")
    small = path.name == SMALL
    engine = Duckdb(compiled=0) if small else Duckdb()
    session = Session(Catalog(dataset="d", private={"t": table}), {"t": path}, ledger=book, analyst="a", engine=engine)
    delta = "1e-6" if bounding == "clip" else 0
    start = time.process_time()
    sql = "SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM t GROUP BY city"
    answer = session.ask(sql, epsilon=1, delta=delta, bounding=bounding)
    spent = time.process_time() - start
    if small:
        return spent
    total, noise = answer.frame["s"].sum(), [round(n.error, 1) for n in answer.explanation.noises]
    print(f"  kept {answer.frame['n'].sum():,.0f} rows and a sum of {total:,.0f}; noise 95 %: {noise}", file=sys.stderr)
    PROCESS["process"] = time.process_time()
    again = []
    for _ in range(9):
        start = time.process_time()
        assert session.ask(sql, epsilon=1, delta=delta, bounding=bounding).cached
        again.append(1000 * (time.process_time() - start))
    print(f"  the same again: {median(again):.1f} ms CPU (the middle of nine)", file=sys.stderr)
    start = time.process_time()
    session.ask(sql, epsilon=2, delta=delta, bounding=bounding)
    print(f"  another question in the same session: {time.process_time() - start:.2f} CPU s", file=sys.stderr)
    return spent


TINY = {
    "COUNT, 10 rows": (10, 4, "SELECT COUNT(*) FROM t"),
    "AVG by city, 10 rows": (10, 4, "SELECT city, AVG(amount) AS a FROM t GROUP BY city"),
    "COUNT and AVG by city, 10 rows": (10, 4, "SELECT city, COUNT(*) AS n, AVG(amount) AS a FROM t GROUP BY city"),
    "MEDIAN by city, 10 rows": (10, 4, "SELECT city, MEDIAN(amount) AS a FROM t GROUP BY city"),
    "COUNT by city with a delta, 10 rows": (10, 4, "SELECT city, COUNT(*) AS n FROM t GROUP BY city"),
    "AVG by city, 5,000 rows": (5_000, 4, "SELECT city, AVG(amount) AS a FROM t GROUP BY city"),
    "COUNT and SUM by 1,000 cities, 5,000 rows": (
        5_000, 1000, "SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM t GROUP BY city"),
    "AVG by 1,000 cities, 5,000 rows": (5_000, 1000, "SELECT city, AVG(amount) AS a FROM t GROUP BY city"),
}  # fmt: skip
"""Rows, cities, question."""


def tiny(folder: Path) -> None:
    """Milliseconds of CPU time: the median of 60 queries, and the 95th percentile."""
    import polars as pl
    from record import Figures

    from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema, ValuesDomain
    from sfumato.dp.loss import approximate
    from sfumato.ledger.ledger import Ledger
    from sfumato.query import Catalog, PrivateTable, Session

    def took(session: Session, sql: str, delta: str) -> str:
        cpu = []
        for i in range(60):
            start = time.process_time()
            session.ask(sql, epsilon=f"{i + 1}/97", delta=delta)
            cpu.append(1000 * (time.process_time() - start))
        return f"{sorted(cpu)[30]:.1f} ({sorted(cpu)[57]:.1f})"

    titles = {"new": "new query, CPU ms", "again": "asked again, CPU ms"}
    figures = Figures("query", "tiny", {"query": "", "new": "", "again": ""}, titles)
    for i, (title, (rows, cities, sql)) in enumerate(TINY.items()):
        frame = pl.DataFrame({"user": range(rows), "city": [CITIES[k % cities] for k in range(rows)],
                              "amount": [k * 0.7 % 100 for k in range(rows)]})  # fmt: skip
        frame.write_parquet(folder / f"tiny{i}.parquet")
        columns = {
            "user": Column(role=Role.PLAIN, kind=Kind.INTEGER),
            "city": Column(role=Role.PLAIN, kind=Kind.CATEGORY, domain=ValuesDomain(values=tuple(CITIES[:cities]))),
            "amount": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=0, high=100)),
        }
        table = PrivateTable(name="t", schema=Schema(columns=columns, unit="user"), rows=1, groups=2)
        book = Ledger.open(folder / f"tiny{i}.db")
        book.set_cap(approximate(1000, "1e-3"), dataset="d")
        delta = "1e-6" if "delta" in title else "0"
        known = Catalog(dataset="d", private={"t": table})
        session = Session(known, {"t": folder / f"tiny{i}.parquet"}, ledger=book, analyst="a")
        session.ask(sql, epsilon=1)
        figures.add(query=title, new=took(session, sql, delta), again=took(session, sql, delta))


OPENDP = """
import json, sys, time
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib", "honest-but-curious")
context = dp.Context.compositor(
    data=pl.scan_parquet(sys.argv[1]),
    privacy_unit=dp.unit_of(contributions=1, identifier="user"),
    privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1,
    margins=[dp.polars.Margin(by=(), max_length=20_000_000)])
keys = pl.LazyFrame({"city": [f"c{i:04d}" for i in range(1000)]})
start = time.process_time()
query = (context.query().truncate_num_groups(2, by=["city"], keep="first").truncate_per_group(1, by=["city"])
         .group_by("city").agg(dp.len(), pl.col("amount").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 100.0)))
         .with_keys(keys))
query.release().collect()
spent = time.process_time() - start
print("  noise scales:", query.summarize()["scale"].to_list(), file=sys.stderr)
most = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps({"query": spent, "peak": int(most[0].split()[1]) / 2**20}))
"""
"""Groups are truncated before rows, which takes half the time of the other order. Keeps the first two groups: keeping
two at random (the default) fails in OpenDP 0.16 with the Polars it installs."""


TUMULT = """
import json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from tmlt.analytics import (AddRowsWithID, KeySet, MaxGroupsPerID, MaxRowsPerGroupPerID, PureDPBudget, QueryBuilder,
                            Session)

def processes():
    known = {}
    for item in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = item.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        known[int(item.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    found, new = set(), {os.getpid()}
    while new:
        found |= new
        new = {pid for pid, (parent, _) in known.items() if parent in found} - found
    return {pid: known[pid][1] for pid in found}

def peak(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20

os.environ["PYSPARK_PYTHON"] = sys.executable
java = "-Dio.netty.tryReflectionSetAccessible=true"
spark = (SparkSession.builder.master("local[*]").config("spark.driver.memory", "8g").config("spark.ui.enabled", "false")
         .config("spark.driver.extraJavaOptions", java).config("spark.executor.extraJavaOptions", java).getOrCreate())
start = sum(processes().values())
session = Session.from_dataframe(PureDPBudget(1), "t", spark.read.parquet(sys.argv[1]),
                                 protected_change=AddRowsWithID(id_column="user"))
keys = KeySet.from_dict({"city": [f"c{i:04d}" for i in range(1000)]})
bounded = (QueryBuilder("t").drop_null_and_nan(["amount"]).drop_infinity(["amount"])
           .enforce(MaxGroupsPerID("city", 2)).enforce(MaxRowsPerGroupPerID("city", 1)).groupby(keys))
n = session.evaluate(bounded.count(name="n"), PureDPBudget(0.5)).toPandas()["n"].sum()
s = session.evaluate(bounded.sum("amount", 0.0, 100.0, name="s"), PureDPBudget(0.5)).toPandas()["s"].sum()
print(f"  kept {n:,.0f} rows and a sum of {s:,.0f}", file=sys.stderr)
spent = processes()
print(json.dumps({"query": sum(spent.values()) - start, "process": sum(spent.values()),
                  "peak": sum(peak(pid) for pid in spent)}))
"""
"""Counts and sums take a question each. The CPU time and memory are those of the Java machine and its workers, too."""


def measured(command: list[str], folder: str) -> tuple[float, float, float] | str:
    """CPU seconds of the query, of the whole process, and peak memory in GB; or why it failed."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.run(command, capture_output=True, text=True, env=known | {"PYTHONPYCACHEPREFIX": folder})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stderr.write("".join(line + "\n" for line in child.stderr.splitlines() if line.startswith(SAID)))
    if child.returncode:
        return (child.stderr.strip().splitlines() or ["failed"])[-1][:100]
    document = json.loads(child.stdout.strip().splitlines()[-1])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return document["query"], document.get("process", cpu), document["peak"]


def one(name: str, path: Path) -> None:
    from processes import peak

    spent = plain(path) if name == "plain" else ours(path, name)
    print(json.dumps({"query": spent, "peak": peak([os.getpid()])} | PROCESS))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--opendp-python", default=None)
    parser.add_argument("--tumult-python", default=None)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--one", nargs=2, default=None)
    arguments = parser.parse_args()
    if arguments.tiny:
        with tempfile.TemporaryDirectory() as folder:
            tiny(Path(folder))
        return
    if arguments.one:
        one(arguments.one[0], Path(arguments.one[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "visits.parquet", Path(folder) / SMALL
        make(path, arguments.rows)
        make(small, 5_000)
        contenders = {"DuckDB, not private": "plain", "sfumato, sampled": "sample", "sfumato, norm clipped": "clip"}
        commands = {title: [sys.executable, __file__, "--one", name] for title, name in contenders.items()}
        if arguments.opendp_python:
            commands["OpenDP, Polars"] = [arguments.opendp_python, "-c", OPENDP]
        if arguments.tumult_python:
            commands["Tumult, Spark"] = [arguments.tumult_python, "-c", TUMULT]
        print(f"{'contender':<28}{'query CPU s':>12}{'process CPU s':>15}{'peak GB':>9}")
        for title, command in commands.items():
            measured([*command, str(small)], folder)
            found = measured([*command, str(path)], folder)
            if isinstance(found, str):
                print(f"{title:<28}{found}", flush=True)
            else:
                print(f"{title:<28}{found[0]:>12.2f}{found[1]:>15.2f}{found[2]:>9.2f}", flush=True)
        tiny(Path(folder))


if __name__ == "__main__":
    main()
