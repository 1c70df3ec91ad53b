"""Cross-tabs: published tables as readers of statistics know them, one dimension across and the others down; SDMX-CSV.

A cross-tab shows what the file with a line per cell shows. A suppressed cell has one mark, whether it is sensitive
itself (primary) or protects another (secondary): readers who know which is which know that primary cells are small.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import polars as pl

from sfumato.data.formats.excel import write_sheets
from sfumato.release.public_folder import Leaving, PublicFolder
from sfumato.tables.cells import VALUE, CellKey

CONFIDENTIAL = "[c]"
"""The mark of a suppressed cell."""
WORKBOOK = "cross-tabs.xlsx"
SDMX = "tables-sdmx.csv"
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


def sdmx_csv(cells: pl.DataFrame, *, name: str) -> str:
    """Published cells as SDMX-CSV 2.0: a dimension is ``_T`` for its total, and a suppressed cell is confidential.

    As in a cross-tab, a suppressed cell has one status (C), whether it is sensitive itself or protects another.

    >>> cells = pl.DataFrame({"place of birth": ["x", None], "value": [None, 7]})
    >>> print(sdmx_csv(cells, name="people"), end="")
    STRUCTURE,STRUCTURE_ID,ACTION,PLACE_OF_BIRTH,OBS_VALUE,OBS_STATUS,CONF_STATUS
    dataflow,SFUMATO:PEOPLE(1.0),I,x,,Q,C
    dataflow,SFUMATO:PEOPLE(1.0),I,_T,7,A,F
    """
    names = [column for column in cells.columns if column != VALUE]
    idents = _sdmx_ids(names)
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(["STRUCTURE", "STRUCTURE_ID", "ACTION", *idents, "OBS_VALUE", "OBS_STATUS", "CONF_STATUS"])
    structure = f"SFUMATO:{_sdmx_ids([name])[0]}(1.0)"
    for *places, value in cells.select(*names, VALUE).iter_rows():
        marks = ("", "Q", "C") if value is None else (value, "A", "F")
        lines.writerow(["dataflow", structure, "I", *("_T" if place is None else place for place in places), *marks])
    return out.getvalue()


def _sdmx_ids(names: Sequence[str]) -> list[str]:
    """Names as identifiers of SDMX: capital letters, digits and ``_``; each differs from the others."""
    found: list[str] = []
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().upper()
        ident = re.sub("[^A-Z0-9]+", "_", plain).strip("_") or "COLUMN"
        ident = ident if ident[0].isalpha() else f"C_{ident}"
        taken = {*found, "STRUCTURE", "STRUCTURE_ID", "ACTION", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS"}
        found.append(next(one for one in (ident, *(f"{ident}_{n}" for n in range(2, 2000))) if one not in taken))
    return found


def write_cross_tabs(
    folder: PublicFolder, tabs: Leaving[tuple[CrossTab, ...]], cells: pl.DataFrame, *, name: str
) -> None:
    """Write each cross-tab as CSV, all of them as sheets of a workbook, and their cells as SDMX-CSV."""
    if not tabs.value:
        return
    folder.text(SDMX, Leaving(sdmx_csv(cells, name=name), tabs.why))
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
