"""``import sfumato`` and ``sfumato --help`` load nothing heavy and nothing optional."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "numpy", "polars", "pyarrow", "duckdb", "pandas", "scipy", "numba", "sklearn", "pydantic", "rich", "jinja2",
    "vl_convert", "ruamel", "sqlglot", "pyspark", "pyreadstat", "psycopg", "ortools",
    "sqlalchemy", "alembic", "fastapi", "starlette", "uvicorn",
}  # fmt: skip


def loaded(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("code", ["import sfumato", "from sfumato.cli import main\nmain(['--help'])"])
def test_nothing_heavy_is_loaded(code: str) -> None:
    assert not loaded(code) & HEAVY


def test_the_guard_sees_a_heavy_import() -> None:
    assert "numpy" in loaded("import numpy")
