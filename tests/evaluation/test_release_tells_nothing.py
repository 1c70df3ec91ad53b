"""What leaves the house holds nothing that only the owner may know."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.api.protect import protect
from sfumato.evaluation import judge_limits
from sfumato.evaluation.class_risk import _linkage
from sfumato.recipe import Limits


def people() -> pl.DataFrame:
    draw = np.random.default_rng(3)
    town = draw.choice(["Aton", "Bton", "Cton"], 300).tolist()
    town[0] = "Zanzibar"
    return pl.DataFrame({"town": town, "age": draw.integers(20, 60, 300), "ill": draw.choice(["flu", "none"], 300)})


RECIPE = {
    "sfumato": 1,
    "seed": 424242,
    "columns": {"town": "quasi", "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}, "ill": "sensitive"},
    "models": [{"k-anonymity": {"k": 5}}],
    "steps": [{"generalize": {"suppression": 0.05, "metric": "loss"}}],
}


def texts(folder: Path) -> str:
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in sorted(folder.iterdir()))


def test_a_title_made_of_the_file_name_stays_inside(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "clinic-17-patients.csv")
    done = protect({**RECIPE, "data": str(tmp_path / "clinic-17-patients.csv")})
    done.save(tmp_path / "release")
    assert "clinic-17" not in texts(tmp_path / "release")
    assert "clinic-17" in (tmp_path / "release-private" / "report.html").read_text()
    done = protect({**RECIPE, "title": "Health survey", "data": str(tmp_path / "clinic-17-patients.csv")})
    done.save(tmp_path / "titled")
    assert "Health survey" in (tmp_path / "titled" / "report.html").read_text()


def test_a_category_that_was_suppressed_is_in_no_dictionary(tmp_path: Path) -> None:
    kinds = pl.Enum(["Aton", "Bton", "Cton", "Nowhere", "Zanzibar"])
    for town in (pl.col("town").cast(pl.Categorical), pl.col("town").cast(kinds)):
        done = protect(RECIPE, people().with_columns(town))
        assert "Zanzibar" not in str(done.release.table.frame.schema)
        done.save(tmp_path / "release", suffix=".parquet", force=True)
        told = texts(tmp_path / "release")
        assert "Aton" in told
        assert not [word for word in ("Zanzibar", "Nowhere", "424242") if word in told]


def test_no_file_of_the_owner_is_named(tmp_path: Path) -> None:
    """Key, population, hierarchy and outside file: what they hold is used, where they lie is nobody's business."""
    frame = people().with_columns(name=pl.int_range(300).cast(pl.String) + "-Doe")
    house = tmp_path / "secret-house"
    house.mkdir()
    for name in ("population", "voters"):
        frame.select("town", "age", "name").write_csv(house / f"{name}.csv")
    towns = [f"{town};{land};*" for town, land in zip(sorted(set(frame["town"])), "NNSS", strict=True)]
    (house / "towns.csv").write_text("\n".join(towns) + "\n")
    recipe = {
        **RECIPE,
        "columns": {
            **RECIPE["columns"],  # type: ignore[dict-item]
            "name": "identifier",
            "town": {"role": "quasi", "hierarchy": {"file": str(house / "towns.csv")}},
        },
        "models": [{"k-anonymity": {"k": 5}}, {"k-map": {"k": 5, "population": str(house / "population.csv")}}],
        "steps": [{"pseudonymize": {"key": str(house / "names.key")}}, *RECIPE["steps"]],  # type: ignore[misc]
        "attacks": [{"linkage": {"auxiliary": str(house / "voters.csv")}}],
    }
    done = protect(recipe, frame)
    assert done.protected.holds
    done.save(tmp_path / "release")
    told = texts(tmp_path / "release")
    secrets = ("secret-house", "names.key", "voters.csv", "424242", "-Doe", (house / "names.key").read_text().strip())
    assert not [word for word in secrets if word in told]
    assert "secret-house" in texts(tmp_path / "release-private")
    manifest = json.loads((tmp_path / "release" / "release.json").read_text())
    assert [set(verdict) for verdict in manifest["verdicts"]] == [{"model", "state", "wanted"}] * 2
    private = {"suppressed", "suppressed_whole", "classes", "smallest", "score", "nodes_checked"}
    assert not private & {key for step in manifest["steps"] for key in step}
    assert private & {key for step in done.to_dict()["steps"] for key in step} == private


def test_what_must_stay_is_for_the_owner_alone(tmp_path: Path) -> None:
    protect(RECIPE, people()).save(tmp_path / "release")
    assert stat.S_IMODE((tmp_path / "release-private").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "release-private" / "lineage.parquet").stat().st_mode) == 0o600


def test_a_large_release_without_rows_is_no_risk_of_zero() -> None:
    class Nothing:
        def found(self, quasi: tuple[str, ...]) -> tuple[float, int]:
            return 0.0, 0

    [limit] = judge_limits(Limits(risk=0.09), [_linkage(Nothing(), ("age",), frozenset())])  # type: ignore[arg-type]
    assert (limit.value, limit.met) == (None, False)
