"""The demos of query auditing and of reconstruction print what they compute."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.demos.base import Demo
from sfumato.registry import registry


def run_demo(name: str, folder: Path, seed: int = 7) -> tuple[dict[str, object], str]:
    pytest.importorskip("ortools")
    demo, lines = registry("demo").get(name).build({"seed": seed}), []
    assert isinstance(demo, Demo)
    return demo.run(folder, lines.append), "\n".join(lines)


def test_audit(tmp_path: Path) -> None:
    figures, text = run_demo("audit", tmp_path)
    assert figures["decisions"] == ["answered", "refused", "refused"]
    assert figures["exposed"] == [0, 1, 1]
    assert figures["worlds_left"] == {"looks": 1, "simulates": 3}
    assert "Gary" in text
    assert (tmp_path / "log.sql").exists()


@pytest.mark.parametrize("seed", range(6))
def test_counterfeits_never_publish_what_the_demo_calls_a_disclosure(seed: int, tmp_path: Path) -> None:
    """The list that step 4 calls a disclosure is published in step 5 only beside a first list with a false value."""
    figures, text = run_demo("audit", tmp_path, seed)
    first, second = figures["counterfeits"]  # type: ignore[misc]
    assert first + second >= 1
    possible = figures["possible_for_clark"]
    assert isinstance(possible, list)
    assert "Cold" in possible
    assert len(possible) >= 2
    assert run_demo("audit", tmp_path, seed) == (figures, text)  # one seed, one text


@pytest.mark.slow
def test_reconstruction_draws_the_wall(tmp_path: Path) -> None:
    figures, _ = run_demo("reconstruction", tmp_path)
    points = figures["points"]
    assert isinstance(points, list)
    for size in (256, 1024, 4096):
        curve = {p["noise"]: p for p in points if p["panel"] == "people" and p["people"] == size}
        assert curve[0.2]["share"] > 0.99  # below the wall nearly everything is known, at every size
        assert 0.88 < curve[0.5]["share"] < 0.99
        assert curve[8.0]["share"] < 0.62  # beyond it hardly more than by guessing
    private = figures["private"]
    assert isinstance(private, dict)
    assert private["risk"] < 0.6  # of 1,024 bits; 0.5 in the mean without answers, and 0.6 is six deviations from it
    assert (tmp_path / "wall.svg").read_text().startswith("<svg")
