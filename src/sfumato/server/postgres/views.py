"""Views of the schema ``sfumato``: the budget, the questions asked before, the last answer, the declared columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SystemView:
    """A view that analysts read with SELECT, at no cost."""

    name: str
    columns: Mapping[str, str]
    """PostgreSQL type by column."""
    about: str


VIEWS = (
    SystemView(
        name="budget",
        columns={
            "dataset": "text",
            "period": "text",
            "cap": "text",
            "spent": "text",
            "remaining": "text",
            "since_beginning": "text",
        },
        about="your budgets; since_beginning is the loss that has accumulated, whatever was renewed",
    ),
    SystemView(
        name="questions",
        columns={"asked_at": "timestamp", "question": "text", "status": "text", "epsilon": "text", "charged": "bool"},
        about="your questions on this data set, and whether they were charged (null while they run)",
    ),
    SystemView(
        name="last_answer",
        columns={
            "row_number": "int8",
            "column_name": "text",
            "value": "text",
            "low": "float8",
            "high": "float8",
            "limits": "text",
        },
        about="the last answer of this connection with its intervals; limits says whether they may cut people",
    ),
    SystemView(
        name="last_certificate",
        columns={"certificate": "text"},
        about="the certificate of the last answer of this connection, for sfumato verify",
    ),
    SystemView(
        name="columns",
        columns={"table_name": "text", "column_name": "text", "kind": "text", "declared_values": "text"},
        about="declared columns and values; no data was read",
    ),
)
