"""The form that HIPAA Safe Harbor allows for the columns that detectors recognized, as settings of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.dataset import Role

_OLDEST = 89
"""The largest age that may leave as it is."""


@dataclass(frozen=True, kw_only=True)
class SafeHarborPlan:
    """What a recipe has to say so that its release has the form of the rule."""

    columns: Mapping[str, Mapping[str, Any]]
    """New settings of columns: a hierarchy, or the role ``drop``."""
    model: Mapping[str, object]
    """Parameters of the model ``safe-harbor``; empty if there is nothing to check."""
    lowest: Mapping[str, int]
    """The lowest levels of generalization."""


def safe_harbor_plan(recognized: Mapping[str, tuple[str, Role]], *, year: int) -> SafeHarborPlan:
    """The plan for columns that were recognized as something, with their roles. ``year`` is the year of the release.

    Columns that do not leave stay as they are. Dates leave as years, ZIP codes with three digits, ages over 89 and the
    births from which they follow as one group. Places smaller than a state do not leave.

    >>> found = {"zip": ("a postal code", Role.QUASI), "city": ("a place smaller than a state", Role.QUASI)}
    >>> plan = safe_harbor_plan(found, year=2026)
    >>> plan.columns
    {'zip': {'hierarchy': {'zip3': {}}}, 'city': {'role': 'drop'}}
    >>> plan.model, plan.lowest
    ({'zips': ['zip']}, {'zip': 1})
    """
    forms: dict[str, tuple[str, dict[str, object]]] = {
        "a postal code": ("zips", {"zip3": {}}),
        "a date": ("dates", {"dates": ["year", "decade"]}),
        "a date of birth": ("births", {"dates": {"units": ["year", "decade"], "bottom": year - _OLDEST}}),
        "a year of birth": ("births", {"intervals": {"widths": [1, 5, 10], "bottom": year - _OLDEST}}),
        "an age": ("ages", {"intervals": {"widths": [1, 5, 10, 20], "top": _OLDEST + 1}}),
    }
    columns: dict[str, dict[str, object]] = {}
    model: dict[str, Any] = {}
    lowest: dict[str, int] = {}
    for name, (detector, role) in recognized.items():
        if role in (Role.IDENTIFIER, Role.DROP):
            continue
        if detector in ("a place smaller than a state", "a coordinate"):
            columns[name] = {"role": Role.DROP.value}
        elif detector in forms:
            listed, hierarchy = forms[detector]
            model.setdefault(listed, []).append(name)
            columns[name] = {"hierarchy": hierarchy}
            if role is Role.QUASI:
                lowest[name] = 1
    if "births" in model:
        model["year"] = year
    return SafeHarborPlan(columns=columns, model=model, lowest=lowest)
