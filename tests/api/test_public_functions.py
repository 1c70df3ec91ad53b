"""The front door: plain typed functions, the same for type checkers and at run time; parts compose without YAML."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.attacks import Linkage
from sfumato.dataset.hierarchies.intervals import IntervalsHierarchy
from sfumato.errors import BadParameter
from sfumato.masking import Generalize, KAnonymity, RankSwap
from sfumato.measures import Marginals

ROOT = Path(__file__).parents[2]
VERBS = ("protect", "attack", "measure", "check", "study", "report", "session", "propose", "read", "write")


def test_type_checkers_and_the_interpreter_see_the_same_names() -> None:
    tree = ast.parse(Path(sfumato.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
    checked = {
        alias.asname: (statement.module, alias.name)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert {*checked, "__version__"} == set(sfumato.__all__) == set(dir(sfumato))
    for name, (module, original) in checked.items():
        assert module is not None
        assert getattr(sfumato, str(name)) is getattr(importlib.import_module(module), original)
    with pytest.raises(AttributeError, match="doesnotexist"):
        _ = sfumato.doesnotexist


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_a_documented_typed_function_that_pickles(name: str) -> None:
    verb = getattr(sfumato, name)
    assert inspect.isfunction(verb)
    assert pickle.loads(pickle.dumps(verb)) is verb
    assert len(inspect.getdoc(verb) or "") > 80
    signature = inspect.signature(verb)
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values())


GOOD = """
import polars as pl
import sfumato
from sfumato.masking import Generalize, KAnonymity

frame = pl.DataFrame({"age": [1, 2]})
schema = sfumato.Schema.of(frame, quasi=["age"])
recipe = sfumato.Recipe(schema=schema, steps=[Generalize()], models=[KAnonymity(k=5)], limits=sfumato.Limits(risk=0.1))
result: sfumato.Protection = sfumato.protect(recipe, frame, seed=1, n_targets=100, engine="auto")
results: sfumato.AttackResults = sfumato.attack(result, limit=0.1)
table: pl.DataFrame = results.to_frame()
met: list[bool | None] = [limit.met for limit in results.limits]
changes: list[tuple[str, ...]] = [item.changes for item in results.advice]
measures: sfumato.MeasureResults = sfumato.measure(result, measures=["marginals"])
verdicts: sfumato.CheckResults = sfumato.check(result)
page = sfumato.report(result, out="report.html", audience="external").name.upper()
study: sfumato.Study = sfumato.study("study.yaml", frame, out="study")
"""
WRONG = {
    "sfumato.protect(1, 2, nonsense=3)": "call-arg",
    "sfumato.doesnotexist": "attr-defined",
    "sfumato.protect('x', engine=3)": "arg-type",
    "sfumato.attack('x', n_targets='many')": "arg-type",
    "sfumato.report('x', audience='everybody')": "arg-type",
    "sfumato.attack('x').nothing": "attr-defined",
    "sfumato.Recipe(steps=[])": "call-arg",
}


@pytest.mark.slow
@pytest.mark.xdist_group("mypy")
def test_mypy_accepts_correct_calls_and_refuses_wrong_ones(tmp_path: Path) -> None:
    good, wrong = tmp_path / "good.py", tmp_path / "wrong.py"
    good.write_text(GOOD)
    wrong.write_text("import sfumato\n" + "\n".join(WRONG) + "\n")
    # The project's own configuration, folder and cache: what `make lint` has checked is not checked again.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", ".mypy_cache", good, wrong],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "src"},
    )
    messages = done.stdout.splitlines()
    assert not [line for line in messages if "good.py:" in line], done.stdout
    for number, (call, code) in enumerate(WRONG.items(), start=2):
        assert any(f"wrong.py:{number}:" in line and f"[{code}]" in line for line in messages), (
            call,
            messages,
        )


PEOPLE = pl.DataFrame(
    {"age": [20 + i % 30 for i in range(120)], "ill": ["flu" if i % 4 else "none" for i in range(120)]}
)


def test_parts_compose_without_yaml() -> None:
    schema = sfumato.Schema.of(
        PEOPLE, quasi=["age"], sensitive=["ill"], hierarchies={"age": IntervalsHierarchy.build([5, 10])}
    )
    recipe = sfumato.Recipe(
        schema=schema,
        steps=[Generalize()],
        models=[KAnonymity(k=4)],
        attacks=[Linkage()],
        measures=[Marginals()],
        limits=sfumato.Limits(risk=0.5),
        seed=7,
    )
    written = sfumato.Recipe.parse(recipe.to_yaml())
    one, other = (sfumato.protect(each, PEOPLE, key=b"k" * 32) for each in (recipe, written))
    assert one.data.equals(other.data)
    assert one.evaluation.to_dict() == other.evaluation.to_dict()
    assert one.verdicts.holds
    names = [outcome.attack for outcome in one.evaluation.attacks]  # type: ignore[union-attr]
    assert names[0] == "linkage"
    assert names[-2:] == ["any-columns", "any-columns"]  # in between the default attacks of the limited kind


def test_results_become_frames_and_documents() -> None:
    schema = sfumato.Schema.of(PEOPLE, quasi=["age"], sensitive=["ill"])
    result = sfumato.protect(sfumato.Recipe(schema=schema, steps=[RankSwap(p=10)], seed=1), PEOPLE)
    results = sfumato.attack(result, seed=1, limit=0.001)
    assert results.to_frame().height == len(results) > 0
    assert results.to_frame()["attack"].to_list() == [entry["attack"] for entry in results.to_dict()["attacks"]]
    assert results.to_dict()["limits"] == [limit.to_dict() for limit in results.limits]
    assert results.to_dict()["advice"] == [item.to_dict() for item in results.advice] != []
    assert results[:2] == results.outcomes[:2]
    assert sfumato.measure(result).to_frame().columns == ["measure", "value", "low", "high", "reason"]
    assert sfumato.check(result).to_frame().is_empty()
    assert not sfumato.check(result).holds
    assert result.to_frame().height == len(result.attacks)


def test_a_report_is_written_once_and_outside_the_release(tmp_path: Path) -> None:
    schema = sfumato.Schema.of(PEOPLE, quasi=["age"])
    result = sfumato.protect(sfumato.Recipe(schema=schema, steps=[RankSwap(p=10)]), PEOPLE)
    result.save(tmp_path / "release")
    one = sfumato.report(result, out=tmp_path / "one.html", audience="external")
    other = sfumato.report(tmp_path / "release", out=tmp_path / "other.html", audience="external")
    assert "Disclosure report" in one.read_text(encoding="utf-8")
    assert "Disclosure report" in other.read_text(encoding="utf-8")
    with pytest.raises(BadParameter, match="release folder"):
        sfumato.report(tmp_path / "release", out=tmp_path / "release" / "again.html")
