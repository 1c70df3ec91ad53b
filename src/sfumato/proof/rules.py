"""The rules: what each node of a plan does to the rows of one unit, and what each mechanism loses by that.

Every function is one theorem of ``docs/proof.md``, named by its number. What has no rule is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial
from typing import Any
from unicodedata import normalize

from sfumato.proof.brackets import exp, normal, sqrt
from sfumato.proof.losses import Concentrated, Law, Normal, NotProved, Pure, number


@dataclass(frozen=True)
class Fields:
    """A part of a certificate, with the path that names it in a refusal."""

    stated: Mapping[str, Any]
    node: str

    @classmethod
    def read(cls, stated: Any, node: str) -> Fields:
        """NotProved unless it is a JSON object."""
        if not isinstance(stated, Mapping):
            raise NotProved(node, "is missing")
        return cls(stated, node)

    def only(self, *known: str) -> Fields:
        """Itself; NotProved where it has a field that no rule reads, which a reader would believe."""
        for name in self.stated:
            if name not in known:
                raise NotProved(f"{self.node}.{name}", "is no field of a certificate")
        return self

    def value(self, name: str) -> Any:
        """A field of any kind."""
        if name not in self.stated:
            raise NotProved(self.node, f"has no `{name}`")
        return self.stated[name]

    def number(self, name: str) -> Fraction:
        """An exact number."""
        return number(self.value(name), f"{self.node}.{name}")

    def whole(self, name: str, least: int = 1) -> int:
        """A whole number of at least ``least``."""
        found = self.number(name)
        if found.denominator != 1 or found < least:
            raise NotProved(f"{self.node}.{name}", f"is not a whole number of at least {least}")
        return int(found)

    def positive(self, name: str) -> Fraction:
        """A number above 0."""
        found = self.number(name)
        if found <= 0:
            raise NotProved(f"{self.node}.{name}", "is not above 0")
        return found

    def flag(self, name: str) -> bool:
        """True or false."""
        found = self.value(name)
        if not isinstance(found, bool):
            raise NotProved(f"{self.node}.{name}", "is neither true nor false")
        return found

    def each(self, name: str) -> list[Fields]:
        """The parts of a list."""
        found = self.value(name)
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise NotProved(f"{self.node}.{name}", "is not a list")
        return [Fields.read(item, f"{self.node}.{name}[{place}]") for place, item in enumerate(found)]


# --- R: stability of the rows -------------------------------------------------------------------------------------
# A node's bound is None where each row belongs to one unit and is computed from that unit's rows alone (removing a unit
# removes its rows), or the number of rows that one original row can become where each row is a unit.

Stability = Callable[[Fields, list[int | None]], int | None]


def _scan(node: Fields, below: list[int | None]) -> int | None:
    """R1: a row of a private table belongs to its unit, or is one."""
    if below:
        raise NotProved(node.node, "a table has no rows below it")
    unit = node.value("unit_column")
    if unit is not None and not isinstance(unit, str):
        raise NotProved(node.node, "the unit column has no name")
    return 1 if unit is None else None


def _row_by_row(node: Fields, below: list[int | None]) -> int | None:
    """R2: a filter, a projection and a join on a unique public key make at most one row of a row."""
    [bound] = _exactly(node, below, 1)
    return bound


def _within_units(children: int) -> Stability:
    """R3: rows computed from the rows of one unit belong to that unit."""

    def rule(node: Fields, below: list[int | None]) -> int | None:
        if any(bound is not None for bound in _exactly(node, below, children)):
            raise NotProved(node.node, "combines rows of different units, because each row is a unit")
        return None

    return rule


def _union(node: Fields, below: list[int | None]) -> int | None:
    """R4: a row of a UNION ALL is a row of one side."""
    one, two = _exactly(node, below, 2)
    if (one is None) != (two is None):
        raise NotProved(node.node, "the sides have different privacy units")
    return None if one is None or two is None else one + two


def _exactly(node: Fields, below: list[int | None], count: int) -> list[int | None]:
    if len(below) != count:
        raise NotProved(node.node, f"stands over {len(below)} nodes instead of {count}")
    return below


NODES: dict[str, tuple[str, Stability]] = {
    "scan": ("R1", _scan),
    "filter": ("R2", _row_by_row),
    "project": ("R2", _row_by_row),
    "public-join": ("R2", _row_by_row),
    "group-by-unit": ("R3", _within_units(1)),
    "window-by-unit": ("R3", _within_units(1)),
    "first-rows": ("R3", _within_units(1)),
    "unit-join": ("R3", _within_units(2)),
    "semi-join": ("R3", _within_units(2)),
    "union-all": ("R4", _union),
}


def copies_of(node: Fields) -> int | None:
    """The bound of a node and of all below it, each compared with what the certificate states."""
    kind = node.value("node")
    if kind not in NODES:
        raise NotProved(node.node, f"there is no rule for the node `{kind}`")
    name, rule = NODES[kind]
    if node.value("rule") != name:
        raise NotProved(node.node, f"a node `{kind}` is bounded by rule {name}")
    bound = rule(node, [copies_of(child) for child in node.each("over")])
    if node.value("copies") != bound or isinstance(node.value("copies"), bool):
        raise NotProved(node.node, f"the bound is {'one unit' if bound is None else bound}")
    return bound


def reads_part(node: Fields, part: Fields) -> bool:
    """P1: every row comes from a table through a filter that demands the part's value in the column that splits it."""
    kind, children = node.value("node"), node.each("over")
    if kind == "filter" and "demands" in node.stated and _row_by_row_down(children):
        column, *split = str(part.value("partition")).rsplit(" ", 2)
        demands = Fields.read(node.value("demands"), f"{node.node}.demands")
        if column in demands.stated:
            demand = Fields.read(demands.value(column), f"{demands.node}.{column}")
            value = _declared_value(demand)
            if split[:1] == [demand.value("kind")] and value == part.value("name"):
                return True
    return bool(children) and all(reads_part(child, part) for child in children)


