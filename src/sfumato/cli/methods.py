"""List all methods, models, attacks and measures, or show one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sfumato.cli._console import emit_json, json_option

if TYPE_CHECKING:
    from rich.table import Table

PERSON = "researcher"

_PURPOSES = (
    ("Describe data", ("format", "hierarchy", "tagger", "engine")),
    ("Release", ("method", "model", "metric", "graph-method", "graph-model", "release-kind")),
    ("Attack", ("attack", "graph-attack", "query-attack", "model-attack")),
    ("Measure and check", ("measure", "graph-measure", "check")),
    ("Answer questions", ("policy", "mechanism")),
    ("Collect and learn", ("frequency-protocol", "number-protocol", "learner")),
    ("See it", ("demo",)),
)
"""What kinds of part are for. A kind that is not listed is shown under "Other"."""
_MORE = "What each does: sfumato methods --kind attack. All about one: sfumato methods linkage."


@click.command("methods")
@click.argument("name", required=False)
@click.option(
    "--kind", default=None, help="List the parts of this kind with a sentence each: method, model, attack, ..."
)
@json_option
def command(name: str | None, kind: str | None, as_json: bool) -> None:
    """List the names of all parts by purpose, or show everything about NAME.

    --kind lists the parts of one kind with a sentence each.
    """
    from sfumato.errors import UnknownPart
    from sfumato.registry import KINDS, registry
    from sfumato.wording import did_you_mean

    kinds = [kind] if kind else list(KINDS)
    if name is not None:
        matches = [(k, registry(k).get(name)) for k in kinds if name in registry(k)]
        if not matches:
            known = [n for k in kinds for n in registry(k).names()]
            raise UnknownPart(f"There is no part `{name}`.", fix=did_you_mean(name, known))
        from sfumato.part_page import page

        if as_json:
            emit_json({"parts": [{"kind": k, "name": name, "schema": c.model_json_schema()} for k, c in matches]})
        else:
            from rich.console import Console
            from rich.markdown import Markdown

            Console().print(Markdown("\n".join(page(k, c) for k, c in matches), hyperlinks=False))
        return
    if as_json:
        listed = [(k, name, registry(k).summary(name)) for k in kinds for name in registry(k).names()]
        emit_json({"parts": [{"kind": k, "name": n, "summary": s} for k, n, s in listed]})
        return
    from rich.console import Console

    if kind is not None:
        Console().print(_sentences(kind))
        return
    Console().print(_names(kinds), "\n", _MORE, sep="")


def _sentences(kind: str) -> Table:
    """One line for each part of a kind: its name and what it does."""
    from rich.table import Table

    from sfumato.registry import registry

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("name", "what it does"):
        table.add_column(column, no_wrap=column == "name")
    for name in registry(kind).names():
        table.add_row(name, registry(kind).summary(name))
    return table


def _names(kinds: list[str]) -> Table:
    """The names of all parts, by what they are for."""
    from rich.table import Table

    from sfumato.registry import registry

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    other = [kind for kind in kinds if kind not in {kind for _, group in _PURPOSES for kind in group}]
    for purpose, group in (*_PURPOSES, ("Other", tuple(other))):
        shown = [(kind, registry(kind).names()) for kind in group]
        if any(names for _, names in shown):
            table.add_row(f"[bold]{purpose}[/bold]", "")
            for kind, names in shown:
                table.add_row(f"  {kind}", ", ".join(names))
    return table
