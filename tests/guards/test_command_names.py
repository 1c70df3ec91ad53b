"""Every command that a message, a docstring or the documentation names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click

from sfumato.cli import cli

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
TEXTS = [
    *(path for suffix in ("py", "html", "jinja") for path in SOURCE.rglob(f"*.{suffix}")),
    *(ROOT / "docs").rglob("*.md"),
    *ROOT.glob("*.md"),
]
QUOTED = re.compile(r"(?:`|\$ |-m )sfumato ([a-z][a-z-]*)")
"""A call that is quoted as code, or follows a prompt or ``python -m``. Other mentions are prose."""
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^sfumato ([a-z][a-z-]*)", re.MULTILINE)
"""A call at the start of a line in a block of code."""


def commands_named(text: str) -> set[str]:
    in_blocks = [name for block in BLOCK.findall(text) for name in LINE.findall(block)]
    return {*QUOTED.findall(text), *in_blocks}


def test_every_command_named_in_a_text_exists() -> None:
    known = set(cli.list_commands(click.Context(cli)))
    named = {str(path.relative_to(ROOT)): commands_named(path.read_text(encoding="utf-8")) for path in TEXTS}
    assert known >= {"init", "protect", "query"}
    assert {"init", "protect", "attack", "query"} <= set().union(*named.values())
    assert not {path: names - known for path, names in named.items() if names - known}


def test_the_guard_sees_planted_examples() -> None:
    assert commands_named('fix="Check it with `sfumato profile`."') == {"profile"}
    assert commands_named("$ sfumato mask x.yaml\nor python -m sfumato look\n") == {"mask", "look"}
    assert commands_named("```sh\nsfumato start people.csv\n```\n") == {"start"}
    assert commands_named("sfumato reads CSV; from sfumato import protect; see sfumato itself") == set()


def flags_in_fixes(source: str) -> list[str]:
    """Options of the command line in what errors advise, outside a quoted call of a command."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    fixes = [one.value for call in calls for one in call.keywords if one.arg == "fix"]
    texts = [
        "".join(part.value for part in ast.walk(fix) if isinstance(part, ast.Constant) and isinstance(part.value, str))
        for fix in fixes
    ]
    return [text for text in texts if re.search(r"(?<![\w-])--[a-z]", re.sub(r"sfumato [a-z]+ [^`]*", "", text))]


def test_advice_of_the_library_names_options_as_python_does() -> None:
    """The command line writes them its own way; a caller in Python, the app or a client has no `--force`."""
    own = {"cli", "commands", "server", "app", "demos"}
    files = [path for path in SOURCE.rglob("*.py") if not own & set(path.relative_to(SOURCE).parts)]
    found = {str(path.relative_to(SOURCE)): flags_in_fixes(path.read_text(encoding="utf-8")) for path in files}
    assert {path: texts for path, texts in found.items() if texts} == {}


def test_the_guard_sees_a_planted_flag() -> None:
    assert flags_in_fixes('E("x", fix="Allow it with --force.")')
    assert not flags_in_fixes('E("x", fix="Run `sfumato ledger cap --delta 1`, or set `force`.", option="force")')
