"""Demo: local differential privacy. Nobody is asked for the truth, and the totals are right all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from sfumato.collecting.collector import Collection
from sfumato.collecting.design import design_survey
from sfumato.collecting.device import randomize_table, write_reports
from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.collecting.longitudinal import Deployment, averaging_attack
from sfumato.collecting.survey import Survey
from sfumato.data import write
from sfumato.data.table import Table
from sfumato.demos.base import Demo, Say
from sfumato.dp.loss import pure
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

SURVEY = """\
sfumato: 1
survey: smoking
epsilon: 1
people: 20000
questions:
  smoker: {domain: {values: [never, former, daily]}}
"""


class CollectDemo(Demo):
    """Local differential privacy: every answer is randomized by the person, and the estimates are right nevertheless.

    All people in this demo are synthetic.
    """

    reference = "Warner (1965), doi:10.1080/01621459.1965.10480775; Tang et al. (2017), arXiv:1709.02753"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        rng = Rng(self.seed)
        answers = rng.child("answers").generator.choice(["never", "former", "daily"], 20_000, p=[0.6, 0.25, 0.15])
        (folder / "survey.yaml").write_text(SURVEY, encoding="utf-8")
        table = Table(frame=pl.DataFrame({"smoker": answers}))
        write(table, folder / "answers.csv", force=True)
        survey = Survey.parse(SURVEY)
        expected = design_survey(survey).questions[0]
        say(
            "\n[bold]1. Design.[/bold] 20,000 people, epsilon 1. The protocol with the smallest error is "
            f"[bold]{expected.protocol}[/bold]; a share will be off by at most {100 * expected.error:.1f} points "
            "(95 %). Nobody has been asked yet."
        )
        reports = randomize_table(survey, table)
        write_reports(survey, reports, folder / "reports.parquet", force=True)
        protocol = survey.protocols()["smoker"]
        assert isinstance(protocol, FrequencyProtocol)
        honest = float(protocol.probabilities()[0])
        say(
            f"\n[bold]2. Randomize.[/bold] Each device reports the truth with probability {honest:.2f} and otherwise "
            "another answer. Every single report can be denied."
        )
        collection = Collection(survey)
        collection.add_file(folder / "reports.parquet")
        estimate = collection.estimate()[0].frequencies
        assert estimate is not None
        lines, shares = [], {}
        for index, value in enumerate(("never", "former", "daily")):
            true, low, high = (answers == value).mean(), estimate.low[index] / 20_000, estimate.high[index] / 20_000
            shares[value] = float(estimate.shares[index])
            lines.append(f"   {value:<7} true {true:6.1%}   estimated {shares[value]:6.1%} ({low:.1%} .. {high:.1%})")
        say("\n[bold]3. Estimate.[/bold]\n" + "\n".join(lines))
        codes = np.array([("never", "former", "daily").index(answer) for answer in answers])
        once, daily, kept = (
            averaging_attack(protocol, codes, reports=count, memoized=memoized, rng=rng.child("attack"))
            for count, memoized in ((1, False), (90, False), (90, True))
        )
        total = Deployment(loss=pure(1), reports_per_day=1, days=90, memoized=False).total()
        say(
            f"\n[bold]4. Attack.[/bold] An observer of one report names {once.right:.0%} of the answers right "
            f"(guessing: {once.baseline:.0%}). If the app asks every day for 90 days and draws anew, they name "
            f"[bold]{daily.right:.0%}[/bold]: the loss has grown to epsilon {float(total.size):g}, whatever is said of "
            f"a day. If the device keeps its first report and repeats it, {kept.right:.0%}."
        )
        say(f"\nTry it:  sfumato collect estimate {folder / 'survey.yaml'} {folder / 'reports.parquet'}")
        return {"shares": shares, "one_report": once.right, "ninety_reports": daily.right, "memoized": kept.right}
