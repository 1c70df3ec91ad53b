"""Kinds of disclosure in words: how advice, reports and limits speak about each."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.attacks import Discloses


@dataclass(frozen=True, kw_only=True)
class Disclosure:
    """The words for one kind of disclosure."""

    noun: str
    """What is counted, for a headline."""
    achieves: str
    """What an attack does to so many targets: "It finds 3 % of the targets"."""
    past: str
    """The same in the past, with ``{n}`` of every 100 people."""
    limit: str
    """What the limit on this kind restricts."""


_UPPER = "judged by the upper end of the interval"
DISCLOSURES: dict[Discloses, Disclosure] = {
    Discloses.IDENTITY: Disclosure(
        noun="People found",
        achieves="finds",
        past="found {n} of every 100 {people} it looked for",
        limit=f"The share of people whose record any attack finds, {_UPPER}.",
    ),
    Discloses.ATTRIBUTE: Disclosure(
        noun="Sensitive values learned",
        achieves="learns the sensitive value of",
        past="learned the sensitive value of {n} of every 100 {people} it looked for",
        limit="The share of sensitive values that any attack learns beyond what it gets right without the person's "
        f"record, {_UPPER}.",
    ),
    Discloses.MEMBERSHIP: Disclosure(
        noun="Memberships detected",
        achieves="is right about membership for",
        past="was right for {n} of every 100 {people} about whether they are in the data",
        limit=f"The share of people whose membership in the data any attack detects beyond guessing, {_UPPER}.",
    ),
    Discloses.SINGLING_OUT: Disclosure(
        noun="Correct descriptions",
        achieves="singles out a person with",
        past="gave {n} of every 100 descriptions that fit exactly one person",
        limit="The share of an attack's descriptions that fit exactly one person, beyond the same share for shuffled "
        f"columns, {_UPPER}.",
    ),
    Discloses.LINK: Disclosure(
        noun="Friendships detected",
        achieves="is right about friendship for",
        past="was right for {n} of every 100 pairs of people about whether they are friends",
        limit=f"The share of pairs of people whose friendship any attack detects beyond guessing, {_UPPER}.",
    ),
    Discloses.RESULT: Disclosure(
        noun="Hidden results found",
        achieves="finds, of the results that were hidden,",
        past="found {n} of every 100 results that were hidden",
        limit=f"The share of hidden results that an attack finds in the release, beyond guessing, {_UPPER}.",
    ),
}
"""One entry for each kind; a test checks that none is missing."""

_OTHER = Disclosure(
    noun="Correct guesses",
    achieves="succeeds for",
    past="succeeded for {n} of every 100 {people}",
    limit="Set in the recipe.",
)


def disclosure_of(name: str) -> Disclosure:
    """The words for a kind of disclosure, also for one that this version does not know."""
    return DISCLOSURES[Discloses(name)] if name in list(Discloses) else _OTHER
