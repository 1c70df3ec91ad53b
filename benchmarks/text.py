"""Free text: recall of the rules by kind of identifier, and attacks on de-identified messages with what they cost.

    python benchmarks/text.py [--record]

All texts are synthetic. Recall is measured on notes that the rules were written with and on letters that they were not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from record import Figures

from sfumato.attacks import AttackScenario, evaluate_attack, risk
from sfumato.attacks.base import UnitLinking
from sfumato.attacks.evaluation.intervals import wilson
from sfumato.attacks.record_linkage.directory_linkage import DirectoryLinkage
from sfumato.attacks.record_linkage.nearest_documents import NearestDocuments
from sfumato.attacks.record_linkage.profile_linkage import ProfileLinkage
from sfumato.attacks.record_linkage.rare_terms import RareTerms
from sfumato.data.table import Table
from sfumato.documents import DeidentifyText, held_out_letters, patient_messages, recall_by_kind, synthetic_notes
from sfumato.masking.pipeline import protect
from sfumato.measures.base import ReleasePair
from sfumato.measures.utility.text_classification import TextClassification
from sfumato.measures.utility.text_retrieval import TextRetrieval
from sfumato.release import Release
from sfumato.rng import Rng
from sfumato.schema import Column, Dataset, Role, Schema

PEOPLE, NOTES = 2000, 5000


def recall() -> None:
    table = Figures("text", "recall", {"kind": "", "notes": "", "letters": ""},
                    {"kind": "identifier", "notes": "found in notes", "letters": "found in letters"})  # fmt: skip
    sides = [recall_by_kind(texts) for texts in (synthetic_notes(NOTES, seed=1), held_out_letters(NOTES, seed=1))]
    for kind in sides[1]:
        words = []
        for side in sides:
            found = side.get(kind)
            low, high = wilson(found.found, found.all) if found else (0.0, 0.0)
            words.append(f"{found.found / found.all:.1%} ({low:.1%} to {high:.1%})" if found else "–")
        table.add(kind=kind, notes=words[0], letters=words[1])


def messages() -> None:
    drawn = patient_messages(PEOPLE, seed=1)
    columns = {"method": "", "names": ".1%", "profiles": ".1%", "rare": ".1%", "nearest": ".1%", "style": ".1%",
               "retrieval": ".1%", "accuracy": ".1%"}  # fmt: skip
    titles = {"names": "by name", "profiles": "by profile", "rare": "by 5 rare words", "nearest": "by their own text",
              "style": "by style of 5 posts", "retrieval": "similar texts found", "accuracy": "classified"}  # fmt: skip
    table = Figures("text", "messages", columns, titles)
    with tempfile.TemporaryDirectory() as folder:
        names, profiles, posts, taxonomy = (Path(folder, f"{name}.csv") for name in ("names", "profiles", "posts", "taxonomy"))  # fmt: skip  # noqa: E501
        drawn.messages.select("patient", "name").unique().write_csv(names)
        drawn.profiles.write_csv(profiles)
        drawn.posts.write_csv(posts)
        drawn.taxonomy.write_csv(taxonomy, separator=";", include_header=False)
        data = Dataset.of(
            Table(frame=drawn.messages.drop("name")),
            Schema(columns={"message": Column(role=Role.SENSITIVE)}, unit="patient"),
        )
        attacks: dict[str, UnitLinking] = {
            "names": DirectoryLinkage(item="message", directory=names, identity="patient"),
            "profiles": ProfileLinkage(item="message", profiles=profiles, identity="patient", taxonomy=taxonomy),
            "rare": RareTerms(item="message"),
            "nearest": NearestDocuments(item="message"),
            "style": NearestDocuments(item="message", texts=posts, identity="patient", features="characters"),
        }
        methods = {
            "nothing": [],
            "identifiers replaced": [DeidentifyText(columns=("message",), days=90)],
            "and generalized (ages in bands of 20 years, taxonomy)": [
                DeidentifyText(columns=("message",), days=90, ages=20, taxonomy=taxonomy)
            ],
        }
        for method, steps in methods.items():
            result = protect(data, steps=steps, rng=Rng(1))
            release = Release(table=result.data.table, manifest={})
            scenario = AttackScenario(original=data, release=release, lineage=result.lineage)
            found = {name: risk(evaluate_attack(one, scenario, rng=Rng(2), n_targets=1000)).value for name, one in attacks.items()}  # fmt: skip  # noqa: E501
            pair = ReleasePair(original=data, release=release, lineage=result.lineage)
            learned = TextClassification(column="message", target="department").of(pair, Rng(3))
            table.add(
                method=method, **found, retrieval=TextRetrieval(column="message").of(pair, Rng(3)).value,
                accuracy=learned.detail["accuracy"],
            )  # fmt: skip


if __name__ == "__main__":
    recall()
    messages()
