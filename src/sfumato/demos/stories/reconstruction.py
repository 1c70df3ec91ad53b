"""The wall at the square root: how much noise it takes to keep a column of secrets secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sfumato.attacks.query import QueryOutcome, evaluate_query_attack
from sfumato.attacks.query.reconstruction import Reconstruction as Attack
from sfumato.demos.story import Say, Story
from sfumato.progress import SILENT, Progress
from sfumato.query.policies.bounded_noise import BoundedNoise
from sfumato.query.policies.differential_privacy import DifferentialPrivacy
from sfumato.rng import Rng

__all__ = ["ReconstructionDemo"]

NOISES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Largest error of an answer, in square roots of the number of people."""
SIZES = (256, 1024, 4096)
QUESTIONS = (1.5, 4, 16)
_COLOURS = ("#0b6aa8", "#c4500a", "#3b7d23")


class ReconstructionDemo(Story):
    """A clinic blurs every count, and a patient analyst rebuilds the whole column; then the same with real noise.

    Dinur and Nissim showed in 2003 that too many answers with too little noise give everybody away. This story draws
    the wall they found: noise of the order of the square root of the number of people.
    """

    reference = "Dinur, Nissim (2003), Revealing information while preserving privacy, doi:10.1145/773153.773173"

    def tell(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
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
        small, wall, far = (by["people", 4096, 4.0, noise] for noise in (0.2, 0.5, 5.0))
        say(
            '\n[bold]1. A clinic answers "how many of these people have it?"[/bold] for any group one can name, and '
            "blurs each answer by up to E, drawn anew. 4,096 patients, 16,384 random groups, least squares."
        )
        say(
            f"\n[bold]2. E = 0.2 √n[/bold] (off by at most {0.2 * 64:.0f} in 2,048): "
            f"[bold red]{small['share']:.1%}[/bold red] of all patients' bits are right.\n"
            f"   [bold]E = 0.5 √n[/bold]: still [bold red]{wall['share']:.1%}[/bold red] "
            f"({wall['low']:.1%} to {wall['high']:.1%}).\n"
            f"   [bold]E = 5 √n[/bold]: {far['share']:.1%}; blind guessing gets {far['baseline']:.1%}."
        )
        secrets = _secrets(1024, rng)
        private = evaluate_query_attack(
            Attack(questions=4), DifferentialPrivacy(epsilon="1/100", budget=1), secrets, rng.child("dp")
        )
        low, high = private.interval()
        say(
            "\n[bold]3. The same attack on private answers[/bold], ε = 1 for all questions together, 1/100 each: the "
            f"budget ends after {private.asked - private.refused} questions, and "
            f"[bold green]{private.risk:.1%}[/bold green] ({low:.1%} to {high:.1%}) of the bits are right; blind "
            f"guessing gets {private.baseline:.1%}."
        )
        say(
            "\n[bold]4. The wall.[/bold] In units of √n the curves of small and large tables fall on one another; more "
            "questions push the wall outwards, and only a budget stops them from coming."
        )
        place = folder / "wall.svg"
        place.write_text(draw(points), encoding="utf-8")
        say(f"\nThe picture:  {place.resolve()}\n")
        return {
            "points": points,
            "private": private.to_dict(),
            "picture": str(place),
        }


def _secrets(size: int, rng: Rng) -> Any:
    return (rng.child("secrets", size).generator.random(size) < 0.5).astype(np.int8)


def _attack(size: int, times: float, noise: float, rng: Rng) -> QueryOutcome:
    policy = BoundedNoise(bound=noise * size**0.5)
    return evaluate_query_attack(Attack(questions=times), policy, _secrets(size, rng), rng)


def _point(panel: str, size: int, times: float, noise: float, outcome: QueryOutcome) -> dict[str, Any]:
    low, high = outcome.interval()
    return {
        "panel": panel, "people": size, "questions": times, "noise": noise, "share": outcome.risk, "low": low,
        "high": high, "baseline": outcome.baseline,
    }  # fmt: skip


def draw(points: list[dict[str, Any]]) -> str:
    """The two panels as SVG: curves by table size, and curves by number of questions."""
    import vl_convert

    def panel(name: str, field: str, title: str, words: dict[float, str]) -> dict[str, Any]:
        rows = [{**p, "line": words[p[field]]} for p in points if p["panel"] == name]
        x = {
            "field": "noise", "type": "quantitative", "scale": {"type": "log", "domain": [0.045, 9], "nice": False},
            "axis": {"values": [0.05, 0.1, 0.2, 0.5, 1, 2, 5], "title": "largest error of an answer, in √n"},
        }  # fmt: skip
        y = {"type": "quantitative", "scale": {"domain": [0.4, 1]}, "axis": {"format": ".0%", "title": "bits right"}}
        colour = {
            "field": "line", "type": "nominal", "sort": list(words.values()), "title": None,
            "scale": {"range": list(_COLOURS)},
            "legend": {"orient": "bottom-left", "symbolOpacity": 1, "fillColor": "white"},
        }  # fmt: skip
        layers: list[dict[str, Any]] = [
            {"mark": {"type": "area", "opacity": 0.2},
             "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}},
            {"mark": {"type": "line", "point": True},
             "encoding": {"x": x, "y": {**y, "field": "share"}, "color": colour}},
            {"data": {"values": [{"y": 0.5}]}, "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#56616c"},
             "encoding": {"y": {**y, "field": "y"}}},
            {"data": {"values": [{"x": 1}]}, "mark": {"type": "rule", "strokeDash": [2, 3], "color": "#56616c"},
             "encoding": {"x": {**x, "field": "x"}}},
        ]  # fmt: skip
        return {"title": title, "width": 330, "height": 260, "data": {"values": rows}, "layer": layers}

    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "hconcat": [
            panel("people", "people", "4 questions per person", {size: f"{size:,} people" for size in SIZES}),
            panel(
                "questions", "questions", "1,024 people", {float(t): f"{t:g} questions per person" for t in QUESTIONS}
            ),
        ],
        "resolve": {"scale": {"color": "independent"}},
        "config": {"aria": False, "font": "sans-serif", "view": {"stroke": None}},
    }
    drawn: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return drawn
