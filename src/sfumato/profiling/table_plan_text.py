"""A plan of tables as a commented document: which columns could be rows and columns, and which amounts could be summed.

The first table crosses the first quasi-identifier with few values with the first other column with few values. The
owner decides: a rule about contributors has no default, and sums are a comment.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from sfumato.data.source import Source
from sfumato.data.yaml_documents import yaml_flow, yaml_scalar
from sfumato.dataset import Kind, Role
from sfumato.profiling.proposal import ColumnProposal, Proposal
from sfumato.profiling.recipe_text import column_lines, comment, data_lines, unit_lines

_MOST_VALUES = 20
"""A column with more values makes a table that nobody reads."""
_USABLE = (Role.QUASI, Role.SENSITIVE, Role.UNDECIDED)


def table_plan_text(
    proposal: Proposal, frame: pl.DataFrame, source: Source, *, unit: str | None = None, threshold: int | None = None
) -> str:
    """The plan as YAML. Without ``threshold`` the rule is left as a comment for the data owner to fill in."""
    own = unit or proposal.unit
    usable = [one for one in proposal.columns if one.role in _USABLE and one.name != own]
    crossed = [one for one in usable if 2 <= one.distinct <= _MOST_VALUES and one.kind is not Kind.NUMBER]
    whole = [one for one in crossed if one.missing == 0]
    gaps = [one.name for one in crossed if one not in whole]
    summed = [one for one in usable if one not in crossed and one.role is not Role.QUASI and _amount(one, frame)]
    weights = [one.name for one in proposal.columns if one.role is Role.WEIGHT and _amount(one, frame)]
    amounts = [one.name for one in sorted(summed, key=lambda one: one.role is not Role.SENSITIVE)]
    return "\n".join(
        [
            *comment(
                "A proposal for a table. Review it: roles of the columns, whose privacy is kept, which columns are"
                " crossed, and the rule for cells that are not published."
            ),
            "sfumato: 1",
            *data_lines(source),
            *unit_lines(proposal, unit),
            "",
            "columns:",
            *(line for column in proposal.columns for line in column_lines(column)),
            "",
            *_tables(whole, gaps),
            *_amounts(amounts, weights),
            *_rule(threshold),
            "",
        ]
    )


def _tables(whole: list[ColumnProposal], gaps: list[str]) -> Iterator[str]:
    names = [one.name for one in whole]
    yield from comment(
        f"Columns with at most {_MOST_VALUES} values and without gaps: {', '.join(names) or 'none'}. Every line is a"
        " table; the last column stands across. Tables in one plan are protected together."
    )
    if gaps:
        yield from comment(f"With gaps, which need a category of their own: {', '.join(gaps)}.")
        yield "# missing: unknown"
    first = next((one.name for one in whole if one.role is Role.QUASI), None) or next(iter(names), None)
    if first is None:
        yield "# tables: [[ROWS, COLUMNS]]      # group the values of a column first, then name it"
        return
    other = next((one.name for one in whole if one.role is Role.SENSITIVE and one.name != first), None)
    other = other or next((name for name in names if name != first), None)
    yield "tables:"
    yield f"  - {yaml_flow([first] if other is None else [first, other])}"


def _amounts(names: list[str], weights: list[str]) -> Iterator[str]:
    if weights:
        yield from comment("A sum of weights is a weighted count; the threshold counts contributors without weights.")
        yield f"# value: {yaml_scalar(weights[0])}"
    if names:
        yield from comment(
            f"Amounts that can be summed instead of counting rows: {', '.join(names)}. Sums need p_percent or dominance"
            " among the rules as well."
        )
        yield f"# value: {yaml_scalar(names[0])}"


def _rule(threshold: int | None) -> Iterator[str]:
    yield from comment("The smallest number of contributors of a cell that is published. There is no default.")
    yield "# sensitive: {threshold: }" if threshold is None else f"sensitive: {{threshold: {threshold}}}"


def _amount(column: ColumnProposal, frame: pl.DataFrame) -> bool:
    """Whether a column holds non-negative numbers without gaps."""
    values = frame[column.name]
    if column.kind not in (Kind.NUMBER, Kind.INTEGER) or not values.dtype.is_numeric() or column.missing:
        return False
    return bool((values.cast(pl.Float64).is_finite() & (values >= 0)).all())
