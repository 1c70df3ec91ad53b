"""Demo: narrowing. One known person, one public list, and how few candidates each further column leaves."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sfumato.data import write
from sfumato.data.table import Table
from sfumato.demos.base import Demo, Say
from sfumato.evaluation.formatting import percent
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

PEOPLE, ZIPS, DAYS = 54_805, 7, 80 * 365
STEPS = (("birth",), ("birth", "sex"), ("birth", "sex", "zip"))
PRINTED = {
    ("birth",): "in print 12 %",
    ("birth", "sex"): "in print 29 %",
    ("birth", "zip"): "in print 69 %",
    ("birth", "sex", "zip"): "in print 87 % of the United States, 1990",
}
"""Shares of unique voters of Cambridge, Massachusetts, and of the population of the United States."""


class NarrowingDemo(Demo):
    """Narrowing: birth date, sex and ZIP code single out a person in a synthetic list of voters.

    The list has as many voters as that of Cambridge, Massachusetts, in 1997. All people in it are synthetic: dates
    uniform over 80 years, seven ZIP codes of different sizes.
    """

    reference = "Sweeney (1997), doi:10.1111/j.1748-720X.1997.tb01885.x; Sweeney (2002), doi:10.1142/S0218488502001648"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        voters = _voters(Rng(self.seed))
        write(Table(frame=voters), folder / "voters.csv", force=True)
        person = _with_six(voters)
        left, counts = voters, [voters.height]
        for columns in STEPS:
            left = voters.filter([pl.col(name) == person[name] for name in columns])
            counts.append(left.height)
        say(
            f"\n[bold]1. One person.[/bold] Of {counts[0]:,} voters, {counts[1]} share the birth date, {counts[2]} of "
            f"them the sex, {counts[3]} the ZIP code. In print: six share the birth date of the governor, three are "
            "men, one lives in that ZIP code."
        )
        shares = {columns: _unique(voters, columns) for columns in PRINTED}
        lines = [
            f"  {', '.join(columns):<18} {percent(share):>7}   {PRINTED[columns]}" for columns, share in shares.items()
        ]
        say("\n[bold]2. Everybody.[/bold] Share of voters who are unique by\n" + "\n".join(lines))
        say(
            "\nThe printed town has other ages and ZIP codes, and the United States have ZIP codes of all sizes: the "
            "shares differ."
        )
        named = {"-".join(columns): round(share, 6) for columns, share in shares.items()}
        return {"voters": voters.height, "narrowing": counts[1:], "unique": named}


def _voters(rng: Rng) -> pl.DataFrame:
    random = rng.generator
    day = pl.Series(random.integers(0, DAYS, PEOPLE), dtype=pl.Int32)
    weight = [ZIPS - number for number in range(ZIPS)]
    zips = random.choice(ZIPS, PEOPLE, p=[size / sum(weight) for size in weight])
    frame = pl.DataFrame({"day": day, "sex": random.choice(["F", "M"], PEOPLE), "zip": [f"0213{z}" for z in zips]})
    return frame.select((pl.date(1900, 1, 1) + pl.duration(days="day")).alias("birth"), "sex", "zip")


def _unique(voters: pl.DataFrame, columns: tuple[str, ...]) -> float:
    return voters.group_by(columns).len().filter(pl.col("len") == 1).height / voters.height


def _with_six(voters: pl.DataFrame) -> dict[str, object]:
    """A unique person whose birth date six voters share, three of them of the same sex, as in the printed case."""
    by = [pl.len().over(list(columns)).cast(pl.Int64).alias(str(number)) for number, columns in enumerate(STEPS)]
    counted = voters.with_columns(by).filter(pl.col("2") == 1)
    fits = counted.sort((pl.col("0") - 6).abs() + (pl.col("1") - 3).abs(), "birth", "sex", "zip")
    return fits.row(0, named=True)
