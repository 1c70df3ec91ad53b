"""Record swapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Array
from sfumato.dataset import Data, Kind
from sfumato.errors import BadParameter
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._masking import ORDERED, Masking, Rows, fitting, numbered, refuse_not_finite, split
from sfumato.release import Change


class Swap(Masking):
    """Swap chosen columns between pairs of records (or whole households), optionally the riskiest first.

    The chosen columns are swapped together, which preserves the joint distribution of the swapped columns and that of
    the others; the dependence between the two sets is weakened. Partners agree in ``strata``, so tables of the swapped
    columns by strata stay exact, and ``near`` selects partners with similar numbers. Preserves all marginals. Does not
    protect records that were not swapped, nor the unswapped columns. An attacker knows how many records were swapped,
    but not which.

    A record without a partner in its stratum is unchanged; the private report counts them.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"town": list("aabbccdd"), "pay": range(8)})),
    ...                     Schema(columns={"town": Column(role="quasi"), "pay": Column(role="sensitive")}))
    >>> masked = Swap(rate=1.0).apply(people, Context(rng=Rng(1))).table.frame
    >>> sorted(masked["town"]) == sorted("aabbccdd"), masked["pay"].to_list() == list(range(8))
    (True, True)
    """

    report_phrase = "values swapped between {rate:.0%} of the records"
    kinds = frozenset(Kind)
    simulable = True
    stronger = {"rate": "more"}
    main = "rate"
    exempt = {"missing stays missing": "a missing value moves with the swapped columns"}
    examples = ({"rate": 0.2}, {"rate": 0.1, "target": "risky"})
    reference = (
        "Dalenius, Reiss: Data-swapping: a technique for disclosure control (1982), doi:10.1016/0378-3758(82)90058-1; "
        "Shlomo, Tudor, Groom: Data swapping for protecting census tables (2010), doi:10.1007/978-3-642-15838-4_4"
    )

    rate: Annotated[float, Field(gt=0, le=1)]
    """Share of records to swap: 0.1 is 10 %. Half of them are selected, half are their partners."""
    columns: tuple[str, ...] | None = None
    """Columns to swap. Default: every quasi-identifier that is not a stratum."""
    strata: tuple[str, ...] = ()
    """Columns in which partners must agree."""
    near: tuple[str, ...] = ()
    """Numeric columns in which partners should be similar: both halves are sorted by them before pairing."""
    target: Literal["random", "risky"] = "random"
    """Which records are selected: random ones, or those with the rarest combinations of ``keys``."""
    keys: tuple[str, ...] | None = None
    """Columns whose rare combinations make a record risky. Default: all quasi-identifiers."""
    household: str | None = None
    """Column that groups rows into households; whole households of the same size are exchanged, member by member in
    the order of the file, and a household is as risky as its riskiest member."""

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        household = () if self.household is None else (self.household,)
        columns = (*(self.columns or ()), *data.quasi, *self.strata, *self.near, *(self.keys or ()), *household)
        data.table.require(columns)
        return ((self, tuple(dict.fromkeys(columns))),)

    def apply(self, data: Data, context: Context) -> Change:
        names = self.columns
        if names is None:
            names = tuple(n for n in data.quasi if n not in self.strata and n != self.household)
        names = fitting(data, names, self.kinds, self.part_name(), self.strata)
        units = self._units(data)
        count = data.rows if units.start is None else len(units.start)
        here, there, alone = _pairs(units, self.rate, context.rng.generator, count)
        mine, other = _members(units, here), _members(units, there)
        source = np.arange(data.rows, dtype=np.uint32)
        source[mine], source[other] = other, mine
        frame = data.table.frame
        masked = [frame.get_column(name).gather(source) for name in names]
        return Change(
            table=data.table.with_frame(frame.with_columns(masked)),
            public=self.public_columns(names),
            private={"records_swapped": len(mine) * 2, "chosen_without_partner": alone},
        )

    def _units(self, data: Data) -> _Units:
        data.table.require((*self.strata, *self.near, *(self.keys or ())))
        frame = data.table.frame
        for name in self.near:
            if data.kind(name) not in ORDERED:
                raise BadParameter(f"swap: `near` column `{name}` is {data.kind(name)}, not a number or date.")
            refuse_not_finite(frame.get_column(name))
        keys = self.keys if self.keys is not None else data.quasi
        if self.target == "risky" and not keys:
            raise BadParameter(
                "swap: risky records cannot be determined without quasi-identifiers.", fix="Give `keys`."
            )
        near = classes = None
        if self.near:
            ranks = pl.sum_horizontal(pl.col(self.near).to_physical().rank("average").fill_null(0.0))
            near = frame.select(ranks).to_series().to_numpy()
        if self.target == "risky":
            classes = frame.select(pl.len().over(keys)).to_series().to_numpy()
        stratum = _codes(frame, self.strata) if self.strata else None
        if self.household is None:
            return _Units(rows=None, start=None, size=None, stratum=stratum, classes=classes, near=near)
        data.table.require([self.household])
        gaps = frame.get_column(self.household).null_count()
        if gaps:
            raise BadParameter(f"swap: household column `{self.household}` has {gaps} missing values.")
        homes = split(frame, (self.household,))
        start = homes.offsets[:-1]
        size = np.diff(homes.offsets)
        # members are swapped one by one, so each must agree with its partner
        members = pl.DataFrame(
            {
                "home": np.repeat(np.arange(len(size)), size),
                "stratum": np.zeros(data.rows) if stratum is None else stratum[homes.order],
            }
        )
        joined = members.group_by("home", maintain_order=True).agg(pl.col("stratum").cast(pl.String).str.join(","))
        alike = joined.select("stratum", size=pl.Series(size))
        return _Units(
            rows=homes.order,
            start=start,
            size=size,
            stratum=_codes(alike, ("size", "stratum")),
            classes=None if classes is None else np.minimum.reduceat(classes[homes.order], start),
            near=None if near is None else np.add.reduceat(near[homes.order], start) / size,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Units:
    """Units of the swap: records, or households as runs of ``rows``. Other arrays have one entry per unit."""

    rows: Rows | None
    start: Array | None
    size: Array | None
    stratum: Array | None
    classes: Array | None
    """Number of records that share the keys; rare ones are selected first."""
    near: npt.NDArray[np.float64] | None


def _codes(frame: pl.DataFrame, names: tuple[str, ...]) -> Array:
    """A code per row, equal for rows with equal values: the index of the first such row."""
    rows, row = numbered(frame, names)
    return rows.select(pl.col(row).first().over(names)).to_series().to_numpy()


def _pairs(units: _Units, rate: float, random: np.random.Generator, count: int) -> tuple[Array, Array, int]:
    """Units that swap, as two lists of partners, and the number of selected units without a partner.

    Half of the share is selected by risk (then at random) over the whole table; partners are drawn at random from the
    others of the stratum. If a stratum has more selected units than others, the remaining ones are paired.
    """
    order = random.permutation(np.arange(count, dtype=np.uint32))
    wanted = max(1, round(rate * count / 2))
    if units.classes is not None:
        chosen = order[np.argsort(units.classes[order], kind="stable")[:wanted]]
        free = np.ones(count, dtype=bool)
        free[chosen] = False
        others = order[free[order]]
    else:
        chosen, others = order[:wanted], order[wanted:]
    met, partners, left = _within(units.stratum, chosen, others)
    met, partners, left = (_sorted(units, part) for part in (met, partners, left))
    even, odd = _neighbours(units.stratum, left)
    return np.append(met, even), np.append(partners, odd), len(left) - len(even) - len(odd)


def _within(stratum: Array | None, chosen: Rows, others: Rows) -> tuple[Rows, Rows, Rows]:
    """Chosen units that find a partner in their stratum, as many partners, and the chosen ones left over."""
    if stratum is None:
        least = min(len(chosen), len(others))
        return chosen[:least], others[:least], chosen[least:]
    chosen = chosen[np.argsort(stratum[chosen], kind="stable")]
    others = others[np.argsort(stratum[others], kind="stable")]
    size = int(stratum.max()) + 1
    n_chosen, n_others = (np.bincount(stratum[part], minlength=size) for part in (chosen, others))
    rank_chosen = np.arange(len(chosen)) - (np.cumsum(n_chosen) - n_chosen)[stratum[chosen]]
    rank_others = np.arange(len(others)) - (np.cumsum(n_others) - n_others)[stratum[others]]
    matched = rank_chosen < n_others[stratum[chosen]]
    return chosen[matched], others[rank_others < n_chosen[stratum[others]]], chosen[~matched]


def _sorted(units: _Units, part: Rows) -> Rows:
    """By stratum, then by nearness, so that partners stand at the same place of both lists."""
    if units.near is None:
        return part
    groups = np.zeros(len(part)) if units.stratum is None else units.stratum[part]
    return part[np.lexsort((units.near[part], groups))]


def _neighbours(stratum: Array | None, part: Rows) -> tuple[Rows, Rows]:
    """Pairs of units that follow each other and are of the same stratum."""
    even, odd = part[:-1:2], part[1::2]
    if stratum is None or not len(part):
        return even[: len(odd)], odd
    size = np.bincount(stratum[part])
    rank = np.arange(len(part)) - (np.cumsum(size) - size)[stratum[part]]
    usable = rank < (size // 2 * 2)[stratum[part]]
    return part[usable & (rank % 2 == 0)], part[usable & (rank % 2 == 1)]


def _members(units: _Units, chosen: Array) -> Rows:
    """The rows of the chosen units, unit by unit."""
    if units.rows is None or units.start is None or units.size is None:
        return chosen.astype(np.uint32)
    size = units.size[chosen]
    within = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    rows: Rows = units.rows[np.repeat(units.start[chosen], size) + within]
    return rows
