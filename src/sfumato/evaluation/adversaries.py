"""The two adversaries in words: one who knows the quasi-identifiers, and one who knows any of the released columns."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.attacks.evaluation.outcome import excess
from sfumato.evaluation.formatting import Plain, attack_label, join_words, of_hundred, percent

_LARGE = 0.25
"""A share of what was left to learn that is called out even without a limit, if the rates also differ by ten points."""
_DIFFERENCE = 0.1


def adversary_sentence(attacks: Sequence[Plain]) -> str:
    """How many people each adversary finds; empty without an attack on identity by any columns.

    >>> declared = {"attack": "linkage", "discloses": "identity", "risk": 0.05}
    >>> few = {"attack": "any-columns", "discloses": "identity", "risk": 0.99, "any_columns": True}
    >>> adversary_sentence([declared, {**few, "knows": ["height", "sex"]}])
    'Of every 100 people, attackers who know the quasi-identifiers find 5; one who knows “height” and “sex” finds 99.'
    """
    identity = [a for a in attacks if a.get("discloses") == "identity" and a.get("risk") is not None]
    beside = [attack for attack in identity if attack.get("any_columns")]
    declared = [attack for attack in identity if not attack.get("any_columns")]
    if not beside:
        return ""
    most = max((attack["risk"] for attack in declared), default=0.0)
    parts = [f"attackers who know {declared_columns(declared)} find {of_hundred(most)}"] if declared else []
    told: set[tuple[str, ...]] = set()
    for attack in beside:
        knows = tuple(attack.get("knows") or ())
        if knows not in told:
            told.add(knows)
            parts.append(f"one who knows {_columns(attack, knows)} finds {of_hundred(attack['risk'])}")
    return f"Of every 100 {counted_targets(identity)}, {'; '.join(parts)}."


def declared_columns(attacks: Sequence[Plain]) -> str:
    """What attackers are declared to know: the quasi-identifiers, or columns that the attacks name each for itself.

    >>> declared_columns([{"knows": ["age"]}, {"knows": ["age"]}]), declared_columns([{"knows": ["age"]}, {}])
    ('the quasi-identifiers', 'the columns that are declared for their attack')
    """
    different = len({frozenset(attack.get("knows") or ()) for attack in attacks}) > 1
    return "the columns that are declared for their attack" if different else "the quasi-identifiers"


def counted_targets(attacks: Sequence[Plain]) -> str:
    """What the shares of these attacks are shares of: people, or rows if somebody has several rows.

    >>> counted_targets([{"attack": "linkage"}, {"attack": "any-columns", "counts": "rows"}])
    'rows (not people: somebody has several rows)'
    """
    rows = any(attack.get("counts") == "rows" for attack in attacks)
    return "rows (not people: somebody has several rows)" if rows else "people"


def _columns(attack: Plain, knows: Sequence[str]) -> str:
    if len(knows) > 3:
        return f"all {len(knows)} released columns that distinguish people"
    return join_words([f"“{name}”" for name in knows]) or "all released columns"


def accepted_sentence(limit: Plain) -> str:
    """Who accepted the attackers that the limit does not hold for, and why; empty if nobody had to.

    >>> accepted_sentence({"accepted": {"by": "data office", "reason": "no outside file", "knows": ["height"]}})
    'Attackers who know “height” are accepted by data office: no outside file.'
    """
    accepted = limit.get("accepted")
    if not accepted:
        return ""
    knows = _columns(accepted, accepted.get("knows") or ())
    return f"Attackers who know {knows} are accepted by {accepted['by']}: {str(accepted['reason']).rstrip('.')}."


def learned_sentences(attacks: Sequence[Plain], limits: Sequence[Plain]) -> tuple[str, ...]:
    """Sensitive columns of which attacks learn much beyond the reference, where no limit on attributes was set.

    >>> learned = {"attack": "attribute-linkage", "discloses": "attribute", "secret": "diabetes", "risk": 0.965}
    >>> learned_sentences([{**learned, "reference": 0.511}], [])[0][:82]
    'No limit on attribute was set, but attribute linkage learns “diabetes” of 96.5% of'
    """
    if any(limit.get("limit") == "attribute" for limit in limits):
        return ()
    worst: dict[str, tuple[float, Plain]] = {}
    for attack in attacks:
        if attack.get("discloses") == "attribute" and attack.get("risk") is not None:
            reference = attack.get("reference") or 0.0
            learned = excess(attack["risk"], reference)
            large = learned >= _LARGE and attack["risk"] - reference >= _DIFFERENCE
            if large and learned > worst.get(str(attack.get("secret")), (0.0, attack))[0]:
                worst[str(attack.get("secret"))] = learned, attack
    return tuple(
        f"No limit on attribute was set, but {attack_label({**attack, 'secret': None})} learns “{secret}” of "
        f"{percent(attack['risk'])} of the {counted_targets([attack])}; without their records it is "
        f"{percent(attack.get('reference') or 0.0)}."
        for secret, (_, attack) in worst.items()
    )
