"""One judgement of a release: limits, studies, attacks on folders and Python obey the verdicts of ``protect``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import PolicyNotMet, Unmet
from sfumato.evaluation import battery
from sfumato.registry import registry


def people(rows: int = 200) -> pl.DataFrame:
    draw = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "age": draw.integers(20, 60, rows),
            "town": draw.choice(["a", "b"], rows),
            "height": draw.normal(170, 10, rows).round(2),
            "love": ["x"] * (rows // 2) + ["y"] * (rows // 2),
            "ill": draw.choice(["no", "yes"], rows),
        }
    ).sort("town")


COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
    "town": "quasi",
    "height": {"role": "plain", "decided_by": "A. Steward", "reason": "synthetic"},
    "love": "drop",
    "ill": "drop",
}
RECIPE: dict[str, Any] = {
    "sfumato": 1,
    "columns": COLUMNS,
    "models": [{"k-anonymity": 5}],
    "steps": [{"generalize": {"suppression": 0.1}}],
}


def test_an_unmet_release_hands_out_no_data() -> None:
    limited = {**RECIPE, "attacks": ["linkage"], "limits": {"risk": 0.5}}  # `height` tells everybody apart
    done = sfumato.protect(limited, people(), seed=1, n_targets=20)
    assert done.unmet
    for take in (lambda: done.data, lambda: done.release):
        with pytest.raises(PolicyNotMet, match="not handed out"):
            take()
    bare = {**RECIPE, "steps": [], "attacks": ["linkage"]}
    with pytest.raises(Unmet, match="k-anonymity"):
        _ = sfumato.protect(bare, people(), seed=1, n_targets=20).data
    taken = sfumato.protect(bare, people(), seed=1, n_targets=20, unmet=True)
    assert taken.data.height == taken.release.table.rows == 200
    assert sfumato.check(taken)[0].model == "k-anonymity"  # an unmet release can still be examined


def test_a_limit_is_judged_by_the_default_attacks_whichever_the_recipe_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("linkage", "distance-linkage", "any-columns")
    default = tuple(registry("attack").get(name).build() for name in names)
    monkeypatch.setattr(battery, "default_attacks", lambda _: default)
    columns = {**COLUMNS, "height": {"role": "quasi"}}
    swapped = {"sfumato": 1, "columns": columns, "steps": [{"noise": {"variance_ratio": 1e-6, "columns": ["height"]}}]}
    listed = {**swapped, "attacks": ["linkage"], "limits": {"risk": 0.9}}
    done = sfumato.protect(listed, people(60), seed=1, n_targets=20)
    judged = {entry["attack"]: entry["judged"] for entry in done.to_dict()["attacks"] if not entry.get("any_columns")}
    assert set(judged) == {"linkage", "distance-linkage"}
    [limit] = done.limits
    assert (limit.met, limit.value) == (False, pytest.approx(max(judged.values())))
    free = {key: value for key, value in listed.items() if key != "limits"}
    figures = sfumato.protect(free, people(60), seed=1, n_targets=20).to_dict()["attacks"]
    assert {entry["attack"] for entry in figures} == {"linkage", "any-columns"}


def test_a_study_recommends_nothing_that_protect_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people().write_csv(tmp_path / "people.csv")
    recipe = {**RECIPE, "data": "people.csv", "limits": {"risk": 0.3}, "attacks": ["linkage"]}
    steps = recipe.pop("steps")
    study = {"candidates": [{"generalize": {"suppression": 0.1}}], "targets": 20, "utility": "marginals"}
    (tmp_path / "study.yaml").write_text(json.dumps({**recipe, "study": study}))
    (tmp_path / "r.yaml").write_text(json.dumps({**recipe, "steps": steps}))
    assert main(["protect", str(tmp_path / "r.yaml"), "--out", str(tmp_path / "out"), "--targets", "20", "--json"]) == 1
    capsys.readouterr()
    words = ["study", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "study"), "--workers", "1", "--json"]
    assert main(words) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["recommended"] is None
    [candidate] = document["candidates"]
    assert candidate["risk_high"] <= 0.3 < candidate["judged"]
    accepted = {"risk": 0.3, "accepted": {"by": "office", "reason": "nobody knows heights"}}
    (tmp_path / "study.yaml").write_text(json.dumps({**recipe, "limits": accepted, "study": study}))
    assert main(words) == 0


def events() -> pl.DataFrame:
    """Baskets in which everybody has both products, each another number of times."""
    times = [(person, item, count) for person in range(12) for item, count in (("a", person + 1), ("b", 1))]
    rows = [(person, item) for person, item, count in times for _ in range(count)]
    return pl.DataFrame(rows, schema=["buyer", "product"], orient="row")


def test_how_often_an_item_occurs_is_not_released_under_km_anonymity(tmp_path: Path) -> None:
    recipe = {
        "sfumato": 1,
        "unit": "buyer",
        "columns": {"buyer": "identifier", "product": "quasi"},
        "steps": [
            {"pseudonymize": {"key": str(tmp_path / "key"), "columns": ["buyer"]}},
            {"suppress-items": {"item": "product", "k": 3, "m": 2}},
        ],
    }
    done = sfumato.protect(recipe, events(), seed=1, n_targets=10, unmet=True)
    released = pl.DataFrame(done.data)
    assert released.group_by("buyer", "product").len()["len"].max() == 1
    assert {v.model: str(v.state) for v in done.verdicts}["km-anonymity"] == "holds"
    # a release that shows how often is judged with it
    raw = done.judged_release.table.with_frame(events().with_columns(pl.col("buyer").cast(pl.String)))
    [verdict] = [v for v in sfumato.check(replace(done.judged_release, table=raw)) if v.model == "km-anonymity"]
    assert (str(verdict.state), verdict.worst) == ("fails", 1)


def test_an_attack_on_a_folder_is_about_people_as_protect_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events().write_csv(tmp_path / "log.csv")
    recipe = {
        "sfumato": 1,
        "data": "log.csv",
        "unit": "buyer",
        "columns": {"buyer": "identifier", "product": "quasi"},
        "steps": [{"pseudonymize": {"key": "key", "columns": ["buyer"]}}],
    }
    (tmp_path / "r.yaml").write_text(json.dumps(recipe))
    out = str(tmp_path / "out")
    assert main(["protect", str(tmp_path / "r.yaml"), "--out", out, "--unmet", "--json", "--seed", "1"]) == 1
    ours = json.loads(capsys.readouterr().out)["attacks"]
    assert json.loads((tmp_path / "out" / "release.json").read_text())["recipe"]["unit"] == "buyer"
    main(["attack", out, "--original", str(tmp_path / "log.csv"), "--json", "--limit", "1", "--seed", "1"])
    document = json.loads(capsys.readouterr().out)
    people = {entry["attack"] for entry in ours if entry["risk"] is not None}
    assert {entry["attack"] for entry in document["attacks"] if entry["risk"] is not None} >= people
    assert {limit["met"] for limit in document["limits"] if limit["limit"] == "risk"} == {None}


def test_a_preset_covers_columns_that_become_sensitive_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    people().drop("height").rename({"love": "v1", "ill": "v2"}).write_csv("people.csv")
    assert main(["init", "people.csv", "--preset", "research-file", "--out", "r.yaml"]) == 0
    assert main(["decide", "r.yaml", "--rest", "sensitive", "--by", "A. Steward"]) == 0
    capsys.readouterr()
    main(["protect", "r.yaml", "--targets", "20", "--unmet", "--json"])
    document = json.loads(capsys.readouterr().out)
    diverse = {v["column"]: v for v in document["verdicts"] if v["model"] == "l-diversity"}
    secret = [d["column"] for d in document["decisions"] if d["role"] == "sensitive" and d["released"]]
    assert len(secret) >= 2
    assert sorted(diverse) == sorted(secret)
    assert all(v["state"] == "holds" and v["worst"] >= 2 for v in diverse.values())


def test_a_command_says_publish_only_of_a_release_that_was_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people().write_csv(tmp_path / "people.csv")
    recipe: dict[str, Any] = {**RECIPE, "data": "people.csv", "columns": {**COLUMNS, "height": "drop"}}

    def said(*more: str, **changes: Any) -> tuple[int, str, str]:
        (tmp_path / "r.yaml").write_text(json.dumps({**recipe, "attacks": ["linkage"], **changes}))
        out = tmp_path / "out"
        code = main(["protect", str(tmp_path / "r.yaml"), "--out", str(out), "--targets", "20", "--force", *more])
        line = next(line for line in capsys.readouterr().err.splitlines() if str(out) in line and ":" in line)
        listed = line.rpartition("(")[2].removesuffix(")").split(", ")
        assert listed == sorted(path.name for path in out.iterdir())
        assert "release.json" in listed
        return code, line.split(":")[0], json.loads((out / "report.json").read_text())["standing"]

    assert said(limits={"risk": 0.9}) == (0, "Publish", "publish")
    assert said() == (0, "Not judged", "not judged")  # no limit on risk
    assert said("--unmet", limits={"risk": 0.0001}) == (1, "Not met", "not met")
    assert said("--unmet", steps=[], limits={"risk": 0.9999}) == (1, "Not met", "not met")  # k-anonymity fails
    # a limit whose attack ran out of time is not judged, and no tick hides it
    assert said("--unmet", "--seconds", "0.000001", limits={"risk": 0.9})[:2] == (1, "Not judged")


def test_a_graph_that_fails_its_model_is_not_called_publishable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame({"a": [1, 1, 1, 2], "b": [2, 3, 4, 3]}).write_csv(tmp_path / "edges.csv")
    (tmp_path / "g.yaml").write_text(
        "sfumato: 1\ngraph: {edges: edges.csv}\nmodels: [k-degree-anonymity: 3]\nattacks: [degree-matching]\n"
    )
    words = ["protect", str(tmp_path / "g.yaml"), "--out", str(tmp_path / "out"), "--unmet", "--targets", "5"]
    assert main(words) == 1
    lines = capsys.readouterr().err
    assert "Not met:" in lines
    assert "Publish:" not in lines


def graph_recipe(folder: Path, **changes: Any) -> Path:
    """Friends with a node table in which `born` gives the age away."""
    draw = np.random.default_rng(1)
    age = draw.integers(20, 80, 60)
    nodes = pl.DataFrame({"id": range(60), "age": age, "born": 2026 - age, "town": draw.choice(["a", "b"], 60)})
    nodes.write_csv(folder / "nodes.csv")
    pairs = {tuple(sorted(map(int, draw.integers(0, 60, 2)))) for _ in range(150)}
    pl.DataFrame([p for p in pairs if p[0] != p[1]], schema=["a", "b"], orient="row").write_csv(folder / "edges.csv")
    document = {
        "sfumato": 1,
        "graph": {"edges": "edges.csv", "nodes": "nodes.csv", "key": "id"},
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [20, 60]}}, "born": COLUMNS["height"],
                    "town": "quasi"},
        "models": [{"k-anonymity": 3}, {"k-degree-anonymity": 2}],
        "steps": ["mondrian", {"anonymize-degrees": 2}],
        **changes,
    }  # fmt: skip
    (folder / "g.yaml").write_text(json.dumps(document))
    return folder / "g.yaml"


def test_a_limit_on_a_graph_is_judged_by_the_default_attacks_whichever_are_listed(tmp_path: Path) -> None:
    plan = graph_recipe(tmp_path, attacks=["link-disclosure"], limits={"risk": 0.6})
    done = sfumato.protect(plan, seed=1, n_targets=10, unmet=True)
    judged = {entry["attack"] for entry in done.to_dict()["attacks"] if entry["discloses"] == "identity"}
    assert {"degree-matching", "weisfeiler-lehman", "linkage"} <= judged
    [limit] = done.limits
    assert limit.met is False
    free = sfumato.protect(graph_recipe(tmp_path, attacks=["link-disclosure"]), seed=1, n_targets=10, unmet=True)
    assert "weisfeiler-lehman" not in {entry["attack"] for entry in free.to_dict()["attacks"]}


def test_the_folder_of_a_graph_is_checked_and_attacked_as_protect_was(tmp_path: Path) -> None:
    plan = graph_recipe(tmp_path)
    done = sfumato.protect(plan, seed=1, n_targets=10, unmet=True)
    done.save(tmp_path / "out", unmet=True)
    ours = {verdict.model: verdict.state for verdict in done.verdicts}
    assert str(ours["derived columns"]) == "fails"
    assert {v.model: v.state for v in sfumato.check(tmp_path / "out", original=plan)} == ours
    unchecked = {v.model: str(v.state) for v in sfumato.check(tmp_path / "out")}
    assert unchecked["derived columns"] == "not checked"
    attacked = sfumato.attack(tmp_path / "out", original=plan, seed=1, n_targets=10).to_dict()["attacks"]
    assert {entry["attack"] for entry in attacked} == {entry["attack"] for entry in done.to_dict()["attacks"]}
