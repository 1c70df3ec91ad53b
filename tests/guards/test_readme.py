"""The README's commands run, in order, in an empty folder, and end as it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line[2:]
    for text in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    for line in text.splitlines()
    if line.startswith("$ sfumato ")
]
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_readme_names_the_two_commands() -> None:
    assert "$ make demo" in README
    assert "$ make test" in README
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo:", makefile, re.MULTILINE)
    assert re.search(r"^test:", makefile, re.MULTILINE)


@pytest.mark.slow
def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(COMMANDS) >= 5
    environment = {**os.environ, "COLUMNS": "100"}
    monkeypatch.chdir(tmp_path)
    first, *others = (shlex.split(line, comments=True) for line in COMMANDS)
    done = subprocess.run([sys.executable, "-m", *first], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    for words in others:  # in this process, which has loaded everything already
        code = main(words[1:])
        assert code == 0, f"{shlex.join(words)}\n{capsys.readouterr().err[-2000:]}"
    assert PYTHON
    script = "\n".join(PYTHON)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
