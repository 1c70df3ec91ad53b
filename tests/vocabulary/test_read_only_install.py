"""Commands run where neither the installation nor the home folder can be written, as under the shipped service unit."""

from __future__ import annotations

import ast
import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato

PACKAGE = Path(sfumato.__file__).parent
PEOPLE = "age,town,illness\n" + "".join(
    f"{20 + i % 4},{'ab'[i % 2]},{('flu', 'cold', 'none')[i % 3]}\n" for i in range(48)
)
RECIPE = """\
sfumato: 1
data: people.csv
columns:
  age: {role: quasi, kind: integer}
  town: {role: quasi}
  illness: {role: sensitive}
models:
- k-anonymity: {k: 4}
steps:
- mondrian
attacks:
- linkage
"""
QUERY = """\
sfumato: 1
dataset: people
ledger: ledger.db
person: row
tables:
  people:
    data: people.csv
    columns:
      town: {kind: category, domain: {values: [a, b]}}
"""


def _obey_permissions() -> None:
    """Take the right to ignore permissions (CAP_DAC_OVERRIDE) from the process, which root has."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP: gone after exec


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of a process that has the package in a folder which it cannot write, and no home."""
    folder = tmp_path_factory.mktemp("installation")
    shutil.copytree(PACKAGE, folder / "sfumato", ignore=shutil.ignore_patterns("__pycache__", "static"))
    (folder / "sfumato" / "web" / "static").mkdir()
    for place in (folder, *folder.rglob("*")):
        place.chmod(stat.S_IRUSR | stat.S_IXUSR)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "NUMBA_", "PYTHON"))}
    return kept | {"PYTHONPATH": str(folder), "HOME": "/nonexistent"}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="capabilities are Linux's")
def test_commands_without_a_folder_for_compiled_kernels(installed: dict[str, str], tmp_path: Path) -> None:
    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sfumato", *words],
            env=installed, cwd=tmp_path, capture_output=True, text=True, preexec_fn=_obey_permissions,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "people.yaml").write_text(RECIPE)
    (tmp_path / "answers.yaml").write_text(QUERY)
    assert not os.access(installed["PYTHONPATH"], os.W_OK) or os.geteuid() == 0
    assert json.loads(run("protect", "people.yaml", "--out", "release", "--json"))["verdicts"][0]["state"] == "holds"
    assert "k-anonymity" in run("methods")
    run("ledger", "cap", "ledger.db", "--dataset", "people", "--epsilon", "1")
    assert "epsilon" in run("query", "answers.yaml", "SELECT COUNT(*) FROM people", "--epsilon", "1", "--json")
    assert not list(Path(installed["PYTHONPATH"]).rglob("*.nbc")), "the folder was writable: the test shows nothing"


def test_kernels_are_compiled_by_one_decorator() -> None:
    """``numba.njit(cache=True)`` raises while a module is imported if no folder can be written."""
    strangers = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "numba" in text else ():
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "numba" for name in names):
                strangers.append(path.relative_to(PACKAGE).as_posix())
    assert sorted(set(strangers)) == ["kernels.py"]
