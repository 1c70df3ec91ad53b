"""Charges as events of the library dp_accounting, for accountants outside.

The form is that of ``DpEvent.to_named_tuple``: ``module_name``, ``class_name`` and the fields of the class. Numbers are
floats that state no less loss than the ledger: losses are rounded up, noise down.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import inf, nextafter
from typing import Any, TypeAlias

from sfumato.dp.loss import PrivacyMeasure, approximate
from sfumato.dp.rational_bounds import sqrt_up
from sfumato.ledger.accounts import charge_of
from sfumato.ledger.entries import Entry
from sfumato.ledger.exact_budget import cost_amount

Event: TypeAlias = dict[str, Any]
_MODULE = "dp_accounting.dp_event"


def dp_events(entries: Iterable[Entry]) -> list[dict[str, object]]:
    """For each data set and unit, all charges as one composed event."""
    found: dict[tuple[str, str], list[Event]] = {}
    for entry in entries:
        if entry.kind == "spend":
            found.setdefault((entry.dataset, entry.unit), []).append(dp_event(entry))
    return [
        {"dataset": dataset, "unit": unit, "neighbours": "add or remove one unit", "event": _composed(events)}
        for (dataset, unit), events in found.items()
    ]


def dp_event(entry: Entry) -> Event:
    """The event of one charge.

    A charge in epsilon is that epsilon and delta, unless its curve says more, as that of normal noise does. The event
    is then the curve, with the chance of the exception outside of which it holds.
    """
    charge, curve = charge_of(entry.totals), charge_of(entry.totals).curve
    in_epsilon = entry.measure == PrivacyMeasure.EPSILON
    if in_epsilon and (not charge.delta or charge == cost_amount(approximate(charge.epsilon, charge.delta))):
        return _event("EpsilonDeltaDpEvent", epsilon=_up(charge.epsilon), delta=_up(charge.delta))
    if curve.gaussian:
        hidden = _event("GaussianDpEvent", noise_multiplier=_down(1 / sqrt_up(curve.gaussian)))
    else:
        hidden = _event("ZCDpEvent", rho=_up(curve.rho), xi=0.0)
    if not curve.delta:
        return hidden
    return _composed([hidden, _event("EpsilonDeltaDpEvent", epsilon=0.0, delta=_up(curve.delta))])


def _composed(events: list[Event]) -> Event:
    return _event("ComposedDpEvent", events=events)


def _event(name: str, **fields: Any) -> Event:
    return {"module_name": _MODULE, "class_name": name, **fields}


def _up(number: Fraction) -> float:
    near = float(number)
    return near if Fraction(near) >= number else nextafter(near, inf)


def _down(number: Fraction) -> float:
    near = float(number)
    return near if Fraction(near) <= number else nextafter(near, 0.0)
