"""Attack scenarios: the original, the release, the row correspondence, and what the adversary knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, Linking, unperturbed
from sfumato.attacks.recoding import ColumnReading, Recoding
from sfumato.attacks.value_coverage import read_column
from sfumato.data.row_codes import sorted_codes
from sfumato.data.table import Table
from sfumato.dataset import Data, Role
from sfumato.errors import BadParameter, ColumnsDiffer, NotApplicable
from sfumato.masking.base import Step, method_of
from sfumato.profiling.formulas import as_floats, find_any_formula
from sfumato.release import Lineage, Release
from sfumato.wording import did_you_mean

Rows = npt.NDArray[np.int64]

_TOLERANCE = 0.05
"""How close a guess of an amount must be in the default battery, as a share of the true value."""
_FEW_VALUES = 20
_FEW_CODES = 100
"""A number with at most this many distinct values (codes: integers that are released as such) counts as a category,
which has to be guessed exactly."""


@dataclass(frozen=True, kw_only=True)
class AttackScenario:
    """The original, the release made from it, the row correspondence, and data from outside the release.

    Identity risk needs the row correspondence. It is given by ``lineage`` (written beside our own releases) or by
    ``aligned`` (row i of the release is row i of the original). For methods that only coarsen values, the number of
    rows that match a target is used instead.
    """

    original: Data
    release: Release
    lineage: Lineage | None = None
    aligned: bool = False
    """Row i of the release is row i of the original. For releases without a row map."""
    auxiliary: Table | None = None
    """External file that the adversary links to the release; the ``auxiliary`` file of an attack takes precedence."""
    control: Table | None = None
    """People who are not in the release, with the columns of the original."""
    knows: tuple[str, ...] | None = None
    """Columns that the adversary knows, for attacks that do not set ``knows`` themselves."""
    targets: Rows | None = None
    """Rows of the original that are targets; all rows if None."""
    folds: tuple[AttackScenario, ...] = ()
    """Cross-fitting: releases that the same recipe makes without some people, who are the ``control`` of each. They
    show what the release says about people who are not in it."""
    why_no_control: str = ""
    """Why there are no folds, for outcomes without a control."""

    def __post_init__(self) -> None:
        if self.lineage is not None and len(self.lineage.rows) != self.release.table.rows:
            raise ColumnsDiffer(
                f"The row map has {len(self.lineage.rows)} rows and the release has {self.release.table.rows}.",
                fix="Use the row map that was written together with this release.",
            )
        if self.lineage is None and self.aligned and self.release.table.rows != self.original.rows:
            raise ColumnsDiffer(
                f"The release has {self.release.table.rows} rows and the original {self.original.rows}: they cannot be "
                "aligned row by row.",
                fix="Pass the row map (`lineage`), or a column that identifies rows in both files (`key`).",
            )

    @property
    def release_row(self) -> Rows | None:
        """For each row of the original its row in the release (-1 if it has none), or None if this is unknown."""
        if self.lineage is not None:
            return self.lineage.release_row(self.original.rows)
        return np.arange(self.original.rows, dtype=np.int64) if self.aligned else None

    @property
    def synthetic(self) -> bool:
        """Whether no released row belongs to a person: all rows were drawn from a model of the original."""
        return self.lineage is not None and len(self.lineage.rows) > 0 and not (self.lineage.rows >= 0).any()

    @cached_property
    def people(self) -> Rows | None:
        """The person of each row of the original as a number, by the unit; None if every row is another person. A row
        without a person is a person of its own."""
        table, unit = self.original.table, self.original.schema.unit
        if unit is None or unit not in table.columns:
            return None
        codes, distinct = sorted_codes(table.column(unit))
        people = np.where(codes < 0, len(distinct) + np.arange(table.rows), codes)
        return people if len(np.unique(people)) < table.rows else None

    @property
    def cells(self) -> int:
        """Number of cells of the original and the release."""
        return sum(table.rows * len(table.columns) for table in (self.original.table, self.release.table))

    @property
    def has_non_members(self) -> bool:
        """Whether people are known who are not in the release, or not in the release of a fold."""
        return self.control is not None or bool(self.folds)

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        """The published masking steps."""
        return tuple(self.release.manifest.get("steps") or ())

    @property
    def truthful(self) -> bool:
        """Whether the steps are published and all of them only coarsen or remove values."""
        published = self.release.manifest.get("steps") is not None
        return published and all(step.get("truthful", False) for step in self.steps)

    @cached_property
    def methods(self) -> tuple[type[Step], ...]:
        """The masking method of each published step."""
        return tuple(method_of(step) for step in self.steps)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The released columns that the adversary of the default battery knows."""
        return tuple(name for name in (self.knows or self.original.quasi) if name in self.release.table.columns)

    @cached_property
    def unperturbed(self) -> tuple[str, ...]:
        """The known columns that no published step perturbed."""
        return unperturbed(self.steps, self.known)

    @cached_property
    def readings(self) -> tuple[ColumnReading, ...]:
        """How released values were read that differ from the original's, in a release without published steps."""
        if self.release.manifest.get("steps") is not None:
            return ()
        released, original = self.release.table, self.original.table
        names = [name for name in released.columns if name in original.columns]
        readings = [read_column(original.column(name), released.column(name)) for name in names]
        return tuple(reading for reading in readings if reading.occurs < 1)

    @property
    def known_readings(self) -> tuple[ColumnReading, ...]:
        """The readings of the columns that the adversary knows."""
        return tuple(reading for reading in self.readings if reading.column in self.known)

    @property
    def recodings(self) -> Mapping[str, Recoding]:
        """The columns whose released numbers are bands, and the rule."""
        return {reading.column: reading.recoding for reading in self.readings if reading.recoding is not None}

    @cached_property
    def secrets(self) -> Mapping[str, float]:
        """The released sensitive columns that are not known, each with the tolerance of a correct guess."""
        return {
            name: _TOLERANCE if self._is_amount(name) else 0.0
            for name in self.original.sensitive
            if name in self.release.table.columns and name not in self.known
        }

    @cached_property
    def _by_formula(self) -> dict[str, tuple[AttackScenario, tuple[str, ...]]]:
        return {}

    def with_formula(self, secret: str) -> tuple[AttackScenario, tuple[str, ...]]:
        """The release as somebody reads it who computes a masked column from true ones, and these columns.

        The formula is public: what a column means is no secret. Its coefficients are those that hold in most rows. The
        masked values stay in rows where it gives none.
        """
        if secret not in self._by_formula:
            self._by_formula[secret] = self._computed(secret)
        return self._by_formula[secret]

    def _computed(self, secret: str) -> tuple[AttackScenario, tuple[str, ...]]:
        table, rows = self.release.table, self.release_row
        values = self.original.table.column(secret)
        others = tuple(name for name in table.columns if name != secret and name in self.original.table.columns)
        exact = [name for name in unperturbed(self.steps, others) if name not in self.original.identifiers]
        perturbed = not unperturbed(self.steps, (secret,)) and values.dtype.is_numeric()
        if (
            rows is None
            or len(exact) < 2
            or self.synthetic
            or not perturbed
            or not table.column(secret).dtype.is_numeric()
        ):
            return self, ()
        people = np.flatnonzero(rows >= 0)
        found = find_any_formula(table.frame.select(exact)[rows[people]], as_floats(values.gather(people)))
        if found is None:
            return self, ()
        seen = as_floats(table.column(secret)).copy()
        seen[rows[people]] = np.where(np.isfinite(found.values), found.values, seen[rows[people]])
        steps = [
            {**step, "columns": [name for name in step["columns"] if name != secret]} if "columns" in step else step
            for step in self.steps
        ]
        release = Release(
            table=table.with_frame(table.frame.with_columns(pl.Series(secret, seen).fill_nan(None))),
            manifest={**self.release.manifest, "steps": steps},
        )
        return replace(self, release=release), found.columns

    @cached_property
    def household(self) -> str | None:
        """The released column that groups rows: a household column, else the privacy unit, else a pseudonym that
        several rows share; None if there is none."""
        schema, released = self.original.schema, self.release.table
        for name in schema.grouping:
            if name in self.original.table.columns and name in released.columns:
                single = schema.column(name).role is Role.IDENTIFIER and name != schema.unit
                if not single or released.column(name).drop_nulls().is_duplicated().any():
                    return name
        return None

    def _is_amount(self, name: str) -> bool:
        """Whether an approximate guess of this column discloses as much as an exact one."""
        values, released = self.original.table.column(name), self.release.table.column(name)
        few = _FEW_CODES if values.dtype.is_integer() and not released.dtype.is_float() else _FEW_VALUES
        return values.dtype.is_numeric() and values.n_unique() > few


