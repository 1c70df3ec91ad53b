"""Record swapping."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from tacit.errors import BadParameter
from tacit.protect.methods._masking import ORDERED, Masking, Rows, fitting, refuse_not_finite
from tacit.protect.step import Context
from tacit.release import Change
from tacit.schema import Dataset, Kind

__all__ = ["Swap"]

Index = npt.NDArray[np.int64]


class Swap(Masking):
    """Exchanges chosen columns between pairs of records (or whole households), the riskiest first if asked.

    The chosen columns move together, so that dependencies among them and among the others stay; what is broken is
    the tie between the two sets. Partners agree in ``strata``, so every table of the swapped columns by strata stays
    exact, and ``near`` picks partners that are alike in further numbers. Preserves all marginals and the joint
    distributions inside either set. Does not protect records that were not swapped, nor what the columns that stay
    tell by themselves; and an intruder cannot tell which records were swapped, only how many.

    A record that finds no partner in its stratum stays; the owner is told how many.

    >>> import polars as pl
    >>> from tacit.data.table import Table
    >>> from tacit.rng import Rng
    >>> from tacit.schema import Column, Schema
    >>> people = Dataset.of(Table(frame=pl.DataFrame({"town": list("aabbccdd"), "pay": range(8)})),
    ...                     Schema(columns={"town": Column(role="quasi"), "pay": Column(role="sensitive")}))
    >>> masked = Swap(rate=1.0).apply(people, Context(rng=Rng(1))).table.frame
    >>> sorted(masked["town"]) == sorted("aabbccdd"), masked["pay"].to_list() == list(range(8))
    (True, True)
    """

    kinds = frozenset(Kind)
    main = "rate"
    exempt = {"missing stays missing": "a gap moves with the columns that are exchanged"}
    examples = ({"rate": 0.2}, {"rate": 0.1, "target": "risky"})
    reference = (
        "Dalenius, Reiss: Data-swapping: a technique for disclosure control (1982), doi:10.1016/0378-3758(82)90058-1; "
        "Shlomo, Tudor, Groom: Data swapping for protecting census tables (2010), doi:10.1007/978-3-642-15838-4_4"
    )

    rate: Annotated[float, Field(gt=0, le=1)]
    """Share of records that are swapped (a fraction: 0.1 is 10 %); half of them are chosen, half are their partners."""
    columns: tuple[str, ...] | None = None
    """Columns that are exchanged. Left out: every quasi-identifier that is not a stratum."""
    strata: tuple[str, ...] = ()
    """Columns in which partners must agree."""
    near: tuple[str, ...] = ()
    """Number columns in which partners should be alike: both halves are sorted by them before they are paired."""
    target: Literal["random", "risky"] = "random"
    """Which records are chosen: any, or those whose combination of ``keys`` is rarest."""
    keys: tuple[str, ...] | None = None
    """Columns whose rare combinations make a record risky. Left out: all quasi-identifiers."""
    household: str | None = None
    """Column that groups rows into households; whole households of the same size are exchanged, member by member in
    the order of the file, and a household is as risky as its riskiest member."""

    def apply(self, data: Dataset, context: Context) -> Change:
        names = self.columns
        if names is None:
            names = tuple(n for n in data.quasi if n not in self.strata and n != self.household)
        names = fitting(data, names, self.kinds, self.part_name(), self.strata)
        order, units = self._units(data, context.rng.child("units").generator)
        donor, partner, alone = _pairs(units, self.rate)
        here, there = _members(order, units, donor), _members(order, units, partner)
        source = np.arange(data.rows, dtype=np.uint32)
        source[here], source[there] = there, here
        frame = data.table.frame
        masked = [frame.get_column(name).gather(source) for name in names]
        return Change(
            table=data.table.with_frame(frame.with_columns(masked)),
            public=self.public_columns(names),
            private={"records_swapped": len(here) * 2, "chosen_without_partner": alone},
        )

    def _units(self, data: Dataset, random: np.random.Generator) -> tuple[Rows, pl.DataFrame]:
        """Rows ordered by unit (a record or a household), and per unit where its rows start, how many, what it is."""
        data.table.require((*self.strata, *self.near, *(self.keys or ())))
        frame = data.table.frame
        for name in self.near:
            if data.kind(name) not in ORDERED:
                raise BadParameter(f"swap: `near` column `{name}` is {data.kind(name)}, not a number or date.")
            refuse_not_finite(frame.get_column(name))
        keys = self.keys if self.keys is not None else data.quasi
        if self.target == "risky" and not keys:
            raise BadParameter("swap: there is no quasi-identifier to tell risky records by.", fix="Give `keys`.")
        risk = pl.len().over(keys) if self.target == "risky" else pl.lit(0, dtype=pl.UInt32)
        rows = frame.select(
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("row"),
            *(pl.col(name).alias(f"stratum {number}") for number, name in enumerate(self.strata)),
            *(pl.col(name).to_physical().rank("average").alias(f"near {n}") for n, name in enumerate(self.near)),
            risk.alias("class"),
        )
        strata = [f"stratum {number}" for number in range(len(self.strata))]
        near = pl.sum_horizontal([f"near {n}" for n in range(len(self.near))]) if self.near else pl.lit(0.0)
        rows = rows.with_columns(near=near)
        if self.household is None:
            units = rows.with_columns(first=pl.col("row"), size=pl.lit(1, dtype=pl.UInt32))
            order = np.arange(data.rows, dtype=np.uint32)
        else:
            data.table.require([self.household])
            home = frame.get_column(self.household)
            if home.null_count():
                raise BadParameter(f"swap: household column `{self.household}` has {home.null_count()} gaps.")
            grouped = rows.with_columns(home=home).group_by("home", maintain_order=True)
            units = grouped.agg(
                pl.col("row"), pl.col("class").min(), pl.col("near").mean(), pl.len().alias("size"),
                *(pl.col(name).first() for name in strata),
            )  # fmt: skip
            order = units["row"].explode().to_numpy().astype(np.uint32)
            units = units.with_columns(first=pl.col("size").cum_sum() - pl.col("size"))
        units = units.select(
            "first", "size", "near", "class",
            stratum=pl.col("first").first().over([*strata, "size"]) if strata or self.household else pl.lit(0),
        )  # fmt: skip
        return order, units.with_columns(chance=random.random(units.height)).with_row_index("unit")


def _pairs(units: pl.DataFrame, rate: float) -> tuple[Index, Index, int]:
    """Units that swap, as two lists of partners, and how many were chosen in vain.

    The first half of the share is chosen by risk (then by chance), over the whole table; partners come by chance from
    the others of the stratum. When a stratum has more chosen ones than others, those left over pair up.
    """
    wanted = max(1, round(rate * units.height / 2))
    # Which unit gets the chance number is random, so the order by chance is a random order.
    chosen = units.sort("class", "chance").with_row_index("place").with_columns(donor=pl.col("place") < wanted)
    donors = chosen.filter("donor").with_columns(index=pl.int_range(pl.len()).over("stratum"))
    others = (
        chosen.filter(~pl.col("donor"))
        .sort("chance")
        .with_columns(index=pl.int_range(pl.len()).over("stratum"), held=pl.len().over("stratum"))
    )
    held = others.group_by("stratum").agg(pl.len().alias("held"))
    asked = donors.group_by("stratum").agg(pl.len().alias("asked"))
    donors = donors.join(held, on="stratum", how="left").with_columns(pl.col("held").fill_null(0))
    others = others.join(asked, on="stratum", how="inner").filter(pl.col("index") < pl.col("asked"))
    met, left = donors.filter(pl.col("index") < pl.col("held")), donors.filter(pl.col("index") >= pl.col("held"))
    first = met.sort("stratum", "near", "chance")["unit"].to_numpy()
    second = others.sort("stratum", "near", "chance")["unit"].to_numpy()
    left = left.sort("stratum", "near", "chance").with_columns(index=pl.int_range(pl.len()).over("stratum"))
    left = left.with_columns(held=pl.len().over("stratum"))
    paired = left.filter(pl.col("index") < pl.col("held") // 2 * 2)
    even = paired.filter(pl.col("index") % 2 == 0)["unit"].to_numpy()
    odd = paired.filter(pl.col("index") % 2 == 1)["unit"].to_numpy()
    return np.append(first, even), np.append(second, odd), left.height - paired.height


def _members(order: Rows, units: pl.DataFrame, chosen: Index) -> Rows:
    """The rows of the chosen units, unit by unit."""
    first, size = units["first"].to_numpy()[chosen], units["size"].to_numpy()[chosen].astype(np.int64)
    starts = np.cumsum(size) - size
    within = np.arange(int(size.sum())) - np.repeat(starts, size)
    rows: Rows = order[np.repeat(first.astype(np.int64), size) + within]
    return rows
