"""CPU seconds and peak memory of `protect` with its default attacks and measures, each case in a process of its own.

python benchmarks/protect_cost.py [--against FOLDER] [case ...]

Cases are listed by a wrong name. ``--against`` names a second checkout, whose figures stand beside: the state before a
change. A case that needs more than 12 GB or 15 CPU minutes is stopped and shown as such.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import Figures

ROOT = Path(__file__).parents[1]
_GIGABYTES = 12
_MINUTES = 15


def amounts(rows: int) -> pl.DataFrame:
    """Seven columns about nobody: two amounts with many values, five categories."""
    draw = np.random.default_rng(5)
    income = np.round(draw.lognormal(10.2, 0.5, rows), 2)
    return pl.DataFrame(
        {
            "income": income,
            "rent": np.round(0.3 * income + draw.gamma(2, 1500, rows), 2),
            "age": draw.integers(18, 90, rows),
            "sex": draw.choice(["F", "M"], rows),
            "region": draw.choice([f"R{number:02d}" for number in range(20)], rows),
            "job": draw.choice(list("abcdefgh"), rows),
            "diagnosis": draw.choice(["asthma", "diabetes", "flu", "none"], rows, p=[0.1, 0.1, 0.1, 0.7]),
        }
    )


def census() -> pl.DataFrame:
    """1,080 rows with 13 correlated amounts, in the shape of the file that masking papers use."""
    draw = np.random.default_rng(6)
    common = draw.normal(size=(1080, 4)) @ draw.normal(size=(4, 13)) + draw.normal(size=(1080, 13))
    return pl.DataFrame({f"v{number}": np.round(np.exp(8 + 0.7 * common[:, number])) for number in range(13)})


def recipe(frame: pl.DataFrame, steps: list[Any], secret: str | None) -> dict[str, Any]:
    columns = {name: "sensitive" if name == secret else "quasi" for name in frame.columns}
    truthful = any(isinstance(step, str) or "mondrian" in step for step in steps)
    models = [{"k-anonymity": 5}] if truthful else []
    return {"sfumato": 1, "seed": 7, "columns": columns, "models": models, "steps": steps}


CASES: dict[str, tuple[Any, list[Any], str | None]] = {
    "mondrian-30000": (lambda: amounts(30_000), ["mondrian"], "diagnosis"),
    "noise-30000": (lambda: amounts(30_000), [{"noise": {"variance_ratio": 0.3}}], "diagnosis"),
    "rank-swap-30000": (lambda: amounts(30_000), [{"rank-swap": {"p": 5}}], "diagnosis"),
    "mondrian-100000": (lambda: amounts(100_000), ["mondrian"], "diagnosis"),
    "mondrian-300000": (lambda: amounts(300_000), ["mondrian"], "diagnosis"),
    "noise-1080": (census, [{"noise": {"variance_ratio": 0.3}}], None),
    "noise-robust-1080": (census, [{"noise": {"variant": "robust", "variance_ratio": 0.3}}], None),
}


def run(name: str) -> None:
    """One case in this process; prints its figures as JSON."""
    import sfumato

    make, steps, secret = CASES[name]
    frame = make()
    resource.setrlimit(resource.RLIMIT_AS, (_GIGABYTES << 30, _GIGABYTES << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (60 * _MINUTES, 60 * _MINUTES))
    done = sfumato.protect(recipe(frame, steps, secret), frame)
    used = resource.getrusage(resource.RUSAGE_SELF)
    attacks = done.evaluation.to_dict()["attacks"]
    print(
        json.dumps(
            {
                "seconds": used.ru_utime + used.ru_stime,
                "gigabytes": used.ru_maxrss / 1e6,
                "attacks": sum(entry["risk"] is not None for entry in attacks),
            }
        )
    )


def measured(name: str, checkout: Path) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{Path(__file__).parent}"}
    command = [sys.executable, __file__, "--run", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"seconds": f"> {60 * _MINUTES}"}
    if done.returncode:
        print(done.stderr[-500:], file=sys.stderr)
        return {"gigabytes": f"> {_GIGABYTES}"} if "Memory" in done.stderr or "memory" in done.stderr else {}
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["--run"]:
        run(words[1])
        return
    against = None
    if words[:1] == ["--against"]:
        against, words = Path(words[1]), words[2:]
    if unknown := [word for word in words if word not in CASES]:
        sys.exit(f"No case is called {unknown[0]}. Cases: {', '.join(CASES)}")
    formats = {"case": "", "seconds": ".0f", "gigabytes": ".1f", "before_seconds": ".0f", "before_gigabytes": ".1f"}
    labels = {"seconds": "CPU seconds", "gigabytes": "GB", "before_seconds": "before", "before_gigabytes": "GB before"}
    table = Figures("protect_cost", "protect", formats, labels)
    for name in words or CASES:
        now = measured(name, ROOT)
        before = measured(name, against) if against is not None else {}
        table.add(
            case=name,
            seconds=now.get("seconds"),
            gigabytes=now.get("gigabytes"),
            before_seconds=before.get("seconds"),
            before_gigabytes=before.get("gigabytes"),
        )
    table.save()


if __name__ == "__main__":
    main()