@dataclass(frozen=True, kw_only=True)
class Targets:
    """The people that an attack tries to find, and what the adversary knows about them."""

    frame: pl.DataFrame
    """The known values, without the columns that identify people."""
    rows: Rows
    """Their rows in the original: the truth, which the adversary does not see."""
    knows: tuple[str, ...]
    external: bool = False
    """Whether the values come from an external file, in which a blank means "unknown"."""
    outsiders: int = 0
    """People of the external file who are not in the original, or whose identity is ambiguous there."""


def targets_of(attack: Attack, scenario: AttackScenario) -> Targets:
    """The targets of an attack and the values known about them."""
    external = _external_file(attack, scenario)
    if external is None:
        frame, rows = scenario.original.table.frame, np.arange(scenario.original.rows, dtype=np.int64)
        outsiders = 0
    else:
        assert isinstance(attack, Linking)
        frame, rows, outsiders = _identified(attack, scenario, external)
    knows = _known_columns(attack, scenario, frame)
    if scenario.targets is not None:
        keep = np.isin(rows, scenario.targets)
        frame, rows = frame.filter(pl.Series(keep)), rows[keep]
    return Targets(
        frame=frame.select(knows), rows=rows, knows=knows, external=external is not None, outsiders=outsiders
    )


def _external_file(attack: Attack, scenario: AttackScenario) -> Table | None:
    if not isinstance(attack, Linking):
        return None
    if attack.auxiliary is None:
        return scenario.auxiliary
    from sfumato.data import read

    return read(attack.auxiliary)