def _declared_value(demand: Fields) -> str:
    """The demanded value: one of the declared ones, each in the one form of its kind, so that equal values are equal
    texts, and no two of which a comparison without case and blanks takes for one."""
    kind, value, values = demand.value("kind"), demand.value("value"), demand.value("values")
    if kind not in ("integer", "category") or not isinstance(values, list):
        raise NotProved(demand.node, "is no value of an integer or a category among declared values")
    for text in (value, *values):
        if not isinstance(text, str) or text != text.strip() or (kind == "integer" and not _is_whole(text)):
            raise NotProved(demand.node, f"is not in the form of the kind {kind}")
    if len({normalize("NFKC", normalize("NFKC", text).casefold()) for text in values}) < len(values):
        raise NotProved(demand.node, "two declared values could be one")
    if value not in values:
        raise NotProved(demand.node, "is not a declared value")
    return str(value)


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number of 64 bits in its shortest form."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0") and text != "-0"
    return plain and len(digits) <= 19 and -(2**63) <= int(text) < 2**63


def _row_by_row_down(nodes: list[Fields]) -> bool:
    """Whether a row of a node is one row of one table, so that a value in it is that of the table's row."""
    return all(
        NODES[child.value("node")][0] in ("R1", "R2") and _row_by_row_down(child.each("over")) for child in nodes
    )


# --- S: what one unit moves within one group ----------------------------------------------------------------------


def _count(what: Fields, rows: int) -> Fraction:
    """S1: of a unit, ``rows`` rows count, or the unit itself once."""
    return Fraction(1 if what.flag("once") else rows)


def _rows(what: Fields, rows: int) -> Fraction:
    """S2: each row counts 1 in one place: different values, cells, listed values."""
    return Fraction(rows)


def _sum(what: Fields, rows: int) -> Fraction:
    """S3: a row adds a whole number of steps between ``low`` and ``high``."""
    low, high = what.number("low"), what.number("high")
    if low > high:
        raise NotProved(what.node, "low is above high")
    return rows * max(abs(low), abs(high))


def _shares(what: Fields, rows: int) -> Fraction:
    """S4: the shares of a row are not negative and add up to ``high`` steps."""
    if what.number("low") != 0 or what.whole("degree") > 2:
        raise NotProved(what.node, "shares start at 0 and have degree 1 or 2")
    return rows * what.positive("high")


