"""Demo: one hospital described once, from the first file to everything that left about its patients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from sfumato.api.learn import learn
from sfumato.api.ledger import ledger_overview, set_budget
from sfumato.api.protect import protect
from sfumato.api.session import session
from sfumato.demos.base import Demo, Say
from sfumato.demos.people import hospital
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

DOCUMENT = """\
sfumato: 1
dataset: hospital                # the name that budgets are kept under
person: patients                 # the table whose rows are people
ledger: ledger.db
tables:
  patients:
    data: tables/patients.csv
    key: patient
    columns:
      patient:    {role: identifier, kind: integer}
      name:       {role: identifier}
      zip:        {role: quasi, kind: category, hierarchy: {mask: right}}
      age:        {role: quasi, kind: integer, domain: {low: 0, high: 110}, hierarchy: {intervals: [5, 10, 20]}}
      sex:        {role: quasi, kind: category, domain: {values: [F, M]}}
      nights:     {role: sensitive, kind: integer, domain: {low: 0, high: 30}, decided_by: A. Steward}
      diagnosis:  {role: sensitive, kind: category}
      readmitted: {role: sensitive, kind: category, domain: {values: ["yes", "no"]}, decided_by: A. Steward}
  rooms:
    data: tables/rooms.csv
    links: {patient: patients, roommate: patients}
    columns:
      patient:  {role: identifier, kind: integer}
      roommate: {role: identifier, kind: integer, decided_by: A. Steward}
"""
PLANS = {
    "release": """\
table: patients
models: [k-anonymity: 5]
steps: [{generalize: {suppression: 0.05}}]
""",
    "nights": """\
table: patients
statistics: [{of: nights, by: [sex]}]
budget: {rho: 1/50}
""",
    "readmission": """\
table: patients
learn: logistic-regression
features: [age, nights]
target: readmitted
epsilon: 1/2
delta: 1e-6
""",
    "rooms": """\
graph: {edges: rooms}
statistics: {protect: nodes, epsilon: 1/4, max_degree: 10, publish: [edges, degrees]}
""",
}
"""What leaves, without what the document says."""
QUESTION = "SELECT sex, COUNT(*) AS n, AVG(nights) AS nights FROM patients GROUP BY sex"


class WalkDemo(Demo):
    """One hospital from init to the ledger: a release, answers, tables, a model and a graph from one document.

    All people in this demo are synthetic.
    """

    reference = "Dwork, Roth (2014), The algorithmic foundations of differential privacy, doi:10.1561/0400000042"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        patients, rooms = _tables(Rng(self.seed).child("walk").generator, self.seed)
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        patients.write_csv(folder / "tables" / "patients.csv")
        rooms.write_csv(folder / "tables" / "rooms.csv")
        document = folder / "hospital.yaml"
        document.write_text(DOCUMENT, encoding="utf-8")
        for name, plan in PLANS.items():
            (folder / f"{name}.yaml").write_text(f"sfumato: 1\ndataset: hospital.yaml\n{plan}", encoding="utf-8")
        (folder / "ledger.db").unlink(missing_ok=True)
        say(
            f"\n[bold]1. Describe once.[/bold] {patients.height:,} patients, and {rooms.height:,} pairs who shared a "
            f"room. [italic]sfumato init {folder / 'tables'}[/italic] drafts the document; the owner decides the "
            f"columns with [italic]sfumato decide[/italic] and adds public domains: {document}"
        )
        set_budget(document, epsilon=3, delta="1e-5")
        say("\n[bold]2. One budget[/bold] for everything with noise: ε = 3, δ = 1e-5 for a patient.")
        released = protect(folder / "release.yaml", seed=self.seed, n_targets=500, progress=progress)
        released.save(folder / "release", force=True)
        say(f"\n[bold]3. protect release.yaml:[/bold] {released.data.height:,} records, 5-anonymous.")
        answer = session(document, analyst="ana").ask(QUESTION, epsilon="0.5")
        counts = "; ".join(f"{sex}: {n:,}, {nights:.1f} nights" for sex, n, nights in answer.frame.iter_rows())
        say(f"\n[bold]4. query hospital.yaml:[/bold] {counts}. Cost {answer.loss}.")
        for step, (name, what) in enumerate({"nights": "tables", "rooms": "a graph"}.items(), start=5):
            made = protect(folder / f"{name}.yaml", progress=progress)
            made.save(folder / name, force=True)
            say(f"\n[bold]{step}. protect {name}.yaml:[/bold] {what} with noise. {made.guarantees[0]}")
        model = learn(
            folder / "readmission.yaml", out=folder / "readmission.model.json", force=True, attacks=None,
            seed=self.seed, progress=progress,
        )  # fmt: skip
        say(f"\n[bold]7. learn readmission.yaml:[/bold] {model.to_dict()['estimator']}. {model.model.privacy_}")
        overview = ledger_overview(document)
        say(f"\n[bold]8. ledger show {document}[/bold]\n{overview}")
        say(f"\nThe report of the release: {(folder / 'release-private' / 'report.html').resolve()}\n")
        return overview.to_dict()


def _tables(draw: np.random.Generator, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Patients with nights and readmission, and pairs of patients who shared a room."""
    people = hospital(seed, patients=3000, town=9000)
    size = people.height
    age = 1996 - people["birth_date"].dt.year().to_numpy()
    nights = draw.poisson(2 + age / 20).clip(max=30)
    again = draw.random(size) < 1 / (1 + np.exp(3 - age / 40 - nights / 6))
    patients = people.select(
        pl.Series("patient", np.arange(1, size + 1)), "name", "zip", pl.Series("age", age), "sex",
        pl.Series("nights", nights), "diagnosis", pl.Series("readmitted", np.where(again, "yes", "no")),
    )  # fmt: skip
    pairs = draw.integers(1, size + 1, (4000, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return patients, pl.DataFrame({"patient": pairs[:, 0], "roommate": pairs[:, 1]})
