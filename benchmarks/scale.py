"""A recipe on Parquet files of growing size: seconds, peak memory, and whether cost grows no faster than rows.

    python benchmarks/scale.py [rows ...] [--record]   # default 1000000 10000000; 100000000 needs about 20 GB of disk
    python benchmarks/scale.py --engine spark 1000000

Six quasi-identifiers, k = 5, at most 1 % suppressed, an identifier replaced by its keyed pseudonym, rows reordered by a
keyed hash. Each size runs in a process of its own, so that its peak memory is its own, with that of Spark's Java and
its workers.
Files go to a temporary folder and are deleted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def make(path: Path, rows: int) -> None:
    """Synthetic people, reproducible, by DuckDB."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '4GB'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(
            f"""COPY (SELECT
                i AS person,
                CAST(18 + (hash(i, 1) % 40 + hash(i, 2) % 40) % 72 AS INTEGER) AS age,
                CASE WHEN hash(i, 3) % 2 = 0 THEN 'f' ELSE 'm' END AS sex,
                CAST(10000 + least(hash(i, 4) % 2000, hash(i, 5) % 2000) AS VARCHAR) AS zip,
                'e' || CAST(least(hash(i, 6) % 16, hash(i, 12) % 16) AS VARCHAR) AS education,
                'c' || CAST(CASE WHEN hash(i, 7) % 10 < 9 THEN 0 ELSE hash(i, 8) % 40 END AS VARCHAR) AS country,
                'm' || CAST(least(hash(i, 9) % 7, hash(i, 13) % 7, hash(i, 14) % 7) AS VARCHAR) AS marital,
                'd' || CAST(hash(i, 10) % 50 AS VARCHAR) AS diagnosis,
                round(1000 + (hash(i, 11) % 90000) / 7, 2) AS amount
            FROM range({rows}) AS t(i)) TO '{path}' (FORMAT parquet, COMPRESSION zstd)"""
        )


def run(rows: int, engine: str, folder: Path) -> None:
    from sfumato.dataset import Column, Role, Schema
    from sfumato.dataset.hierarchies.groups import GroupsHierarchy
    from sfumato.dataset.hierarchies.intervals import IntervalsHierarchy
    from sfumato.dataset.hierarchies.mask import MaskHierarchy
    from sfumato.masking.methods.generalize import Generalize
    from sfumato.masking.methods.pseudonymize import Pseudonymize
    from sfumato.masking.models.k_anonymity import KAnonymity
    from sfumato.masking.protect_file import protect_file
    from sfumato.rng import KeyedRng

    def fours(letter: str, count: int) -> GroupsHierarchy:
        return GroupsHierarchy.build({"order": [f"{letter}{v}" for v in range(count)], "sizes": [4]})

    source = folder / "people.parquet"
    make(source, rows)
    schema = Schema(
        columns={
            "person": Column(role=Role.IDENTIFIER),
            "age": Column(role=Role.QUASI, hierarchy=IntervalsHierarchy.build([5, 10, 20])),
            "sex": Column(role=Role.QUASI),
            "zip": Column(role=Role.QUASI, hierarchy=MaskHierarchy.build("right")),
            "education": Column(role=Role.QUASI, hierarchy=fours("e", 16)),
            "country": Column(role=Role.QUASI, hierarchy=fours("c", 40)),
            "marital": Column(role=Role.QUASI),
            "diagnosis": Column(role=Role.SENSITIVE),
        }
    )
    sys.path.append(str(Path(__file__).parent))  # last: this folder must not hide modules of the standard library
    from processes import cpu, peak

    wall, before = time.perf_counter(), cpu([os.getpid()])
    done = protect_file(
        schema=schema,
        steps=[Pseudonymize(key=folder / "secret.key"), Generalize(suppression=0.01)],
        models=[KAnonymity(k=5)],
        source=source,
        target=folder / "release.parquet",
        rng=KeyedRng(1),
        engine=engine,
        memory="4GB",
        temporary=folder,
    )
    wall, spent, most = time.perf_counter() - wall, cpu([os.getpid()]) - before, peak([os.getpid()])
    assert done.holds
    print(json.dumps({"rows": rows, "cpu": spent, "each": 1e6 * spent / rows, "wall": wall, "peak": f"{most:.1f} GB"}))


def main(arguments: list[str]) -> None:
    engine = "duckdb"
    if arguments[:1] == ["--engine"]:
        engine, arguments = arguments[1], arguments[2:]
    if arguments[:1] == ["--one"]:
        run(int(arguments[1]), engine, Path(arguments[2]))
        return
    from record import Figures  # not in the child, which does not see this folder

    forms = {"rows": ",", "cpu": ".1f", "each": ".1f", "wall": ",.0f", "peak": ""}
    titles = {"cpu": "CPU seconds", "each": "per million rows", "wall": "wall seconds", "peak": "peak memory"}
    figures = Figures("scale", engine, forms, titles)
    for rows in arguments or ["1000000", "10000000"]:
        with tempfile.TemporaryDirectory(prefix="sfumato-scale-") as folder:
            done = subprocess.run(
                # -P: the folder of this script must not hide modules of the standard library
                [sys.executable, "-P", __file__, "--engine", engine, "--one", rows.replace("_", ""), folder],
                check=True,
                stdout=subprocess.PIPE,
            )
            figures.add(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main(sys.argv[1:])