def _once(what: Fields, rows: int) -> Fraction:
    """S5: a unit counts once, in one number."""
    return Fraction(1)


REACHES: dict[str, tuple[str, Callable[[Fields, int], Fraction]]] = {
    "count": ("S1", _count),
    "distinct-count": ("S2", _rows),
    "bin-counts": ("S2", _rows),
    "value-counts": ("S2", _rows),
    "sum": ("S3", _sum),
    "bernstein-sum": ("S4", _shares),
    "fitting-units": ("S5", _once),
    "keys": ("S5", _once),
}


def reach_of(what: Fields, rows: int) -> Fraction:
    """What one unit moves within one group, in whole steps."""
    kind = what.value("kind")
    if kind not in REACHES:
        raise NotProved(what.node, f"there is no rule for the aggregate `{kind}`")
    name, rule = REACHES[kind]
    if what.value("rule") != name:
        raise NotProved(what.node, f"an aggregate `{kind}` is bounded by rule {name}")
    return rule(what, rows)


def most_sums(sums: Fields) -> int:
    """B6: in how many of the measured sums a cell is, at most."""
    match sums.value("kind"):
        case "cells":
            return 1
        case "tree":  # on each level a cell is in one range
            cells, branches, width, levels = sums.whole("cells"), sums.whole("branches", 2), 1, 1
            while width * branches < cells:
                width, levels = width * branches, levels + 1
            return levels
        case "questions":
            masks, most = sums.value("masks"), 0
            if not isinstance(masks, list) or not masks:
                raise NotProved(f"{sums.node}.masks", "is not a list of sums")
            columns = [int(mask, 16) for mask in masks]
            for place in range(max(columns).bit_length()):
                most = max(most, sum(mask >> place & 1 for mask in columns))
            return most
        case kind:
            raise NotProved(sums.node, f"there is no rule for sums `{kind}`")


# --- M: what a mechanism loses ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UnitChange:
    """What one unit moves: ``change`` in each of ``groups`` groups, summed over the ``parts`` numbers of a group."""

    groups: int
    change: Fraction
    parts: int
    keys: int = 0
    """Most keys of one unit; 0: as many as groups."""
    alone: Fraction | None = None
    """The most that a key has which only this unit has; None: ``change``."""


def _drawn(noise: Fields, least: Fraction) -> Fraction:
    """The parameter of the sampler in grid steps; it may be rounded up."""
    drawn = noise.positive("drawn")
    if drawn < least:
        raise NotProved(f"{noise.node}.drawn", "the noise that is drawn is smaller than the noise that is stated")
    return drawn


def _laplace(noise: Fields, by: UnitChange) -> Law:
    """M1: a shift by c multiplies probabilities by at most exp(c / scale); independent noises multiply."""
    scale = noise.positive("scale")
    _drawn(noise, scale / noise.positive("grid"))
    return Pure(epsilon=by.groups * by.change / scale, draws=1)


def _laplace_tail(parts: int, distance: Fraction) -> Fraction:
    """P(G - H > s) for Gamma(parts) variables: E[exp(-(s + H)) · sum of (s + H)^j / j!, j < parts]."""
    total = Fraction(0)
    for j in range(parts):
        for k in range(j + 1):
            i = j - k
            moment = Fraction(factorial(parts + i - 1), factorial(parts - 1) * 2 ** (parts + i))
            total += Fraction(comb(j, k), factorial(j)) * distance**k * moment
    return total * exp(-distance)[1]


def _thresholded_laplace(noise: Fields, by: UnitChange) -> Law:
    """M2: as M1 for keys that others have; a key of one unit alone passes the limit with a small probability."""
    scale, grid = noise.positive("scale"), noise.positive("grid")
    alone = by.change if by.alone is None else by.alone
    drawn, steps = _drawn(noise, scale / grid), ((noise.positive("limit") - alone) / grid).__ceil__()
    _same_parts(noise, by)
    if by.parts == 1 and steps > 0:
        chance = exp(-steps / drawn)[1] / (1 + exp(-1 / drawn)[0])
    else:  # each noise on the grid is below a real one plus one step
        distance = (steps - by.parts) / drawn
        chance = Fraction(1) if distance < 0 else _laplace_tail(by.parts, distance)
    chance = min(chance, Fraction(1))
    return Pure(epsilon=by.change / scale, draws=by.groups, chance=(by.keys or by.groups) * chance)


