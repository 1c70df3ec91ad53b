"""The page "Add a method" is followed to the letter: one new file, no other edit, and everything knows the method."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato.testing
from sfumato.registry import KINDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
PEOPLE = "name,age,town,illness\n" + "".join(
    f"P{i},{20 + i % 50},{'AB'[i % 2]}ton,{['flu', 'none'][i % 3 == 0]}\n" for i in range(60)
)


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)[number]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which the page's file is the only thing that is new."""
    place = tmp_path_factory.mktemp("workshop")
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copytree(ROOT / "tests" / "contract", place / "tests" / "contract")
    shutil.copytree(ROOT / "tests" / "data", place / "tests" / "data")
    for file in [*(ROOT / "tests").glob("*.py"), ROOT / "pyproject.toml"]:
        shutil.copy(file, place / file.relative_to(ROOT))
    (place / "src/sfumato/masking/methods/blank_out.py").write_text(block("python"), encoding="utf-8")
    (place / "blank.yaml").write_text(block("yaml"), encoding="utf-8")
    (place / "people.csv").write_text(PEOPLE, encoding="utf-8")
    return place


def run(place: Path, line: str) -> str:
    words = shlex.split(line)
    head = {"sfumato": [sys.executable, "-m", "sfumato"], "python": [sys.executable]}[words[0]]
    environment = {**os.environ, "PYTHONPATH": str(place / "src")}
    done = subprocess.run([*head, *words[1:]], cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


COMMANDS = [line[2:] for text in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in text.splitlines()]


def test_the_page_has_the_commands_this_test_knows() -> None:
    assert [line.split()[1] for line in COMMANDS] == ["methods", "schema", "protect", "-m", "methods"]


@pytest.mark.slow
def test_following_the_page_works(workshop: Path) -> None:
    shown, schema, _, tested, _ = (run(workshop, line) for line in COMMANDS)
    assert "Empty each cell" in shown
    assert "method.blank-out" in schema
    released = (workshop / "blanked" / "data.csv").read_text()
    assert "P1," not in released
    assert re.search(r"\b\d+ passed", tested)
    assert (workshop / "docs" / "reference" / "method" / "blank-out.md").exists()
    assert "blank-out" in run(workshop, "sfumato methods --kind method --json")


def test_the_table_of_kinds_names_real_folders_bases_and_tests() -> None:
    rows = re.findall(r"^\| [a-z -]+ \| (`\S+/`[^|]*) \| `(\S+)` \| [^|]+ \| ([^|]+) \|$", PAGE, flags=re.MULTILINE)
    assert len(rows) >= 11
    for folders, base, checks in rows:
        module, _, name = base.rpartition(".")
        assert hasattr(importlib.import_module(f"sfumato.{module}"), name), base
        for folder in re.findall(r"`(\S+)/`", folders):
            assert f"sfumato.{folder.replace('/', '.')}" in {place for places in KINDS.values() for place in places}
        for check in re.findall(r"`(check_\w+)`", checks):
            assert hasattr(sfumato.testing, check), check
        for file in re.findall(r"`(tests/\S+)`", checks):
            assert (ROOT / file).exists(), file
