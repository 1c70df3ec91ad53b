"""The tutorial runs from top to bottom in an empty folder: every command, the changed recipe, the Python code.

What it shows below a command is printed by it. Attacks draw people by chance, so figures of a line with a percentage or
an interval may differ; its words may not.
"""

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


def one_line(text: str) -> str:
    """Text without line ends and bars, as wide as it may be."""
    return " ".join(re.sub("[─━│┃█░▏]+", " ", text).split())


def drawn(text: str) -> str:
    """A line without its figures and the words that stand for small ones."""
    return re.sub(r"(?:under |over )?\d[\d,.]*%?", "#", one_line(text))


def not_printed(block: str, number: int, printed: str) -> list[str]:
    """Lines shown below a command that it did not print, in order; ``...`` stands for lines left out."""
    missing = []
    for line in block.splitlines()[number + 1 :]:
        if line.startswith("$ "):
            break
        if one_line(line) in ("", "..."):
            continue
        form = drawn if re.search(r"%|\d to \d|people, attackers|^who knows|ε = |ρ = |\d{4}-\d{2}", line) else one_line
        whole, wanted = form(printed), form(line.removesuffix(" ..."))
        if wanted not in whole:
            missing.append(line)
    return missing


def test_a_line_that_is_not_printed_is_seen() -> None:
    block = "$ sfumato protect x.yaml\n19,226 of 20,000 records kept\nlinkage  identity  5.3%  4.7% to 5.9%\n"
    assert not_printed(block, 0, "19,226 of 20,000 records\nkept\nlinkage identity ░░ 5.2% │ 4.6% to 6%\n") == []
    assert not_printed(block, 0, "19,225 of 20,000 records kept\nlinkage identity 5.2% 4.6% to 6%") != []
    assert not_printed(block, 0, "19,226 of 20,000 records kept\nmembership identity 5.2% 4.6% to 6%") != []


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
            for number, (line, below) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
                if line.startswith("$ "):
                    words = shlex.split(line[2:], comments=True)
                    assert words[0] == "sfumato", line
                    code = main(words[1:])
                    said = capsys.readouterr()
                    assert (code != 0) == below.startswith("SFU-"), f"{line}\n{said.err}"
                    assert not_printed(text, number, said.out + said.err) == [], line
                    commands += 1
    assert commands >= 12
