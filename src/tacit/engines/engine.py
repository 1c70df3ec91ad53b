"""Where exact numbers are computed: an engine runs one prepared, aggregated statement and seals its result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from tacit.params import Part
from tacit.sealed import Sealed

__all__ = ["Engine", "Running"]


class Running:
    """An engine with its tables open, locked down: it can read these tables and nothing else."""

    @abstractmethod
    def run(self, sql: str) -> Sealed[list[tuple[Any, ...]]]:
        """The rows of one statement, sealed. Whatever goes wrong is one error with one message."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the tables."""


class Engine(Part):
    """Opens tables for query answering. The statements it is given are written in DuckDB's dialect."""

    @abstractmethod
    def start(self, tables: Mapping[str, Any]) -> Running:
        """Open the tables: each a file, or a frame that speaks Arrow, by the name that statements use."""
