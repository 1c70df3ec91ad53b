"""Demo: a differencing attack on exact counts, and the same counts with differential privacy."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sfumato.demos.base import Demo, Say
from sfumato.demos.private_hospital import flu, patients
from sfumato.errors import OverBudget
from sfumato.progress import SILENT, Progress
from sfumato.query.session import Answer

_PEOPLE = 2000
_EVERYONE = "SELECT COUNT(*) FROM patients WHERE flu"
_OTHERS = "SELECT COUNT(*) FROM patients WHERE flu AND name <> 'Chandler'"


class QueryDemo(Demo):
    """Differencing attack on two exact counts, the same counts with differential privacy, and the budget.

    All people in this demo are synthetic. The noise comes from the operating system's random source and differs in
    every run.
    """

    reference = "Dwork, McSherry, Nissim, Smith (2006), doi:10.1007/11681878_14"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        table = patients(_PEOPLE)
        exact = (table["flu"].sum(), table.filter(pl.col("name") != "Chandler")["flu"].sum())
        say(
            f"\n[bold]1. Exact answers.[/bold] A hospital answers counts only, no rows. Of {_PEOPLE:,} patients, "
            f"[bold]{exact[0]}[/bold] have the flu. Without Chandler, it is [bold]{exact[1]}[/bold]. "
            f"[bold red]Therefore Chandler {'has' if exact[0] != exact[1] else 'does not have'} the flu.[/bold red]"
        )
        session = flu(people=_PEOPLE, budget=1)
        say("\n[bold]2. The same two queries with differential privacy, ε = 0.1 each.[/bold]")
        noisy = []
        for sql in (_EVERYONE, _OTHERS):
            answer = session.ask(sql, epsilon="0.1")
            cell = answer.rows[0][0]
            noisy.append(int(cell.value))
            say(f"   {sql}\n   → [bold]{cell.value}[/bold]  ({cell.low:.0f} to {cell.high:.0f})")
        say(
            f"   The difference is {noisy[0] - noisy[1]}. It would be about as likely if Chandler did not have the "
            "flu. The share of patients with the flu is still accurate; whether Chandler has it stays unknown."
        )
        again = session.ask(_EVERYONE, epsilon="0.1")
        say(
            f"\n[bold]3. A repeated query[/bold] returns {again.value} again, for free. Repeating a query does not "
            "average the noise away."
        )
        sql = "SELECT FLOOR(age / 10) AS decade, COUNT(*) AS patients FROM patients GROUP BY decade"
        explained = session.explain(sql, epsilon="0.5")
        say(
            "\n[bold]4. EXPLAIN shows the cost and the expected error and spends nothing.[/bold]\n"
            f"   EXPLAIN {sql}\n{explained}"
        )
        histogram = session.ask(sql, epsilon="0.5")
        picture = _draw(histogram, folder)
        say(f"   The histogram with 95 % intervals:  {picture}")
        refusal_text = ""
        try:
            session.ask("SELECT ward, AVG(age) FROM patients GROUP BY ward", epsilon="0.5")
        except OverBudget as refusal:
            refusal_text = str(refusal)
        say(f"\n[bold]5. The total budget is ε = 1. A query that exceeds it is refused.[/bold] {refusal_text}")
        return {
            "exact": list(map(int, exact)), "private": noisy, "again": int(again.value), "over_budget": refusal_text,
            "histogram": histogram.to_dict(), "picture": str(picture),
        }  # fmt: skip


def _draw(answer: Answer, folder: Path) -> Path:
    """Draw the histogram with its intervals as SVG."""
    from sfumato.drawing import ColumnChart, ColumnRow

    rows = tuple(
        ColumnRow(
            label=f"{10 * int(age.value)}–{10 * int(age.value) + 9}", value=float(n.value), low=n.low, high=n.high
        )
        for age, n in answer.rows
    )
    path = folder / "histogram.svg"
    chart = ColumnChart(rows=rows, across="age", up="patients (noisy)")
    path.write_text(chart.draw(560).file(title="Patients by age, with 95 % intervals of the noise"), encoding="utf-8")
    return path
