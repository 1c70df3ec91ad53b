"""Notices beside an answer: what was paid, what is left, and the intervals."""

from __future__ import annotations

from sfumato.query.results.answer import Answer, value_text
from sfumato.query.results.explain import digits, percentage

_MOST_CELLS = 12
_MOST_ROWS = 100_000


def answer_notice(answer: Answer) -> str:
    """One text for an answer: its cost, then an interval per number, or the widest of each column for many rows."""
    lines, level = list(answer.remarks), percentage(answer.explanation.confidence)
    known = [i for i in range(len(answer.columns)) if any(row[i].low is not None for row in answer.rows)]
    if len(answer.rows) * len(known) <= _MOST_CELLS:
        for row in answer.rows:
            keys = [value_text(cell.value) for i, cell in enumerate(row) if i not in known]
            for i in known:
                cell = row[i]
                if cell.low is not None and cell.high is not None:
                    name = " ".join([answer.columns[i], *(["of", ", ".join(keys)] if keys else [])])
                    lines.append(f"{name}: {level} interval {digits(cell.low, 4)} to {digits(cell.high, 4)}")
    else:
        for i in known:
            widest = max(
                (c.high - c.low) / 2 for row in answer.rows if (c := row[i]).low is not None and c.high is not None
            )
            lines.append(f"{answer.columns[i]}: {level} intervals of at most ±{digits(widest, 4)}")
    if known:
        lines.append("SELECT * FROM sfumato.last_answer lists them.")
    return "\n".join(lines)


def last_answer_rows(answer: Answer) -> list[dict[str, object]]:
    """The rows of ``sfumato.last_answer``: one for each cell."""
    return [
        {"row_number": number, "column_name": name, "value": None if cell.value is None else str(cell.value),
         "low": cell.low, "high": cell.high, "limits": answer.limits}
        for number, row in enumerate(answer.rows[:_MOST_ROWS], start=1)
        for name, cell in zip(answer.columns, row, strict=True)
    ]  # fmt: skip
