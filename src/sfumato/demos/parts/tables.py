"""Demo: classical tables. Suppressed cells are calculated back; secondary suppression and rounding prevent it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from sfumato.demos.base import Demo, Say
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.tables.cells import tabulate
from sfumato.tables.controlled_rounding import round_table
from sfumato.tables.interval_audit import interval_attack
from sfumato.tables.sensitivity import SensitivityRules
from sfumato.tables.summary_attack import disclosed_sums
from sfumato.tables.suppression import SuppressedTable, suppress

BRANCHES = ("brewery", "bakery", "mill", "dairy", "joinery")
COUNTIES = ("North", "East", "South", "West")


class TablesDemo(Demo):
    """Tables of turnover: cells of few firms are suppressed, calculated back, and protected.

    A table by branch and county has cells in which one firm dominates. The demo leaves these cells out, calculates them
    from the margins, and then suppresses further cells until no reader and no single firm learns too much. It also
    rounds a table of counts, and reads a salary from two means.
    """

    reference = "Hundepool et al. (2012), Statistical Disclosure Control, doi:10.1002/9781118348239"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        firms = _firms(Rng(self.seed).child("firms").generator)
        cells = tabulate(firms, [["branch", "county"]], value="turnover")
        rules = SensitivityRules(p_percent=15)
        levels = rules.apply(cells)
        with progress.task("tables", 4) as tick:
            alone = SuppressedTable(cells=cells, levels=levels, suppressed=levels.sensitive, cost=0, bound=0)
            tick(1)
            plain = suppress(cells, SensitivityRules(p_percent=15, insiders=False).apply(cells))
            tick(1)
            safe = suppress(cells, levels)
            tick(1)
            counts = tabulate(firms, [["branch", "county"]])
            rounded = round_table(counts, base=5)
            tick(1)
        calculated = sum(one.disclosed for one in alone.intervals)
        say(
            f"\n[bold]1. {firms.height} firms by branch and county.[/bold] In {int(levels.sensitive.sum())} of "
            f"{len(cells.keys)} cells the second largest firm could estimate the turnover of the largest to within "
            "15 %. If these cells alone are left out, subtraction from the margins gives back "
            f"[bold red]{calculated}[/bold red] of them exactly."
        )
        insiders = _insiders(plain)
        more = int(plain.suppressed.sum() - levels.sensitive.sum())
        say(
            f"\n[bold]2. Secondary suppression[/bold] hides {more} more cells; linear programs prove that every "
            "sensitive cell keeps a wide interval. But a firm that is alone in a suppressed cell knows its value. "
            f"Cells of others that such firms can calculate exactly: [bold red]{insiders}[/bold red]. Protected from "
            f"them too, {int(safe.suppressed.sum())} cells are hidden, and [bold green]{_insiders(safe)}[/bold green] "
            "disclosed."
        )
        say(
            "\n[bold]3. Controlled rounding[/bold] publishes all cells of the table of counts as multiples of 5, and "
            f"all sums hold. The largest change is {int(np.abs(rounded.values - counts.values).max())}."
        )
        staff = np.ones(12, dtype=np.bool_)
        without = staff.copy()
        without[0] = False
        found = disclosed_sums([staff, without], threshold=5)
        say(
            "\n[bold]4. Two means.[/bold] The mean pay of all 12 employees, and that of the 11 who are not the "
            f"director: [bold red]{found.people}[/bold red] salary follows, although both means are about more than "
            "five people.\n"
        )
        published = folder / "tables.csv"
        safe.frame().write_csv(published)
        say(f"The protected table:  {published.resolve()}\n")
        return {
            "firms": firms.height, "cells": len(cells.keys), "sensitive": int(levels.sensitive.sum()),
            "calculated": calculated, "suppressed": int(plain.suppressed.sum()), "calculated_by_firms": insiders,
            "suppressed_for_firms": int(safe.suppressed.sum()), "holds": safe.verdict.holds,
            "largest_change": int(np.abs(rounded.values - counts.values).max()), "salaries": found.people,
            "table": str(published),
        }  # fmt: skip


def _firms(random: np.random.Generator) -> pl.DataFrame:
    """Firms of very different turnover; some branches are rare."""
    rows = 90
    return pl.DataFrame(
        {
            "branch": random.choice(BRANCHES, rows, p=[0.3, 0.3, 0.2, 0.12, 0.08]),
            "county": random.choice(COUNTIES, rows, p=[0.4, 0.3, 0.2, 0.1]),
            "turnover": np.round(random.lognormal(3, 1, rows), 1),
        }
    )


def _insiders(table: SuppressedTable) -> int:
    """Sensitive cells that the single contributor of another one can calculate exactly."""
    levels = SensitivityRules(p_percent=15).apply(table.cells)
    found = set()
    for person in levels.contributors:
        targets = {int(cell) for cell in np.flatnonzero(levels.sensitive) if not person.knows(int(cell))}
        attacked = interval_attack(table.published, knowledge=person, targets=targets)
        found |= {one.key for one in attacked if one.disclosed}
    return len(found)
