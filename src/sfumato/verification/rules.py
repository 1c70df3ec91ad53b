"""The second opinion: the condition of every model once more, as a schoolbook formula over plain counts.

Nothing here is shared with the search or with the models' own code: classes come from
:mod:`sfumato.verification.counts`, a few GROUP BY statements. A mistake in the fast code would have to be made twice to
go unseen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from sfumato.rationals import rational
from sfumato.release import State, Verdict
from sfumato.verification.counts import Counts, ReleaseCounts
from sfumato.verification.uniqueness_check import unique_share

__all__ = ["verify"]

Judged = tuple[float | None, float, list[bool], bool]
"""The worst value, the wanted one, for each class whether it passes, and whether all do together."""


def verify(models: Iterable[Mapping[str, Any]], shown: ReleaseCounts) -> list[Verdict]:
    """A verdict for each model of a manifest: ``{name: parameters}``."""
    verdicts = []
    for model in models:
        [(name, given)] = model.items()
        rule = _RULES.get(name)
        if rule is None:
            verdicts.append(Verdict(model=name, state=State.NOT_CHECKED, reason="No independent check of it exists."))
            continue
        try:
            worst, wanted, passed, together = rule(given, shown)
        except _Missing as missing:
            verdicts.append(Verdict(model=name, state=State.NOT_CHECKED, reason=str(missing)))
            continue
        failing = sum(own for own, good in zip(shown.own, passed, strict=True) if not good)
        holds = all(passed) and together
        reason = "" if holds else f"{passed.count(False)} of {len(passed)} classes fail."
        if not holds and all(passed):
            failing, reason = sum(shown.own), "Every class passes, but not all of them together."
        verdicts.append(
            Verdict(
                model=name,
                state=State.HOLDS if holds else State.FAILS,
                worst=int(worst) if worst is not None and float(worst).is_integer() else worst,
                wanted=wanted,
                failing=failing,
                reason=reason,
            )
        )
    return verdicts


class _Missing(Exception):
    """Something that a check needs was not given."""


def _k_anonymity(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    return min(shown.sizes), given["k"], [size >= given["k"] for size in shown.sizes], True


def _maximum_risk(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    limit = rational(given["limit"])
    return 1 / min(shown.sizes), given["limit"], [Fraction(1, size) <= limit for size in shown.sizes], True


def _average_risk(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    mean = Fraction(len(shown.own), sum(shown.own))
    return float(mean), given["limit"], [True] * len(shown.own), mean <= rational(given["limit"])


def _k_map(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    people = _people(shown)
    return min(people), given["k"], [count >= given["k"] for count in people], True


def _delta_presence(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    shares = [size / max(count, size) for size, count in zip(shown.sizes, _people(shown), strict=True)]
    good = [given["low"] - 1e-12 <= share <= given["high"] + 1e-12 for share in shares]
    return max(shares), given["high"], good, not (shown.absent and given["low"] > 0)


def _population_uniqueness(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    if shown.sizes != shown.own:
        raise _Missing("Empty cells match every value here, so classes overlap and their sizes are no sample of sizes.")
    share = unique_share(shown.own, given["fraction"], given.get("estimator", "dankar"))
    # two optimizers agree on the peak of a likelihood to about eight digits
    return share, given["limit"], [True] * len(shown.own), share <= given["limit"] + 1e-7


def _people(shown: ReleaseCounts) -> tuple[int, ...]:
    if shown.people is None:
        raise _Missing("It needs the population table; name it with --population.")
    return shown.people


def _column(given: Mapping[str, Any], shown: ReleaseCounts) -> str:
    name = given.get("column")
    if name is None and len(shown.inside) == 1:
        return next(iter(shown.inside))
    if name is None or name not in shown.inside:
        raise _Missing("Its sensitive column is not in the release.")
    return str(name)


def _l_diversity(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    column, kind, healthy = _column(given, shown), given.get("kind", "distinct"), set(given.get("healthy", ()))
    good: list[bool] = []
    values: list[float] = []
    for counts in shown.inside[column]:
        if healthy and all(value in healthy for value in counts):
            good.append(True)
            continue
        total = sum(counts.values())
        if kind == "distinct":
            values.append(len(counts))
            good.append(len(counts) >= given["l"])
        elif kind == "entropy":
            entropy = -sum(n / total * math.log(n / total) for n in counts.values())
            values.append(math.exp(entropy))
            good.append(math.exp(entropy) >= given["l"] - 1e-9 * max(1.0, given["l"]))
        else:
            ratio = _recursive(counts, healthy, int(given["l"]))
            values.append(ratio)
            good.append(ratio < given["c"])
    worst = (max(values) if kind == "recursive" else min(values)) if values else None
    return worst, given["c"] if kind == "recursive" else given["l"], good, True


def _recursive(counts: Counts, healthy: set[str], l: int) -> float:  # noqa: E741
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    place = next(i for i, (value, _) in enumerate(ranked) if value not in healthy)
    frequencies = [n for _, n in ranked]
    first = frequencies[place]
    rest = sum(frequencies[l - 1 :]) if place < l - 1 or l == 1 else sum(frequencies[l - 2 :]) - first
    return first / rest if rest else math.inf


def _p_sensitive(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    columns = [_column(given, shown)] if given.get("column") else list(shown.inside)
    if not columns:
        raise _Missing("It needs a sensitive column.")
    distinct = [min(len(shown.inside[name][i]) for name in columns) for i in range(len(shown.sizes))]
    least = max(given["k"], given["p"])
    good = [n >= given["p"] and size >= least for n, size in zip(distinct, shown.sizes, strict=True)]
    return min(distinct), given["p"], good, True


def _alpha_k(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    healthy = set(given.get("healthy", ()))
    shares = [
        max((n for value, n in counts.items() if value not in healthy), default=0) / size
        for counts, size in zip(shown.inside[_column(given, shown)], shown.sizes, strict=True)
    ]
    good = [
        share <= given["alpha"] + 1e-9 and size >= given["k"] for share, size in zip(shares, shown.sizes, strict=True)
    ]
    return max(shares), given["alpha"], good, True


def _shares(counts: Counts) -> dict[str | None, float]:
    total = sum(counts.values())
    return {value: n / total for value, n in counts.items()}


def _delta_disclosure(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    column = _column(given, shown)
    whole = _shares(shown.whole[column])
    values = []
    for counts in shown.inside[column]:
        here = _shares(counts)
        values.append(max(abs(math.log2(here[v] / p)) if v in here else math.inf for v, p in whole.items()))
    return max(values), given["delta"], [value < given["delta"] for value in values], True


def _beta_likeness(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    column = _column(given, shown)
    whole = _shares(shown.whole[column])
    enhanced = given.get("kind", "enhanced") == "enhanced"
    gains, good = [], []
    for counts in shown.inside[column]:
        here = _shares(counts)
        each = {value: (here.get(value, 0.0) - p) / p for value, p in whole.items()}
        gains.append(max(0.0, *each.values()))
        limits = {v: min(given["beta"], -math.log(p)) if enhanced else given["beta"] for v, p in whole.items()}
        good.append(all(each[value] <= limits[value] + 1e-9 for value in whole))
    return max(gains), given["beta"], good, True


def _t_closeness(given: Mapping[str, Any], shown: ReleaseCounts) -> Judged:
    column = _column(given, shown)
    whole, reference = shown.whole[column], given.get("reference", "table")
    if reference == "table":
        target = _shares(whole)
    elif reference == "uniform":
        target = dict.fromkeys(whole, 1 / len(whole))
    else:
        target = {value: share / sum(reference.values()) for value, share in reference.items() if share}
    match given.get("distance", "equal"):
        case "equal":
            far = [_equal(_shares(counts), target) for counts in shown.inside[column]]
        case "ordered":
            order = [v for v in shown.order[column] if v in target or v in whole]
            far = [_ordered(_shares(counts), target, order) for counts in shown.inside[column]]
        case _:
            if column not in shown.paths:
                raise _Missing("The taxonomy of its column is not known.")
            far = [_hierarchical(_shares(counts), target, shown.paths[column]) for counts in shown.inside[column]]
    return max(far), given["t"], [distance <= given["t"] + 1e-9 for distance in far], True


Shares = Mapping[str | None, float]


def _equal(here: Shares, target: Shares) -> float:
    return sum(abs(here.get(value, 0.0) - target.get(value, 0.0)) for value in {*here, *target}) / 2


def _ordered(here: Shares, target: Shares, order: Sequence[str | None]) -> float:
    carried = moved = 0.0
    for value in order[:-1]:
        carried += here.get(value, 0.0) - target.get(value, 0.0)
        moved += abs(carried)
    return moved / max(len(order) - 1, 1)


def _hierarchical(here: Shares, target: Shares, paths: Mapping[str | None, Sequence[str | None]]) -> float:
    """Earth moved inside each group of a level, bottom up; a path is a value followed by its labels up to the root."""
    height = max(len(next(iter(paths.values()))) - 1, 1)
    cost = 0.0
    surplus = {path: here.get(value, 0.0) - target.get(value, 0.0) for value, path in paths.items()}
    nodes: dict[tuple[str | None, ...], float] = {tuple(path): extra for path, extra in surplus.items()}
    for level in range(1, height + 1):
        up: Counter[tuple[str | None, ...]] = Counter()
        down: Counter[tuple[str | None, ...]] = Counter()
        for path, extra in nodes.items():
            (up if extra > 0 else down)[path[1:]] += abs(extra)  # type: ignore[assignment]
        for parent in {*up, *down}:
            cost += min(up[parent], down[parent]) * level / height
        nodes = {parent: up[parent] - down[parent] for parent in {*up, *down}}
    return cost + sum(max(extra, 0.0) for extra in nodes.values())


_RULES: dict[str, Callable[[Mapping[str, Any], ReleaseCounts], Judged]] = {
    "k-anonymity": _k_anonymity,
    "k-map": _k_map,
    "l-diversity": _l_diversity,
    "t-closeness": _t_closeness,
    "delta-disclosure": _delta_disclosure,
    "beta-likeness": _beta_likeness,
    "delta-presence": _delta_presence,
    "alpha-k": _alpha_k,
    "p-sensitive": _p_sensitive,
    "average-risk": _average_risk,
    "maximum-risk": _maximum_risk,
    "population-uniqueness": _population_uniqueness,
}