def _gaussian(noise: Fields, by: UnitChange) -> Law:
    """M3: discrete normal noise is zero-concentrated."""
    variance = noise.positive("variance")
    _drawn(noise, variance / noise.positive("grid") ** 2)
    return Concentrated(rho=by.groups * by.change**2 / variance / 2)


def _rounded_gaussian(noise: Fields, by: UnitChange) -> Normal:
    """M4: rounding normal noise is post-processing."""
    variance = noise.positive("variance")
    _drawn(noise, variance / noise.positive("grid") ** 2)
    return Normal(squared_mu=by.groups * by.change**2 / variance)


def _thresholded_gaussian(noise: Fields, by: UnitChange) -> Law:
    """M5: as M4 for keys that others have; a key of one unit alone passes the limit with a small probability."""
    grid, law = noise.positive("grid"), _rounded_gaussian(noise, by)
    _same_parts(noise, by)
    steps = ((noise.positive("limit") - by.change) / grid).__ceil__()
    distance = steps * grid - by.parts * grid / 2  # the noise of each number is rounded by half a step at most
    chance = Fraction(1)
    if distance > 0:
        chance = normal(-distance / sqrt(noise.positive("variance") * by.parts)[1])[1]
    return Normal(squared_mu=law.squared_mu, chance=by.groups * chance)


def _same_parts(noise: Fields, by: UnitChange) -> None:
    if noise.whole("parts") != by.parts:
        raise NotProved(f"{noise.node}.parts", "is not the number of values in a group")


def _selection(noise: Fields, by: UnitChange) -> Law:
    """M6: keys are reported with the largest probabilities that (epsilon, delta) allows."""
    if by.change != 1:
        raise NotProved(noise.node, "a unit counts once for each key")
    delta = noise.positive("delta")
    return Pure(epsilon=noise.positive("epsilon"), draws=by.groups, chance=by.groups * delta)


def _exponential(noise: Fields, by: UnitChange) -> Law:
    """M7: a unit moves log-weights by rate · change, in one direction if utilities are monotone."""
    sides = 1 if noise.flag("monotone") else 2
    return Pure(epsilon=sides * noise.positive("rate") * by.change, draws=by.groups, ranged=True)


def _quantile(noise: Fields, by: UnitChange) -> Law:
    """M8: a row moves the utility of a candidate by at most max(rank, 1 - rank), up or down."""
    rank = noise.number("rank")
    if not 0 <= rank <= 1:
        raise NotProved(f"{noise.node}.rank", "is not a share")
    moved = max(rank, 1 - rank) * by.change
    return Pure(epsilon=2 * noise.positive("rate") * moved, draws=by.groups, ranged=True)


def _quantiles(noise: Fields, by: UnitChange) -> Law:
    """M9: on each level of a bisection a row is in one part; there are floor(log2(n)) + 1 levels."""
    levels = 0
    while 1 << levels <= by.parts:
        levels += 1
    ranks = noise.value("ranks")
    if not isinstance(ranks, Sequence) or len(ranks) != by.parts:
        raise NotProved(f"{noise.node}.ranks", "are not as many as the quantiles")
    return Pure(epsilon=noise.positive("price") * by.change, draws=by.groups * levels, ranged=True)


def _top_keys(noise: Fields, by: UnitChange) -> Law:
    """M10: selections of keys one after the other; a key of one unit alone rarely beats the limit."""
    rate, count = noise.positive("rate"), noise.whole("count")
    if noise.value("limit") is None:
        return Pure(epsilon=rate * by.change, draws=count, ranged=True)
    if noise.flag("smallest"):
        raise NotProved(noise.node, "private keys with small counts are not selected")
    beyond = noise.positive("limit") - by.change
    if beyond <= 0 or noise.whole("most") < by.groups:
        raise NotProved(noise.node, "the limit is not above what one unit adds, or a unit may have more keys")
    chance = min(Fraction(1), noise.whole("most") * exp(-rate * beyond)[1])
    return Pure(epsilon=count * rate * by.change, draws=1, chance=count * chance)


