"""The page "Add a part" is followed to the letter: one new file per part, no other edit, and everything knows it."""

from __future__ import annotations

import importlib
import json
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
PAGE = (ROOT / "docs" / "add-a-part.md").read_text(encoding="utf-8")
PEOPLE = "name,age,town,illness\n" + "".join(
    f"P{i},{20 + i % 50},{'AB'[i % 2]}ton,{['flu', 'none'][i % 3 == 0]}\n" for i in range(60)
)
FILES = dict(re.findall(r"^`(src/sfumato/[\w/]+\.py)`.*?```python\n(.*?)```", PAGE, flags=re.DOTALL | re.MULTILINE))
COMMANDS = [line[2:] for text in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in text.splitlines()]
PARTS = {
    "method": "blank-out",
    "model": "distinct-values",
    "attack": "exact-match",
    "measure": "emptied-cells",
    "mechanism": "noisy-count",
}
pytestmark = pytest.mark.xdist_group("workshop")


def run(place: Path, line: str) -> str:
    words = shlex.split(line)
    head = {"sfumato": [sys.executable, "-m", "sfumato"], "python": [sys.executable]}[words[0]]
    environment = {**os.environ, "PYTHONPATH": str(place / "src")}
    done = subprocess.run([*head, *words[1:]], cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which the page's files are the only thing that is new; ``protect`` has been run."""
    place = tmp_path_factory.mktemp("workshop")
    shutil.copytree(ROOT / "src", place / "src")
    shutil.copytree(ROOT / "tests" / "contract", place / "tests" / "contract")
    shutil.copytree(ROOT / "tests" / "samples", place / "tests" / "samples")
    (place / "docs").mkdir()
    for file in [*(ROOT / "tests").glob("*.py"), ROOT / "pyproject.toml", ROOT / "docs" / "manual.py"]:
        shutil.copy(file, place / file.relative_to(ROOT))
    for path, text in FILES.items():
        assert not (place / path).exists()
        (place / path).write_text(text, encoding="utf-8")
    [recipe] = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    (place / "toy.yaml").write_text(recipe, encoding="utf-8")
    (place / "people.csv").write_text(PEOPLE, encoding="utf-8")
    run(place, next(line for line in COMMANDS if "protect" in line))
    return place


def test_the_page_has_the_files_and_commands_this_test_knows() -> None:
    assert [Path(path).stem.replace("_", "-") for path in FILES] == list(PARTS.values())
    verbs = [line.split()[1] for line in COMMANDS]
    assert verbs == ["methods", "schema", "protect", "check", "-m", "docs/manual.py"]


@pytest.mark.slow
def test_every_part_is_listed_described_and_in_the_schema(workshop: Path) -> None:
    assert "Empty each cell" in run(workshop, COMMANDS[0])
    schema = json.loads(run(workshop, COMMANDS[1]))["$defs"]
    listed = json.loads(run(workshop, "sfumato methods --json"))["parts"]
    for kind, name in PARTS.items():
        assert kind == "mechanism" or f"{kind}.{name}" in schema
        assert (kind, name) in {(part["kind"], part["name"]) for part in listed}


@pytest.mark.slow
def test_the_release_is_attacked_measured_and_explained(workshop: Path) -> None:
    assert "P1," not in (workshop / "release" / "data.csv").read_text()
    [private] = [path for path in workshop.glob("release*/") if path.name != "release"]
    report = json.loads((private / "report.json").read_text())
    attacks = [item["attack"] for item in report["attacks"]]
    assert "exact-match" in attacks, "the new attack is not in the default battery"
    assert len(attacks) > 1, "the release by the new method is not attacked"
    assert "emptied-cells" in [item["measure"] for item in report["measures"]]
    [verdict] = report["verdicts"]
    assert (verdict["model"], verdict["state"]) == ("distinct-values", "holds")
    page = " ".join((private / "report.html").read_text().split())
    for text in (
        "blank-out",
        "with at least 2 sensitive values",
        "exactly these values",
        "missing cells in the release beyond the share",
    ):
        assert text in page, f"the report does not explain: {text}"


@pytest.mark.slow
def test_the_model_is_checked_independently(workshop: Path) -> None:
    document = json.loads(run(workshop, COMMANDS[3] + " --json"))
    assert [(item["model"], item["state"]) for item in document["verdicts"]] == [("distinct-values", "holds")]


@pytest.mark.slow
def test_the_mechanism_answers(workshop: Path) -> None:
    [example] = re.findall(r"```python\n(from sfumato.dp import NoisyCount.*?)```", PAGE, flags=re.DOTALL)
    (workshop / "count.py").write_text(example)
    assert abs(int(run(workshop, "python count.py").strip("[]\n ")) - 60) < 200


@pytest.mark.slow
def test_every_part_is_tested_by_contract(workshop: Path) -> None:
    tested = run(workshop, COMMANDS[4] + " -vv -p no:cacheprovider")
    for name in PARTS.values():
        assert re.search(rf"\[{name}[^\n]*PASSED", tested), f"{name} is not tested"
    assert re.search(r"\b\d+ passed", tested)


@pytest.mark.slow
def test_pages_and_stubs_are_written(workshop: Path) -> None:
    for line in COMMANDS[5:]:
        run(workshop, line)
    for kind, name in PARTS.items():
        assert (workshop / "docs" / "reference" / kind / f"{name}.md").exists()
    for package, name in (("masking", "BlankOut"), ("masking", "DistinctValues"), ("attacks", "ExactMatch")):
        assert f"import {name} as {name}" in (workshop / "src" / "sfumato" / package / "__init__.pyi").read_text()


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


def test_every_kind_of_part_is_in_the_table() -> None:
    """Each folder in which the registry looks for parts is named on the page."""
    from sfumato.registry import KINDS

    page = (Path(__file__).parents[2] / "docs" / "add-a-part.md").read_text(encoding="utf-8")
    for kind, packages in KINDS.items():
        folders = [package.removeprefix("sfumato.").replace(".", "/") for package in packages]
        assert any(f"`{folder}/`" in page for folder in folders), kind
