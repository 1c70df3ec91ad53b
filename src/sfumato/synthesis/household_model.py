"""Two-level private model: households with their size, and members given the columns of their household."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.errors import BadParameter
from sfumato.release.guarantee import Guarantee
from sfumato.synthesis.model import SynthesisModel

_ATTEMPTS = 60
"""Times that members or households that break a constraint are drawn again."""


@dataclass(frozen=True, kw_only=True)
class HouseholdModel:
    """A differentially private model of people in households. All its contents may be published.

    A household is drawn with its columns and its number of members, then each member given the household. Household
    columns are therefore equal for all members, and every household has as many rows as its size says.
    """

    households: SynthesisModel
    """One row per household: its columns, then its number of members."""
    members: SynthesisModel
    """One row per member: the columns of :attr:`households` in the same order and cells, then those of the member."""
    id: str
    """The released column that numbers the households."""
    id_type: pl.DataType
    size: str | None
    """The released column with the number of members, if any."""
    order: Sequence[str]
    """The released columns."""
    constraints: tuple[str, ...] = ()

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee for one household."""
        return self.members.guarantee

    def errors_by_level(self) -> dict[str, list[dict[str, object]]]:
        """The errors of both tables as a manifest publishes them."""
        shared = set(self.households.columns)
        below = [one for one in self.members.errors() if not shared >= set(one["columns"])]
        return {"household_marginals": self.households.errors(), "marginals": below}

    def sample(self, households: int | None = None, *, random: np.random.Generator) -> pl.DataFrame:
        """Synthetic members of as many households as the table is estimated to have.

        A member that breaks a constraint is drawn again for the same household; a household for which that does not
        succeed is replaced by another.
        """
        wanted = self.households.rows if households is None else households
        kept, tried = [self._draw(wanted, random)], wanted
        for _ in range(_ATTEMPTS):
            missing = wanted - sum(frame[self.id].n_unique() for frame in kept)
            if missing <= 0:
                break
            count = min(2 * missing + 100, 4 * wanted + 100)
            kept.append(self._draw(count, random).with_columns(pl.col(self.id) + tried))
            tried += count
        number = pl.col(self.id).rank("dense").cast(pl.Int64)
        frame = pl.concat(kept).with_columns(number).filter(pl.col(self.id) <= wanted)
        if frame[self.id].n_unique() < wanted:
            raise BadParameter(
                "private-synthesis: hardly any synthetic household meets the constraints.", fix="Check `constraints`."
            )
        return frame.with_columns(pl.col(self.id).cast(self.id_type)).select(self.order)

    def _draw(self, households: int, random: np.random.Generator) -> pl.DataFrame:
        """The members of at most so many households, all of which meet the constraints."""
        codes = self.households.tree.sample(households, random)
        above = self.households.decode(codes, random)
        size = above.to_series(above.width - 1).fill_null(1).to_numpy().astype(np.int64)
        of = np.repeat(np.arange(households), size)
        given = {number: np.ascontiguousarray(codes[number][of]) for number in range(above.width)}
        kept, open_rows = [], np.arange(len(of))
        for _ in range(_ATTEMPTS):
            drawn = self.members.tree.sample(
                len(open_rows), random, given={number: codes[open_rows] for number, codes in given.items()}
            )
            below = self.members.decode(drawn, random, skip=above.width)
            home = of[open_rows]
            named = [] if self.size is None else [pl.Series(self.size, size[home])]
            shared = above.select(above.columns[:-1])[home]
            frame = pl.DataFrame([pl.Series(self.id, home + 1), *shared, *named, *below])
            good = self._good(frame)
            kept.append(frame.filter(good))
            open_rows = open_rows[~good.to_numpy()]
            if not len(open_rows):
                break
        found = pl.concat(kept).sort(self.id, maintain_order=True)
        whole = ~np.isin(np.arange(households) + 1, of[open_rows] + 1)
        return found.filter(pl.Series(whole)[found[self.id] - 1])

    def _good(self, frame: pl.DataFrame) -> pl.Series:
        """Whether every constraint holds, row by row."""
        rules = [pl.sql_expr(rule).fill_null(value=True) for rule in self.constraints]
        return frame.select(pl.all_horizontal(pl.col(self.id).is_not_null(), *rules)).to_series()


def household_rows(
    frame: pl.DataFrame, *, by: str, columns: Sequence[str], size: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The table of households and the table of members with the values of their household.

    ``frame`` has bounded contributions, in random order. Where members differ in a household column, one of them at
    random counts.
    """
    grouped = frame.group_by(by, maintain_order=True).agg(pl.col(list(columns)).first(), pl.len().alias(size))
    above = grouped.with_columns(pl.col(size).cast(pl.Int64))
    rest = [name for name in frame.columns if name not in (*columns, size)]
    return above.drop(by), frame.select(rest).join(above, on=by, how="left", maintain_order="left").drop(by)
