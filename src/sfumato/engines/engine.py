"""Engines: the database back ends. One family for private queries and for masking files larger than memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sfumato.engines.contribution_bounding import Bounded
from sfumato.engines.statements import Query
from sfumato.engines.workspace import Workspace
from sfumato.errors import AnswerFailed, NotApplicable
from sfumato.params import Part
from sfumato.progress import SILENT, Progress
from sfumato.secret import Permit, SecretValue

if TYPE_CHECKING:
    import numpy.typing as npt


class Running:
    """An engine with its tables open for private queries. It can read these tables and nothing else."""

    folds: bool = False
    """Whether :meth:`fold` may be faster than a statement."""
    passes: bool = False
    """Whether a few groups of each unit are chosen faster by passes over the rows than by sorting them."""

    def connect(self) -> None:
        """Reconnect to the server if the connection was lost. Raises DatabaseFailed where that is not possible.

        Called before a cost is reserved, so that a server that is down costs nothing.
        """

    def check(self, query: Query) -> None:
        """Refuse a statement that this engine cannot compute exactly. Reads no data and precedes any cost."""

    def listed(self, values: tuple[object, ...]) -> str | None:
        """Name of a table that holds these public values and their positions, made once and cached.

        None: the statement writes the values out.
        """
        return None

    def fold(self, bounded: Bounded) -> SecretValue[list[tuple[Any, ...]]] | None:
        """Group, totals and number of units, as the equivalent statement gives them. None: run the statement."""
        return None

    @abstractmethod
    def run(self, query: Query) -> SecretValue[list[tuple[Any, ...]]]:
        """The rows of one statement as a secret value. Every failure raises the same error with the same message."""

    def row_numbers(self, query: Query) -> SecretValue[npt.NDArray[np.int64]]:
        """The first column of a statement, which holds whole numbers, as an array."""
        return SecretValue(np.array([row[0] for row in self.run(query).open(Permit("row numbers"))], np.int64))

    def whole_columns(self, query: Query) -> SecretValue[list[npt.NDArray[np.int64]]]:
        """The columns of a statement, all of which hold whole numbers, as arrays: for results of millions of rows."""
        rows = self.run(query).open(Permit("whole numbers"))
        return SecretValue([np.array(column, np.int64) for column in zip(*rows, strict=True)])

    @abstractmethod
    def close(self) -> None:
        """Release the tables."""


class Engine(Part):
    """A database back end. It has two uses, and its class variables declare what it supports.

    - :meth:`start` opens tables for private queries. Every engine supports this.
    - :meth:`workspace` opens one file for masking out of core. Engines with a non-empty ``writes`` support this.

    Private queries arrive as :mod:`statements <sfumato.engines.statements>`, from which the engine's generator writes
    SQL. Masking out of core takes statements in DuckDB's dialect.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    """Suffixes of the files that private queries read."""
    writes: ClassVar[tuple[str, ...]] = ()
    """Suffixes of the files that masking out of core can write. Empty: the engine answers queries only."""

    @abstractmethod
    def start(self, tables: Mapping[str, object]) -> Running:
        """Open tables for private queries: each a file, or a frame that supports Arrow, by its name in statements."""

    def workspace(
        self,
        source: str | Path,
        *,
        options: Mapping[str, object] | None = None,
        writes: Sequence[Path] = (),
        numbered: bool = False,
        temporary: Path | None = None,
        progress: Progress = SILENT,
    ) -> AbstractContextManager[Workspace]:
        """Open a file for masking out of core.

        ``options`` are those of the file's format. Only the files in ``writes`` can be written. With ``numbered`` the
        rows of the source carry their number. Data that exceeds the memory limit spills to ``temporary``, or to the
        system's folder for temporary files.
        """
        raise NotApplicable(
            f"The engine `{self.part_name()}` answers queries; it does not mask files.", fix="Use `duckdb`."
        )

    def map_parquet(
        self, files: Sequence[Path], columns: Sequence[str], summarize: Callable[[Iterable[Any]], str]
    ) -> Iterable[str]:
        """One text for each part of Parquet files, which ``summarize`` makes of its record batches where they are."""
        raise NotApplicable(
            f"The engine `{self.part_name()}` does not summarize files part by part.", fix="Use `duckdb`."
        )

    def keep_open(self) -> AbstractContextManager[None]:
        """Keep the back end's session open between workspaces. Starting a session can take seconds."""
        return nullcontext()


def failed() -> AnswerFailed:
    """The one error for every failure while data is read: the reason may depend on the data."""
    return AnswerFailed(
        "The question could not be computed. Its cost stays charged.",
        fix="Ask the data's owner; the reason is kept from analysts because it may depend on the data.",
    )
