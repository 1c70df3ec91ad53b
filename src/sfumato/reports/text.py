"""The sentences of a report: what the numbers mean to somebody who has to sign.

Every function is pure: from an account (already cut down to its reader) to plain words. Nothing here is HTML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.evaluation.formatting import attack_label, join_words, number, of_hundred, percent, readable_name
from sfumato.evaluation.limits import limit_of, limit_position
from sfumato.masking.model import PrivacyModel, model_of
from sfumato.reports.glossary import meaning

if TYPE_CHECKING:
    from sfumato.reports.report_data import ReportData

__all__ = [
    "Pairing",
    "achieved",
    "answer",
    "headline",
    "left_out",
    "pairings",
    "quasi",
    "standing",
    "value_words",
    "verdicts",
]

Plain = Mapping[str, Any]


# --- attacks before and after -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """One attack on the table without protection and the same on the release; either may be missing."""

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
        """Whether the intruder held a file of somebody else's, rather than the true values of everybody."""
        attack = self.after or self.before or {}
        return bool(attack.get("outside") or attack.get("detail", {}).get("outsiders"))

    def limit_position(self, limits: Sequence[Plain]) -> float | None:
        """The risk at which this attack reaches its limit; None without a limit."""
        name = limit_of(self.discloses)
        wanted: float | None = next((limit.get("wanted") for limit in limits if limit.get("limit") == name), None)
        return None if wanted is None else limit_position(wanted, (self.after or {}).get("reference") or 0.0)


def pairings(attacks: Sequence[Plain], before: Sequence[Plain]) -> tuple[Pairing, ...]:
    """Attacks in the order they were run on the release, each with its run before protection."""
    earlier: dict[tuple[str, str, str], list[Plain]] = {}
    for attack in before:
        earlier.setdefault(_key(attack), []).append(attack)
    paired = [
        Pairing(attack=key[0], discloses=key[1], before=earlier[key].pop(0) if earlier.get(key) else None, after=attack)
        for attack in attacks
        for key in [_key(attack)]
    ]
    left = [Pairing(attack=k[0], discloses=k[1], before=a, after=None) for k, rest in earlier.items() for a in rest]
    return (*paired, *left)


def _key(attack: Plain) -> tuple[str, str, str]:
    return str(attack.get("attack")), str(attack.get("discloses")), str(attack.get("setting") or "")


def achieved(attack: Plain) -> str:
    """What an attack achieved, in a sentence: share, interval, and how many people it was tried on where told.

    >>> achieved({"risk": 0.031, "low": 0.022, "high": 0.043, "level": 0.95, "hits": 31, "tried": 1000})
    'It was right about 3.1 of every 100 people (2.2% to 4.3%, 95% interval; 31 of 1,000 sought).'
    """
    if attack.get("risk") is None:
        return f"No risk can be given. {attack.get('reason') or ''}".rstrip()
    counts = "" if attack.get("hits") is None else f"; {attack['hits']:,} of {attack['tried']:,} sought"
    sentence = f"It was right about {of_hundred(attack['risk'])} of every 100 people{_interval(attack, counts)}."
    if attack.get("stopped"):
        planned = attack.get("planned")
        rest = f" of {planned:,}" if isinstance(planned, int) else ""
        sentence += f" Time was up before all{rest} had been sought; those who were are a random sample."
    return sentence


def headline(account: ReportData) -> Pairing | None:
    """The attack that stands for all: the one that finds most people in the release, identity before the rest."""
    known = [
        p
        for p in pairings(account.attacks, account.attacks_before)
        if p.after is not None and p.after.get("risk") is not None
    ]
    known = [p for p in known if p.discloses == "identity"] or known
    return max(known, key=lambda p: p.after["risk"] if p.after else 0.0, default=None)


# --- the answer ---------------------------------------------------------------------------------------------------


def standing(account: ReportData) -> str:
    """``met``, ``not met`` or ``not checked``: all verdicts and limits together. Silence is never "met"."""
    states = [str(verdict.get("state")) for verdict in verdicts(account)]
    states += [_judged(limit, "holds", "fails") for limit in account.limits]
    if "fails" in states:
        return "not met"
    return "not checked" if "not checked" in states or not states else "met"


def _judged(limit: Plain, yes: str, no: str) -> str:
    met = limit.get("met")
    return "not checked" if met is None else yes if met else no


def verdicts(account: ReportData) -> tuple[Plain, ...]:
    return tuple(account.verdicts or account.manifest.get("verdicts", ()))


def quasi(account: ReportData) -> tuple[str, ...]:
    """The released columns that an intruder is assumed to know."""
    return tuple(n for n, column in account.manifest.get("columns", {}).items() if column.get("role") == "quasi")


def answer(account: ReportData) -> tuple[str, ...]:
    """The whole report in a few sentences: released, found, guaranteed, not guaranteed."""
    return (_released(account), _found(account), _guaranteed(account), _not_guaranteed(account))


def _released(account: ReportData) -> str:
    rows = account.manifest.get("rows")
    records = f"{rows:,} records" if isinstance(rows, int) else "The records"
    if account.original_rows is None or not isinstance(rows, int):
        return f"{records} were released."
    lost = account.original_rows - rows
    share = f" ({percent(lost / account.original_rows)} left out)" if lost > 0 and account.original_rows else ""
    return f"{records} of {account.original_rows:,} were released{share}."


