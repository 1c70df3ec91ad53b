"""COUNT and clipped SUM by city on DuckDB, PostgreSQL and Spark, against the plain GROUP BY of the same engine.

1,000 cities, ten rows per user, at most 2 cities of a user count (epsilon 1). Each engine runs in a process of its own;
CPU seconds and memory are those of this process and of all it needs: the Java machine, or the PostgreSQL server with
its workers, which is started here and loaded before. One plain GROUP BY that is not counted brings the table into
memory; the ratio is to the second one. Bounding has to group the rows by user and city, whose cost without privacy is
measured, too. Groups are sampled twice, the second time of other rows: an engine that compiles
statements has done so by then. Memory is the largest sum of the processes' proportional shares, looked at ten times a
second, so it includes the programs themselves.

Run: python benchmarks/engines.py [--rows 10000000] [--engines duckdb postgres spark] [--record]   (Linux: it reads
/proc)
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from processes import cpu, tree
from record import Figures

from query import CITIES, make

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
PLAIN = "SELECT city, COUNT(*), SUM(greatest(least(amount, 100), 0)) FROM {} GROUP BY city"
PAIRS = 'SELECT COUNT(*), SUM(n) FROM (SELECT "user", city, COUNT(*) AS n, SUM(amount) FROM {} GROUP BY "user", city) p'
PRIVATE = "SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM t WHERE amount < {} GROUP BY city"
TITLES = {
    "plain": "plain",
    "pairs": "plain, by user and city",
    "sampled": "sampled, first query",
    "clipped": "norm clipped",
    "again": "sampled",
}


# --- one engine, in a process of its own ------------------------------------------------------------------------------


def tell(word: str) -> None:
    """Say where we are, and wait until the clocks have been read."""
    print(word, flush=True)
    sys.stdin.readline()


def session(engine: Any, source: Any) -> Any:
    from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema, ValuesDomain
    from sfumato.dp.loss import approximate
    from sfumato.ledger.ledger import Ledger
    from sfumato.query import Catalog, PrivateTable, Session

    columns = {
        "user": Column(role=Role.PLAIN, kind=Kind.INTEGER),
        "city": Column(role=Role.PLAIN, kind=Kind.CATEGORY, domain=ValuesDomain(values=tuple(CITIES))),
        "amount": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=0, high=100)),
    }
    table = PrivateTable(name="t", schema=Schema(columns=columns, unit="user"), rows=1, groups=2)
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10, "1e-4"), dataset="d")
    catalog = Catalog(dataset="d", private={"t": table})
    return Session(catalog, {"t": source}, ledger=book, analyst="a", engine=engine)


def plain(name: str, source: str) -> Callable[[str], int]:
    """A statement without privacy, as the engine's own driver asks it: the number of rows of its result."""
    if name == "duckdb":
        import duckdb

        return lambda sql: len(duckdb.connect().execute(sql.format(f"'{source}'")).fetchall())
    if name == "postgres":
        import psycopg

        connection = psycopg.connect(source.partition("#")[0], autocommit=True)
        return lambda sql: len(connection.execute(sql.format("visits")).fetchall())
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    assert spark is not None
    spark.read.parquet(source).createOrReplaceTempView("visits")
    return lambda sql: len(spark.sql(sql.format("visits").replace('"', "`")).collect())


def one(name: str, source: str) -> None:
    from sfumato.engines.backends.duckdb.engine import Duckdb
    from sfumato.engines.backends.postgres.engine import Postgres
    from sfumato.engines.backends.spark.engine import Spark

    engines = {"duckdb": Duckdb(threads=2), "duckdb-sha256": Duckdb(threads=2, order="sha256"),
               "postgres": Postgres(timeout=3600), "spark": Spark(threads=2, memory="4g", timeout=3600)}  # fmt: skip
    asked = session(engines[name], source if name == "postgres" else Path(source))
    group = plain(name.partition("-")[0], source)
    assert group(PLAIN) == len(CITIES)
    tell("ready")
    assert group(PLAIN) == len(CITIES)
    tell("plain")
    assert group(PAIRS) == 1
    tell("pairs")
    asked.ask(PRIVATE.format(1001), epsilon=1, bounding="sample")
    tell("sampled")
    asked.ask(PRIVATE.format(1002), epsilon=1, delta="1e-6", bounding="clip")
    tell("clipped")
    asked.ask(PRIVATE.format(1003), epsilon=1, bounding="sample")
    tell("again")


