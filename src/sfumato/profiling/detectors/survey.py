"""Detectors of survey design columns: sampling weights and household numbers."""

from __future__ import annotations

from sfumato.dataset import Role
from sfumato.profiling.detectors.facts import Facts
from sfumato.profiling.detectors.finding import Detector, Finding

_WEIGHT = (
    *("sampling weight", "survey weight", "sample weight", "person weight", "household weight", "household weights"),
    *("design weight", "final weight", "expansion factor", "gewicht"),
    *("fnlwgt", "afnlwgt", "pweight", "wtfa", "perwt", "hhwt", "wtssall", "survey wt", "sample wt"),
)
_LARGEST = 50
"""Largest average number of rows per household."""
_HOUSEHOLD = (
    *(
        "household",
        "household id",
        "household number",
        "household no",
        "hh id",
        "hhid",
        "hid",
        "ori hid",
        "hhnr",
        "idhh",
    ),
    *("family id", "family number", "family no", "haushalt", "haushaltsnummer", "hogar", "menage", "serial"),
)


def sampling_weight(facts: Facts) -> Finding | None:
    """Positive numbers without missing values whose name indicates a weight."""
    said, bare = facts.says(*_WEIGHT), facts.says("weight", "weights", "wgt", "wt")
    if (said is None and bare is None) or not facts.series.dtype.is_numeric() or facts.series.null_count():
        return None
    if facts.series.is_empty() or not bool((facts.series > 0).all()):
        return None
    if said is not None:
        return Finding(detector="a sampling weight", role=Role.WEIGHT, reason="the name says a weight", confidence=0.95)
    if _like_bodies(facts):
        return None
    return Finding(
        detector="a sampling weight",
        role=Role.WEIGHT,
        reason="the name says weight, and the values are not those of bodies: taken as a sampling weight",
        confidence=0.55,
    )


def body_weight(facts: Facts) -> Finding | None:
    """A bare ``weight`` or ``wt`` whose values are those of people in kilograms or pounds."""
    if facts.says("weight", "weights", "wt") is None or not _like_bodies(facts):
        return None
    return Finding(
        detector="body weight",
        role=Role.QUASI,
        reason="the name says weight, and the values are those of people in kilograms or pounds;"
        " if it is a sampling weight, make it weight",
        confidence=0.7,
        bands=True,
    )


def _like_bodies(facts: Facts) -> bool:
    """Whether numbers lie within 2 and 700, mostly within 30 and 400, and the middle 80 % within a factor of 3."""
    if not facts.sample.dtype.is_numeric() or facts.sample.is_empty():
        return False
    low, high = facts.sample.quantile(0.1), facts.sample.quantile(0.9)
    return facts.between(2, 700) == 1 and facts.between(30, 400) > 0.8 and bool(high and low and high < 3 * low)


def household(facts: Facts) -> Finding | None:
    """A number that several rows share and whose name indicates a household."""
    if facts.says(*_HOUSEHOLD) is None or facts.spread > 0.95:
        return None
    # A label such as "relation to head of household" also names a household, but far more rows share each value.
    if facts.spread * _LARGEST < 1:
        return None
    return Finding(
        detector="a household number",
        role=Role.HOUSEHOLD,
        reason=f"the name says household; {1 / facts.spread:.1f} rows share a number on average",
        confidence=0.9,
    )


DETECTORS: tuple[Detector, ...] = (sampling_weight, body_weight, household)
