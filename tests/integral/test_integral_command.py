"""`sfumato integral`: fit, compare and recurrent through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    draw = np.random.default_rng(8)
    age, pay = draw.integers(20, 70, 200), draw.integers(10, 60, 200)
    ill = np.where((age > 50) ^ (draw.random(200) < 0.1), "yes", "no")
    # One person alone holds up a split of their own: pay above 90.
    frame = pl.DataFrame({"age": age, "pay": pay, "ill": ill})
    extra = pl.DataFrame({"age": [25] * 8 + [26], "pay": [95] * 9, "ill": ["yes"] * 8 + ["no"]})
    pl.concat([frame, extra.cast(frame.schema)]).write_csv(tmp_path / "people.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    code = main(["integral", *words])
    said = capsys.readouterr()
    return code, json.loads(said.out) if "--json" in words and said.out else said.out, said.err


FIT = ("fit", "people.csv", "--learner", "decision-tree=2", "--label", "ill", "--set", "min_leaf=3")


def test_compare_says_yes_or_no_and_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *FIT, "--out", "old.json")[0] == 0
    text = (folder / "old.json").read_text()
    assert "decision-tree" in text
    counts = {}
    for row in (1, 5, 209):
        again = ("fit", "people.csv", "--like", "old.json", "--without", str(row), "--out", f"{row}.json")
        assert run(capsys, *again)[0] == 0
        words = ("compare", "old.json", f"{row}.json", "--original", "people.csv", "--json", "--erased", str(row))
        code, document, _ = run(capsys, *words, "-k", "2")
        counts[row] = document["minimal_modifications"]
        assert document["publish"] == (code == 0)
        assert document["people"] >= document["people_in_all"]
        # One more explanation than there are is never found: the search was complete.
        code, document, _ = run(capsys, *words, "-k", str(counts[row] + 1))
        assert code == 1
        assert document["verdict"]["state"] == "fails"
    code, out, _ = run(capsys, "compare", "old.json", "1.json", "--original", "people.csv", "-k", "2")
    assert out.startswith("Publish:       the new model")


def test_other_models_and_tables_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, *FIT, "--out", "old.json")
    run(capsys, "fit", "people.csv", "--learner", "decision-tree=1", "--label", "ill", "--out", "other.json")
    compare = ("compare", "old.json", "other.json", "--original", "people.csv", "-k", "2")
    code, _, said = run(capsys, *compare)
    assert code == 2
    assert "differ" in said
    pl.read_csv("people.csv").head(50).write_csv("few.csv")
    code, _, said = run(capsys, "compare", "old.json", "old.json", "--original", "few.csv", "-k", "2")
    assert code == 2
    assert "old model" in said
    (folder / "broken.json").write_text('{"sfumato": "integral-model", "model": "zz"}')
    assert run(capsys, "compare", "broken.json", "old.json", "--original", "people.csv", "-k", "2")[0] == 2
    assert run(capsys, "compare", "old.json", "old.json", "--original", "people.csv", "-k", "1")[0] == 2
    assert run(capsys, "compare", "old.json", "old.json", "--original", "people.csv", "-k", "2", "--known", "0")[0] == 2
    assert run(capsys, *FIT, "--out", "old.json")[0] == 2


def test_regression_on_public_bounds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ("fit", "people.csv", "--learner", "linear-regression=0.05", "--label", "pay")
    assert run(capsys, *fit, "--out", "old.json")[0] == 2
    bounds = ("--bounds", "age=0..100", "--bounds", "pay=0..100")
    assert run(capsys, *fit, *bounds, "--out", "old.json")[0] == 0
    code, document, _ = run(capsys, "compare", "old.json", "old.json", "--original", "people.csv", "-k", "5", "--json")
    assert code == 0
    assert document["unchanged"]
    assert document["minimal_modifications"] > 100


def test_classes_need_no_bounds_and_somebody_must_be_left(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ("fit", "people.csv", "--learner", "logistic-regression=0.1", "--label", "ill", "--bounds", "age=0..100")
    assert run(capsys, *fit, "--out", "old.json")[0] == 0
    everybody = ",".join(str(row) for row in range(1, 210))
    code, _, said = run(capsys, "fit", "people.csv", "--like", "old.json", "--without", everybody, "--out", "none.json")
    assert code == 2
    assert "No record is left" in said
    assert not (folder / "none.json").exists()


def test_recurrent_model_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "fit", "people.csv", "--learner", "decision-tree=1", "--label", "ill", "--out", "old.json")
    words = ("recurrent", "people.csv", "--like", "old.json", "-k", "5", "--samples", "60", "--seed", "1", "--json")
    code, document, _ = run(capsys, *words, "--out", "private.json")
    assert code == 0
    assert document["best"]["generators"] >= 5
    assert document["private_models"] >= 1
    assert json.loads((folder / "private.json").read_text())["sfumato"] == "integral-model"


def test_two_models_are_compared_on_a_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, *FIT, "--out", "old.json")
    compare = ["integral", "compare", "old.json", "old.json"]
    assert main([*compare, "--original", "people.csv", "-k", "2", "--json", "--html", "pair.html"]) == 0
    page = (folder / "pair.html").read_text()
    assert "Publish. " in page
    assert "default-src &#39;none&#39;" in page
    assert json.loads(capsys.readouterr().out)["publish"] is True
    assert main(compare) == 2
