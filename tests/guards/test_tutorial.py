"""The tutorial runs from top to bottom in an empty folder: every command, the changed recipe, the Python code."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(console|yaml|python)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for language, text in BLOCKS:
        if language == "yaml":  # the section that the reader is told to put into the recipe
            recipe = tmp_path / "hospital.yaml"
            section = re.escape(text.splitlines()[0]) + r"\n(?:[ #].*\n)*"
            changed, count = re.subn(section, lambda _, text=text: text, recipe.read_text())
            assert count == 1
            recipe.write_text(changed)
        elif language == "python":
            done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-2000:]
        else:
            lines = text.splitlines()
            for line, below in zip(lines, [*lines[1:], ""], strict=True):
                if line.startswith("$ "):
                    words = shlex.split(line[2:], comments=True)
                    assert words[0] == "sfumato", line
                    code = main(words[1:])
                    assert (code != 0) == below.startswith("SFU-"), f"{line}\n{capsys.readouterr().err}"
                    commands += 1
    assert commands >= 12
