"""Groups of similar columns: repeated measurements and numbered items get one role."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sfumato.dataset import Kind, Role
from sfumato.profiling.detectors.facts import words_of
from sfumato.profiling.detectors.finding import Finding

_OPEN = (Role.QUASI, Role.SENSITIVE, Role.UNDECIDED)
"""Roles that a group may share; identifiers, weights and household numbers are recognized one by one."""
_LESS_SURE = 0.8
"""A finding about a similar column counts less than one about the column itself."""


def alike(kinds: dict[str, Kind]) -> list[list[str]]:
    """Columns with the same word before a number at the end of the name, and with the same kind.

    A single letter is no word: ``q1`` and ``q2`` may be questions about anything.

    >>> alike({"cd40": Kind.INTEGER, "cd820": Kind.NUMBER, "q1": Kind.INTEGER, "q2": Kind.INTEGER, "age": Kind.INTEGER})
    [['cd40', 'cd820']]
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name, kind in kinds.items():
        stem = re.fullmatch(r" (.*[a-z]{2}) [0-9]+ ", words_of(name))
        if stem is not None:
            number = kind in (Kind.INTEGER, Kind.NUMBER)
            groups.setdefault((stem[1], "number" if number else kind.value), []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def same_role(findings: dict[str, Finding], groups: Sequence[Sequence[str]]) -> dict[str, Finding]:
    """New findings for columns that differ from their group: quasi if one of it is, because that masks, else sensitive.

    A group without any finding stays undecided.
    """
    changed: dict[str, Finding] = {}
    for names in groups:
        members = [name for name in names if findings[name].role in _OPEN]
        if len(members) < 2:
            continue
        best = max(members, key=lambda name: (findings[name].role is Role.QUASI, findings[name].confidence))
        found = findings[best]
        for name in members:
            if findings[name].role is not found.role and found.role is not Role.UNDECIDED:
                reason = f"name and kind are like those of `{best}`: {found.reason}"
                changed[name] = replace(found, reason=reason, confidence=_LESS_SURE * found.confidence)
    return changed
