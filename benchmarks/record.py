"""Benchmark results as JSON: figures with the command, machine, versions and date that they belong to.

A benchmark collects its figures in a `Figures` table, which prints each row as it comes. With `--record` on the command
line the table is also written to `benchmarks/results/NAME.json`; tables of other runs in that file are kept.
`benchmarks/tables.py` puts recorded tables into the documentation.

>>> table = Figures("example", "speed", {"rows": ",", "seconds": ".1f", "peer": ".1f"}, {"seconds": "CPU seconds"})
>>> table.add(rows=1000, seconds=0.25)
rows 1,000  CPU seconds 0.2  peer –
>>> table.plain()["columns"]
['rows', 'CPU seconds', 'peer']
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "Figures", "cell", "machine", "versions"]

RESULTS = Path(__file__).parent / "results"
LIBRARIES = ("sfumato", "numpy", "numba", "scipy", "polars", "pyarrow", "duckdb", "scikit-learn", "ortools", "pyspark")
PEERS = ("opendp", "dp-accounting")

RECORD = "--record" in sys.argv
COMMAND = " ".join(["python", *(os.path.relpath(word) if word == sys.argv[0] else word for word in sys.argv)])
if RECORD:
    sys.argv.remove("--record")  # the benchmark reads the rest


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    names = Path("/proc/cpuinfo")
    lines = names.read_text().splitlines() if names.exists() else []
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gb": round(memory),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1),
    }


def versions() -> dict[str, str]:
    """Python and the libraries that do the work, as far as they are installed."""
    known = {"python": platform.python_version()}
    for name in (*LIBRARIES, *PEERS):
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            continue
    return known


def cell(value: object, form: str = "") -> str:
    """A figure as the documentation shows it."""
    if value is None or value == "":
        return "–" if value is None else ""
    return str(value) if isinstance(value, str) else format(value, form)


class Figures:
    """One table of figures. ``columns`` maps keys to format specifications, ``titles`` keys to headings."""

    def __init__(
        self, benchmark: str, table: str, columns: Mapping[str, str], titles: Mapping[str, str] | None = None
    ) -> None:
        self.benchmark, self.table, self.columns = benchmark, table, dict(columns)
        self.titles = [(titles or {}).get(name, name) for name in columns]
        self.rows: list[list[Any]] = []

    def add(self, **figures: Any) -> None:
        """Print a row and, with `--record`, write the table."""
        unknown = figures.keys() - self.columns.keys()
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        row = [figures.get(name) for name in self.columns]
        self.rows.append([value.item() if hasattr(value, "item") else value for value in row])
        shown = zip(self.titles, row, self.columns.values(), strict=True)
        print("  ".join(f"{title} {cell(value, form)}" for title, value, form in shown), flush=True)
        if RECORD:
            self.save()

    def plain(self) -> dict[str, Any]:
        return {"columns": self.titles, "formats": list(self.columns.values()), "rows": self.rows}

    def save(self, folder: Path = RESULTS) -> None:
        """Write the table into the file of its benchmark, beside the tables that are there."""
        path = folder / f"{self.benchmark}.json"
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        document["benchmark"] = self.benchmark
        run = {"command": COMMAND, "date": datetime.date.today().isoformat(), "machine": machine()}
        tables: dict[str, Any] = document.setdefault("tables", {})
        tables[self.table] = {**run, "versions": versions(), **self.plain()}
        folder.mkdir(exist_ok=True)
        path.write_text(dumps(document), encoding="utf-8")


def dumps(document: Mapping[str, Any]) -> str:
    """JSON with one line for each row of figures."""
    text = json.dumps(document, indent=1, ensure_ascii=False, default=str)
    rows: list[Sequence[Any]] = [row for table in document["tables"].values() for row in table["rows"]]
    for row in rows:
        inner = json.dumps(row, indent=1, ensure_ascii=False, default=str)
        spread = "\n".join(("    " + line) if number else line for number, line in enumerate(inner.splitlines()))
        text = text.replace(spread, json.dumps(row, ensure_ascii=False, default=str), 1)
    return text + "\n"
