"""Where exact numbers are computed: an engine runs one prepared, aggregated statement and seals its result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from sfumato.engines.contribution_bounding import Bounded
from sfumato.errors import AnswerFailed
from sfumato.params import Part
from sfumato.secret import SecretValue

__all__ = ["Engine", "Running", "failed"]


class Running:
    """An engine with its tables open, locked down: it can read these tables and nothing else."""

    folds: bool = False
    """Whether it may have a faster way than a statement to bound the parts of units."""

    def check(self, sql: str) -> None:
        """Refuse a statement that this engine cannot compute exactly. Looks at no data; comes before any cost."""

    def listed(self, values: tuple[Any, ...]) -> str | None:
        """The name of a table of public values and their places in the list, made once and kept; None: statements write
        them out."""
        return None

    def fold(self, bounded: Bounded) -> SecretValue[list[tuple[Any, ...]]] | None:
        """Group, totals and number of units, as the statement for them would give; None: run the statement instead."""
        return None

    @abstractmethod
    def run(self, sql: str) -> SecretValue[list[tuple[Any, ...]]]:
        """The rows of one statement, sealed. Whatever goes wrong is one error with one message."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the tables."""


class Engine(Part):
    """Opens tables for query answering. The statements it is given are written in DuckDB's dialect."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """The files it reads."""

    @abstractmethod
    def start(self, tables: Mapping[str, Any]) -> Running:
        """Open the tables: each a file, or a frame that speaks Arrow, by the name that statements use."""


def failed() -> AnswerFailed:
    """The one error for whatever goes wrong while data is looked at: its reason may depend on them."""
    return AnswerFailed(
        "The question could not be computed. Its cost stays charged.",
        fix="Ask the data's owner; the reason is kept from analysts because it may depend on the data.",
    )
