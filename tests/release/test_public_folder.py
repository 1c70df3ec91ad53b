"""What leaves says why it may: the public folder of a differentially private release tells nothing exact."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import SecretAccessRefused
from sfumato.release.public_folder import (
    Leaving,
    PublicFolder,
    Why,
    declared,
    leaving_manifest,
    measured,
    paid,
    released,
)
from sfumato.reports.report_data import ReportData

RECIPE = """
sfumato: 1
data: people.csv
unit: row
columns:
  number: {role: quasi, kind: integer, domain: {low: 0, high: 999}}
  ill: {role: sensitive, kind: category, domain: {values: [flu, none]}}
models: [l-diversity: {l: 1}, t-closeness: {t: 1.0}]
steps: [private-synthesis: {epsilon: 100, delta: 0.000001, rows: 240, bins: 100}]
attacks: [distance-linkage, {attribute-linkage: {secret: ill}}]
measures: [marginals]
limits: {risk: 0.0001, attribute: 0.0001}
"""


def people(rows: int = 101, copies: int = 0) -> pl.DataFrame:
    """Whole numbers that most people have alone, so that equal rows would count as copies."""
    numbers = np.random.default_rng(7).permutation(1000)[:rows]
    numbers[:copies] = numbers[0]
    return pl.DataFrame({"number": numbers, "ill": np.where(np.arange(rows) % 5, "none", "flu")})


def protect(folder: Path, frame: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    folder.mkdir()
    frame.write_csv(folder / "people.csv")
    (folder / "recipe.yaml").write_text(RECIPE)
    capsys.readouterr()
    code = main(["protect", str(folder / "recipe.yaml"), "--out", str(folder / "release"), "--targets", "20", "--json"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    document: dict[str, Any] = json.loads(shown.out)
    return document


def shape(value: Any) -> Any:
    """Keys and types of a document; numbers and texts are noisy, lists of verdicts and names are not."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__ if isinstance(value, int | float) else value


NOISY = ("files", "sha256", "created", "pictures", "released_columns", "steps", "column_table")


def told(folder: Path) -> dict[str, Any]:
    """Everything in the public folder that is not noisy."""
    found: dict[str, Any] = {"files": sorted(path.name for path in folder.iterdir())}
    for name in ("release.json", "report.json"):
        document = json.loads((folder / name).read_text())
        found[name] = {key: shape(value) for key, value in document.items() if key not in NOISY}
        found[f"keys of {name}"] = sorted(document)
        document.get("manifest", {}).pop("steps", None)
    found["report.json"]["manifest"] = {
        key: value for key, value in found["report.json"]["manifest"].items() if key not in ("steps", "files")
    }
    found["README"] = re.sub(r"\d[\d,.]*", "0", (folder / "README.md").read_text())
    return found


def test_neighbours_give_the_same_public_folder_but_for_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One row decided about `copied rows` (a column is telling if nine in ten values occur once), and so did limits."""
    frame = people(101, copies=11)
    documents = [
        protect(tmp_path / "with", frame, capsys),
        protect(tmp_path / "without", frame[1:], capsys),
    ]
    verdicts = [{verdict["model"] for verdict in document["verdicts"]} for document in documents]
    assert verdicts[0] ^ verdicts[1] == {"copied rows"}  # the owner sees what one person decides
    first, second = told(tmp_path / "with" / "release"), told(tmp_path / "without" / "release")
    assert first == second
    assert "copied rows" not in json.dumps(first)
    assert first["report.json"]["standing"] == "publish"
    for key in ("attacks", "measures", "limits", "columns"):
        assert first["report.json"][key] == []
    private = json.loads((tmp_path / "with" / "release-private" / "report.json").read_text())
    assert private["attacks"]
    assert private["limits"]


def test_copies_refuse_no_release_that_was_paid_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows drawn from 1,000 whole numbers hit those of 300 people: no copies, and no matter of the guarantee."""
    document = protect(tmp_path / "run", people(300), capsys)
    copied = {verdict["model"]: verdict for verdict in document["verdicts"]}["copied rows"]
    assert copied["state"] == "fails"
    assert copied["exact"] is True
    assert [limit["met"] for limit in document["limits"]] == [False, False]
    assert (tmp_path / "run" / "release" / "data.csv").exists()
    public = "".join(path.read_text() for path in (tmp_path / "run" / "release").iterdir())
    assert "copied" not in public
    assert "linkage" not in re.sub(r"sha256[^\n]*", "", public)


def test_the_writer_refuses_what_does_not_say_why(tmp_path: Path) -> None:
    folder = PublicFolder(path=tmp_path, promise=True)
    for bare in ("a text", 7, None):
        with pytest.raises(SecretAccessRefused, match="why it may leave"):
            folder.json("x.json", {"figure": bare})  # type: ignore[dict-item]
        with pytest.raises((SecretAccessRefused, AttributeError)):
            folder.text("x.txt", bare)  # type: ignore[arg-type]
    with pytest.raises(SecretAccessRefused, match="measured on the original"):
        folder.json("x.json", {"risk": measured(0.1)})
    with pytest.raises(SecretAccessRefused, match="measured on the original"):
        folder.table("x.csv", measured(pl.DataFrame({"a": [1]})))
    assert not list(tmp_path.iterdir())
    folder.json("x.json", {"a": declared(1), "b": released(2), "c": paid(3)})
    PublicFolder(path=tmp_path, promise=False).text("x.txt", measured("rounded"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.json", "x.txt"]


def test_no_other_module_fills_folders_that_are_published() -> None:
    """Folders appear whole by `replacing_folder`; whoever calls it past the writer could write anything into them."""
    source = Path(sfumato.__file__).parent
    using = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "replacing_folder" in path.read_text(encoding="utf-8")
    }
    # The app copies folders that the writer has filled.
    outside = {name for name in using if not name.startswith(("data/", "app/"))}
    assert outside == {"release/public_folder.py"}


def test_an_unknown_key_of_a_manifest_does_not_leave() -> None:
    manifest = {"sfumato": "1", "rows": 3, "steps": [{"formal_guarantee": True}], "verdicts": []}
    with pytest.raises(SecretAccessRefused, match="original_rows"):
        leaving_manifest({**manifest, "original_rows": 4})
    found = leaving_manifest(manifest)
    assert {key: value.why for key, value in found.items()} == {
        "sfumato": Why.DECLARED, "rows": Why.RELEASED, "steps": Why.PAID, "verdicts": Why.RELEASED,
    }  # fmt: skip


def test_the_report_of_the_owner_does_not_leave() -> None:
    report = ReportData(
        title="t", created="2026-01-01", versions={}, manifest={}, files={}, recipe_public={}, original_rows=7,
        attacks=({"attack": "linkage", "discloses": "identity", "risk": 0.5, "low": 0.4, "high": 0.6},),
    )  # fmt: skip
    with pytest.raises(SecretAccessRefused):
        report.leaving()
    public = report.external()
    assert public.leaving()["attacks"] == Leaving(public.to_dict()["attacks"], Why.MEASURED)
    assert public.why is Why.MEASURED
    promising = ReportData(
        **{**{name: getattr(report, name) for name in report.__dataclass_fields__}, "manifest": {
            "steps": [{"step": "private-synthesis", "formal_guarantee": True}]}}
    ).external()  # fmt: skip
    assert promising.why is Why.RELEASED
    assert not promising.attacks