MECHANISMS: dict[str, tuple[str, Callable[[Fields, UnitChange], Law], frozenset[str]]] = {
    "laplace": ("M1", _laplace, frozenset({"count", "sum", "bernstein-sum", "distinct-count", "fitting-units"})),
    "thresholded-laplace": ("M2", _thresholded_laplace, frozenset({"count", "bernstein-sum"})),
    "gaussian": ("M3", _gaussian, frozenset({"count", "sum", "bernstein-sum"})),
    "rounded-gaussian": ("M4", _rounded_gaussian, frozenset({"count", "sum", "bernstein-sum"})),
    "thresholded-gaussian": ("M5", _thresholded_gaussian, frozenset({"count", "bernstein-sum"})),
    "partition-selection": ("M6", _selection, frozenset({"keys"})),
    "exponential": ("M7", _exponential, frozenset({"value-counts"})),
    "quantile": ("M8", _quantile, frozenset({"bin-counts"})),
    "quantiles": ("M9", _quantiles, frozenset({"bin-counts"})),
    "top-keys": ("M10", _top_keys, frozenset({"count"})),
}
"""The rule of each mechanism and the aggregates that it may measure."""


# --- S, of runs as a whole: what one unit with ``rows`` rows moves in what a draw measures ----------------------------


def _cells(what: Fields, rows: int) -> UnitChange:
    """S6: each row adds 1 to at most one of the counts of disjoint cells."""
    return UnitChange(1, Fraction(rows), 1)


def _vectors(what: Fields, rows: int) -> UnitChange:
    """S7: each row adds a vector of a squared L2 norm of at most ``norm``."""
    return UnitChange(what.whole("norm"), Fraction(rows), 1)


def _scores(what: Fields, rows: int) -> UnitChange:
    """S8: a row moves each score by at most ``weight``: the L1 distance of a marginal from a fixed one, times it."""
    return UnitChange(1, what.positive("weight") * rows, 1)


def _values(what: Fields, rows: int) -> UnitChange:
    """S9: the rows of a unit have at most as many values, and add as many to all of their counts together."""
    return UnitChange(1, Fraction(rows), 1, keys=rows, alone=Fraction(rows))


def _items(what: Fields, rows: int) -> UnitChange:
    """S10: a unit adds 1 to at most ``most`` counts; a count that it alone lifts to the first limit is that limit."""
    return UnitChange(what.whole("most"), Fraction(1), 1, alone=Fraction(what.whole("alone")))


_NORMAL = frozenset({"gaussian", "rounded-gaussian"})
RUNS: dict[str, tuple[str, Callable[[Fields, int], UnitChange], frozenset[str]]] = {
    "cells": ("S6", _cells, _NORMAL | {"laplace"}),
    "vectors": ("S7", _vectors, _NORMAL),
    "scores": ("S8", _scores, frozenset({"exponential"})),
    "values": ("S9", _values, frozenset({"thresholded-laplace"})),
    "items": ("S10", _items, frozenset({"thresholded-laplace"})),
}
"""Of each kind of measurement of a run: its rule, and the mechanisms that may measure it."""


def moved_in(what: Fields, rows: int, mechanism: str) -> UnitChange:
    """What one unit moves in a measurement of a run, of which it has up to ``rows`` rows."""
    kind, of = what.value("kind"), what.value("of")
    if kind not in RUNS:
        raise NotProved(what.node, f"there is no rule for the measurement `{kind}`")
    name, rule, mechanisms = RUNS[kind]
    if what.value("rule") != name:
        raise NotProved(what.node, f"a measurement `{kind}` is bounded by rule {name}")
    if mechanism not in mechanisms:
        raise NotProved(what.node, f"a mechanism `{mechanism}` does not measure `{kind}`")
    if of not in ("rows", "units"):
        raise NotProved(f"{what.node}.of", "is neither rows nor units")
    return rule(what, rows if of == "rows" else 1)
