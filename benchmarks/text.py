"""Free text: recall of the rules by kind of identifier, and attacks on de-identified messages with what they cost.

    python benchmarks/text.py recall|messages [--record]
    python benchmarks/text.py synth_dataset_v2.json [--record]

All texts are synthetic. Recall is measured on notes and letters that the rules were written with and on case files that
they were not. The second command measures it on texts of others: `data/synth_dataset_v2.json` of the repository
microsoft/presidio-research (MIT), or another one of the same form.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from record import Figures

from sfumato.attacks import AttackScenario, evaluate_attack, risk
from sfumato.attacks.base import UnitLinking
from sfumato.attacks.record_linkage.directory_linkage import DirectoryLinkage
from sfumato.attacks.record_linkage.nearest_documents import NearestDocuments
from sfumato.attacks.record_linkage.profile_linkage import ProfileLinkage
from sfumato.attacks.record_linkage.rare_terms import RareTerms
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.demos.corpora import (
    held_out_case_files,
    patient_messages,
    recall_by_kind,
    synthetic_notes,
)
from sfumato.documents import DeidentifyText, NormalizeStyle
from sfumato.documents.tagger import tag
from sfumato.documents.text_findings import merged
from sfumato.masking.base import Step
from sfumato.masking.pipeline import protect
from sfumato.measures.base import ReleasePair
from sfumato.measures.utility.text_classification import TextClassification
from sfumato.measures.utility.text_retrieval import TextRetrieval
from sfumato.release import Release
from sfumato.rng import Rng
from sfumato.stats import wilson

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from held_out_letters import held_out_letters

PEOPLE, NOTES = 500, 5000


def recall() -> None:
    titles = {
        "kind": "identifier",
        "notes": "found in notes",
        "letters": "found in letters",
        "files": "found in case files",
    }
    table = Figures("text", "recall", dict.fromkeys(titles, ""), titles)
    sides = [recall_by_kind(draw(NOTES, seed=1)) for draw in (synthetic_notes, held_out_letters, held_out_case_files)]
    for kind in sides[1]:
        words = [share(found.found, found.all) if (found := side.get(kind)) else "–" for side in sides]
        table.add(kind=kind, notes=words[0], letters=words[1], files=words[2])


def share(hits: int, trials: int) -> str:
    low, high = wilson(hits, trials)
    return f"{hits / trials:.1%} ({low:.1%} to {high:.1%})"


PUBLIC = {"name": ("PERSON",), "date": ("DATE_TIME",), "place: towns, countries": ("GPE",),
          "place: whole addresses": ("STREET_ADDRESS",),
          "id": ("CREDIT_CARD", "IBAN_CODE", "US_SSN", "US_DRIVER_LICENSE"),
          "contact": ("PHONE_NUMBER", "EMAIL_ADDRESS", "DOMAIN_NAME"), "age": ("AGE",)}  # fmt: skip


def public(path: Path) -> None:
    """Recall on annotated texts of others, and the share of all other words that are hidden."""
    texts = json.loads(path.read_text(encoding="utf-8"))
    found, total = Counter[str](), Counter[str]()
    for text, findings in zip(texts, tag(["rules"], [text["full_text"] for text in texts]), strict=True):
        hidden = [(one.start, one.end) for one in merged(text["full_text"], findings)]
        marked = [(one["start_position"], one["end_position"], one["entity_type"]) for one in text["spans"]]
        for start, end, kind in marked:
            total[kind] += 1
            found[kind] += any(a <= start and end <= b for a, b in hidden)
        for word in re.finditer(r"\w+", text["full_text"]):
            if not any(start < word.end() and word.start() < end for start, end, _ in marked):
                total["other"] += 1
                found["other"] += any(a <= word.start() and word.end() <= b for a, b in hidden)
    titles = {"kind": "identifier", "count": "number", "found": "found"}
    table = Figures("text", "public", {"kind": "", "count": ",", "found": ""}, titles)
    for kind, names in {**PUBLIC, "other words": ("other",)}.items():
        trials = sum(total[name] for name in names)
        table.add(kind=kind, count=trials, found=share(sum(found[name] for name in names), trials))


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
        data = Data.of(
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
        generalized = DeidentifyText(columns=("message",), days=90, ages=20, taxonomy=taxonomy)
        methods: dict[str, list[Step]] = {
            "nothing": [],
            "identifiers replaced": [DeidentifyText(columns=("message",), days=90)],
            "and generalized (ages in bands of 20 years, taxonomy)": [generalized],
            "and written in one style": [generalized, NormalizeStyle(columns=("message",))],
        }
        for method, steps in methods.items():
            result = protect(data, steps=steps, rng=Rng(1))
            release = Release(table=result.data.table, manifest={})
            scenario = AttackScenario(original=data, release=release, lineage=result.lineage)
            found = {name: risk(evaluate_attack(one, scenario, rng=Rng(2), n_targets=1000)).value for name, one in attacks.items()}  # fmt: skip  # noqa: E501
            pair = ReleasePair(original=data, release=release, lineage=result.lineage)
            learned = TextClassification(column="message", target="department").compute(pair, Rng(3))
            table.add(
                method=method, **found, retrieval=TextRetrieval(column="message").compute(pair, Rng(3)).value,
                accuracy=learned.detail["accuracy"],
            )  # fmt: skip


if __name__ == "__main__":
    {"recall": recall, "messages": messages}.get(sys.argv[1], lambda: public(Path(sys.argv[1])))()
