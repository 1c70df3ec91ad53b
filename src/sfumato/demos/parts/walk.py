"""Demo: one hospital described once, from the first file to everything that left about its patients."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.api.decide import decide
from sfumato.api.init import init
from sfumato.api.learn import learn
from sfumato.api.ledger import ledger_overview, set_budget
from sfumato.api.protect import protect
from sfumato.api.report import report
from sfumato.api.session import session
from sfumato.demos.base import Demo, Say
from sfumato.demos.people import hospital
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

DECISIONS = {"patients": {"nights": "sensitive", "readmitted": "sensitive"}, "rooms": {"roommate": "identifier"}}
"""What the owner decides about the columns that `init` does not recognize."""
REVIEW = {
    "dataset: tables": "dataset: hospital",
    "ledger: tables-ledger.db": "ledger: ledger.db",
    "links: {patient: patients}": "links: {patient: patients, roommate: patients}",
}
"""What the owner changes in the draft: the name, the ledger, and the second link of a pair."""
DOMAINS = {
    "age": "{low: 0, high: 110}",
    "sex": "{values: [F, M]}",
    "nights": "{low: 0, high: 30}",
    "readmitted": '{values: ["yes", "no"]}',
}
"""Public domains that the owner adds: from what is possible, and not from the data."""
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
        document, draft = folder / "hospital.yaml", init(folder / "tables", folder=folder, progress=progress)
        document.write_text(_reviewed(draft.text), encoding="utf-8")
        for name, plan in PLANS.items():
            (folder / f"{name}.yaml").write_text(f"sfumato: 1\ndataset: hospital.yaml\n{plan}", encoding="utf-8")
        (folder / "ledger.db").unlink(missing_ok=True)
        say(
            f"\n[bold]1. init tables:[/bold] {patients.height:,} patients, and {rooms.height:,} pairs who shared a "
            "room. One document is drafted: roles, the key of patients and a link to it."
        )
        say(
            "\n[bold]2. decide:[/bold] nights and readmitted are sensitive, roommate identifies a person. The owner "
            f"also adds public domains and the second link of a pair: {document}"
        )
        set_budget(document, epsilon=3, delta="1e-5")
        say("\n[bold]3. One budget[/bold] for everything with noise: ε = 3, δ = 1e-5 for a patient.")
        released = protect(folder / "release.yaml", seed=self.seed, n_targets=500, progress=progress)
        released.save(folder / "release", force=True)
        say(f"\n[bold]4. protect release.yaml:[/bold] {released.data.height:,} records, 5-anonymous.")
        answer = session(document, analyst="ana").ask(QUESTION, epsilon="0.5")
        counts = "; ".join(f"{sex}: {n:,}, {nights:.1f} nights" for sex, n, nights in answer.frame.iter_rows())
        say(f"\n[bold]5. query hospital.yaml:[/bold] {counts}. Cost {answer.loss}.")
        for step, (name, what) in enumerate({"nights": "tables", "rooms": "a graph"}.items(), start=6):
            made = protect(folder / f"{name}.yaml", progress=progress)
            made.save(folder / name, force=True)
            say(f"\n[bold]{step}. protect {name}.yaml:[/bold] {what} with noise. {made.guarantees[0]}")
        model = learn(
            folder / "readmission.yaml", out=folder / "readmission.model.json", force=True, attacks=None,
            seed=self.seed, progress=progress,
        )  # fmt: skip
        say(f"\n[bold]8. learn readmission.yaml:[/bold] {model.to_dict()['estimator']}. {model.model.privacy_}")
        page = report(folder / "release", out=folder / "report.html", force=True)
        say(f"\n[bold]9. report release:[/bold] what was released, what it guarantees and what attackers find: {page}")
        overview = ledger_overview(document)
        say(f"\n[bold]10. ledger show {document}[/bold]\n{overview}\n")
        return overview.to_dict()


def _reviewed(draft: str) -> str:
    """The draft after the decisions and changes of its owner."""
    for table, roles in DECISIONS.items():
        draft = decide(draft, roles, table=table, by="A. Steward")
    for before, after in REVIEW.items():
        draft = _once(draft, re.escape(before), after)
    for column, domain in DOMAINS.items():
        draft = _once(draft, rf"^( +{column}: {{.*)}}$", rf"\1, domain: {domain}}}")
    return draft


def _once(text: str, pattern: str, after: str) -> str:
    """The text with its one place that fits a pattern changed."""
    changed, places = re.subn(pattern, after, text, flags=re.MULTILINE)
    if places != 1:
        raise ValueError(f"the draft has {places} places for `{pattern}`")
    return changed


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
