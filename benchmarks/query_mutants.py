"""Mutation survey of the query stack: change one bound at a time, and see whether a test fails.

Every mutant of ``query_mutants.json`` replaces one piece of text in a copy of the package. The tests below run on it
until the first failure; a mutant that passes all of them survives. ``python benchmarks/query_mutants.py`` prints a line
a mutant; ``--only PATH`` takes those of one file. It is not a part of ``make test``: it takes 5 to 10 CPU seconds a
mutant.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ("test_query_exact_bounds.py", "test_loss_check.py", "test_query_ranges.py")
MUTANTS = json.loads((ROOT / "benchmarks" / "query_mutants.json").read_text(encoding="utf-8"))
"""Each with the file, the text that is replaced and its replacement."""


def outcome(source: Path, mutant: dict[str, str]) -> str:
    """``killed``, ``survived`` or ``not found``, in a process of its own that imports the changed package."""
    old, new = mutant["old"], mutant["new"]
    path = source / "sfumato" / mutant["file"]
    text = path.read_text(encoding="utf-8")
    if old not in text:
        return "not found"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    child = os.fork()
    if child == 0:
        sys.path.insert(0, str(source))
        sys.dont_write_bytecode = True
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        import pytest

        tests = [str(ROOT / "tests" / "query" / test) for test in TESTS]
        os._exit(0 if pytest.main(["-x", "-q", "-n0", "-p", "no:cacheprovider", *tests]) == 0 else 1)
    _, status = os.waitpid(child, 0)
    path.write_text(text, encoding="utf-8")
    return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutants of files whose path contains this")
    only = parser.parse_args().only
    import duckdb  # noqa: F401 (loaded once, before the processes)
    import numpy  # noqa: F401
    import polars  # noqa: F401
    import sqlglot  # noqa: F401

    counts = {"killed": 0, "survived": 0, "not found": 0}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if outcome(source, MUTANTS[0] | {"new": MUTANTS[0]["old"]}) != "survived":
            raise SystemExit("the tests fail on the package itself")
        for mutant in MUTANTS:
            if only in mutant["file"]:
                found = outcome(source, mutant)
                counts[found] += 1
                print(f"{found:<10}{mutant['file']}: {mutant['old'][:60]!r} -> {mutant['new'][:60]!r}", flush=True)
    print(counts)


if __name__ == "__main__":
    main()
