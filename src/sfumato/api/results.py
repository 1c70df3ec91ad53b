"""Results of ``attack``, ``measure`` and ``check``: sequences with a frame, a plain document and a notebook display."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeVar, overload

import polars as pl

from sfumato.attacks import Outcome
from sfumato.attacks.recoding import ColumnReading
from sfumato.errors import NotApplicable
from sfumato.evaluation import Advice, LimitResult, advice, attack_to_dict, judge_limits, same_limit
from sfumato.evaluation.formatting import attack_label, percent
from sfumato.measures.base import MeasureResult
from sfumato.profiling.derived import Determination
from sfumato.release import Verdict

if TYPE_CHECKING:
    from rich.console import Console

Item = TypeVar("Item", covariant=True)


class Results(Sequence[Item]):
    """A sequence of results of one kind."""

    columns: Mapping[str, Any]
    """Columns of the frame and their types; the names are keys of the entries."""

    @property
    @abstractmethod
    def items(self) -> tuple[Item, ...]:
        """All results."""

    @abstractmethod
    def entries(self) -> list[dict[str, Any]]:
        """One dictionary per result, as in the JSON document of the command line."""

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self.items[index]

    @property
    def met(self) -> bool:
        """Whether everything that was asked for is met: the exit code of the command."""
        return True

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The document that the command prints with ``--json``."""

    @abstractmethod
    def show(self, console: Console | None = None) -> None:
        """Print what the command prints."""

    def __str__(self) -> str:
        return as_text(self.show)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def to_frame(self) -> pl.DataFrame:
        """One row per result, as a Polars data frame."""
        rows = [{name: entry.get(name) for name in self.columns} for entry in self.entries()]
        return pl.DataFrame(rows, schema=dict(self.columns))

    def _repr_html_(self) -> str:
        from sfumato.reports.notebook import frame_html

        return frame_html(self.to_frame())


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AttackResults(Results["Outcome | NotApplicable"]):
    """The outcome of each attack, or the reason why it does not apply."""

    outcomes: tuple[Outcome | NotApplicable, ...]
    limits: tuple[LimitResult, ...] = ()
    """The result of each limit, where one was set."""
    derived: tuple[Determination, ...] = ()
    """Released columns from which a masked or removed column can be computed. For the owner of the data only."""
    readings: tuple[ColumnReading, ...] = ()
    """Known columns whose values are released in another coding, and how these were matched."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """The public manifest of the attacked release."""

    @classmethod
    def judged(
        cls, outcomes: Iterable[Outcome | NotApplicable], limit: float | None, *, for_people: bool = True,
        manifest: Mapping[str, Any] | None = None,
    ) -> AttackResults:  # fmt: skip
        """The outcomes, and whether each kind of disclosure among them stays within one limit."""
        found = tuple(outcomes)
        limits = () if limit is None else judge_limits(same_limit(limit, found), found, for_people=for_people)
        return cls(outcomes=found, limits=limits, manifest=manifest or {})

    columns = {
        "attack": pl.String,
        "setting": pl.String,
        "discloses": pl.String,
        "secret": pl.String,
        **dict.fromkeys(("risk", "low", "high", "baseline", "control", "reference", "judged"), pl.Float64),
        **dict.fromkeys(("tried", "hits"), pl.Int64),
        "reason": pl.String,
    }

    @property
    def items(self) -> tuple[Outcome | NotApplicable, ...]:
        return self.outcomes

    def entries(self) -> list[dict[str, Any]]:
        return [attack_to_dict(item) for item in self.outcomes]

    @property
    def met(self) -> bool:
        """Whether every limit was judged and is met."""
        return all(limit.met for limit in self.limits)

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """What to change about attacks that exceed their limit. For the owner of the data only."""
        return advice(self.entries(), [limit.to_dict() for limit in self.limits], self.manifest)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``sfumato attack --json`` prints."""
        changes = [item.to_dict() for item in self.advice]
        limits = [limit.to_dict() for limit in self.limits]
        derived = [found.to_dict() for found in self.derived]
        more = {"advice": changes, "derived": derived, "readings": [reading.to_dict() for reading in self.readings]}
        return {"attacks": self.entries(), "limits": limits, **{key: value for key, value in more.items() if value}}

    def __repr__(self) -> str:
        judged = [entry for entry in self.entries() if entry["risk"] is not None]
        worst = max(judged, key=lambda entry: float(entry["risk"]), default=None)
        largest = f", largest risk {percent(worst['risk'])} ({attack_label(worst)})" if worst is not None else ""
        return f"<AttackResults: {len(judged)} of {len(self)} attacks apply{largest}>"

    def show(self, console: Console | None = None) -> None:
        """Print what ``sfumato attack`` prints."""
        from sfumato.reports.terminal import print_attacks

        document = self.to_dict()
        print_attacks(
            document["attacks"],
            document["limits"],
            console,
            changes=document.get("advice", ()),
            derived=[str(found) for found in self.derived],
            readings=[str(reading) for reading in self.readings],
        )

    def _repr_html_(self) -> str:
        from sfumato.reports.notebook import attacks_html

        document = self.to_dict()
        return attacks_html(document["attacks"], limits=document["limits"], changes=document.get("advice", ()))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MeasureResults(Results[MeasureResult]):
    """The value of each measure, or the reason why it does not apply."""

    results: tuple[MeasureResult, ...]

    columns = {"measure": pl.String, **dict.fromkeys(("value", "low", "high"), pl.Float64), "reason": pl.String}

    @property
    def items(self) -> tuple[MeasureResult, ...]:
        return self.results

    def entries(self) -> list[dict[str, Any]]:
        return [result.to_dict() for result in self.results]

    def to_dict(self) -> dict[str, Any]:
        """The document that ``sfumato measure --json`` prints."""
        return {"measures": self.entries()}

    def __repr__(self) -> str:
        values = [f"{result.measure} {result.value:.3g}" for result in self.results if result.value is not None]
        return f"<MeasureResults: {', '.join(values) or 'no value'}>"

    def show(self, console: Console | None = None) -> None:
        from sfumato.reports.terminal import print_measures

        print_measures(self.entries(), console)

    def _repr_html_(self) -> str:
        from sfumato.reports.notebook import measures_html

        return measures_html(self.entries())


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CheckResults(Results[Verdict]):
    """The verdict on each privacy model."""

    verdicts: tuple[Verdict, ...]

    columns = {
        "model": pl.String,
        "state": pl.String,
        "worst": pl.Float64,
        "wanted": pl.Float64,
        "failing": pl.Int64,
        "reason": pl.String,
    }

    @property
    def items(self) -> tuple[Verdict, ...]:
        return self.verdicts

    @property
    def holds(self) -> bool:
        """Whether at least one model was named, and all were checked and hold."""
        return bool(self.verdicts) and all(verdict.holds for verdict in self.verdicts)

    @property
    def met(self) -> bool:
        return self.holds

    def entries(self) -> list[dict[str, Any]]:
        return [verdict.to_dict() for verdict in self.verdicts]

    def to_dict(self) -> dict[str, Any]:
        return {"verdicts": self.entries()}

    def __repr__(self) -> str:
        states = ", ".join(f"{verdict.model} {verdict.state}" for verdict in self.verdicts)
        return f"<CheckResults: {states or 'no model named'}>"

    def show(self, console: Console | None = None) -> None:
        from sfumato.reports.terminal import output_console, verdict_lines

        output_console(console).print(verdict_lines(self.entries()))


def as_text(show: Callable[[Console], None]) -> str:
    """What would be printed on a terminal of 120 columns, without colour."""
    from rich.console import Console

    out = StringIO()
    # A console in a notebook displays what it is told to print instead of writing it to the file.
    show(Console(file=out, width=120, highlight=False, no_color=True, force_terminal=False, force_jupyter=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
