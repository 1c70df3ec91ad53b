"""Contract of every registered measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest

from sfumato.measures import About, Measure, MeasureResult, ReleasePair, default_measures
from sfumato.progress import SILENT, Progress
from sfumato.registry import registry
from sfumato.rng import Rng
from sfumato.testing import check_measure, check_part
from sfumato.testing.measures import MEASURE_CHECKS

PARTS = [
    pytest.param(kind.build(parameters), id=f"{kind.part_name()}-{number}")
    for kind in registry("measure")
    for number, parameters in enumerate(kind.examples)
]


@pytest.mark.parametrize("check", [check_part, *MEASURE_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize("measure", PARTS)
def test_contract(measure: Measure, check: Callable[[Measure], None]) -> None:
    check(measure)
    assert measure.part_name() in registry("measure")


class Silent(Measure):
    """Breaks the contract: neither a value nor a reason."""

    about = About.DISCLOSURE

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        return MeasureResult(measure=self.part_name(), value=None)


class Unseeded(Measure):
    """Breaks the contract: draws from a stream of its own."""

    about = About.DISCLOSURE

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        return MeasureResult(measure=self.part_name(), value=float(np.random.default_rng().normal()))


class Unclear(Measure):
    """Breaks the contract: public details of a private value."""

    about = About.DISCLOSURE
    publishable_detail: ClassVar[frozenset[str]] = frozenset({"rows"})

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        return MeasureResult(measure=self.part_name(), value=0.0)


@pytest.mark.parametrize(
    ("kind", "words"), [(Silent, "value or a reason"), (Unseeded, "same seed"), (Unclear, "public only")]
)
def test_broken_measures_are_caught(kind: type[Measure], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_measure(kind())


def test_default_measures_and_what_a_report_publishes() -> None:
    defaults = [measure.part_name() for measure in default_measures()]
    assert defaults == ["class-sizes", "uniqueness", "prosecutor", "ncp", "marginals", "pairs"]
    assert {kind.part_name() for kind in registry("measure") if kind.publishable} == set(defaults)  # type: ignore[attr-defined]
