"""The answer to a query: values with intervals, their cost, and an explanation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from html import escape
from typing import TYPE_CHECKING, Any

import polars as pl

from sfumato.dp.loss import PrivacyLoss
from sfumato.errors import BadParameter
from sfumato.query.plan.row_steps import Collapse, Compute, Keep, RowStep, Sort, Take
from sfumato.query.results.explain import Explanation, digits
from sfumato.query.results.intervals import OutputEvaluator
from sfumato.query.results.kept import LIMITS, Limits, kept_share, kept_text, limits_of
from sfumato.query.results.postprocess import NoisyValue, finite
from sfumato.query.results.windows import blank_value, sorted_rows, window_values

if TYPE_CHECKING:
    from sfumato.query.execute.executor import NoisyTable
    from sfumato.query.plan.noise import NoisePlan
    from sfumato.query.plan.outputs import Output
    from sfumato.query.plan.query import Query


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The released values of a query, under any policy. The analyst may see all of it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[NoisyValue, ...], ...]
    explanation: Explanation
    loss: PrivacyLoss | None = None
    """The cost; when ``cached``, the cost of the first time. None for policies without differential privacy."""
    cached: bool = False
    """Whether the same query was answered before; it is then free."""
    remaining: PrivacyLoss | None = None
    """The smallest remaining budget that applies to this analyst."""
    counterfeits: int = 0
    """Number of false values that an auditor added."""
    kept: NoisyValue | None = None
    """Noisy share of people of whom the contribution limits cut nothing; None where it was not measured."""
    limits: Limits | None = None
    """Whether it was shown that the contribution limits fit nearly all people, without which there are no intervals;
    None where they cannot cut anybody."""
    certificate: dict[str, Any] | None = None
    """The plan, every bound and loss with its rule, and the place in the ledger, for :func:`sfumato.verify`. It is
    public. None for policies without differential privacy, and for answers of a server."""

    @property
    def policy(self) -> str:
        """Name of the policy that answered."""
        return self.explanation.policy

    @property
    def notes(self) -> tuple[str, ...]:
        """What the analyst should know about the answer."""
        return self.explanation.notes

    @property
    def values(self) -> tuple[Any, ...]:
        """The values, for an answer of a single column."""
        if len(self.columns) != 1:
            raise BadParameter("this answer has more than one column.", fix="Use `answer.frame`.")
        return tuple(row[0].value for row in self.rows)

    @property
    def value(self) -> Any:
        """The number, for an answer of one row and one column."""
        if len(self.rows) != 1 or len(self.columns) != 1:
            raise BadParameter("this answer has more than one value.", fix="Use `answer.frame`.")
        return self.rows[0][0].value

    @property
    def frame(self) -> pl.DataFrame:
        """The values as a Polars frame."""
        data = {name: [row[i].value for row in self.rows] for i, name in enumerate(self.columns)}
        return pl.DataFrame(data, strict=False)  # a column may mix whole numbers and floats

    @property
    def intervals(self) -> pl.DataFrame:
        """Values with ``_low`` and ``_high`` beside numbers with an interval; ``limits`` where they can cut."""
        data: dict[str, list[object]] = {}
        for i, name in enumerate(self.columns):
            data[name] = [row[i].value for row in self.rows]
            if any(row[i].low is not None for row in self.rows):
                data[f"{name}_low"] = [row[i].low for row in self.rows]
                data[f"{name}_high"] = [row[i].high for row in self.rows]
        if self.limits is not None:
            data[self.limits_title] = [self.limits] * len(self.rows)
        return pl.DataFrame(data, strict=False)

    @property
    def limits_title(self) -> str:
        """Name of the column that says whether the limits fit: ``limits``, or one that the answer does not have."""
        return next(name for i in range(len(self.columns) + 1) if (name := LIMITS + "_" * i) not in self.columns)

    @property
    def cost(self) -> str:
        """The cost and the remaining budget as a sentence; empty for policies without differential privacy."""
        if self.loss is None:
            return ""
        left = "" if self.remaining is None else f" Left: {self.remaining}."
        return f"{'Answered before: free' if self.cached else f'Cost {self.loss}'}.{left}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is shown below the values: the cost and whom the limits cut; the notes of other policies."""
        if not self.cost:
            return self.notes
        return (self.cost, *([] if self.limits is None else [kept_text(self.kept)]))

    def __repr__(self) -> str:
        if len(self.rows) == 1:
            content = ", ".join(
                f"{name} {cell_text(cell)}" for name, cell in zip(self.columns, *self.rows, strict=True)
            )
        else:
            content = f"{len(self.rows)} rows of {', '.join(self.columns)}"
        return f"<Answer: {content}. {self.cost or f'Policy {self.policy}.'}>"

    def __str__(self) -> str:
        return "\n".join([str(self.intervals), *self.remarks])

    def _repr_html_(self) -> str:
        """A table of the values with their intervals, and the cost."""
        frame = self.intervals
        texts = [["" if value is None else value_text(value) for value in row] for row in frame.iter_rows()]
        remarks = "".join(f"<p>{escape(line)}</p>" for line in self.remarks)
        return f"{html_table(frame.columns, texts)}{remarks}"

    def to_frame(self) -> pl.DataFrame:
        """The values with their intervals as a Polars frame."""
        return self.intervals

    def to_arrow(self) -> Any:
        """The values with their intervals as an Arrow table."""
        return self.intervals.to_arrow()

    def to_pandas(self) -> object:
        """The values with their intervals as a pandas frame."""
        return self.intervals.to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""
        rows = [
            {name: {"value": _plain(cell.value), "low": cell.low, "high": cell.high}
             for name, cell in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]  # fmt: skip
        if self.loss is None:
            return {
                "columns": list(self.columns), "rows": rows, "policy": self.policy, "differential_privacy": False,
                "counterfeits": self.counterfeits, "notes": list(self.notes),
            }  # fmt: skip
        return {
            "columns": list(self.columns), "rows": rows, "loss": self.loss.to_dict(), "cached": self.cached,
            "remaining": None if self.remaining is None else self.remaining.to_dict(),
            "explanation": self.explanation.to_dict(),
            "kept": None if self.kept is None else asdict(self.kept), "limits": self.limits,
            "certificate": self.certificate,
        }  # fmt: skip


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text; every cell is escaped."""
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def value_text(value: object) -> str:
    """A value as a person reads it: six significant digits, separators of thousands."""
    if value is None:
        return "NULL"
    return digits(value, 6) if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


def cell_text(cell: NoisyValue) -> str:
    """A value with its interval, if it has one."""
    text = value_text(cell.value)
    if cell.value is None or cell.low is None or cell.high is None:
        return text
    return f"{text}  ({digits(cell.low, 4)} to {digits(cell.high, 4)})"


def answer_rows(plan: NoisePlan, table: NoisyTable) -> tuple[tuple[NoisyValue, ...], ...]:
    """The rows of an answer: its steps and SELECT, computed from noisy numbers."""
    query, outputs = plan.query, OutputEvaluator(plan, table)
    rows = list(range(len(table.keys)))
    for step in query.steps:
        rows = _stepped(step, rows, outputs)
    columns = [outputs.column(output) for _, output in query.outputs]
    if limits_of(plan, kept_share(plan, table)) not in (None, "fit"):
        columns = [[replace(cell, low=None, high=None) for cell in column] for column in columns]
    return tuple(tuple([column[row] for column in columns]) for row in rows)


def _stepped(step: RowStep, rows: list[int], outputs: OutputEvaluator) -> list[int]:
    """The rows after a step."""

    def values(items: Iterable[Output]) -> list[list[Any]]:
        return [[cell.value for cell in outputs.column(item)] for item in items]

    match step:
        case Keep(condition):
            holds = outputs.column(condition)
            return [row for row in rows if holds[row].value]
        case Compute(index, call):
            order = values(item for item, _ in call.order)
            found = window_values(call, rows, values(call.args), values(call.partition), order)
            outputs.windows[index] = [finite(NoisyValue(value=found.get(row))) for row in range(outputs.size)]
            outputs.blanks[index] = blank_value(call)
            return rows
        case Collapse(keys):
            seen: dict[tuple[object, ...], int] = {}
            names = values(keys)
            for row in rows:
                seen.setdefault(tuple([column[row] for column in names]), row)
            return list(seen.values()) if keys or rows else [outputs.add_row()]
        case Sort(by):
            return sorted_rows(rows, values(item for item, _ in by), [descending for _, descending in by])
        case Take(limit, offset):
            return rows[offset:] if limit is None else rows[offset : offset + limit]


def column_titles(query: Query) -> tuple[str, ...]:
    """Names of the answer's columns; a repeated name gets a number."""
    seen: dict[str, int] = {}
    titles = []
    for name, _ in query.outputs:
        seen[name] = seen.get(name, 0) + 1
        titles.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return tuple(titles)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date | datetime) else value
