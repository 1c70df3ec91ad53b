"""A plain installation, without extras, can profile, release, check, attack, measure, report and study."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

MODULES = {"scikit-learn": "sklearn", "psycopg": "psycopg", "ruamel.yaml": "ruamel", "vl-convert-python": "vl_convert"}
"""Modules of distributions whose names differ from them."""

SCRIPT = """
import importlib.abc, sys
BLOCKED = {blocked!r}
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
import polars, sfumato
people = polars.DataFrame(dict(age=[20 + i % 30 for i in range(90)], sex=["f", "m", "m"] * 30, ill=["no", "yes"] * 45))
columns = dict(age=dict(role="quasi", hierarchy=dict(intervals=[5, 10])), sex="quasi", ill="sensitive")
recipe = dict(sfumato=1, columns=columns, models=[{{"k-anonymity": 3}}], steps=["generalize"])
sfumato.propose(people)
done = sfumato.protect(recipe, people, seed=1, n_targets=30)
assert sfumato.check(done).holds
assert len(sfumato.attack(done, attacks=["linkage", "attribute-linkage"], seed=1)) == 2
assert len(sfumato.measure(done, measures=["marginals", "ncp"], seed=1).results) == 2
sfumato.report(done, out="report.html")
plan = dict(recipe, attacks=["linkage"], study=dict(candidates=["mondrian"], tries=20))
assert sfumato.study(plan, people, workers=1).points[0].risk is not None
print(" ".join(sorted({{name.split(".")[0] for name in sys.modules}})))
"""


def module_of(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)[0]  # type: ignore[index]
    return MODULES.get(name, name.replace("-", "_"))


def extras() -> set[str]:
    """Modules that only an extra installs."""
    core = {module_of(requirement) for requirement in PROJECT["dependencies"]}
    listed = [r for name, rs in PROJECT["optional-dependencies"].items() if name != "test" for r in rs]
    return {module_of(r) for r in listed if not r.startswith("sfumato")} - core


def test_the_core_works_without_any_extra(tmp_path: Path) -> None:
    assert {"sklearn", "pandas", "pyspark", "ortools", "psycopg"} <= extras()
    script = SCRIPT.format(blocked=extras())
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not set(done.stdout.split()) & extras()


def test_the_largest_libraries_are_explained() -> None:
    """The page that states the size of an installation names the libraries that make it up."""
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for name in ("llvmlite", "polars", "pyarrow", "scipy", "numpy", "vl-convert", "duckdb"):
        assert f"`{name}`" in page
        assert name == "llvmlite" or any(r.startswith(name) for r in PROJECT["dependencies"])