# --- the clocks -------------------------------------------------------------------------------------------------------


@contextmanager
def watched(roots: list[int]) -> Iterator[dict[str, float]]:
    """The most memory in GB since ``peak`` was last set to 0."""
    seen, over = {"peak": 0.0}, threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            total = 0
            for pid in tree(roots):
                try:
                    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                except OSError:
                    continue
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            seen["peak"] = max(seen["peak"], total / 2**20)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def measured(name: str, source: str, roots: list[int]) -> dict[str, tuple[float, float, float]]:
    """By question: CPU seconds, wall seconds and peak memory."""
    command = [sys.executable, __file__, "--one", name, source]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None  # noqa: PT018
    noise: list[str] = []
    stderr = child.stderr
    threading.Thread(target=lambda: noise.extend(stderr), daemon=True).start()
    roots = [child.pid, *roots]
    found: dict[str, tuple[float, float, float]] = {}
    with watched(roots) as memory:
        before = start = 0.0
        for line in child.stdout:
            now, wall = cpu(roots), time.monotonic()
            if line.strip() in TITLES:
                found[line.strip()] = (now - before, wall - start, memory["peak"])
            memory["peak"], before, start = 0.0, cpu(roots), time.monotonic()
            child.stdin.write("\n")
            child.stdin.flush()
    if child.wait():
        raise SystemExit(f"{name}: {''.join(noise)[-500:]}")
    return found


def loaded(stack: ExitStack, parquet: Path) -> tuple[str, list[int]]:
    """A PostgreSQL server of our own with the table in it: its address, and its first process."""
    import polars as pl
    import psycopg

    from postgres import server

    url, data = stack.enter_context(server())
    lines = parquet.with_suffix(".csv")
    pl.scan_parquet(parquet).sink_csv(lines, include_header=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute('CREATE TABLE visits ("user" bigint, city text, amount double precision)')
        with connection.cursor().copy("COPY visits FROM STDIN WITH (FORMAT csv)") as copy, lines.open("rb") as file:
            while block := file.read(1 << 20):
                copy.write(block)
        connection.execute("VACUUM ANALYZE visits")
    lines.unlink()
    return f"{url}#visits", [int((data / "postmaster.pid").read_text().split()[0])]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engines", nargs="*", default=["duckdb", "duckdb-sha256", "postgres", "spark"])
    parser.add_argument("--one", nargs=2, default=None)
    arguments = parser.parse_args()
    if arguments.one:
        one(*arguments.one)
        return
    columns = {"engine": "", "query": "", "cpu": ".1f", "wall": ".1f", "ratio": ".1f", "peak": ".1f"}
    titles = {"cpu": "CPU s", "wall": "seconds", "ratio": "times the plain query", "peak": "peak memory, GB"}
    table = Figures("engines", "ten_million", columns, titles)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder) / "visits.parquet"
        make(path, arguments.rows)
        for name in arguments.engines:
            source, roots = loaded(stack, path) if name == "postgres" else (str(path), [])
            found = measured(name, source, roots)
            for question, (seconds, wall, peak) in found.items():
                ratio = None if question == "plain" else seconds / found["plain"][0]
                title = TITLES[question]
                table.add(engine=name, query=title, cpu=seconds, wall=wall, ratio=ratio, peak=peak)


if __name__ == "__main__":
    main()
