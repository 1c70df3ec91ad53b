"""Report of a private model as one offline HTML page, internal or external."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.drawing import BarChart, BarRow, Dot, Intervals
from sfumato.evaluation.formatting import Plain, attack_label, interval_ends, number, percent, readable_name
from sfumato.release.guarantee import Guarantee
from sfumato.release.public_folder import Why
from sfumato.reports.figures import NARROW, WIDE, Figure
from sfumato.reports.kind_page import KindPage
from sfumato.reports.page import page_html
from sfumato.reports.redaction import external


class ModelPage(KindPage):
    """A private model: its guarantee, weights, attacks and audit. Outside readers see what the guarantee covers."""

    template = "model.html"

    def external(self, document: Plain) -> Plain:
        return {key: item.value for key, item in external(document, promised=True).items()}

    def sentences(self, shown: Plain) -> tuple[str, ...]:
        """The result in sentences: the guarantee, the most an attacker can achieve, the strongest attack, the audit."""
        privacy = shown["privacy"]
        told = [
            f"The model satisfies ({privacy['epsilon']:.4g}, {privacy['delta']:.2g})-differential privacy for one "
            f"{privacy['unit']}.",
            f"Nobody can tell from it whether a person is in the training data with an accuracy above "
            f"{percent(shown['membership_bound'])}, if half of the people in question are.",
        ]
        found = [
            a for a in shown.get("attacks", ()) if a.get("discloses") == "membership" and a.get("risk") is not None
        ]
        if found:
            worst = max(found, key=lambda attack: float(attack["high"]))
            about = "" if worst.get("truth") != "cross-fitting" else ", on a model of half of the people,"
            told.append(
                f"The strongest membership attack ({readable_name(str(worst['attack']))}){about} is right about "
                f"{percent(worst['risk'])} (95% interval: {interval_ends(worst['low'], worst['high'])}); "
                "guessing is right about 50%."
            )
        if shown.get("audit") and shown["audit"]["refuted"]:
            told.append("The audit refutes the promised epsilon: do not publish the model.")
        return tuple(told)

    def context(self, shown: Plain, *, internal: bool) -> Mapping[str, object]:
        return {
            "guarantee": Guarantee.from_dict(shown["privacy"]).section(),
            "weights": _weights(shown["weights"]),
            "risk": _risk(shown) if internal else None,
            "label_of": attack_label,
        }

    def why(self, document: Plain) -> Why:
        return Why.PAID


MODEL_PAGE = ModelPage()


def comparison_html(document: Plain) -> str:
    """The page of a document of ``sfumato integral compare --json``: may the new model be published?"""
    verdict = document["verdict"]
    facts = (
        ("Verdict", f"{readable_name(str(verdict['model']))} {verdict['state']}"),
        ("Models", "the same" if document["unchanged"] else "different"),
        ("The attacker considers", document["considered"]),
        ("Search", "complete" if document["complete"] else "ended before all changes were tried"),
        ("Minimal changes that explain the pair", number(document["minimal_modifications"])),
        ("People they could be about", number(document["people"])),
        ("People in all of them", number(document["people_in_all"])),
        ("Columns with the same value in all", ", ".join(document["shared_columns"]) or "none"),
        ("Sensitive columns disclosed", ", ".join(document["disclosed_secrets"]) or "none"),
    )
    lead = f"{str(document['standing']).capitalize()}. {document['reason']}"
    return page_html("integral.html", document=document, facts=facts, sentences=(lead,))


def _weights(weights: Mapping[str, float]) -> Figure | None:
    """How far each feature moves the score, relative to the one that moves it furthest."""
    largest = max(weights.values(), default=0.0)
    if largest <= 0:
        return None
    order = sorted(weights, key=lambda name: -weights[name])
    drawn = tuple(BarRow(label=name, value=weights[name] / largest, words=f"{weights[name]:.3g}") for name in order)
    return Figure(
        name="weights",
        title="Weight of each feature",
        alternative="Difference between the lowest and the highest part of each feature in the score (for two classes "
        f"in log-odds). {order[0]} has the largest, {weights[order[0]]:.3g}. The bars are relative to it.",
        chart=BarChart(rows=drawn[:20], top=1.0),
        width=600,
        head=("Feature", "Range"),
        rows=tuple((row.label, row.words) for row in drawn),
    )


def _risk(document: Plain) -> Figure | None:
    """Risk of each attack; for membership, the limit line is the bound of differential privacy."""
    drawn = tuple(
        Dot(
            label=attack_label(attack),
            when="after",
            risk=attack["risk"],
            low=attack.get("low"),
            high=attack.get("high"),
            words=percent(attack["risk"]),
            baseline=attack.get("baseline"),
            limit=document["membership_bound"] if attack["discloses"] == "membership" else None,
            reference=max(attack.get("baseline") or 0.0, attack.get("control") or 0.0),
        )
        for attack in document["attacks"]
        if attack.get("risk") is not None
    )
    if not drawn:
        return None
    words = "; ".join(f"{row.label}: {row.words}" for row in drawn)
    return Figure(
        name="risk",
        title="Risk of each attack",
        alternative=f"Share of targets about whom each attack is right. {words}.",
        chart=Intervals(rows=drawn),
        width=WIDE,
        narrow=NARROW,
        head=(),
        rows=(),
        caption="Each dot is the share of targets about whom an attack is right; the band is its interval, the short "
        "grey tick the baseline without the model. The long thin line is the most that differential privacy allows any "
        "membership attack.",
    )
