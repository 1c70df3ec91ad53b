"""Base class of learners: deterministic algorithms whose models are compared exactly."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from sfumato.integral.encoding import Codes, Encoding
from sfumato.integral.records import Records
from sfumato.params import Part


class Learner(Part):
    """A deterministic algorithm A: the model depends on the number of records in each cell and on nothing else.

    A model is a byte string. Two models are the same if and only if their bytes are.
    """

    suffix = "Learner"

    uses_grid: ClassVar[bool] = False
    """Whether columns are encoded on a grid over public bounds instead of in bins."""
    needs_label: ClassVar[bool] = True

    @abstractmethod
    def fit(self, records: Records, counts: Codes) -> bytes:
        """The model A(X), where X has ``counts`` records in the cells of ``records``."""

    def fit_many(self, records: Records, counts: Codes) -> Sequence[bytes]:
        """One model per row of ``counts``."""
        return [self.fit(records, row) for row in counts]

    @abstractmethod
    def score(self, model: bytes, records: Records) -> float:
        """How well the model fits all records; larger is better."""

    @abstractmethod
    def describe(self, model: bytes, encoding: Encoding) -> list[str]:
        """The model in lines of text, as it would be published."""

    def coarser(self) -> Iterator[Learner]:
        """Learners with fewer or coarser parameters, the finest first: what to publish instead."""
        yield from ()

    def to_json(self, model: bytes) -> object:
        """The model as plain data."""
        return model.hex()
