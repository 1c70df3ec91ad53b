"""Project files: links resolve, changelog fragments are well formed, hooks and targets exist."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "changes").glob("README.md")])
KINDS = ("privacy", "feature", "fix")
FRAGMENTS = sorted(path for path in (ROOT / "changes").iterdir() if path.suffix == ".md" and path.name != "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_resolve(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert not [target for target in targets if not (page.parent / target).exists()]


def test_every_public_project_file_exists() -> None:
    for name in ("LICENSE", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CITATION.cff"):
        assert (ROOT / name).stat().st_size > 200, name


def test_fragments_are_named_by_topic_and_kind() -> None:
    for path in FRAGMENTS:
        assert re.fullmatch(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.md", path.name), path.name
        text = path.read_text(encoding="utf-8").strip()
        assert text.endswith("."), f"{path.name}: write a sentence"


def test_the_changelog_can_be_built_from_the_fragments() -> None:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "0.0.0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    notes = " ".join(done.stdout.split())
    for path in FRAGMENTS:
        assert " ".join(path.read_text(encoding="utf-8").split()) in notes, path.name


def test_hooks_are_local() -> None:
    plain = YAML(typ="safe").load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [source["repo"] for source in plain["repos"]] == ["local"]
    for hook in plain["repos"][0]["hooks"]:
        for word in hook["entry"].split():
            assert not word.startswith("tests/") or (ROOT / word).exists(), word


def test_documented_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"(?:`|\$ )make ([a-z]+)", page.read_text(encoding="utf-8"))) <= targets, page.name


def test_the_citation_has_the_license_of_the_package() -> None:
    citation = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert f'license = "{citation["license"]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_what_benchmarks_import_exists(script: Path) -> None:
    """Benchmarks are run seldom, so a name that was moved would be noticed late."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("sfumato"):
            module = importlib.import_module(str(node.module))
            for name in node.names:
                own = hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}")
                assert own, f"{node.module}.{name.name}"
