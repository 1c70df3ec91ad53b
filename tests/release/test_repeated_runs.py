"""A key repeats the very run it was drawn for and no other; a private folder belongs to one release."""

from __future__ import annotations

import csv
import math
import random
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.data.atomic import path_digest
from sfumato.data.fingerprint import frame_digest
from sfumato.errors import ReleaseChanged

RECIPE = """
sfumato: 1
data: p.csv
unit: row
seed: 7
columns: {income: {role: quasi, kind: number}, rent: {role: quasi, kind: number}, job: {role: sensitive}}
steps: [noise: {variance_ratio: %s, columns: [income, rent]}]
"""


def people(rows: int = 300) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "income": np.round(draw.lognormal(10, 0.5, rows), 2),
            "rent": np.round(draw.normal(900, 200, rows), 2),
            "job": draw.choice(list("abc"), rows),
        }
    )


def protect(plan: str, out: str = "rel", *options: str, code: int = 0) -> None:
    assert main(["protect", plan, "--out", out, "--force", "--targets", "20", *options]) == code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people().write_csv("p.csv")
    for ratio in ("0.1", "0.2"):
        Path(f"r{ratio}.yaml").write_text(RECIPE % ratio, encoding="utf-8")
    return tmp_path


def test_two_recipes_in_one_folder_do_not_undo_each_other(folder: Path) -> None:
    released = {}
    for ratio in ("0.1", "0.2"):
        protect(f"r{ratio}.yaml")
        released[ratio] = pl.read_csv("rel/data.csv")
    little, much = math.sqrt(0.1), math.sqrt(0.2)
    for name in ("income", "rent"):
        undone = (much * released["0.1"][name] - little * released["0.2"][name]) / (much - little)
        assert sum(round(value, 2) in set(people()[name]) for value in undone) < 15  # all 300 with shared draws


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_next_months_file_has_other_draws(folder: Path, engine: str) -> None:
    def run() -> list[str]:
        protect("r0.1.yaml", "rel", "--engine", engine, "--format", "csv")
        return Path("rel/data.csv").read_text().splitlines()

    first, again = run(), run()
    assert first == again  # the key in the private folder repeats the run
    people().with_row_index().with_columns(income=pl.when(pl.col("index") == 5).then(1.0).otherwise("income")).drop(
        "index"
    ).write_csv("p.csv")
    assert len(set(run()) & set(first)) <= 1


def test_the_key_of_a_frame_repeats_it_and_nothing_else(folder: Path) -> None:
    recipe = {"sfumato": 1, "seed": 7, "columns": {"income": "quasi", "rent": "quasi", "job": "sensitive"}}
    noise = {**recipe, "steps": [{"noise": {"variance_ratio": 0.1, "columns": ["income"]}}]}
    first = sfumato.protect(noise, people(), n_targets=10)
    again = sfumato.protect(noise, people(), n_targets=10, key=first.key)
    assert first.data.equals(again.data)
    limited = {**noise, "limits": {"risk": 1.0}, "title": "judged otherwise"}
    assert sfumato.protect(limited, people(), n_targets=10, key=first.key).data.equals(first.data)
    changed = people().with_columns(rent=pl.col("rent") + (pl.int_range(pl.len()) == 0))
    other = sfumato.protect(noise, changed, n_targets=10, key=first.key)
    assert not set(first.data["income"]) & set(other.data["income"])


def test_two_releases_of_a_graph_share_neither_numbers_nor_edges(folder: Path) -> None:
    draw = random.Random(4)
    pairs = sorted({tuple(sorted(draw.sample([f"n{i}" for i in range(60)], 2))) for _ in range(150)})
    with Path("e.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("a", "b"), *pairs])
    edges = []
    for share in (0.3, 0.4):
        Path("g.yaml").write_text(
            f"sfumato: 1\nseed: 7\ngraph: {{edges: e.csv}}\nsteps: [random-edges: {{delete: {share}, add: {share}}}]\n"
        )
        protect("g.yaml", "graph", "--unmet")
        edges.append({frozenset(pair) for pair in pl.read_csv("graph/edges.csv").rows()})
        maps = pl.read_parquet("graph-private/lineage.parquet")["original_row"].to_list()
        protect("g.yaml", "graph", "--unmet")
        assert pl.read_parquet("graph-private/lineage.parquet")["original_row"].to_list() == maps
    both = len(edges[0] & edges[1])
    assert both < 30  # 129 of 144 with shared draws; 12 by chance


def test_a_row_map_of_another_release_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    protect("r0.1.yaml")
    shutil.copytree("rel-private", "old-private")
    protect("r0.2.yaml")
    shutil.rmtree("rel-private")
    Path("old-private").rename("rel-private")  # what a kill between the two renames leaves
    for verb in (["attack", "rel", "--original", "p.csv"], ["report", "rel", "--out", "r.html"]):
        assert main(verb) == 2
        assert "rel-private does not belong to rel" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(ReleaseChanged):
        sfumato.check("rel", original="p.csv")
    protect("r0.2.yaml")
    assert main(["report", "rel", "--out", "r.html"]) == 0


def test_digests_tell_contents_apart(tmp_path: Path) -> None:
    frame = people()
    assert frame_digest(frame) == frame_digest(pl.concat([frame[:100], frame[100:]], rechunk=False))
    assert frame_digest(frame) != frame_digest(frame.with_columns(pl.col("rent").reverse()))
    assert frame_digest(frame) != frame_digest(frame.rename({"rent": "Rent"}))
    for name, text in (("one", "a"), ("two", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_text(text)
    assert path_digest(tmp_path / "one") != path_digest(tmp_path / "two")
