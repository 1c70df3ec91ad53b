"""Demo: reconstruction attack. Noise below the square root of the number of people does not protect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sfumato.attacks.query import QueryOutcome, evaluate_query_attack
from sfumato.attacks.query.reconstruction import Reconstruction as Attack
from sfumato.auditing.policies.bounded_noise import BoundedNoise
from sfumato.demos.base import Demo, Say
from sfumato.progress import SILENT, Progress
from sfumato.query.policies.differential_privacy import DifferentialPrivacy
from sfumato.rng import Rng

NOISES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Largest error of an answer, in units of the square root of the number of people."""
SIZES = (256, 1024, 4096)
QUESTIONS = (1.5, 4, 16)


class ReconstructionDemo(Demo):
    """Reconstruction attack on noisy counts, and the same attack on differentially private answers.

    Dinur and Nissim showed in 2003 that many answers with little noise reveal almost the whole data set. This demo
    draws the threshold they found: noise of the order of the square root of the number of people.
    """

    reference = "Dinur, Nissim (2003), Revealing information while preserving privacy, doi:10.1145/773153.773173"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        rng = Rng(self.seed)
        jobs = [("people", size, 4.0, noise) for size in SIZES for noise in NOISES]
        jobs += [("questions", 1024, float(times), noise) for times in QUESTIONS for noise in NOISES]
        points = []
        with progress.task("attacking", len(jobs)) as tick:
            for panel, size, times, noise in jobs:
                outcome = _attack(size, times, noise, rng.child(panel, size, times, noise))
                points.append(_point(panel, size, times, noise, outcome))
                tick(1)
        by = {(p["panel"], p["people"], p["questions"], p["noise"]): p for p in points}
        small, middle, far = (by["people", 4096, 4.0, noise] for noise in (0.2, 0.5, 5.0))
        say(
            "\n[bold]1. A clinic counts the patients with a disease[/bold] in any group an analyst names, and adds "
            "fresh noise of at most E to each count. The table has n = 4,096 patients; the attack solves a "
            "least-squares problem over 16,384 random groups."
        )
        say(
            f"\n[bold]2. E = 0.2 √n[/bold] (the count in a group of about 2,048 is off by at most {0.2 * 64:.0f}): "
            f"[bold red]{small['share']:.1%}[/bold red] of the patients are inferred correctly.\n"
            f"   [bold]E = 0.5 √n[/bold]: still [bold red]{middle['share']:.1%}[/bold red] "
            f"({middle['low']:.1%} to {middle['high']:.1%}).\n"
            f"   [bold]E = 5 √n[/bold]: {far['share']:.1%}; guessing gets {far['baseline']:.1%}."
        )
        secrets = _secrets(1024, rng)
        private = evaluate_query_attack(
            Attack(questions=4), DifferentialPrivacy(epsilon="1/100", budget=1), secrets, rng.child("dp")
        )
        low, high = private.interval()
        say(
            "\n[bold]3. The same attack on differentially private answers[/bold], with a budget of ε = 1 and ε = 1/100 "
            f"for each query. The budget is spent after {private.asked - private.refused} queries. "
            f"[bold green]{private.risk:.1%}[/bold green] ({low:.1%} to {high:.1%}) of the patients are inferred "
            f"correctly; guessing gets {private.baseline:.1%}."
        )
        say(
            "\n[bold]4. The threshold.[/bold] In units of √n, the curves of small and large tables coincide. More "
            "queries raise the noise that is needed, so a limit on the number of queries, a budget, is needed too."
        )
        picture = folder / "wall.svg"
        picture.write_text(draw(points), encoding="utf-8")
        say(f"\nThe chart:  {picture.resolve()}\n")
        return {
            "points": points,
            "private": private.to_dict(),
            "picture": str(picture),
        }


def _secrets(size: int, rng: Rng) -> Any:
    return (rng.child("secrets", size).generator.random(size) < 0.5).astype(np.int8)


def _attack(size: int, times: float, noise: float, rng: Rng) -> QueryOutcome:
    policy = BoundedNoise(bound=noise * size**0.5)
    return evaluate_query_attack(Attack(questions=times), policy, _secrets(size, rng), rng)


def _point(panel: str, size: int, times: float, noise: float, outcome: QueryOutcome) -> dict[str, object]:
    low, high = outcome.interval()
    return {
        "panel": panel, "people": size, "questions": times, "noise": noise, "share": outcome.risk, "low": low,
        "high": high, "baseline": outcome.baseline,
    }  # fmt: skip


def draw(points: list[dict[str, Any]]) -> str:
    """Draw two panels as SVG: curves by table size, and curves by number of queries."""
    from sfumato.drawing import Lines, Panels, Place

    def panel(name: str, field: str, title: str, labels: dict[float, str]) -> Lines:
        places = tuple(
            Place(x=p["noise"], y=p["share"], low=p["low"], high=p["high"], when=labels[p[field]])
            for p in points
            if p["panel"] == name
        )
        return Lines(
            rows=places, title=title, across="largest error of an answer, in √n", up="inferred correctly", percent=True,
            x_kind="log", x_ticks=(0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0), x_ends=(0.045, 9.0),
            y_ticks=(0.4, 0.6, 0.8, 1.0), x_guide=1.0, y_guide=0.5,
        )  # fmt: skip

    sizes = panel("people", "people", "4 queries per person", {size: f"{size:,} people" for size in SIZES})
    times = panel("questions", "questions", "1,024 people", {t: f"{t:g} queries per person" for t in QUESTIONS})
    return Panels(charts=(sizes, times)).draw(900).file(title="People inferred correctly, by the noise of the answers")