def _found(account: ReportData) -> str:
    pair = headline(account)
    if pair is None or pair.after is None:
        return "No attack was run on the release, so nothing is known here about what an intruder finds in it."
    after, before = pair.after, pair.before
    name = f"the strongest attack that was run ({attack_label(pair.after)})"
    found = {
        "identity": "found {n} of every 100 people it looked for",
        "attribute": "learned the secret of {n} of every 100 people it looked for",
        "membership": "told rightly for {n} of every 100 people whether they are in the data",
    }.get(pair.discloses, "succeeded for {n} of every 100 people")
    now = f"{of_hundred(after['risk'])} of every 100{_interval(after)}"
    guess = "" if after.get("baseline") is None else f"; guessing alone gets {of_hundred(after['baseline'])}"
    if before is not None and before.get("risk") is not None:
        then = found.format(n=of_hundred(before["risk"]))
        return f"Before protection, {name} {then}; on the release it is {now}{guess}."
    return f"On the release, {name} {found.format(n=of_hundred(after['risk']))}{_interval(after)}{guess}."


def _interval(attack: Plain, more: str = "") -> str:
    if attack.get("low") is None or attack.get("high") is None:
        return ""
    ends = f"{percent(attack['low'])} to {percent(attack['high'])}"
    return f" ({ends}, {percent(attack.get('level', 0.95))} interval{more})"


def _guaranteed(account: ReportData) -> str:
    holding = [verdict for verdict in verdicts(account) if verdict.get("state") == "holds"]
    sure = [_promise(account, verdict) for verdict in holding if not _model(verdict).estimate]
    likely = [_promise(account, verdict) for verdict in holding if _model(verdict).estimate]
    sentence = "No privacy model was shown to hold, so nothing is guaranteed."
    if sure:
        sentence = f"Guaranteed, whatever method an intruder uses on these columns: {'; '.join(sure)}."
    return f"{sentence} Estimated, not guaranteed: {'; '.join(likely)}." if likely else sentence


def _model(verdict: Plain) -> type[PrivacyModel]:
    return model_of(str(verdict.get("model")))


def _promise(account: ReportData, verdict: Plain) -> str:
    name = str(verdict.get("model"))
    worst = verdict["worst"] if verdict.get("worst") is not None else verdict.get("wanted")
    promise = _model(verdict).promise
    if promise and worst is not None:
        known = join_words([f"“{column}”" for column in quasi(account)]) or "the known columns"
        return f"{promise.format(known=known, worst=number(worst))} ({name})"
    said = meaning("model", name).rstrip(".")
    return f"{readable_name(name)} holds{f', that is: {said}' if said else ''}"


def _not_guaranteed(account: ReportData) -> str:
    failing = [readable_name(str(v.get("model"))) for v in verdicts(account) if v.get("state") == "fails"]
    open_ = [readable_name(str(v.get("model"))) for v in verdicts(account) if v.get("state") == "not checked"]
    holding = [_model(v) for v in verdicts(account) if v.get("state") == "holds"]
    secrets = tuple(n for n, c in account.manifest.get("columns", {}).items() if c.get("role") == "sensitive")
    known = join_words(quasi(account)) or "no column at all"
    protected = any("attribute" in model.protects for model in holding)
    shared = f"that records which look alike differ in {join_words(secrets)}; " if secrets and not protected else ""
    sentence = (
        f"Not guaranteed: {shared}protection from an intruder who knows more of a person than {known}, from attacks "
        "that were not run, and from conclusions about a whole group of people, which hold for those who are not in "
        "the data too"
    )
    if failing:
        sentence = f"{_capital(join_words(failing))} {'does' if len(failing) == 1 else 'do'} not hold. {sentence}"
    if open_:
        sentence += f". {_capital(join_words(open_))} {'was' if len(open_) == 1 else 'were'} not checked"
    return sentence + "."


def _capital(text: str) -> str:
    """
    >>> _capital("k-anonymity"), _capital("class sizes")
    ('k-anonymity', 'Class sizes')
    """
    return text if text[1:2] == "-" else text[:1].upper() + text[1:]


def value_words(measure: Plain, value: float | None) -> str:
    """The number of a measure as it is best read: shares of people in percent, distances and sizes as they are."""
    return percent(value) if measure.get("measure") in ("uniqueness", "prosecutor") else number(value)


def left_out(account: ReportData) -> tuple[tuple[str, str], ...]:
    """What an external report leaves out, and why."""
    if account.audience != "external":
        return ()
    return (
        (
            "How many records the original had, and how many were suppressed",
            "Their number tells how rare the people left out are.",
        ),
        (
            "Risk before protection, and every picture of the original",
            "They describe the original, which is not released.",
        ),
        (
            "How many people each attack looked for and how many it found",
            "With the shares they would be counts of the original.",
        ),
        ("Losses by column and by pair of columns", "Fine differences to the original add up to facts about it."),
        ("The riskiest records", "Their row numbers would point at people."),
        ("The seed and the names of files in the owner's recipe", "Who knows method and seed can undo a masking."),
    )
