"""``import sfumato`` and ``sfumato --help`` load nothing heavy and nothing optional."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.registry import KINDS, registry

HEAVY = {
    "numpy", "polars", "pyarrow", "duckdb", "pandas", "scipy", "numba", "sklearn", "pydantic", "rich", "jinja2",
    "ruamel", "sqlglot", "pyspark", "pyreadstat", "psycopg", "ortools",
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


@pytest.mark.parametrize("kind", KINDS)
def test_summaries_are_read_from_the_source(kind: str) -> None:
    for part in registry(kind):
        assert registry(kind).summary(part.part_name()) == part.summary()


def test_the_list_of_methods_loads_no_part() -> None:
    assert not loaded("from sfumato.cli import main\nmain(['methods', '--json'])") & {
        "numpy",
        "numba",
        "scipy",
        "duckdb",
    }


def test_a_deferred_module_is_loaded_by_its_first_use() -> None:
    script = (
        "import sys; from sfumato.deferred import defer; defer('polars'); import polars as pl; "
        "assert 'polars.dataframe' not in sys.modules; from polars.testing import assert_frame_equal; "
        "frame = pl.DataFrame({'a': [1]}); assert_frame_equal(frame, frame); import polars; "
        "assert polars.DataFrame is pl.DataFrame is type(frame)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_question_loads_neither_polars_nor_numba(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,sex\n" + "30,f\n40,m\n" * 50)
    (tmp_path / "people.yaml").write_text(
        "sfumato: 1\ndataset: people\nledger: ledger.db\nperson: row\ntables:\n  people:\n    data: people.csv\n"
        "    columns:\n      age: {kind: integer, domain: {low: 0, high: 110}}\n"
    )
    ask = ["query", str(tmp_path / "people.yaml"), "SELECT COUNT(*) FROM people WHERE age < 35", "--epsilon", "1"]
    cap = ["ledger", "cap", str(tmp_path / "ledger.db"), "--dataset", "people", "--epsilon", "3"]
    subprocess.run([sys.executable, "-m", "sfumato", *cap], check=True)
    script = (
        f"from sfumato.cli import main\nassert main({ask!r}) == 0\n"
        "assert not {'polars.dataframe', 'numba', 'scipy.stats', 'sqlalchemy'} & set(sys.modules)"
    )
    assert "duckdb" in loaded(script)
