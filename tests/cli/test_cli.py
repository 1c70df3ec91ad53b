"""The command line from outside: documents, exit codes, and what bad input is told."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.data import read
from sfumato.dataset import Role
from sfumato.recipe import Recipe
from sfumato.recipe.presets import preset_names

SECRET = "Zyxwvut"
"""Planted in every cell that could leak; it must never be printed."""

RECIPE = """\
sfumato: 1
data: people.csv
seed: 7
columns:
  name: identifier
  age: {role: quasi, kind: integer, hierarchy: {intervals: [5, 10, 20]}}
  town: {role: quasi}
  illness: sensitive
models: [{k-anonymity: {k: 3}}]
steps: [{generalize: {search: optimal, suppression: 0.1, metric: loss}}]
"""


def people(rows: int = 200) -> str:
    lines = [f"{SECRET}{i},{20 + i % 40},{'AB'[i % 2]}{SECRET},{SECRET}-{i // 7 % 6}" for i in range(rows)]
    return "\n".join(["name,age,town,illness", *lines]) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(people())
    (tmp_path / "sfumato.yaml").write_text(RECIPE)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(capsys, *arguments, "--json")
    return code, json.loads(out)


def test_protect_attack_measure_print_their_documents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, made = document(capsys, "protect", "sfumato.yaml", "--out", "release")
    assert code == 0
    assert {"release", "rows", "steps", "verdicts", "sha256"} <= made.keys()
    [step] = [step for step in made["steps"] if step["step"] == "generalize"]
    assert {"levels", "suppressed", "metric", "score", "optimal"} <= step.keys()
    assert made["verdicts"][0]["state"] == "holds"
    assert made["verdicts"][0]["worst"] >= 3
    assert made["rows"] + step["suppressed"] == 200
    assert sorted(path.name for path in Path("release").iterdir()) == [
        "README.md",
        "codebook.csv",
        "data.csv",
        "release.json",
        "report.html",
        "report.json",
    ]
    code, attacked = document(capsys, "attack", "release", "--original", "people.csv", "--seed", "1")
    assert code == 0
    for entry in attacked["attacks"]:
        assert {"attack", "discloses", "risk", "low", "high", "baseline", "control", "tried"} <= entry.keys()
        assert 0 <= entry["low"] <= entry["risk"] <= entry["high"] <= 1
    code, measured = document(capsys, "measure", "release", "--original", "people.csv")
    assert code == 0
    assert {"marginals", "pairs", "ncp", "class-sizes"} <= {entry["measure"] for entry in measured["measures"]}
    assert all({"measure", "value", "columns"} <= entry.keys() for entry in measured["measures"])


def test_people_read_tables_and_programs_read_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "protect", "sfumato.yaml")
    assert code == 0
    assert "k-anonymity" in out
    for words in (
        ["attack", "release", "--original", "people.csv"],
        ["measure", "release", "--original", "people.csv"],
    ):
        code, out, err = run(capsys, *words)
        assert code == 0, err
        assert len(out.splitlines()) >= 3


def test_the_release_says_nothing_of_seed_paths_and_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "protect", "sfumato.yaml")[0] == 0
    manifest = Path("release/release.json").read_text()
    assert "seed" not in manifest
    assert "people.csv" not in manifest
    assert str(folder) not in manifest + Path("release/report.html").read_text()
    assert f"{SECRET}1," not in Path("release/data.csv").read_text()


def test_the_same_recipe_runs_on_another_file_and_repeats_by_seed_and_key(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("next.csv").write_text(people(300))
    make = ("protect", "sfumato.yaml", "next.csv", "--out")
    assert run(capsys, *make, "a")[0] == 0
    first = Path("a/data.csv").read_bytes()
    assert run(capsys, *make, "b", "--key", "a-private/run.key")[0] == 0
    assert Path("b/data.csv").read_bytes() == first
    assert run(capsys, *make, "a", "--force")[0] == 0  # the key of the folder that is replaced
    assert Path("a/data.csv").read_bytes() == first
    assert run(capsys, *make, "c", "--key", "a-private/run.key", "--seed", "8")[0] == 0
    assert Path("c/data.csv").read_bytes() != first
    assert run(capsys, *make, "d")[0] == 0
    assert Path("d/data.csv").read_bytes() != first  # a seed alone determines nothing


def test_the_key_of_the_random_numbers_stays_in_the_private_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "protect", "sfumato.yaml", "--json")
    assert code == 0
    file = Path("release-private/run.key")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = file.read_text().strip()
    assert len(key) == 64
    others = [path for path in Path().rglob("*") if path.is_file() and path != file]
    assert not [path for path in others if key in path.read_bytes().decode("latin-1")]
    assert key not in out + err
    damaged = Path("damaged.key")
    damaged.write_text("7")
    code, _, err = run(capsys, "protect", "sfumato.yaml", "--out", "other", "--key", "damaged.key")
    assert code == 2
    assert "hexadecimal" in err


def test_an_unmet_model_ends_with_1_and_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = RECIPE.replace("steps: [{generalize: {search: optimal, suppression: 0.1, metric: loss}}]", "steps: []")
    Path("sfumato.yaml").write_text(text.replace("k: 3", "k: 50"))
    code, out, err = run(capsys, "protect", "sfumato.yaml")
    assert code == 1
    assert "SFU-401" in err
    assert not Path("release").exists()
    assert not Path("release-private").exists()
    assert "k-anonymity" in out
    assert SECRET not in out + err
    code, shape = document(capsys, "protect", "sfumato.yaml")
    assert (code, shape["error"]["code"]) == (1, "SFU-401")
    assert shape["verdicts"][0]["state"] == "fails"
    assert run(capsys, "protect", "sfumato.yaml", "--unmet")[0] == 1
    assert Path("release/data.csv").exists()


def test_a_risk_above_its_limit_ends_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sfumato.yaml").write_text(RECIPE + "limits: {risk: 0.0001}\n")
    code, _, err = run(capsys, "protect", "sfumato.yaml")
    assert code == 1
    assert "SFU-402" in err
    assert not Path("release").exists()
    Path("sfumato.yaml").write_text(RECIPE)
    assert run(capsys, "protect", "sfumato.yaml")[0] == 0
    assert run(capsys, "attack", "release", "--original", "people.csv", "--limit", "0.0001")[0] == 1
    assert run(capsys, "attack", "release", "--original", "people.csv", "--limit", "1")[0] == 0


BAD: dict[str, tuple[dict[str, str], list[str], int, str]] = {
    "unknown column": ({"sfumato.yaml": RECIPE.replace("town:", "tovn:")}, [], 2, "SFU-201"),
    "recipe missing": ({}, ["none.yaml"], 2, "SFU-101"),
    "data missing": ({"sfumato.yaml": RECIPE.replace("people.csv", "none.csv")}, [], 2, "SFU-101"),
    "k above rows": ({"sfumato.yaml": RECIPE.replace("k: 3", "k: 500")}, [], 2, "SFU-205"),
    "empty file": ({"people.csv": ""}, [], 2, "SFU-103"),
    "header only": ({"people.csv": "name,age,town,illness\n"}, [], 2, "SFU-103"),
    "one row": ({"people.csv": people(1)}, [], 2, "SFU-205"),
    "duplicate columns": ({"people.csv": people().replace("town", "age", 1)}, [], 2, "SFU-104"),
    "wrong kind": ({"people.csv": people().replace(",21,", f",{SECRET},", 1)}, [], 2, "SFU-202"),
    "not that format": (
        {"people.parquet": people(), "sfumato.yaml": RECIPE.replace("people.csv", "people.parquet")},
        [],
        2,
        "SFU-102",
    ),
    "unknown format": (
        {"people.xyz": people(), "sfumato.yaml": RECIPE.replace("people.csv", "people.xyz")},
        [],
        2,
        "SFU-105",
    ),
    "hierarchy with a gap": (
        {
            "ages.csv": "".join(f"{age};any\n" for age in range(20, 50)),
            "sfumato.yaml": RECIPE.replace("{intervals: [5, 10, 20]}", "{file: ages.csv}"),
        },
        [],
        2,
        "SFU-203",
    ),
    "bad recipe": ({"sfumato.yaml": RECIPE.replace("k: 3", "k: x")}, [], 2, "SFU-301"),
    "bad option": ({}, ["sfumato.yaml", "--nonsense"], 2, "SFU-002"),
}


@pytest.mark.parametrize(("files", "arguments", "status", "code"), BAD.values(), ids=BAD.keys())
def test_bad_input_gets_its_code_and_shows_no_value(
    files: dict[str, str],
    arguments: list[str],
    status: int,
    code: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in files.items():
        Path(name).write_text(text)
    got, out, err = run(capsys, "protect", *(arguments or ["sfumato.yaml"]))
    assert (got, err.split()[0]) == (status, code), err
    assert SECRET not in out + err
    assert len(err) > 30
    assert not Path("release").exists()
    got, shape = document(capsys, "protect", *(arguments or ["sfumato.yaml"]))
    assert shape["error"]["code"] == code


def test_an_all_missing_column_is_no_accident(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").write_text("\n".join(["name,age,town,illness", *(f"{SECRET}{i},,X,flu" for i in range(50))]))
    code, out, err = run(capsys, "protect", "sfumato.yaml")
    assert code == 0, err
    assert SECRET not in Path("release/data.csv").read_text() + out + err


def test_an_output_that_exists_needs_force(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "protect", "sfumato.yaml")[0] == 0
    before = Path("release/data.csv").read_bytes()
    code, _, err = run(capsys, "protect", "sfumato.yaml", "--seed", "9")
    assert (code, err.split()[0]) == (2, "SFU-107")
    assert Path("release/data.csv").read_bytes() == before
    assert run(capsys, "protect", "sfumato.yaml", "--seed", "9", "--force")[0] == 0
    assert Path("release/data.csv").read_bytes() != before


def test_force_never_erases_a_folder_that_is_no_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("years of work")
    code, _, err = run(capsys, "protect", "sfumato.yaml", "--out", "thesis", "--force")
    assert (code, err.split()[0]) == (2, "SFU-107")
    assert Path("thesis/chapter.txt").read_text() == "years of work"


def test_a_full_disk_leaves_nothing_behind(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("sfumato.api.kinds.microdata.protection.write", full)
    before = sorted(folder.iterdir())
    code, _, err = run(capsys, "protect", "sfumato.yaml")
    assert (code, err.split()[0]) == (2, "SFU-108")
    assert sorted(folder.iterdir()) == before


def test_an_internal_error_shows_no_value(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError(f"cannot handle {SECRET}")

    monkeypatch.setattr("sfumato.api.protect.protect", broken)
    code, out, err = run(capsys, "protect", "sfumato.yaml")
    assert code == 3
    assert SECRET not in out + err
    assert "SFUMATO_DEBUG" in err


def test_a_release_that_was_changed_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "protect", "sfumato.yaml")[0] == 0
    with Path("release/data.csv").open("a") as file:
        file.write("\n")
    code, _, err = run(capsys, "attack", "release", "--original", "people.csv")
    assert (code, err.split()[0]) == (2, "SFU-111")


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "protct")
    assert code == 2
    assert "Did you mean `protect`" in err


@pytest.mark.slow
def test_interrupting_leaves_nothing_half_written(folder: Path) -> None:
    Path("people.csv").write_text(people(200_000))
    work = subprocess.Popen(
        [sys.executable, "-m", "sfumato", "protect", "sfumato.yaml"], stderr=subprocess.PIPE, text=True, cwd=folder
    )
    time.sleep(1.0)
    work.send_signal(signal.SIGINT)
    _, err = work.communicate(timeout=60)
    # A shell reports 130 for both: our own exit code, and a death by the signal that Python itself may choose.
    assert work.returncode in (130, -signal.SIGINT), err
    assert SECRET not in err
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "sfumato.yaml"]


@pytest.mark.parametrize("preset", preset_names())
def test_init_with_a_preset_gives_a_recipe_that_runs(
    preset: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("people.csv").write_text(people(2000))
    code, _, err = run(capsys, "init", "people.csv", "--preset", preset, "--out", "preset.yaml")
    assert code == 0, err
    recipe = Recipe.load("preset.yaml")
    assert recipe.models
    assert recipe.schema.names(Role.IDENTIFIER) == ("name",)
    code, made = document(capsys, "protect", "preset.yaml", "--unmet")
    assert [verdict["model"] for verdict in made["verdicts"]] == [model.part_name() for model in recipe.models]


def test_init_wants_either_k_or_a_preset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "init", "people.csv", "--preset", "ema-0070", "--k", "5")
    assert code == 2
    assert "not both" in err
    code, _, err = run(capsys, "init", "people.csv", "--preset", "ema-007")
    assert code == 2
    assert "Did you mean `ema-0070`" in err


def test_a_large_file_goes_through_duckdb_to_the_same_release(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.evaluation.class_risk.CELL_BYTES", 10**9)
    code, made = document(capsys, "protect", "sfumato.yaml", "--out", "small")
    assert code == 0
    code, large = document(capsys, "protect", "sfumato.yaml", "--out", "large", "--engine", "duckdb", "--format", "csv")
    assert code == 0
    small, other = (read(f"{name}/data.csv").frame for name in ("small", "large"))
    assert small.sort(small.columns).equals(other.sort(other.columns))
    for key in ("rows", "verdicts"):
        assert made[key] == large[key]
    assert large["attacks"][0]["risk"] == pytest.approx(large["steps"][0]["classes"] / large["rows"])
    manifest = Path("large/release.json").read_text()
    assert json.loads(manifest)["columns"] == json.loads(Path("small/release.json").read_text())["columns"]
    assert "seed" not in manifest
    assert str(folder) not in manifest
    code, attacked = document(capsys, "attack", "large", "--original", "people.csv", "--attack", "linkage")
    assert code == 0
    risk = large["attacks"][0]["risk"]
    spread = (risk * (1 - risk) / large["rows"]) ** 0.5  # of an adversary who guesses within the class
    assert attacked["attacks"][0]["risk"] == pytest.approx(risk, abs=6 * spread)


@pytest.mark.parametrize("out", [".", "..", "/"])
@pytest.mark.parametrize("more", [[], ["--force"]])
def test_the_folder_one_stands_in_is_no_place_for_a_release(
    folder: Path, capsys: pytest.CaptureFixture[str], out: str, more: list[str]
) -> None:
    code, told = document(capsys, "protect", "sfumato.yaml", "--out", out, *more)
    assert (code, told["error"]["code"]) == (2, "SFU-303")
    assert (folder / "people.csv").exists()


def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.api.protect.protect", lambda *_, **__: pytest.fail("the work was begun"))
    (folder / "mine").mkdir()
    (folder / "mine" / "letter.txt").write_text("dear")
    assert document(capsys, "protect", "sfumato.yaml", "--out", "not/there/yet")[0] == 2
    code, told = document(capsys, "protect", "sfumato.yaml", "--out", "mine", "--force")
    assert (code, told["error"]["code"]) == (2, "SFU-107")
    assert (folder / "mine" / "letter.txt").read_text() == "dear"


def test_a_release_can_be_named_from_inside(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, "protect", "sfumato.yaml", "--out", "release", "--json")[0] == 0
    monkeypatch.chdir(folder / "release")
    assert run(capsys, "check", ".", "--original", "../people.csv", "--json")[0] == 0
    assert run(capsys, "measure", ".", "--original", "../people.csv", "--measure", "marginals", "--json")[0] == 0
    assert run(capsys, "report", ".", "--out", "../again.html", "--json")[0] == 0


def test_a_column_that_the_recipe_does_not_name_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "people.csv").read_text().splitlines()
    (folder / "people.csv").write_text("\n".join([text[0] + ",badge", *(line + ",1" for line in text[1:])]) + "\n")
    code, told = document(capsys, "protect", "sfumato.yaml", "--out", "one")
    assert (code, told["error"]["code"]) == (2, "SFU-403")
    assert [entry["column"] for entry in told["error"]["columns"]] == ["badge"]
    assert not (folder / "one").exists()
    assert "badge=quasi --new" in run(capsys, "protect", "sfumato.yaml", "--out", "one")[2]
    assert run(capsys, "decide", "sfumato.yaml", "badge=drop", "--by", "me")[0] == 2
    assert run(capsys, "decide", "sfumato.yaml", "badge=drop", "--new", "--by", "me")[0] == 0
    assert document(capsys, "protect", "sfumato.yaml", "--out", "one")[1]["undeclared"] == []


def test_a_negative_seed_is_a_usage_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = document(capsys, "protect", "sfumato.yaml", "--seed", "-1")
    assert (code, told["error"]["code"]) == (2, "SFU-002")


def test_a_report_is_not_put_into_the_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "protect", "sfumato.yaml", "--out", "release", "--json")[0] == 0
    code, _, told = run(capsys, "report", "release", "--out", "release/report.html", "--force")
    assert (code, told[:7]) == (2, "SFU-303")
    assert run(capsys, "check", "release", "--original", "people.csv", "--json")[0] == 0
    (folder / "release-private" / "report.json").write_text("[]")
    assert document(capsys, "report", "release")[1]["error"]["code"] == "SFU-102"


def test_an_amount_of_memory_has_a_number(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = document(capsys, "protect", "sfumato.yaml", "--engine", "duckdb", "--memory", "lots")
    assert (code, told["error"]["code"]) == (2, "SFU-303")
    assert not (folder / "release").exists()


def test_an_unknown_format_is_refused_before_the_work(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sfumato.api.kinds.microdata.protect.make_release", lambda *_, **__: pytest.fail("the work was begun")
    )
    code, told = document(capsys, "protect", "sfumato.yaml", "--format", "docx")
    assert (code, told["error"]["code"]) == (2, "SFU-105")


def test_columns_may_be_called_like_our_own_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{i % 2},{'xy'[i % 3 == 0]},{'mn'[i % 4 == 0]}" for i in range(40)]
    Path("people.csv").write_text("\n".join(["row,class,count", *rows]) + "\n")
    Path("sfumato.yaml").write_text(
        "sfumato: 1\ndata: people.csv\ncolumns: {row: quasi, class: quasi, count: sensitive}\n"
        "models: [{k-anonymity: 3}, {l-diversity: {l: 2}}]\nsteps: [{generalize: {suppression: 0.2}}]\n"
    )
    code, made = document(capsys, "protect", "sfumato.yaml")
    assert code == 0, made
    assert run(capsys, "check", "release", "--original", "people.csv")[0] == 0


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_zero_has_no_sign_in_a_release(engine: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"x": [0.0, -0.0, 0.0, -0.0, 1.5, 1.5], "s": list("ababab")}).write_parquet("people.parquet")
    Path("sfumato.yaml").write_text(
        "sfumato: 1\ndata: people.parquet\ncolumns: {x: {role: quasi, kind: number}, s: sensitive}\n"
        "models: [{k-anonymity: 2}]\nsteps: [generalize]\n"
    )
    assert run(capsys, "protect", "sfumato.yaml", "--engine", engine, "--format", "csv")[0] == 0
    assert "-0" not in Path("release/data.csv").read_text()
