"""Contract of a demo: it prints text and returns its figures as plain data."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from sfumato.demos.base import Demo
from sfumato.testing.parts import run_checks


def check_demo(demo: Demo) -> None:
    """Raise AssertionError unless ``demo`` keeps the contract of a demo.

    It prints something and returns figures that are plain JSON. Texts and figures of two runs may differ: they hold
    times and private noise.
    """
    run_checks(demo, DEMO_CHECKS)


def prints_and_returns_figures(demo: Demo) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paragraphs: list[str] = []
        figures = demo.run(Path(folder), paragraphs.append)
    assert paragraphs, "the demo prints nothing"
    assert figures, "the demo returns no figures"
    json.dumps(figures, allow_nan=False)


DEMO_CHECKS = (prints_and_returns_figures,)
