"""`sfumato query` for data sets that are answered by another policy than differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import emit_json, note
from sfumato.errors import BadParameter

if TYPE_CHECKING:
    from sfumato.query.metadata import Metadata

__all__ = ["answer_by_policy"]


def answer_by_policy(
    metadata: Metadata, base: Path, sql: str, *, explain: bool, as_json: bool, options: dict[str, Any]
) -> None:
    """Ask, or tell how it would be answered; options that belong to differential privacy are refused."""
    assert metadata.policy is not None
    name = metadata.policy.name
    for option, value in options.items():
        if option not in ("analyst", "pace") and value not in (None, "0"):
            raise BadParameter(
                f"--{option} belongs to differential privacy; this data set is answered by policy `{name}`, which has "
                "no budget.",
                fix="Leave it out.",
            )
    session = metadata.policy_session(base=base, pace=options.get("pace"))
    if explain:
        told = session.explain(sql)
        if as_json:
            emit_json({"explanation": {"policy": name, "differential_privacy": False, "notes": list(told)}})
        else:
            click.echo("\n".join(told))
        return
    answer = session.ask(sql)
    if as_json:
        emit_json(answer.to_dict())
        return
    click.echo(answer.column)
    for value in answer.values:
        click.echo(_shown(value))
    for line in answer.notes:
        note(line)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:,.12g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
