"""Demo: integral privacy. A person asks to be forgotten; what do the old and the new model give away?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from sfumato.data import write
from sfumato.data.table import Table
from sfumato.demos.base import Demo, Say
from sfumato.integral import Encoding, Records, decide_publication, explain_groups, suggest_changes
from sfumato.integral.learners.decision_tree import DecisionTreeLearner
from sfumato.integral.model_file import ModelFile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

K = 5
EDGES = {"salary": [15_000, 20_000, 30_000, 45_000], "debts": [5_000, 10_000, 20_000], "age": [30, 45, 60]}


class ErasureDemo(Demo):
    """The right to erasure: a person is deleted from a bank's mortgage model, and the two models tell who it was.

    All people in this demo are synthetic.
    """

    reference = "Torra and Navarro-Arribas (2016), Integral privacy, doi:10.1007/978-3-319-48965-0_44"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        frame = _customers(Rng(self.seed))
        write(Table(frame=frame), folder / "customers.csv", force=True)
        encoding = Encoding.from_table(frame, features=list(EDGES), label="mortgage", edges=EDGES)
        records, tree = Records.of(frame, encoding), DecisionTreeLearner(depth=3, min_leaf=3)
        old = tree.fit(records, records.counts)
        ModelFile(learner=tree, encoding=encoding, model=old).save(folder / "old.json", force=True)
        say(
            f"\n[bold]1. A model is published.[/bold] A decision tree on salary, debts and age says who gets "
            f"a mortgage. {len(records)} customers, accuracy {tree.score(old, records):.1%}."
        )
        person = _most_exposed(tree, records, old)
        new = tree.fit(records, records.without([person]))
        ModelFile(learner=tree, encoding=encoding, model=new).save(folder / "new.json", force=True)
        decision = decide_publication(tree, records, old, new, k=K)
        found = decision.explanations
        say(
            f"\n[bold]2. Customer {person + 1} asks to be erased.[/bold] The bank learns the tree again without them. "
            f"An attacker who knows the customers tries all single deletions ({found.refits} refits, one per cell of "
            f"exchangeable records): [bold]{found.ways} of {len(records)}[/bold] people explain the new tree. "
            f"k = {K}: {decision.verdict.state}. "
            f"Publish the new model: [bold]{'yes' if decision.publish else 'no'}[/bold]."
        )
        shared = found.shared()
        if shared:
            columns = ", ".join(shared)
            say(f"   The attacker also learns a range of the erased person's {columns}: the same for all candidates.")
        changes = list(suggest_changes(tree, frame, encoding, [person], k=K, seed=self.seed))
        lines = [f"   - {one.change} Accuracy {one.score:.1%}. {one.detail}" for one in changes]
        say("\n[bold]3. What to change.[/bold]\n" + ("\n".join(lines) or "   No change that was tried helps."))
        band = frame.with_row_index().filter(pl.col("salary").is_between(15_001, 20_000))["index"].to_numpy()
        without_band = tree.fit(records, records.without(band))
        groups = explain_groups(tree, records, without_band)
        named = "names the group" if groups.ways == 1 else f"leaves {groups.ways} groups"
        say(
            f"\n[bold]4. A group is removed.[/bold] All {len(band)} customers with a salary from 15,000 to 20,000 are "
            f"deleted. Of {groups.refits} groups with one value or range of a column, the pair of trees {named}: "
            f"{groups.people_in_all} people are known to have been removed."
        )
        say(
            f"\nTry it:  sfumato integral compare {folder / 'old.json'} {folder / 'new.json'} "
            f"--original {folder / 'customers.csv'} -k {K} --erased {person + 1}"
        )
        return {
            "people": len(records),
            "explanations": found.ways,
            "publish": decision.publish,
            "suggestions": [one.to_dict() for one in changes],
            "group": {"explanations": groups.ways, "people_in_all": groups.people_in_all, "removed": len(band)},
        }


def _customers(rng: Rng) -> pl.DataFrame:
    draw, count = rng.child("customers").generator, 400
    salary = draw.integers(8, 70, count) * 1000 + 500
    debts = draw.integers(0, 30, count) * 1000 + 1
    age = draw.integers(20, 75, count)
    refused = ((salary > 15_000) & (salary < 20_000)) | ((debts > 20_000) & (salary < 45_000))
    noisy = draw.random(count) < 0.04
    return pl.DataFrame(
        {"salary": salary, "debts": debts, "age": age, "mortgage": np.where(refused ^ noisy, "no", "yes")}
    )


def _most_exposed(tree: DecisionTreeLearner, records: Records, old: bytes) -> int:
    """The person whose deletion the fewest deletions explain."""
    present = np.flatnonzero(records.counts)
    one_less = np.repeat(records.counts[None, :], len(present), axis=0)
    one_less[np.arange(len(present)), present] -= 1
    people: dict[bytes, int] = {}
    models = tree.fit_many(records, one_less)
    for model, cell in zip(models, present, strict=True):
        people[model] = people.get(model, 0) + int(records.counts[cell])
    rarest = min((model for model in people if model != old), key=lambda one: (people[one], one), default=old)
    place = next(place for place, model in enumerate(models) if model == rarest)
    return int(np.flatnonzero(records.cell_of_row == present[place])[0])
