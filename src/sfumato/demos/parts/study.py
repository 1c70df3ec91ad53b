"""Demo: a study compares masking methods on a file of companies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from sfumato.api.study import study as run_study
from sfumato.data import write
from sfumato.data.table import Table
from sfumato.demos.base import Demo, Say
from sfumato.evaluation.formatting import readable_name
from sfumato.progress import SILENT, Progress
from sfumato.studies import StudyPlan

PLAN = """\
sfumato: 1
title: Companies of a synthetic county
data: companies.csv
seed: {seed}
columns:
  employees: {{role: quasi, kind: number}}
  turnover:  {{role: quasi, kind: number}}
  wages:     {{role: quasi, kind: number}}
  assets:    {{role: quasi, kind: number}}
  profit:    {{role: sensitive, kind: number}}
attacks: [distance-linkage]
measures: [correlations, il1, quantiles]
limits: {{risk: 0.1}}
study:
  candidates:
    - rank-swap: {{p: {{try: [5, 20]}}}}
    - microaggregate: {{k: {{try: [5, 20]}}}}
    - noise: {{variance_ratio: {{try: [0.1, 0.5]}}, variant: correlated}}
    - shuffle: {{columns: [employees, turnover, wages, assets], given: [profit]}}
  seeds: 1
  utility: correlations
"""


class StudyDemo(Demo):
    """Masking methods on a file of companies, compared by risk and utility.

    Statistical offices release files of companies for research. Size, turnover and wages identify a company even
    without its name. All data in this demo is synthetic.
    """

    reference = "Duncan, Keller-McNulty, Stokes: Disclosure risk vs. data utility: the R-U confidentiality map (2001)"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        frame = companies(self.seed)
        write(Table(frame=frame), folder / "companies.csv", force=True)
        (folder / "study.yaml").write_text(PLAN.format(seed=self.seed), encoding="utf-8")
        plan = StudyPlan.load(folder / "study.yaml")
        say(
            f"\n[bold]1. A statistical office has a file of {frame.height:,} companies[/bold] and wants to release it "
            f"for research. {len(plan.candidates)} ways of masking are compared."
        )
        study = run_study(plan, out=folder / "study", progress=progress)
        worst = max((p for p in study.points if p.risk is not None), key=lambda p: p.risk or 0.0)
        say(
            "\n[bold]2. Every candidate is attacked[/bold] by attackers who know size, turnover, wages and assets "
            "of a company. The study lists the search for the nearest record; because it has a limit on risk, the "
            f"attacks that a release is judged by run as well. Worst: {worst.candidate.name}, where "
            f"[bold red]{worst.risk:.0%}[/bold red] of the companies are found ({readable_name(worst.risk_by)})."
        )
        say("\n[bold]3. The efficient ones[/bold] (nothing else has both less risk and less loss of correlation):\n")
        for point in study.frontier:
            say(f"   risk {point.risk:6.1%}   loss {point.loss:7.4f}   {point.candidate.name}")
        best = study.recommend(risk=plan.recipe.limits.risk)
        chosen = f"[bold green]{best.candidate.name}[/bold green]" if best is not None else "none of them"
        say(f"\n[bold]4. With a risk of at most {plan.recipe.limits.risk:.0%}[/bold] the study recommends {chosen}.")
        say(f"\nThe chart, the table and every recipe:  {(folder / 'study' / 'study.html').resolve()}")
        return {**study.to_dict(), "folder": str(folder / "study")}


def companies(seed: int, count: int = 400) -> pl.DataFrame:
    """Synthetic companies: sizes are log-normal, the other columns are correlated with size."""
    draw = np.random.default_rng(seed)
    size = draw.lognormal(2.5, 1.2, count)

    def follow(scale: float, spread: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.asarray(np.round(size * scale * draw.lognormal(0, spread, count), 1))

    return pl.DataFrame(
        {
            "employees": np.ceil(size),
            "turnover": follow(140.0, 0.5),
            "wages": follow(38.0, 0.25),
            "assets": follow(90.0, 0.7),
            "profit": np.round(size * draw.normal(9.0, 14.0, count), 1),
        }
    )
