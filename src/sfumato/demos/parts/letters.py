"""Demo: free text. Names can be replaced; facts and writing style still identify people."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.base import UnitLinking
from sfumato.attacks.record_linkage.directory_linkage import DirectoryLinkage
from sfumato.attacks.record_linkage.nearest_documents import NearestDocuments
from sfumato.attacks.record_linkage.profile_linkage import ProfileLinkage
from sfumato.data import write
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.demos.base import Demo, Say
from sfumato.demos.corpora.known_notes import recall_by_kind
from sfumato.demos.corpora.synthetic_case_files import held_out_case_files
from sfumato.demos.corpora.synthetic_messages import patient_messages
from sfumato.documents.methods.deidentify_text import DeidentifyText
from sfumato.documents.methods.normalize_style import NormalizeStyle
from sfumato.documents.text_findings import find_identifiers
from sfumato.masking.base import Step
from sfumato.masking.pipeline import protect
from sfumato.progress import SILENT, Progress
from sfumato.release import Release
from sfumato.rng import Rng

RECIPE = """\
sfumato: 1
data: letters.csv
unit: patient
columns:
  patient: {role: identifier}
  name: {role: identifier}
  department: {role: plain, decided_by: Privacy office, reason: no person is known by it}
  message: {role: sensitive}
steps:
  - pseudonymize: {columns: [patient], key: pseudonyms.key}
  - deidentify-text: {columns: [message], days: 180, ages: 20, taxonomy: taxonomy.csv}
  - normalize-style: {columns: [message]}
attacks:
  - profile-linkage: {item: message, profiles: profiles.csv, identity: patient, taxonomy: taxonomy.csv}
  - nearest-documents: {item: message, features: characters, texts: posts.csv, identity: patient}
measures:
  - text-recall: {column: message}
  - text-classification: {column: message, target: department}
"""


class LettersDemo(Demo):
    """Free text: names can be found and replaced, but facts and writing style still tell who wrote a letter.

    All people in this demo are synthetic.
    """

    reference = "Neamatullah et al. (2008), doi:10.1186/1472-6947-8-32; Narayanan et al. (2012), doi:10.1109/SP.2012.46"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        drawn = patient_messages(200, seed=self.seed)
        tables = {"letters": drawn.messages, "profiles": drawn.profiles, "posts": drawn.posts,
                  "names": drawn.messages.select("patient", "name").unique(maintain_order=True)}  # fmt: skip
        for name, frame in tables.items():
            write(Table(frame=frame), folder / f"{name}.csv", force=True)
        drawn.taxonomy.write_csv(folder / "taxonomy.csv", separator=";", include_header=False)
        (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
        letters = drawn.messages["message"].to_list()
        found = Counter(one.kind for letter in letters for one in find_identifiers(letter))
        say(
            f"\n[bold]1. A clinic wants to publish {len(letters)} messages of 200 patients.[/bold] The rules find "
            + ", ".join(f"{count} {kind}s" for kind, count in found.most_common())
            + "."
        )
        recall = {kind: one.found / one.all for kind, one in recall_by_kind(held_out_case_files(300, seed=1)).items()}
        say(
            "\n[bold]2. Recall.[/bold] On texts that the rules were not written with they find "
            + ", ".join(f"{share:.0%} of the {kind}s" for kind, share in recall.items())
            + ". What they miss stays in the text."
        )
        say(
            "\n[bold]3. Attack what is left.[/bold] Patients found by their name, by a profile (age, profession, town, "
            "illness), and by the style of their posts elsewhere:"
        )
        data = Data.of(
            Table(frame=drawn.messages.drop("name")),
            Schema(columns={"message": Column(role=Role.SENSITIVE)}, unit="patient"),
        )
        generalized = DeidentifyText(columns=("message",), days=180, ages=20, taxonomy=folder / "taxonomy.csv")
        methods: dict[str, list[Step]] = {
            "nothing": [],
            "identifiers replaced": [DeidentifyText(columns=("message",), days=180)],
            "and facts generalized": [generalized],
            "and style normalized": [generalized, NormalizeStyle(columns=("message",))],
        }
        figures = {name: _rates(data, steps, folder) for name, steps in methods.items()}
        for name, one in figures.items():
            say(f"   {name:<24} {one['name']:6.1%} {one['profile']:6.1%} {one['style']:6.1%}")
        say(
            "\n[bold]4. The verdict is `not checked`.[/bold] No rule finds everything: sfumato writes the release only "
            "if a person has read the texts and signs for them (`signed_by`), or with --unmet."
        )
        say(f"\nTry it:  sfumato protect {folder / 'recipe.yaml'} --out {folder / 'release'}")
        return {"found": dict(found), "recall": recall, "methods": figures}


def _rates(data: Data, steps: list[Step], folder: Path) -> dict[str, float]:
    """The share of patients that each attacker finds."""
    result = protect(data, steps=steps, rng=Rng(1))
    release = Release(table=result.data.table, manifest={})
    scenario = AttackScenario(original=data, release=release, lineage=result.lineage)
    files = {name: folder / f"{name}.csv" for name in ("names", "profiles", "posts", "taxonomy")}
    attacks: dict[str, UnitLinking] = {
        "name": DirectoryLinkage(item="message", directory=files["names"], identity="patient"),
        "profile": ProfileLinkage(
            item="message", profiles=files["profiles"], identity="patient", taxonomy=files["taxonomy"]
        ),
        "style": NearestDocuments(item="message", texts=files["posts"], identity="patient", features="characters"),
    }
    return {
        name: evaluate_attack(attack, scenario, rng=Rng(2), n_targets=200).main.rate for name, attack in attacks.items()
    }
