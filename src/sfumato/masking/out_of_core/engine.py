"""What an engine must be able to do for a large release: query, take small tables, write one file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from sfumato.errors import BadParameter, did_you_mean
from sfumato.progress import Progress

__all__ = ["LargeFileEngine", "open_engine"]


class LargeFileEngine(ABC):
    """A place where SQL runs over one source. Statements are written in DuckDB's words."""

    order: ClassVar[str]
    """A keyed pseudo-random number of a text, as SQL with one gap: what rows are ordered by."""
    source: str
    """How the source is called in statements."""

    @abstractmethod
    def query(self, statement: str, title: str) -> pl.DataFrame:
        """The rows of a statement; they must fit into memory."""

    @abstractmethod
    def put(self, name: str, frame: pl.DataFrame) -> None:
        """Make a small table known under a name."""

    @abstractmethod
    def write(self, statement: str, path: Path, suffix: str) -> None:
        """Write the rows of a statement to a file that does not exist, in the format of the suffix."""


def open_engine(
    name: str,
    source: str | Path,
    *,
    options: Mapping[str, Any] | None = None,
    writes: Path | None,
    memory: str,
    threads: int | None,
    temporary: Path | None,
    progress: Progress,
    session: Any = None,
) -> AbstractContextManager[LargeFileEngine]:
    """The engine of that name, opened over a source."""
    from sfumato.masking.out_of_core.on_duckdb import on_duckdb
    from sfumato.masking.out_of_core.on_spark import on_spark

    known: dict[str, Callable[[], AbstractContextManager[LargeFileEngine]]] = {
        "duckdb": lambda: on_duckdb(
            source,
            options=options,
            writes=writes,
            memory=memory,
            threads=threads,
            temporary=temporary,
            progress=progress,
        ),
        "spark": lambda: on_spark(
            source, options=options, memory=memory, threads=threads, temporary=temporary, session=session
        ),
    }
    if name not in known:
        raise BadParameter(f"No engine for large files is called `{name}`.", fix=did_you_mean(name, known))
    return known[name]()
