"""An outside judge: pyCANON computes the same values on our tables. It pins an old NumPy and lives in a venv apart."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from adult import adult
from test_textbook_tables import ZIP3, ZIP4, census, patients, salaries

from sfumato.dataset import Data
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.model import PrivacyModel
from sfumato.masking.models.alpha_k import AlphaK
from sfumato.masking.models.beta_likeness import BetaLikeness
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.models.l_diversity import LDiversity
from sfumato.masking.models.t_closeness import TCloseness
from sfumato.masking.pipeline import protect
from sfumato.rng import Rng

PEER = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"
pytestmark = pytest.mark.skipif(not PEER.exists(), reason="pyCANON is not installed; `make peers` does that")

SCRIPT = """
import json, sys
import pandas as pd
from pycanon import anonymity as judge
file, quasi, sensitive = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
data = pd.read_csv(file, dtype={name: str for name in quasi})
found = {"k": judge.k_anonymity(data, quasi)}
for name in sensitive:
    found[name] = {
        "l": judge.l_diversity(data, quasi, [name]),
        "t": judge.t_closeness(data, quasi, [name]),
        "alpha": judge.alpha_k_anonymity(data, quasi, [name])[0],
        "beta": judge.basic_beta_likeness(data, quasi, [name]),
    }
print(json.dumps(found, default=float))
"""


def judged(data: Data, folder: Path) -> dict[str, Any]:
    names = [*data.quasi, *data.sensitive]
    data.table.frame.select(names).write_csv(folder / "table.csv")
    said = subprocess.run(
        [PEER, "-c", SCRIPT, folder / "table.csv", json.dumps(list(data.quasi)), json.dumps(list(data.sensitive))],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return found


def ours(data: Data) -> dict[str, Any]:
    found: dict[str, Any] = {"k": KAnonymity(k=2).check(data).worst}
    for name in data.sensitive:
        distance = "ordered" if data.table.column(name).dtype.is_numeric() else "equal"
        models: dict[str, PrivacyModel] = {
            "l": LDiversity(l=1, column=name),
            "t": TCloseness(t=0, column=name, distance=distance),  # type: ignore[arg-type]
            "alpha": AlphaK(alpha=1, k=1, column=name),
            "beta": BetaLikeness(beta=1, kind="basic", column=name),
        }
        found[name] = {key: model.check(data).worst for key, model in models.items()}
    return found


def released(data: Data, *models: PrivacyModel, **parameters: Any) -> Data:
    return protect(data, steps=[Generalize(**parameters)], models=models, rng=Rng(1)).data


def some_adults() -> Data:
    data = adult("occupation")
    return data.with_frame(data.table.frame[:3000])


TABLES = {
    "patients, 4-anonymous": lambda: patients(ZIP4, [(30, "<30"), (40, "3*"), (200, ">40")]),
    "patients, 3-diverse": lambda: patients(ZIP3, [(40, "<40"), (200, ">40")]),
    "salaries": salaries,
    "census": lambda: released(census(), KAnonymity(k=2)),
    "adult": lambda: released(some_adults(), KAnonymity(k=5), TCloseness(t=0.4), suppression=0.05),
}


@pytest.mark.parametrize("table", TABLES)
def test_the_judge_agrees(table: str, tmp_path: Path) -> None:
    data = TABLES[table]()
    theirs = judged(data, tmp_path)
    mine = ours(data)
    assert theirs["k"] == mine["k"]
    for name in data.sensitive:
        for key, value in mine[name].items():
            assert theirs[name][key] == pytest.approx(value, abs=1e-6), f"{key} of {name}"


def test_the_judge_is_not_blind(tmp_path: Path) -> None:
    data = patients(ZIP4, [(30, "<30"), (40, "3*"), (200, ">40")])
    broken = data.with_frame(data.table.frame.with_columns(pl.Series("zip", ["?", *data.table.frame["zip"][1:]])))
    assert judged(broken, tmp_path)["k"] == 1
