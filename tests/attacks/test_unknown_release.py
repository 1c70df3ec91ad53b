"""Somebody else's release: nothing is known of it but the file, and the auditor says the rest."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.cli import cli
from sfumato.cli._console import listed

draw = np.random.default_rng(8)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    original = pl.DataFrame(
        {
            "id": range(300),
            "age": draw.integers(20, 60, 300),
            "sex, gender": draw.choice(["f", "m"], 300),
            "illness": draw.choice(["flu", "asthma", "none"], 300),
        }
    )
    original.write_csv(tmp_path / "original.csv")
    released = original.sample(fraction=1.0, shuffle=True, seed=1)
    released.write_csv(tmp_path / "with_id.csv")
    released.drop("id").write_csv(tmp_path / "released.csv")
    (tmp_path / "roles.yaml").write_text(
        'sfumato: 1\ncolumns: {id: identifier, age: quasi, "sex, gender": quasi, illness: sensitive}\n'
    )
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli(list(words))
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


def test_without_roles_it_is_told_how_to_name_them(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "attack", f"{files}/released.csv", "--original", f"{files}/original.csv")
    assert code == 0
    assert "--knows" in err
    assert "--secret" in err
    assert "no risk can be given" in out


def test_secrets_are_judged_without_a_row_map(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ("attack", f"{files}/released.csv", "--original", f"{files}/original.csv", "--json", "--seed", "1")
    _, told, _ = run(capsys, *common, "--knows", "age", "--knows", "sex,, gender", "--secret", "illness")
    _, by_recipe, _ = run(capsys, *common, "--recipe", f"{files}/roles.yaml")
    for text in (told, by_recipe):
        attacks = {entry["attack"]: entry for entry in json.loads(text)["attacks"]}
        assert attacks["linkage"]["risk"] > 0.2  # the expectation: equal rows cannot be told apart
        assert attacks["attribute-linkage"]["secret"] == "illness"
        assert attacks["attribute-linkage"]["knows"] == ["age", "sex, gender"]
        assert attacks["attribute-linkage"]["risk"] > 0.3


def test_a_reason_that_several_attacks_share_is_told_once(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ("attack", f"{files}/released.csv", "--original", f"{files}/original.csv")
    _, out, _ = run(capsys, *common, "--knows", "age", "--attack", "linkage", "--attack", "distance-linkage")
    assert out.count("no risk can be given") == 1
    assert "distance linkage: no risk" in out


def test_with_a_key_people_are_found(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ("attack", f"{files}/with_id.csv", "--original", f"{files}/original.csv", "--json")
    _, out, _ = run(capsys, *common, "--key", "id", "--recipe", f"{files}/roles.yaml")
    assert json.loads(out)["attacks"][0]["risk"] > 0.2


def test_measures_take_roles_too(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ("measure", f"{files}/released.csv", "--original", f"{files}/original.csv", "--json")
    for roles in (("--knows", "age,sex,, gender"), ("--recipe", f"{files}/roles.yaml")):
        _, out, _ = run(capsys, *common, *roles)
        values = {entry["measure"]: entry["value"] for entry in json.loads(out)["measures"]}
        assert values["class-sizes"] >= 1
        assert values["ncp"] is not None


def test_names_by_commas() -> None:
    assert listed(("a, b", "c,,d")) == ["a", "b", "c,d"]
    assert listed(()) == []
