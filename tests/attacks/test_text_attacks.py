"""Attacks on de-identified texts, generalization in texts, and what is left for retrieval and classification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from sfumato.attacks import AttackScenario, Outcome, UnitLinking, evaluate_attack, risk
from sfumato.attacks.record_linkage.nearest_documents import NearestDocuments
from sfumato.attacks.record_linkage.profile_linkage import ProfileLinkage
from sfumato.attacks.record_linkage.rare_terms import RareTerms
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.demos.corpora import patient_messages
from sfumato.documents import DeidentifyText, TextTaxonomy
from sfumato.documents.methods.normalize_style import NormalizeStyle, plain
from sfumato.errors import BadParameter
from sfumato.masking.base import Step
from sfumato.masking.pipeline import MaskingResult, protect
from sfumato.measures import judge
from sfumato.measures.base import MeasureResult, ReleasePair
from sfumato.measures.disclosure.text_recall import TextRecall
from sfumato.measures.utility.text_classification import TextClassification
from sfumato.measures.utility.text_retrieval import TextRetrieval
from sfumato.release import Release
from sfumato.rng import Rng

PEOPLE = 250


class Clinic:
    """Synthetic messages in three releases: unchanged, identifiers replaced, and also generalized by a taxonomy."""

    def __init__(self, folder: Path) -> None:
        drawn = patient_messages(PEOPLE, seed=3)
        drawn.profiles.write_csv(folder / "profiles.csv")
        drawn.posts.write_csv(folder / "posts.csv")
        drawn.taxonomy.write_csv(folder / "taxonomy.csv", separator=";", include_header=False)
        columns = {"name": Column(role=Role.IDENTIFIER), "message": Column(role=Role.SENSITIVE)}
        self.folder = folder
        self.data = Data.of(Table(frame=drawn.messages), Schema(columns=columns, unit="patient"))
        replaced = DeidentifyText(columns=("message",), days=40)
        coarse = DeidentifyText(columns=("message",), days=40, ages=20, taxonomy=folder / "taxonomy.csv")
        self.releases = {
            "raw": self._release([]),
            "replaced": self._release([replaced]),
            "coarse": self._release([coarse]),
        }

    def _release(self, steps: Sequence[Step]) -> MaskingResult:
        return protect(self.data, steps=steps, rng=Rng(1))

    def attack(self, attack: UnitLinking, which: str) -> Outcome:
        result = self.releases[which]
        release = Release(table=result.data.table, manifest={})
        scenario = AttackScenario(original=self.data, release=release, lineage=result.lineage)
        return evaluate_attack(attack, scenario, rng=Rng(2), n_targets=PEOPLE)

    def texts(self, which: str) -> list[str]:
        return self.releases[which].data.table.frame["message"].to_list()

    def pair(self, which: str) -> ReleasePair:
        result = self.releases[which]
        release = Release(table=result.data.table, manifest={})
        return ReleasePair(original=self.data, release=release, lineage=result.lineage)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Clinic:
    return Clinic(tmp_path_factory.mktemp("clinic"))


def test_a_profile_finds_patients_until_the_text_is_generalized(clinic: Clinic) -> None:
    """Replacing names does not help against age, profession and illness; bands and groups do."""
    attack = ProfileLinkage(
        item="message", profiles=clinic.folder / "profiles.csv", identity="patient", columns=("age", "job", "illness")
    )
    aware = attack.model_copy(update={"taxonomy": clinic.folder / "taxonomy.csv"})
    assert risk(clinic.attack(attack, "replaced")).low > 0.5
    assert risk(clinic.attack(attack, "coarse")).high < 0.15
    knowing = risk(clinic.attack(aware, "coarse"))
    assert risk(clinic.attack(attack, "coarse")).value < knowing.value < 0.4, "the taxonomy is public, and helps"


def test_rare_terms_find_patients_until_the_text_is_generalized(clinic: Clinic) -> None:
    attack = RareTerms(item="message")
    assert risk(clinic.attack(attack, "replaced")).low > 0.6
    assert risk(clinic.attack(attack, "coarse")).high < 0.1


def test_nearest_documents_find_patients_by_what_is_left(clinic: Clinic) -> None:
    attack = NearestDocuments(item="message")
    found = [risk(clinic.attack(attack, which)).value for which in ("raw", "replaced", "coarse")]
    assert found[0] > 0.95
    assert found[1] > 0.6
    assert found[2] < 0.3


def test_style_survives_de_identification(clinic: Clinic) -> None:
    """Posts about other things find the authors of messages by punctuation and spelling, words find far fewer."""
    settings = {"texts": clinic.folder / "posts.csv", "identity": "patient"}
    style = NearestDocuments(item="message", features="characters", **settings)  # type: ignore[arg-type]
    words = NearestDocuments(item="message", **settings)  # type: ignore[arg-type]
    for which in ("raw", "coarse"):
        found, by_words = clinic.attack(style, which), clinic.attack(words, which)
        assert risk(found).low > 0.03, "ten times a random guess"
        assert by_words.main.hits < found.main.hits / 2


def test_the_control_is_the_knowledge_about_somebody_else(clinic: Clinic) -> None:
    outcome = clinic.attack(RareTerms(item="message"), "raw")
    assert outcome.control is not None
    assert outcome.baseline is not None
    assert outcome.control.trials == outcome.main.trials == PEOPLE
    assert outcome.control.rate < 0.05 < outcome.main.rate
    assert outcome.baseline.rate == pytest.approx(1 / PEOPLE)


def test_ages_become_bands_and_terms_their_labels(clinic: Clinic) -> None:
    text = " ".join(clinic.texts("coarse"))
    missing = [
        phrase for phrase in ("60-79-year-old", "90 or older-year-old", "an illness of the lungs") if phrase not in text
    ]
    assert not missing
    left = [word for word in ("Riverton", "lighthouse keeper", "sarcoidosis", "from [PLACE]") if word in text]
    assert not left, "a term of the taxonomy was left, or hidden instead of generalized"


def test_a_term_inside_a_longer_finding_is_hidden_with_it(tmp_path: Path) -> None:
    path = tmp_path / "regions.csv"
    path.write_text("Marlow;the south;*\nNew Oakdale;the north;*\n", encoding="utf-8")
    frame = pl.DataFrame({"note": ["At 12 Marlow Street in new oakdale, Dr. Marlow said."]})
    step = DeidentifyText(columns=("note",), days=3, taxonomy=path)
    data = Data.of(Table(frame=frame), Schema(columns={"note": Column(role=Role.PLAIN)}))
    [text] = protect(data, steps=[step], rng=Rng(1)).data.table.frame["note"].to_list()
    assert text.startswith("At [PLACE] in the north, Dr. [PERSON ")
    assert TextTaxonomy.read(path).labels("Oakdale") == ()


def test_a_taxonomy_without_labels_and_a_profile_without_columns_are_refused(clinic: Clinic, tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("Marlow;*\n", encoding="utf-8")
    with pytest.raises(BadParameter, match="no labels"):
        TextTaxonomy.read(path)
    with pytest.raises(BadParameter, match="what the attacker knows"):
        clinic.attack(ProfileLinkage(item="message"), "raw")
    with pytest.raises(BadParameter, match="`identity` is required"):
        clinic.attack(ProfileLinkage(item="message", profiles=clinic.folder / "profiles.csv"), "raw")


def measured(clinic: Clinic, part: TextRetrieval | TextClassification | TextRecall, which: str) -> MeasureResult:
    return judge(part, clinic.pair(which), rng=Rng(4))


def test_utility_of_texts(clinic: Clinic) -> None:
    """Generalization costs retrieval more than the replacement of names; departments are still recognized."""
    retrieval = [measured(clinic, TextRetrieval(column="message"), which) for which in ("raw", "replaced", "coarse")]
    values = [one.value for one in retrieval]
    assert values[0] == 1.0
    assert values[0] > values[1] > values[2] > 0.05  # type: ignore[operator]
    lost = measured(clinic, TextClassification(column="message", target="department"), "coarse")
    assert lost.value is not None
    assert lost.value < 0.1
    assert lost.detail["accuracy"] > lost.detail["most_frequent"] + 0.3
    shuffled = clinic.pair("raw").masked.with_columns(pl.col("message").shuffle(seed=1))
    pair = ReleasePair(
        original=clinic.data, release=Release(table=Table(frame=shuffled), manifest={}),
        lineage=clinic.releases["raw"].lineage,
    )  # fmt: skip
    assert judge(TextClassification(column="message", target="department"), pair, rng=Rng(4)).value > 0.3  # type: ignore[operator]


def test_recall_counts_what_is_left_by_kind(clinic: Clinic, tmp_path: Path) -> None:
    own = measured(clinic, TextRecall(column="message"), "raw")
    assert own.value == 0.0
    assert measured(clinic, TextRecall(column="message"), "replaced").columns == {"name": 1.0}
    profiles = pl.read_csv(clinic.folder / "profiles.csv", schema_overrides={"patient": pl.String, "age": pl.String})
    known = profiles.select("patient", "town", "job").unpivot(index="patient", variable_name="kind", value_name="text")
    known.write_csv(tmp_path / "marked.csv")
    part = TextRecall(column="message", annotations=tmp_path / "marked.csv")
    found = measured(clinic, part, "replaced")
    # a profession that nobody mentions in their messages counts as removed
    assert found.columns["town"] == 1.0
    assert found.columns["job"] < 0.1
    low, high = found.detail["intervals"]["job"]
    assert low <= found.columns["job"] <= high
    assert found.detail["known"] == {"job": PEOPLE, "town": PEOPLE}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I CAN'T come!!!", "i cannot come."),
        ("i cant come...", "i cannot come."),
        ("He’s   here ; she isn’t", "he is here she is not"),
        ("thx :-) lol, u r great 🎉", "thanks you are great"),
        ("Seen 2021-03-04 at 09:30, 1,000 mg, 37.5", "seen 2021-03-04 at 09:30 1,000 mg 37.5"),
        ("[PERSON 12] (aged 50-59) was WELL", "[PERSON 12] aged 50-59 was well"),
        ("sooooo café", "soo cafe"),
        ("", ""),
    ],
)
def test_texts_get_one_style(text: str, expected: str) -> None:
    assert plain(text) == expected
    assert plain(expected) == expected


def test_writing_style_finds_authors_until_it_is_normalized(tmp_path: Path) -> None:
    """The attacker compares their posts as they are, and rewritten by the same method."""
    drawn = patient_messages(200, seed=1)
    drawn.posts.write_csv(tmp_path / "posts.csv")
    rewritten = pl.Series([plain(post) for post in drawn.posts["post"]])
    drawn.posts.with_columns(post=rewritten).write_csv(tmp_path / "plain.csv")
    frame = drawn.messages.select("patient", "message")
    data = Data.of(Table(frame=frame), Schema(columns={"message": Column(role=Role.SENSITIVE)}, unit="patient"))
    rates = {}
    methods: dict[str, list[Step]] = {"before": [], "after": [NormalizeStyle(columns=("message",))]}
    for name, steps in methods.items():
        result = protect(data, steps=steps, rng=Rng(1))
        scenario = AttackScenario(
            original=data, release=Release(table=result.data.table, manifest={}), lineage=result.lineage
        )
        for posts in ("posts", "plain"):
            attack = NearestDocuments(
                item="message", texts=tmp_path / f"{posts}.csv", identity="patient", features="characters"
            )
            rates[name, posts] = evaluate_attack(attack, scenario, rng=Rng(2), n_targets=200).main.rate
    assert rates["before", "posts"] > 0.08
    assert rates["after", "posts"] < 0.05
    assert rates["after", "plain"] < 0.05
