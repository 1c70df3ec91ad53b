"""What the verbs found, as lists that show themselves as the tables that the command line prints."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING

from sfumato.attacks import Outcome
from sfumato.errors import NotApplicable
from sfumato.measures.base import MeasureResult

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["AttackResults", "MeasureResults", "as_text"]


class AttackResults(list["Outcome | NotApplicable"]):
    """What each attack achieved, or why it did not apply."""

    def __repr__(self) -> str:
        from sfumato.api.evaluate import attack_to_dict
        from sfumato.reports.terminal import print_attacks

        return as_text(lambda console: print_attacks([attack_to_dict(item) for item in self], console=console))


class MeasureResults(list[MeasureResult]):
    """What was measured."""

    def __repr__(self) -> str:
        from sfumato.reports.terminal import print_measures

        return as_text(lambda console: print_measures([item.to_dict() for item in self], console))


def as_text(show: Callable[[Console], None]) -> str:
    """What would be printed, without colour, for a notebook or an interactive session."""
    from rich.console import Console

    out = StringIO()
    show(Console(file=out, width=120, highlight=False, no_color=True, force_terminal=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