def _identified(attack: Linking, scenario: AttackScenario, external: Table) -> tuple[pl.DataFrame, Rows, int]:
    """The people of the external file who are in the original, their rows there, and how many are not."""
    external.require(tuple(attack.rename))
    frame = external.frame.rename(attack.rename)
    original = scenario.original.table
    if attack.identity is not None:
        external.with_frame(frame).require([attack.identity])
        original.require([attack.identity])
        names = [attack.identity]
    else:
        names = [name for name in scenario.original.identifiers if name in frame.columns]
    if not names:
        raise NotApplicable(
            "The external file and the original have no identifier column in common, so guesses cannot be checked.",
            fix="Name the column that identifies people in both (`identity: name`), or `rename` one to match.",
        )
    key = pl.concat_str(pl.col(names).cast(pl.String), separator="\x1f").alias("key")
    people = frame.select(key).with_row_index("outside")
    known = original.frame.select(key).with_row_index("row")
    # An identifier that occurs twice in either file cannot decide which guess is correct.
    joined = people.filter(pl.col("key").is_unique()).join(
        known.filter(pl.col("key").is_unique()), on="key", how="inner", maintain_order="left"
    )
    if joined.height == 0:
        raise NotApplicable(
            f"No person of the external file is found in the original by {', '.join(names)}.",
            fix="Check that both files write identifiers in the same way.",
        )
    identified = frame[joined["outside"].to_numpy()].drop(names)
    return identified, joined["row"].to_numpy().astype(np.int64), frame.height - joined.height


def _known_columns(attack: Attack, scenario: AttackScenario, frame: pl.DataFrame) -> tuple[str, ...]:
    declared = attack.knows or scenario.knows
    released = scenario.release.table.columns
    if declared is not None:
        for name in declared:
            for place, columns in (("attacker's file", frame.columns), ("release", released)):
                if name not in columns:
                    raise ColumnsDiffer(
                        f"`knows` names column `{name}`, which the {place} does not have.",
                        fix=did_you_mean(name, columns),
                        column=name,
                    )
        return tuple(declared)
    quasi = scenario.original.quasi
    if not quasi:
        raise NotApplicable(
            "No column is declared quasi-identifier, so it is not defined what an attacker knows.",
            fix="Give columns the role `quasi`, or name them with `knows`.",
        )
    common = tuple(name for name in quasi if name in frame.columns and name in released)
    if not common:
        raise ColumnsDiffer(
            "The attacker's file and the release have no quasi-identifier in common.",
            fix="Check the names, or map them with `rename`.",
            columns=quasi,
        )
    return common


def lineage_by_key(original: Table, release: Table, key: str) -> Lineage:
    """The row map of a release made elsewhere, from a column that identifies rows in both files."""
    for table in (original, release):
        table.require([key])
        if table.column(key).n_unique() != table.rows:
            raise BadParameter(f"Column `{key}` does not identify rows: it repeats values.", column=key)
    left = release.frame.select(pl.col(key).cast(pl.String))
    right = original.frame.select(pl.col(key).cast(pl.String)).with_row_index("row")
    rows = left.join(right, on=key, how="left", maintain_order="left")["row"]
    return Lineage(rows.fill_null(-1).cast(pl.Int64).to_numpy())
