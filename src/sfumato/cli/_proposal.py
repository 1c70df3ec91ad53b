"""What `init` prints about a proposal: roles, what singles people out, and the methods compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from sfumato.profiling import Proposal
    from sfumato.studies import MethodComparison

_COLORS = {"identifier": "red", "quasi": "yellow", "sensitive": "magenta", "undecided": "bold cyan"}
_COMBINATIONS = 3
"""Combinations of columns that are printed without `--details`."""


def show_proposal(proposal: Proposal, compared: MethodComparison | None, console: Console, *, details: bool) -> None:
    """Print the proposed roles and the strongest combinations, or everything that was found."""
    from rich.text import Text

    for warning in proposal.warnings():
        console.print(Text(warning, style="bold red"))
    if details:
        _show_details(proposal, console)
        if compared is not None:
            _show_methods(compared, console)
    else:
        _show_short(proposal, compared, console)


def _show_short(proposal: Proposal, compared: MethodComparison | None, console: Console) -> None:
    """Print columns by role, the strongest combinations and the proposed method, a line each."""
    from rich.table import Table
    from rich.text import Text

    from sfumato.dataset import Role

    roles = Table(title=_title(proposal), title_justify="left", box=None, show_header=False, pad_edge=False)
    roles.add_column(no_wrap=True)
    roles.add_column(overflow="fold")
    for role in Role:
        if names := proposal.of_role(role):
            roles.add_row(Text(role.value, style=_COLORS.get(role.value, "")), Text(", ".join(names)))
    console.print(roles)
    for column in proposal.columns:
        for placeholder in column.placeholders:
            values = ", ".join(map(str, placeholder.codes))
            does = "is read as missing" if placeholder.sure else "may stand for a missing value: review it"
            console.print(Text(f"{column.name}: {values} {does}."))
    for found in proposal.derived:
        console.print(Text(f"{found}."))
    for combination, _ in [one for one in proposal.combinations() if one[0].unique >= 0.0005][:_COMBINATIONS]:
        console.print(Text(f"{combination.unique:.1%} of the rows are unique in {' + '.join(combination.columns)}."))
    if compared is not None and compared.best is not None:
        part = f"a sample of {compared.rows} rows" if compared.rows < compared.whole else "all rows"
        console.print(
            Text(
                f"Of {len(compared.trials)} methods on {part}, {compared.best.method} loses least at k = {compared.k}."
            )
        )
    console.print("The reasons stand in the recipe; --details prints them.", style="dim")


def _title(proposal: Proposal) -> str:
    part = f", {proposal.rows} of them read" if proposal.rows < proposal.whole else ""
    whose = f"; several of one person, whom `{proposal.unit}` names" if proposal.unit else ""
    return f"{counted(proposal.whole, 'row')}{part}{whose}"


def _show_methods(compared: MethodComparison, console: Console) -> None:
    """Print what each method loses, the proposed one first."""
    from rich.table import Table
    from rich.text import Text

    part = f"a sample of {compared.rows} rows" if compared.rows < compared.whole else "all rows"
    methods = Table(
        title=f"\nMethods compared on {part} at k = {compared.k} (0 is best)", title_justify="left", box=None,
        header_style="bold", pad_edge=False,
    )  # fmt: skip
    for heading in ("method", "change of pairs of columns", "of single columns", ""):
        methods.add_column(heading, justify="right" if heading.count("columns") else "left", overflow="fold")
    for trial in compared.trials:
        losses = [f"{trial.losses[name]:.3f}" if trial.losses else "" for name in ("pairs", "marginals")]
        methods.add_row(trial.method, *losses, "proposed" if trial is compared.best else Text(trial.reason))
    console.print(methods)


def _show_details(proposal: Proposal, console: Console) -> None:
    """Print each column with its reason, and all combinations that single people out."""
    from rich.table import Table
    from rich.text import Text

    columns = Table(
        title=_title(proposal),
        title_justify="left",
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    for heading in ("column", "role", "kind", "reason"):
        columns.add_column(heading, no_wrap=heading in ("role", "kind"), overflow="fold")
    for column in proposal.columns:
        role = Text(column.role.value, style=_COLORS.get(column.role.value, ""))
        columns.add_row(Text(column.name), role, column.kind.value, Text(column.reason))
    console.print(columns)
    _show_placeholders(proposal, console)
    if proposal.derived:
        console.print("\nColumns from which others can be computed", style="italic")
        for found in proposal.derived:
            console.print(Text(f"  {found}"))
    rows = Table(
        title="\nCombinations of columns that single people out",
        title_justify="left",
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    rows.add_column("unique rows", justify="right")
    rows.add_column("columns", overflow="fold")
    rows.add_column("", overflow="fold")
    for combination, remark in proposal.combinations():
        rows.add_row(f"{combination.unique:.1%}", Text(" + ".join(combination.columns)), remark)
    if rows.row_count:
        console.print(rows)
    if proposal.singling is not None:
        console.print(_search_summary(proposal), style="dim")


def _show_placeholders(proposal: Proposal, console: Console) -> None:
    """Print the values that probably stand for missing values, and how the recipe treats them."""
    from rich.table import Table
    from rich.text import Text

    codes = Table(
        title="\nValues that probably stand for missing values", title_justify="left", box=None, header_style="bold",
        pad_edge=False,
    )  # fmt: skip
    for heading in ("column", "values", "rows", "in the recipe", "reason"):
        codes.add_column(heading, justify="right" if heading == "rows" else "left", overflow="fold")
    for column in proposal.columns:
        for placeholder in column.placeholders:
            treatment = "read as missing" if placeholder.sure else "a comment: review it"
            values = ", ".join(map(str, placeholder.codes))
            codes.add_row(Text(column.name), Text(values), str(placeholder.rows), treatment, Text(placeholder.reason))
    if codes.row_count:
        console.print(codes)


def _search_summary(proposal: Proposal) -> str:
    singling = proposal.singling
    assert singling is not None
    text = f"Combinations of up to {singling.size} columns: {singling.examined} checked, {singling.ruled_out} ruled out"
    if singling.more:
        text += f", {singling.more} more single out at least {singling.threshold:.0%}"
    if singling.sampled:
        text += (
            f"; larger ones were screened on {singling.sampled} rows (±{singling.margin:.0%}); listed ones were counted"
        )
    return text + "."
