"""Cross-tabs: published tables as readers of statistics know them, one dimension across and the others down.

A cross-tab shows what the file with a line per cell shows. A suppressed cell has one mark, whether it is sensitive
itself (primary) or protects another (secondary): readers who know which is which know that primary cells are small.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sfumato.data.formats.excel import write_sheets
from sfumato.release.public_folder import Leaving, PublicFolder
from sfumato.tables.cells import VALUE, CellKey

CONFIDENTIAL = "[c]"
"""The mark of a suppressed cell."""
WORKBOOK = "cross-tabs.xlsx"
_TOTAL = "Total"
_MOST_ACROSS = 1000
"""A dimension with more values stands down the side."""

CellValue = int | float | str
Node = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CrossTab:
    """A table with its margins, ready to be printed or written."""

    title: str
    """The dimensions."""
    head: tuple[str, ...]
    """Names of the dimensions that stand down the side, then the values across."""
    labels: int
    """How many columns name the line."""
    lines: tuple[tuple[CellValue, ...], ...]
    """Labels and cells; a suppressed cell is ``[c]``."""
    statuses: tuple[tuple[str, ...], ...] = ()
    """For the owner alone: ``primary``, ``secondary`` or nothing of every cell of every line."""

    @property
    def public(self) -> CrossTab:
        """What readers see."""
        return replace(self, statuses=())

    def to_dict(self) -> dict[str, object]:
        """Plain data; statuses only where the owner has them."""
        owner = {"statuses": self.statuses} if self.statuses else {}
        return {"title": self.title, "head": self.head, "labels": self.labels, "lines": self.lines, **owner}

    def csv(self) -> str:
        """The cross-tab as CSV."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.head, *self.lines])
        return out.getvalue()


def cross_tab(
    dimensions: Sequence[str | Sequence[str]],
    cells: Mapping[CellKey, CellValue],
    statuses: Mapping[CellKey, str] | None = None,
) -> CrossTab:
    """The cross-tab of the dimensions of a table from its published cells; the last dimension stands across.

    >>> cells = {(("sex", "F"),): 5, (("sex", "M"),): 7, (): 12}
    >>> cross_tab(["sex"], cells).lines
    (('F', 5), ('M', 7), ('Total', 12))
    """
    named = [(one,) if isinstance(one, str) else tuple(one) for one in dimensions]
    nodes = [_nodes(one, cells) for one in named]
    split = len(named) > 1 and len(nodes[-1]) <= _MOST_ACROSS
    down, across = (named[:-1], named[-1]) if split else (named, ())
    ends: Sequence[Node] = nodes[-1] if split else [()]
    total = _TOTAL
    while any(total in node for some in nodes for node in some):
        total += " (all)"
    lines, marks = [], []
    for line in product(*nodes[: len(down)]):
        keys = [_key([*zip(down, line, strict=True), (across, end)]) for end in ends]
        labels = [label for one, node in zip(down, line, strict=True) for label in _labels(one, node, total)]
        lines.append((*labels, *(cells[key] for key in keys)))
        marks.append(tuple((statuses or {}).get(key, "") for key in keys))
    side = tuple(name for one in down for name in one)
    top = tuple(" / ".join(_labels(across, end, total)) if across else VALUE for end in ends)
    return CrossTab(
        title=" × ".join(" / ".join(one) for one in named), head=(*side, *top), labels=len(side), lines=tuple(lines),
        statuses=tuple(marks) if statuses is not None else (),
    )  # fmt: skip


def write_cross_tabs(folder: PublicFolder, tabs: Leaving[tuple[CrossTab, ...]]) -> None:
    """Write each cross-tab as CSV, and all of them as sheets of a workbook."""
    if not tabs.value:
        return
    public = [tab.public for tab in tabs.value]
    for number, tab in enumerate(public, 1):
        folder.text(f"cross-tab-{number}.csv", Leaving(tab.csv(), tabs.why))
    sheets = {f"table {number}": [tab.head, *tab.lines] for number, tab in enumerate(public, 1)}
    write_sheets(folder.place(WORKBOOK, tabs.why), sheets)


def _nodes(dimension: tuple[str, ...], cells: Mapping[CellKey, CellValue]) -> list[Node]:
    """The values of a dimension, with the total of each group after its parts."""
    found: set[Node] = set()
    for key in cells:
        place = dict(key)
        names = dimension[: len(place)]
        if set(names) == set(place):
            found.add(tuple(place[name] for name in names))
    return sorted(found, key=lambda node: [*((0, value) for value in node), (1, "")])


def _labels(dimension: tuple[str, ...], node: Node, total: str) -> list[str]:
    return [*node, *[total] * (len(dimension) - len(node))]


def _key(places: Sequence[tuple[tuple[str, ...], Node]]) -> CellKey:
    return tuple(sorted(pair for names, node in places for pair in zip(names, node, strict=False)))
