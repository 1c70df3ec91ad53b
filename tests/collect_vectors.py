"""Test vectors of the client for web pages: recorded random bytes, answers, and the report that Python makes of them.

`PYTHONPATH=src python tests/collect_vectors.py` writes tests/samples/collect_vectors.json anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.collecting import Survey
from sfumato.collecting.client_design import client_design
from sfumato.collecting.device import randomize_answer

__all__ = ["PATH", "vectors"]

PATH = Path(__file__).parent / "samples" / "collect_vectors.json"
_CASES = 64
_LISTS = {
    "generalized-randomized-response": [2, 5, 300],
    "symmetric-unary-encoding": [9],
    "optimized-unary-encoding": [130],
    "optimized-local-hashing": [40],
    "subset-selection": [3, 30],
    "hadamard-response": [12],
}
_NUMBERS = ("duchi", "piecewise", "hybrid", "square-wave")


class _Recorder:
    """Random words of which some are the largest there is, so that draws by rejection reject."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.Generator(np.random.PCG64(seed))
        self.taken = b""

    def take(self, size: int) -> bytes:
        drawn = self._draw.bytes(size) if size > 4 or self._draw.random() < 0.9 else b"\xff" * size
        self.taken += drawn
        return drawn


def _questions() -> dict[str, dict[str, Any]]:
    questions: dict[str, dict[str, Any]] = {"driver": {"domain": {"values": [True, False]}}}
    for protocol, sizes in _LISTS.items():
        for size in sizes:
            values = [f"größe {i}" if size < 10 else i for i in range(size)]
            questions[f"{protocol} of {size}"] = {"domain": {"values": values}, "protocol": protocol}
    for protocol in _NUMBERS:
        questions[protocol] = {"domain": {"low": -0.3, "high": 60}, "protocol": protocol}
    return questions


def vectors() -> list[dict[str, Any]]:
    """Three surveys with a question for each protocol, and cases of one person each."""
    made = []
    for number, epsilon in enumerate(("1/2", "1", "4")):
        text = json.dumps({"survey": "vectors", "epsilon": epsilon, "people": 100, "questions": _questions()})
        survey, draw = Survey.parse(text), np.random.default_rng(number)
        cases = []
        for case in range(_CASES):
            answers = {
                name: str(draw.choice(question.texts)) if question.texts else float(draw.normal(20, 30))
                for name, question in survey.questions.items()
            }
            source = _Recorder(1000 * number + case)
            report = randomize_answer(survey, answers, source=source)
            asked = {report["question"]: answers[report["question"]]}
            cases.append({"answers": asked, "random": source.taken.hex(), "report": report})
        made.append({"survey": text, "client": client_design(survey), "cases": cases})
    return made


if __name__ == "__main__":
    PATH.write_text(json.dumps(vectors(), ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
