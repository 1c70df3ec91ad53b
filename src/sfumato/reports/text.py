"""The sentences of a report. Every function is pure: from report data to plain text, without HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.attacks.evaluation.outcome import excess
from sfumato.evaluation.adversaries import (
    accepted_sentence,
    adversary_sentence,
    counted_targets,
    declared_columns,
    learned_sentences,
)
from sfumato.evaluation.disclosures import disclosure_of
from sfumato.evaluation.formatting import (
    Plain,
    attack_label,
    column_weights,
    interval_ends,
    join_words,
    number,
    of_hundred,
    percent,
    readable_name,
)
from sfumato.evaluation.limits import limit_of, limit_position
from sfumato.masking.model import PrivacyModel, model_of
from sfumato.measures import measure_of
from sfumato.release import Judgement
from sfumato.release.guarantee import guarantees_of
from sfumato.release.standing import judge_entries
from sfumato.reports.glossary import meaning
from sfumato.wording import counted

if TYPE_CHECKING:
    from sfumato.reports.report_data import ReportData


_MOST_NAMED = 12
"""Columns named in a sentence; the table of columns has them all."""

ABOUT_LABELS = {
    "purpose": "Purpose",
    "recipient": "Recipient",
    "legal_basis": "Legal basis",
    "terms": "Terms of use",
    "contact": "Contact",
    "reevaluate": "Risk to be evaluated again by",
}
"""Published fields of the ``about`` section of a recipe."""
SIGN_OFF = {"prepared_by": "Prepared by", "approved_by": "Approved by"}
"""Who answers for the release; internal."""


# --- attacks before and after -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """One attack on the original without identifiers, and the same attack on the release; either may be missing."""

    attack: str
    discloses: str
    before: Plain | None
    after: Plain | None

    @property
    def label(self) -> str:
        label = attack_label(self.after or self.before or {"attack": self.attack})
        return f"{label}, outside file" if self.outside else label

    @property
    def outside(self) -> bool:
        """Whether the attacker held an outside file instead of the true values of everybody."""
        attack = self.after or self.before or {}
        return bool(attack.get("outside") or attack.get("detail", {}).get("outsiders"))

    def limit_position(self, limits: Sequence[Plain]) -> float | None:
        """The risk at which this attack reaches its limit; None without a limit."""
        name = limit_of(self.discloses)
        wanted: float | None = next((limit.get("wanted") for limit in limits if limit.get("limit") == name), None)
        return None if wanted is None else limit_position(wanted, (self.after or {}).get("reference") or 0.0)


def pairings(attacks: Sequence[Plain], before: Sequence[Plain]) -> tuple[Pairing, ...]:
    """Attacks in the order they were run on the release, each with its run before protection."""
    earlier: dict[tuple[str, ...], list[Plain]] = {}
    for attack in before:
        earlier.setdefault(_key(attack), []).append(attack)
    paired = [
        Pairing(attack=key[0], discloses=key[1], before=earlier[key].pop(0) if earlier.get(key) else None, after=attack)
        for attack in attacks
        for key in [_key(attack)]
    ]
    left = [Pairing(attack=k[0], discloses=k[1], before=a, after=None) for k, rest in earlier.items() for a in rest]
    return (*paired, *left)


def _key(attack: Plain) -> tuple[str, ...]:
    return tuple(str(attack.get(key) or "") for key in ("attack", "discloses", "setting", "secret"))


@dataclass(frozen=True, kw_only=True)
class Threat:
    """One simulated attacker, and what they achieved, for each secret that they were after."""

    label: str
    threat: str
    knows: tuple[str, ...]
    truth: str
    results: tuple[tuple[str, str], ...]
    """The secret (or nothing), and the result in words."""


def threats(report: ReportData) -> tuple[Threat, ...]:
    """Each attacker once, whatever the number of columns that the attack was about."""
    grouped: dict[tuple[object, ...], list[Pairing]] = {}
    for pair in pairings(report.attacks, report.attacks_before):
        one = pair.after or pair.before or {}
        key = (pair.attack, one.get("setting"), pair.outside, _threat(pair), *_known(one), one.get("truth"))
        grouped.setdefault(key, []).append(pair)
    return tuple(
        Threat(
            label=pairs[0].label if len(pairs) == 1 else readable_name(pairs[0].attack),
            threat=_threat(pairs[0]),
            knows=_known(one := pairs[0].after or pairs[0].before or {}),
            truth=str(one.get("truth") or ""),
            results=tuple(
                (str(after.get("secret") or ""), f"{achieved(after)}{_contributed(after)}")
                for pair in pairs
                if (after := pair.after) is not None
            ),
        )
        for pairs in grouped.values()
    )


def _threat(pair: Pairing) -> str:
    return str((pair.after or pair.before or {}).get("threat") or meaning("attack", pair.attack))


def _known(attack: Plain) -> tuple[str, ...]:
    return tuple(attack.get("knows") or ())


def _contributed(attack: Plain) -> str:
    """The columns that contributed most to an attack, in a sentence."""
    weights = column_weights(attack)
    if not weights:
        return ""
    return (
        " Columns that contributed most: "
        + ", ".join(f"{name} {percent(share, digits=0)}" for name, share in weights)
        + "."
    )


def achieved(attack: Plain) -> str:
    """The result of an attack in a sentence: share, interval, and counts where they may be shown.

    >>> achieved({"risk": 0.031, "low": 0.022, "high": 0.043, "level": 0.95, "hits": 31, "tried": 1000})
    'It was right about 3.1 of every 100 people (2.2% to 4.3%, 95% interval; 31 of 1,000 targets).'
    >>> achieved({"risk": 0.031, "low": 0.031, "high": 0.031, "level": 0.95, "hits": 31, "tried": 1000})
    'It was right about 3.1 of every 100 people (computed for all records, not sampled; 31 of 1,000 targets).'
    """
    if attack.get("risk") is None:
        return f"No risk can be given. {attack.get('reason') or ''}".rstrip()
    counts = "" if attack.get("hits") is None else f"; {number(attack['hits'])} of {number(attack['tried'])} targets"
    sentence = f"It was right about {of_hundred(attack['risk'])} of every 100 {counted_targets([attack])}"
    sentence += f"{_interval(attack, counts)}."
    if attack.get("stopped"):
        planned = attack.get("planned")
        rest = f" {planned:,}" if isinstance(planned, int) else ""
        sentence += f" Time ran out before all{rest} targets were attacked; those attacked are a random sample."
    return sentence


def beyond_reference(attack: Plain) -> float:
    """What an attack achieved beyond its reference rate, as a share of what was left to learn.

    >>> round(beyond_reference({"discloses": "attribute", "risk": 0.965, "baseline": 0.511}), 3)
    0.928
    >>> beyond_reference({"discloses": "attribute", "risk": 0.5, "reference": 0.511})
    0.0
    """
    risk, reference = float(attack["risk"]), attack.get("reference")
    if reference is None:
        identity = attack.get("discloses") == "identity"
        reference = 0.0 if identity else max(attack.get("baseline") or 0.0, attack.get("control") or 0.0)
    return max(0.0, excess(risk, reference))


def headline(report: ReportData) -> Pairing | None:
    """The attack compared with the original: the largest risk on the release, identity and quasi-identifiers first."""
    paired = pairings(report.attacks, report.attacks_before)
    judged = [pair for pair in paired if pair.after is not None and pair.after.get("risk") is not None]
    judged = [pair for pair in judged if pair.discloses == "identity"] or judged
    judged = [pair for pair in judged if not (pair.after or {}).get("any_columns")] or judged
    return max(judged, key=lambda pair: pair.after["risk"] if pair.after else 0.0, default=None)


def widest_attack(report: ReportData) -> Plain | None:
    """The largest identity risk of attackers who know any released columns; None if none was run."""
    beside = [attack for attack in report.attacks if attack.get("any_columns") and attack.get("risk") is not None]
    beside = [attack for attack in beside if attack.get("discloses") == "identity" and attack.get("knows")]
    return max(beside, key=lambda attack: float(attack["risk"]), default=None)


# --- the summary --------------------------------------------------------------------------------------------------


def judgement(report: ReportData) -> Judgement:
    """The standing of the release over all verdicts and limits, and the reason for it in a sentence."""
    return judge_entries(verdicts(report), report.limits, promised=report.promised)


def verdicts(report: ReportData) -> tuple[Plain, ...]:
    """The verdicts in full for the owner, and those of the manifest for others."""
    return tuple(report.verdicts or report.manifest.get("verdicts", ()))


def quasi(report: ReportData) -> tuple[str, ...]:
    """The released columns that an attacker is assumed to know."""
    return tuple(n for n, column in report.manifest.get("columns", {}).items() if column.get("role") == "quasi")


def summary(report: ReportData) -> tuple[str, ...]:
    """The report in sentences: whom attackers find, what was released, what is guaranteed and what is not."""
    sentences = (
        adversary_sentence(report.attacks),
        *(accepted_sentence(limit) for limit in report.limits),
        _released(report),
        _attacked(report),
        *learned_sentences(report.attacks, report.limits),
        _guaranteed(report),
        _not_guaranteed(report),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _released(report: ReportData) -> str:
    rows = report.manifest.get("rows")
    if not isinstance(rows, int):
        return "The records were released."
    records, were = counted(rows, "record"), "was" if rows == 1 else "were"
    if report.original_rows is None:
        return f"{records} {were} released."
    if rows > report.original_rows:
        return f"{records} {were} released; the original has {report.original_rows:,}."
    lost = report.original_rows - rows
    share = f" ({percent(lost / report.original_rows)} suppressed)" if lost > 0 and report.original_rows else ""
    return f"{records} of {report.original_rows:,} {were} released{share}."


def unchanged_columns(report: ReportData) -> str:
    """Which columns leave as they are, in a sentence; empty if the report does not know its columns."""
    if not report.column_table:
        return ""
    names = [line.column for line in report.column_table if line.unchanged]
    if not names:
        return "No column leaves unchanged."
    leave = "leaves" if len(names) == 1 else "leave"
    return f"{len(names)} of {counted(len(report.column_table), 'column')} {leave} unchanged: {_listed(names)}."


def _listed(names: Sequence[str]) -> str:
    """Names of columns, the first ones if there are many."""
    quoted = [f"“{name}”" for name in names]
    more = [f"{len(quoted) - _MOST_NAMED} others"] if len(quoted) > _MOST_NAMED + 1 else []
    return join_words([*(quoted[:_MOST_NAMED] if more else quoted), *more])


def _attacked(report: ReportData) -> str:
    pair = headline(report)
    if report.promised and report.audience == "external":
        return "Results of attacks stay with the owner: they are computed with the original, which no budget covers."
    if pair is None or pair.after is None:
        return "No attack was run on the release, so its risk is not known."
    after, before = pair.after, pair.before
    widest = widest_attack(report)
    name, first = f"the strongest attack that was run ({attack_label(after)})", ""
    if widest is not None and not after.get("any_columns") and float(widest["risk"]) > float(after["risk"]):
        found = disclosure_of(str(widest["discloses"])).past.format(
            n=of_hundred(widest["risk"]), people=counted_targets([widest])
        )
        first = (
            f"On the release, the strongest attack that was run ({attack_label(widest)}) {found}{_interval(widest)}; "
            f"it knows {_listed(widest['knows'])}. "
        )
        name = f"the strongest attack that knows {declared_columns([after])} ({attack_label(after)})"
    past, people = disclosure_of(pair.discloses).past, counted_targets([after])
    now = f"{of_hundred(after['risk'])} of every 100{_interval(after)}"
    guess = "" if after.get("baseline") is None else f"; guessing alone gets {of_hundred(after['baseline'])}"
    if before is not None and before.get("risk") is not None:
        then = past.format(n=of_hundred(before["risk"]), people=people)
        return f"{first}Before protection, {name} {then}; on the release it is {now}{guess}."
    found = past.format(n=of_hundred(after["risk"]), people=people)
    return f"{first}On the release, {name} {found}{_interval(after)}{guess}."


def _interval(attack: Plain, more: str = "") -> str:
    if attack.get("low") is None or attack.get("high") is None:
        return ""
    if attack["low"] == attack["high"]:
        return f" (computed for all records, not sampled{more})"
    ends = interval_ends(attack["low"], attack["high"])
    return f" ({ends}, {percent(attack.get('level', 0.95))} interval{more})"


def _guaranteed(report: ReportData) -> str:
    holding = [verdict for verdict in verdicts(report) if verdict.get("state") == "holds"]
    proved = [_promise(report, verdict) for verdict in holding if not _model(verdict).estimate]
    estimated = [_promise(report, verdict) for verdict in holding if _model(verdict).estimate]
    sentence = "No privacy model was shown to hold, so nothing is guaranteed."
    stated = guarantees_of(report.manifest)
    if stated:
        covered = dict.fromkeys(part for one in stated for part in one.covered)
        sentence = f"Guaranteed: {' '.join(map(str, stated))} This covers {join_words(list(covered))}."
    elif proved:
        sentence = f"Guaranteed, whatever attack is used on these columns: {'; '.join(proved)}."
    return f"{sentence} Estimated, not guaranteed: {'; '.join(estimated)}." if estimated else sentence


def _model(verdict: Plain) -> type[PrivacyModel]:
    return model_of(str(verdict.get("model")))


def _promise(report: ReportData, verdict: Plain) -> str:
    name = str(verdict.get("model"))
    worst = verdict["worst"] if verdict.get("worst") is not None else verdict.get("wanted")
    promise = _model(verdict).promise
    if promise and worst is not None:
        known = join_words([f"“{column}”" for column in quasi(report)]) or "the known columns"
        return f"{promise.format(known=known, worst=number(worst))} ({name})"
    explanation = meaning("model", name).rstrip(".")
    return f"{readable_name(name)} holds{f', that is: {explanation}' if explanation else ''}"


def _not_guaranteed(report: ReportData) -> str:
    failing = [readable_name(str(v.get("model"))) for v in verdicts(report) if v.get("state") == "fails"]
    unchecked = [readable_name(str(v.get("model"))) for v in verdicts(report) if v.get("state") == "not checked"]
    holding = [_model(v) for v in verdicts(report) if v.get("state") == "holds"]
    secrets = tuple(n for n, c in report.manifest.get("columns", {}).items() if c.get("role") == "sensitive")
    known = join_words(quasi(report)) or "no column at all"
    protected = any("attribute" in model.protects for model in holding)
    shared = f"that records which look alike differ in {join_words(secrets)}; " if secrets and not protected else ""
    stated = guarantees_of(report.manifest)
    sentence = (
        f"Not guaranteed: {shared}protection from an attacker who knows more about a person than {known}, from attacks "
        "that were not run, and from conclusions about groups of people, which also apply to people who are not in the "
        "data"
    )
    if stated:
        sentence = f"Not covered: {'; '.join(dict.fromkeys(part for one in stated for part in one.not_covered))}"
    if failing:
        sentence = f"{capital(join_words(failing))} {'does' if len(failing) == 1 else 'do'} not hold. {sentence}"
    if unchecked:
        sentence += f". {capital(join_words(unchecked))} {'was' if len(unchecked) == 1 else 'were'} not checked"
    return sentence + "."


def capital(text: str) -> str:
    """
    >>> capital("k-anonymity"), capital("class sizes")
    ('k-anonymity', 'Class sizes')
    """
    return text if text[1:2] == "-" else text[:1].upper() + text[1:]


# --- measures -----------------------------------------------------------------------------------------------------


def measure_label(measure: Plain) -> str:
    """The name of a measure in a report."""
    name = str(measure.get("measure"))
    return measure_of(name).label or readable_name(name)


def measure_value(measure: Plain, value: float | None) -> str:
    """The value of a measure as it is shown: shares of records in percent, other values as numbers."""
    return percent(value) if measure_of(str(measure.get("measure"))).percentage else number(value)


def before_of(measure: Plain) -> float | None:
    """The value of the same measure on the original, where the measure reports it."""
    value = (measure.get("detail") or {}).get(measure_of(str(measure.get("measure"))).before_key)
    return value if isinstance(value, int | float) else None


def left_out(report: ReportData) -> tuple[tuple[str, str], ...]:
    """What an external report leaves out, and why."""
    if report.audience != "external":
        return ()
    return (
        (
            "The number of records in the original and of suppressed records",
            "It would show how rare the suppressed people are.",
        ),
        ("The risk before protection, and all pictures of the original", "They describe data that is not released."),
        ("The numbers of targets and hits of each attack", "Together with the shares they are counts of the original."),
        (
            "Losses by column and by pair of columns",
            "Small differences from the original add up to facts about it.",
        ),
        *(
            [("All attacks, measures and limits", "They compare with the original; the guarantee does not cover them.")]
            if report.promised
            else []
        ),
        ("The records at highest risk", "Their row numbers would point at people."),
        ("The seed, the key and the file names of the owner", "Method, seed and key together can undo a masking."),
    )
