"""A plain installation, without extras, can profile, release, check, attack, measure, report and study."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from sfumato.cli import _modules

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

MODULES = {"scikit-learn": "sklearn", "psycopg": "psycopg", "ruamel.yaml": "ruamel"}
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
plan = dict(recipe, attacks=["linkage"], study=dict(candidates=["mondrian"], targets=20))
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
    for name in ("llvmlite", "polars", "pyarrow", "scipy", "numpy", "duckdb"):
        assert f"`{name}`" in page
        assert name == "llvmlite" or any(r.startswith(name) for r in PROJECT["dependencies"])


PEOPLE = "age,sex,ill\n" + "".join(f"{20 + i % 30},{'fm'[i % 2]},{('no', 'yes')[i % 3 == 0]}\n" for i in range(90))
RECIPE = """
sfumato: 1
data: people.csv
columns: {age: {role: quasi, hierarchy: {intervals: [5, 10]}}, sex: quasi, ill: sensitive}
models: [{k-anonymity: 3}]
steps: [generalize]
attacks: [linkage]
"""
FILES = {
    "people.csv": PEOPLE,
    "recipe.yaml": RECIPE,
    "study.yaml": RECIPE + "study: {candidates: [mondrian], targets: 20}\n",
    "plan.yaml": """
sfumato: 1
data: people.csv
unit: row
ledger: ledger.db
columns:
  age: {role: quasi, kind: integer, domain: {low: 0, high: 100}}
  ill: {role: quasi, kind: category, domain: {values: ["no", "yes"]}}
learn: additive-model
features: [age]
target: ill
epsilon: 2
delta: 1e-6
""",
    "people.yaml": """
sfumato: 1
dataset: people
ledger: ledger.db
person: row
tables: {people: {data: people.csv, columns: {age: {role: quasi, kind: integer, domain: {low: 0, high: 110}}}}}
""",
    "log.sql": "SELECT COUNT(*) FROM t WHERE age > 30 AND ill = 'yes'\n",
    "survey.yaml": "survey: one\nepsilon: 1\npeople: 100\nquestions: {ill: {domain: {values: [true, false]}}}\n",
}
COMMANDS = {
    "init": "init people.csv --k 3 --force --no-compare",
    "decide": "decide sfumato.yaml ill=sensitive --by Ana --reason known",
    "hierarchy": "hierarchy check recipe.yaml",
    "protect": "protect recipe.yaml --out release --unmet --targets 20",
    "check": "check release --original people.csv",
    "attack": "attack release --original people.csv --targets 20",
    "measure": "measure release --original people.csv",
    "report": "report release --out report.html",
    "study": "study study.yaml --out study",
    "schema": "schema",
    "methods": "methods",
    "demo": "demo none-such",
    "app": "app none-such.csv --no-browser",
    "ledger": "ledger cap ledger.db --dataset people --epsilon 5",
    "datasets": "datasets",
    "query": "query people.yaml EXPLAIN_SELECT_COUNT(*)_FROM_people --epsilon 1",
    "verify": "verify recipe.yaml",
    "learn": "learn plan.yaml --out model",
    "predict": "predict model people.csv",
    "audit": "audit log.sql --data people.csv --secret ill --k 2",
    "collect": "collect design survey.yaml",
    "party": "party init",
    "serve": "serve people.yaml --state state",
    "server": "server init --state state",
    "integral": "integral compare plan.yaml",
}
"""A typical call of each command. Some end in a refusal; none may end in an internal error."""
NEED = {"learn": "learning", "serve": "server"}
"""Commands that cannot do anything without an extra."""

EVERY_COMMAND = (
    SCRIPT.split("import polars")[0]
    + """
import contextlib, io, json
from sfumato.cli import main
told = {{}}
for name, line in {commands!r}.items():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        code = main([word.replace("_", " ") if "SELECT" in word else word for word in line.split()])
    told[name] = (code, said.getvalue())
print(json.dumps(told))
"""
)


def test_no_command_ends_in_an_internal_error_without_the_extras(tmp_path: Path) -> None:
    assert set(COMMANDS) == set(_modules())
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    script = EVERY_COMMAND.format(blocked=extras(), commands=COMMANDS)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert not {name: said for name, (code, said) in told.items() if code == 3}
    for name in ("init", "protect", "check", "attack", "measure", "report", "study", "schema", "methods", "query"):
        assert told[name][0] in (0, 1), (name, told[name])
    for name, extra in NEED.items():
        assert told[name][0] == 2
        assert f"[{extra}]" in told[name][1]
