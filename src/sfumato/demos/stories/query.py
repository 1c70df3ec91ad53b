"""Does Chandler have the flu? Exact answers tell; private ones do not."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from sfumato.demos.private_hospital import flu, patients
from sfumato.demos.story import Say, Story
from sfumato.errors import OverBudget
from sfumato.progress import SILENT, Progress
from sfumato.query.session import Answer

__all__ = ["QueryDemo"]

_PEOPLE = 2000
_EVERYONE = "SELECT COUNT(*) FROM patients WHERE flu"
_OTHERS = "SELECT COUNT(*) FROM patients WHERE flu AND name <> 'Chandler'"


class QueryDemo(Story):
    """Two innocent counts that give one man away, the same two counts with noise, and a budget that runs out.

    Everybody in this story is made up. The noise comes from the operating system and is different every time.
    """

    reference = "Dwork, McSherry, Nissim, Smith (2006), doi:10.1007/11681878_14"

    def tell(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        table = patients(_PEOPLE)
        exact = (table["flu"].sum(), table.filter(pl.col("name") != "Chandler")["flu"].sum())
        say(
            f"\n[bold]1. Exact answers.[/bold] A hospital answers counts, never rows. How many of {_PEOPLE:,} patients "
            f"have the flu? [bold]{exact[0]}[/bold]. How many, not counting Chandler? [bold]{exact[1]}[/bold]. "
            f"[bold red]So Chandler {'has' if exact[0] != exact[1] else 'does not have'} the flu.[/bold red]"
        )
        session = flu(people=_PEOPLE, budget=1)
        say("\n[bold]2. The same two questions, answered privately at ε = 0.1 each.[/bold]")
        noisy = []
        for sql in (_EVERYONE, _OTHERS):
            answer = session.ask(sql, epsilon="0.1")
            cell = answer.rows[0][0]
            noisy.append(int(cell.value))
            say(f"   {sql}\n   → [bold]{cell.value}[/bold]  ({cell.low:.0f} to {cell.high:.0f})")
        say(
            f"   The difference is {noisy[0] - noisy[1]}; had Chandler been well, it would have looked the same. The "
            "share of patients with flu is as clear as before, Chandler's own state is not."
        )
        again = session.ask(_EVERYONE, epsilon="0.1")
        say(
            "\n[bold]3. Asking again[/bold] gives "
            f"{again.value} once more, for free: noise cannot be averaged away by patience."
        )
        sql = "SELECT FLOOR(age / 10) AS decade, COUNT(*) AS patients FROM patients GROUP BY decade"
        explained = session.explain(sql, epsilon="0.5")
        say(f"\n[bold]4. Error bars come before the bill.[/bold] EXPLAIN {sql}\n{explained}")
        histogram = session.ask(sql, epsilon="0.5")
        picture = _draw(histogram, folder)
        say(f"   The histogram with its error bars: {picture}")
        told = ""
        try:
            session.ask("SELECT ward, AVG(age) FROM patients GROUP BY ward", epsilon="0.5")
        except OverBudget as refusal:
            told = str(refusal)
        say(f"\n[bold]5. The budget is 1 in all, and it runs out.[/bold] {told}")
        return {
            "exact": list(map(int, exact)), "private": noisy, "again": int(again.value), "over_budget": told,
            "histogram": histogram.to_dict(), "picture": str(picture),
        }  # fmt: skip


def _draw(answer: Answer, folder: Path) -> Path:
    """Bars with intervals as a Vega-Lite picture."""
    import vl_convert

    values = [
        {
            "age": f"{10 * row[0].value}–{10 * row[0].value + 9}",
            "patients": row[1].value,
            "low": row[1].low,
            "high": row[1].high,
        }
        for row in answer.rows
    ]
    axis = {"x": {"field": "age", "type": "ordinal", "title": "age", "sort": None, "axis": {"labelAngle": 0}}}
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": "Patients by age, with 95 % intervals of the noise",
        "width": 420,
        "height": 240,
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "bar", "color": "#7aa6c2"},
             "encoding": axis | {"y": {"field": "patients", "type": "quantitative", "title": "patients (noisy)"}}},
            {"mark": {"type": "rule", "color": "#1b2a33", "strokeWidth": 2},
             "encoding": axis | {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}},
        ],
    }  # fmt: skip
    path = folder / "histogram.svg"
    path.write_text(vl_convert.vegalite_to_svg(json.dumps(spec)), encoding="utf-8")
    return path
