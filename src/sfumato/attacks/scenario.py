"""The scene of an attack: everything the owner knows, of which the intruder is shown a part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, Linking
from sfumato.data.table import Table
from sfumato.errors import BadParameter, ColumnsDiffer, NotApplicable, did_you_mean
from sfumato.release import Lineage, Release
from sfumato.schema import Dataset

__all__ = ["AttackScenario", "People", "lineage_by_key"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class AttackScenario:
    """The original, the release made of it, who is who, and what lies outside.

    Identity can only be judged when it is known which release row is whose: by ``lineage`` (written beside our own
    releases), by ``aligned`` (row i of the release is row i of the original), or, for methods that only coarsen values,
    by the size of the set of rows that fit.
    """

    original: Dataset
    release: Release
    lineage: Lineage | None = None
    aligned: bool = False
    """Row i of the release is row i of the original. For releases that come without a row map."""
    auxiliary: Table | None = None
    """The intruder's outside file; an attack's own ``auxiliary`` file goes before it."""
    control: Table | None = None
    """People who are not in the release, with the columns of the original."""
    knows: tuple[str, ...] | None = None
    """Columns the intruder knows, for attacks that do not say it themselves."""
    people: Rows | None = None
    """Rows of the original that are sought; everybody when None."""

    def __post_init__(self) -> None:
        if self.lineage is not None and len(self.lineage.rows) != self.release.table.rows:
            raise ColumnsDiffer(
                f"The row map has {len(self.lineage.rows)} rows and the release {self.release.table.rows}.",
                fix="Use the row map that was written together with this release.",
            )
        if self.lineage is None and self.aligned and self.release.table.rows != self.original.rows:
            raise ColumnsDiffer(
                f"The release has {self.release.table.rows} rows and the original {self.original.rows}: they cannot be "
                "aligned row by row.",
                fix="Give the row map, or a column that identifies rows in both.",
            )

    @property
    def release_row(self) -> Rows | None:
        """For each row of the original its row in the release (-1: not in it), or None when nobody knows."""
        if self.lineage is not None:
            return self.lineage.release_row(self.original.rows)
        return np.arange(self.original.rows, dtype=np.int64) if self.aligned else None

    @property
    def made_up(self) -> bool:
        """Whether no row of the release is anybody's: all were drawn from a model of the original's people."""
        return self.lineage is not None and len(self.lineage.rows) > 0 and not (self.lineage.rows >= 0).any()

    @property
    def truthful(self) -> bool:
        """Whether every published step only coarsens or removes values."""
        steps = self.release.manifest.get("steps")
        return steps is not None and all(step.get("truthful", False) for step in steps)


@dataclass(frozen=True, kw_only=True)
class People:
    """The people an intruder looks for."""

    frame: pl.DataFrame
    """What the intruder knows of them, identity columns left out."""
    rows: Rows
    """Their rows in the original: the truth, which the intruder does not see."""
    knows: tuple[str, ...]
    outside: bool = False
    """Whether they come from an outside file, whose blanks mean "unknown"."""
    outsiders: int = 0
    """People of the outside file who are not in the original, or could not be told apart there."""


def people_of(attack: Attack, scenario: AttackScenario) -> People:
    """Who is sought and what is known of them."""
    outside = _outside_file(attack, scenario)
    if outside is None:
        frame, rows = scenario.original.table.frame, np.arange(scenario.original.rows, dtype=np.int64)
        outsiders = 0
    else:
        assert isinstance(attack, Linking)
        frame, rows, outsiders = _identified(attack, scenario, outside)
    knows = _known_columns(attack, scenario, frame)
    if scenario.people is not None:
        keep = np.isin(rows, scenario.people)
        frame, rows = frame.filter(pl.Series(keep)), rows[keep]
    return People(frame=frame.select(knows), rows=rows, knows=knows, outside=outside is not None, outsiders=outsiders)


def _outside_file(attack: Attack, scenario: AttackScenario) -> Table | None:
    if not isinstance(attack, Linking):
        return None
    if attack.auxiliary is None:
        return scenario.auxiliary
    from sfumato.data import read

    return read(attack.auxiliary)


def _identified(attack: Linking, scenario: AttackScenario, outside: Table) -> tuple[pl.DataFrame, Rows, int]:
    outside.require(tuple(attack.rename))
    frame = outside.frame.rename(attack.rename)
    original = scenario.original.table
    if attack.identity is not None:
        outside.with_frame(frame).require([attack.identity])
        original.require([attack.identity])
        names = [attack.identity]
    else:
        names = [name for name in scenario.original.identifiers if name in frame.columns]
    if not names:
        raise NotApplicable(
            "Nothing tells who is who: the outside file and the original share no identifier column.",
            fix="Name the column that identifies people in both (`identity: name`), or `rename` one to match.",
        )
    key = pl.concat_str(pl.col(names).cast(pl.String), separator="\x1f").alias("key")
    people = frame.select(key).with_row_index("outside")
    known = original.frame.select(key).with_row_index("row")
    # A name that stands twice in either file cannot tell which guess was right.
    joined = people.filter(pl.col("key").is_unique()).join(
        known.filter(pl.col("key").is_unique()), on="key", how="inner", maintain_order="left"
    )
    if joined.height == 0:
        raise NotApplicable(
            f"Nobody of the outside file is found in the original by {', '.join(names)}.",
            fix="Check that both files write names in the same way.",
        )
    found = frame[joined["outside"].to_numpy()].drop(names)
    return found, joined["row"].to_numpy().astype(np.int64), frame.height - joined.height


def _known_columns(attack: Attack, scenario: AttackScenario, frame: pl.DataFrame) -> tuple[str, ...]:
    wanted = attack.knows or scenario.knows
    released = scenario.release.table.columns
    if wanted is not None:
        for name in wanted:
            for place, columns in (("intruder's file", frame.columns), ("release", released)):
                if name not in columns:
                    raise ColumnsDiffer(
                        f"The intruder is said to know `{name}`, which the {place} does not have.",
                        fix=did_you_mean(name, columns),
                        column=name,
                    )
        return tuple(wanted)
    quasi = scenario.original.quasi
    if not quasi:
        raise NotApplicable(
            "No column is declared quasi-identifier, so nothing says what an intruder knows.",
            fix="Give columns the role `quasi`, or name them with `knows`.",
        )
    common = tuple(name for name in quasi if name in frame.columns and name in released)
    if not common:
        raise ColumnsDiffer(
            "The intruder's file and the release have no quasi-identifier in common.",
            fix="Check the names, or map them with `rename`.",
            columns=quasi,
        )
    return common


def lineage_by_key(original: Table, release: Table, key: str) -> Lineage:
    """The row map of somebody else's release, from a column that identifies rows in both files."""
    for table in (original, release):
        table.require([key])
        if table.column(key).n_unique() != table.rows:
            raise BadParameter(f"Column `{key}` does not identify rows: it repeats values.", column=key)
    left = release.frame.select(pl.col(key).cast(pl.String))
    right = original.frame.select(pl.col(key).cast(pl.String)).with_row_index("row")
    rows = left.join(right, on=key, how="left", maintain_order="left")["row"]
    return Lineage(rows.fill_null(-1).cast(pl.Int64).to_numpy())
