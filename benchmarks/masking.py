"""Masking methods: MDAV against sdcMicro's, and every other method on millions of rows.

    python benchmarks/masking.py mdav [--record]               # 100,000 x 10, k = 3
    python benchmarks/masking.py mdav --rscript /usr/bin/Rscript   # also runs sdcMicro, if R has it
    python benchmarks/masking.py methods --rows 10000000       # seconds and peak memory of every method

Without R the peer's time is estimated from its published figure (0.158 CPU seconds for EIA, 4,092 x 10, k = 3) and the
square of the number of rows, which is how its algorithm grows; the line says so. Beside it runs the same plain
algorithm, compiled, in this process. Each method of the second part runs in a process of its own, on a table read from
a file; its memory is the most the process held while masking, less what it held before reading, over the size of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from record import Figures

METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "rank-swap classic": ("rank-swap", {"p": 5}),
    "rank-swap p-buckets": ("rank-swap", {"p": 5, "variant": "p-buckets"}),
    "rank-swap p-distribution": ("rank-swap", {"p": 5, "variant": "p-distribution"}),
    "microaggregate individual": ("microaggregate", {"k": 3, "algorithm": "individual", "columns": ["a", "b", "c"]}),
    "microaggregate optimal": ("microaggregate", {"k": 3, "algorithm": "optimal", "columns": ["a", "b", "c"]}),
    "microaggregate projection": ("microaggregate", {"k": 3, "algorithm": "projection", "columns": ["a", "b", "c"]}),
    "noise additive": ("noise", {"variance_ratio": 0.1}),
    "noise correlated": ("noise", {"variance_ratio": 0.1, "variant": "correlated"}),
    "noise multiplicative": ("noise", {"variance_ratio": 0.1, "variant": "multiplicative"}),
    "noise orthogonal": ("noise", {"variance_ratio": 0.1, "variant": "orthogonal"}),
    "noise robust": ("noise", {"variance_ratio": 0.1, "variant": "robust"}),
    "pram": ("pram", {"keep": 0.8}),
    "pram invariant": ("pram", {"keep": 0.8, "invariant": True}),
    "shuffle": ("shuffle", {"columns": ["c"], "given": ["a", "b"]}),
    "swap": ("swap", {"rate": 0.1, "columns": ["region"]}),
    "swap risky": ("swap", {"rate": 0.1, "columns": ["region"], "target": "risky", "keys": ["region", "sex", "age"]}),
    "top-bottom-code": ("top-bottom-code", {"top_percent": 1}),
    "round": ("round", {"base": 0.1}),
    "categorize": ("categorize", {"bins": 10}),
    "merge-rare": ("merge-rare", {"min_count": 100}),
    "recode": ("recode", {"map": {"region": {"north": "n", "south": "s"}}}),
    "sample": ("sample", {"fraction": 0.1}),
    "shift-dates": ("shift-dates", {"days": 30, "columns": ["seen"]}),
    "add-counterfeits": ("add-counterfeits", {"fraction": 0.1}),
    "synthesize copula": ("synthesize", {"model": "copula"}),
}


def table(rows: int) -> pl.DataFrame:
    draw = np.random.default_rng(0)
    a = draw.normal(size=rows)
    return pl.DataFrame(
        {
            "a": a,
            "b": a + draw.normal(size=rows),
            "c": np.exp(draw.normal(size=rows)),
            "age": draw.integers(0, 95, rows),
            "region": pl.Series(draw.integers(0, 4, rows)).replace_strict(
                {0: "north", 1: "south", 2: "east", 3: "west"}
            ),
            "sex": pl.Series(draw.random(rows) < 0.5).replace_strict({True: "F", False: "M"}),
            "seen": pl.Series(draw.integers(18_000, 20_000, rows)).cast(pl.Date),
        }
    )


def one_method(name: str, file: str) -> None:
    from sfumato.data.table import Table
    from sfumato.dataset import Column, Data, Role, Schema
    from sfumato.masking.base import Context, Step
    from sfumato.registry import registry
    from sfumato.rng import Rng

    part, parameters = METHODS[name]
    step = registry("method").get(part).build(parameters)
    assert isinstance(step, Step)
    schema = Schema(columns={n: Column(role=Role.QUASI) for n in ("a", "b", "c", "age", "region", "sex", "seen")})
    small = Data.of(Table(frame=table(2000)), schema)
    step.apply(small, Context(rng=Rng(1)))
    start = _memory("VmRSS")
    data = Data.of(Table(frame=pl.read_parquet(file)), schema)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of reading
    begin, cpu = time.perf_counter(), time.process_time()
    step.apply(data, Context(rng=Rng(1)))
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    size = in_memory(data.table.frame)
    peak = _memory("VmHWM") - start
    print(json.dumps({"method": name, "cpu": cpu, "wall": wall, "peak": peak / size}))


def in_memory(frame: pl.DataFrame) -> int:
    """Bytes of a table in memory; a text takes 16 bytes beside its letters."""
    return int(frame.estimated_size()) + 16 * frame.height * sum(kind == pl.String for kind in frame.dtypes)


def _memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(field)


def methods(rows: int, chosen: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        frame = table(rows)
        file = Path(folder, "table.parquet")
        frame.write_parquet(file)
        print(f"{rows:,} rows, {in_memory(frame) / 1e6:.0f} MB; the table itself counts as 1 x")
        del frame
        forms = {"method": "", "cpu": ".1f", "wall": ".1f", "peak": ".1f"}
        titles = {"cpu": "CPU seconds", "wall": "wall seconds", "peak": "peak memory ÷ table"}
        figures = Figures("masking", "methods" if rows == 10_000_000 else f"methods_{rows}", forms, titles)
        for name in METHODS:
            if chosen in name:
                command = [sys.executable, __file__, "one", name, str(file)]
                done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
                if done.returncode == 0:
                    figures.add(**json.loads(done.stdout.splitlines()[-1]))


def mdav(rows: int, columns: int, k: int, rscript: str | None, plain: bool) -> None:
    from sfumato.masking.methods._mdav import mdav

    draw = np.random.default_rng(0)
    forms = {"data": "", "ours": ".1f", "plain": ".1f", "peer": ""}
    titles = {
        "data": f"MDAV, {rows:,} × {columns}, k = {k}",
        "ours": "sfumato, CPU s",
        "plain": "the plain algorithm, compiled, CPU s",
        "peer": "sdcMicro, CPU s",
    }
    figures = Figures("masking", "mdav" if rows == 100_000 else f"mdav_{rows}", forms, titles)
    for label, points in (
        ("independent normal", draw.normal(size=(rows, columns))),
        ("correlated normal", draw.normal(size=(rows, columns)) @ draw.normal(size=(columns, columns))),
    ):
        points = np.ascontiguousarray((points - points.mean(axis=0)) / points.std(axis=0))
        mdav(points[:1000], k)
        cpu = time.process_time()
        groups = mdav(points, k)
        ours = time.process_time() - cpu
        other = None
        if plain:
            sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
            from plain_mdav import mdav_plain

            mdav_plain(points[:1000], k)
            cpu = time.process_time()
            assert (mdav_plain(points, k) == groups).all(), "the two algorithms form other groups"
            other = time.process_time() - cpu
        if rscript is not None:
            peer = f"{sdcmicro(rscript, points, k):.1f}"
        else:
            peer = f"about {0.158 * (rows / 4092) ** 2 * columns / 10 * 3 / k:.0f} (extrapolated, not run)"
        figures.add(data=label, ours=ours, plain=other, peer=peer)


def sdcmicro(rscript: str, points: np.ndarray, k: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "points.csv")
        pl.DataFrame(points).write_csv(path)
        program = (
            f"x <- read.csv('{path}'); library(sdcMicro);"
            f"t <- system.time(microaggregation(x, method='mdav', aggr={k})); cat(t[['user.self']] + t[['sys.self']])"
        )
        done = subprocess.run([rscript, "-e", program], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("mdav")
    first.add_argument("--rows", type=int, default=100_000)
    first.add_argument("--columns", type=int, default=10)
    first.add_argument("--k", type=int, default=3)
    first.add_argument("--rscript", default=None)
    first.add_argument("--no-plain", action="store_true", help="leave the compiled plain algorithm out")
    second = commands.add_parser("methods")
    second.add_argument("--rows", type=int, default=10_000_000)
    second.add_argument("--only", default="", help="methods whose name contains this")
    third = commands.add_parser("one")
    third.add_argument("name")
    third.add_argument("file")
    given = parser.parse_args()
    if given.command == "mdav":
        mdav(given.rows, given.columns, given.k, given.rscript, not given.no_plain)
    elif given.command == "methods":
        methods(given.rows, given.only)
    else:
        one_method(given.name, given.file)


if __name__ == "__main__":
    main()
