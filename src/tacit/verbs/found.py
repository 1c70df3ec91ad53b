"""What the verbs found, as lists that show themselves as the tables that the command line prints."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING

from tacit.attack import Outcome
from tacit.errors import NotApplicable
from tacit.measure.measure import Measurement

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Attacks", "Measures", "as_text"]


class Attacks(list["Outcome | NotApplicable"]):
    """What each attack achieved, or why it did not apply."""

    def __repr__(self) -> str:
        from tacit.report.terminal import print_attacks
        from tacit.verbs.trying import attack_to_plain

        return as_text(lambda console: print_attacks([attack_to_plain(item) for item in self], console=console))


class Measures(list[Measurement]):
    """What was measured."""

    def __repr__(self) -> str:
        from tacit.report.terminal import print_measures

        return as_text(lambda console: print_measures([item.to_plain() for item in self], console))


def as_text(show: Callable[[Console], None]) -> str:
    """What would be printed, without colour, for a notebook or an interactive session."""
    from rich.console import Console

    out = StringIO()
    show(Console(file=out, width=120, highlight=False, no_color=True, force_terminal=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
