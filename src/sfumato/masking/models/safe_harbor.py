"""HIPAA Safe Harbor: the form in which dates, ZIP codes and ages may leave."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import polars as pl
from pydantic import Field, model_validator

from sfumato.dataset import Data
from sfumato.dataset.hierarchies.zip3 import SMALL_AREAS, ThreeDigits
from sfumato.errors import NotApplicable
from sfumato.masking.equivalence_classes import EquivalenceClasses
from sfumato.masking.model import ModelRule, PrivacyModel
from sfumato.release import State, Verdict
from sfumato.release.class_counts import CannotCheck, ConditionResult, ReleaseCounts
from sfumato.wording import counted

_YEAR = r"(?:1[6-9]|20|21)\d\ds?"
_YEARS = rf"^[<>=≤≥ ]*[\[({{]?{_YEAR}(?:[-–.,; ]+{_YEAR})*[\])}}]?$"
_DAY = r"^\d{4}-\d{2}-\d{2}"
_OLDEST = 89
"""The largest age that leaves as it is."""


class SafeHarbor(PrivacyModel):
    """HIPAA Safe Harbor: dates leave as years, ZIP codes with three digits, ages over 89 as one group.

    It checks paragraphs (B) and (C) of the rule on the columns that are named: a date shows its year at most; a year of
    birth from which an age over 89 follows is part of one group (``< 1937``); a ZIP code shows three digits, and areas
    of 20,000 people or fewer are ``000``; an age over 89 is 90 or one group such as ``>= 90``. A column of dates that
    is not named fails. The other paragraphs are met by roles: identifiers are removed.

    It is the form that a rule asks for, not a guarantee: people may still be unique. Require k-anonymity beside it.
    """

    examples = ({"zips": ["zip"]}, {"zips": ["zip"], "small": ["555"]})
    reference: ClassVar[str] = "45 CFR 164.514(b)(2)(i)(B) and (C)"
    promise = (
        "{worst} rows show more of a date than its year, more than three digits of a ZIP code, or an age over 89"
        " (HIPAA Safe Harbor)"
    )
    on_classes = False

    zips: tuple[str, ...] = ()
    """Columns of ZIP codes."""
    dates: tuple[str, ...] = ()
    """Columns of dates that relate to a person."""
    births: tuple[str, ...] = ()
    """Columns of dates or years of birth."""
    ages: tuple[str, ...] = ()
    """Columns of ages."""
    year: Annotated[int, Field(ge=1900, le=2200)] | None = None
    """The year in which the release is made, for ``births``."""
    small: tuple[ThreeDigits, ...] = SMALL_AREAS
    """First three digits of the areas with 20,000 people or fewer. Default: the list of the Department of Health and
    Human Services from the Census of 2000. The rule asks for current data."""

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not (self.zips or self.dates or self.births or self.ages):
            raise ValueError("name the columns: `zips`, `dates`, `births` or `ages`")
        if self.births and self.year is None:
            raise ValueError("`births` need `year`, the year in which the release is made")
        return self

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        raise NotApplicable("safe-harbor is about the values of columns, not about equivalence classes.")

    def check(self, data: Data, *, original: Data | None = None) -> Verdict:
        frame = data.table.frame
        text = frame.select(pl.all().cast(pl.String, strict=False))
        shown: dict[str, pl.Expr] = {}
        for name in frame.columns:
            value = pl.col(name)
            if name in self.zips:
                shown[name] = self._zip_shows(value)
            elif name in self.births:
                shown[name] = ~value.str.contains(_YEARS) | value.map_elements(self._old, return_dtype=pl.Boolean)
            elif name in self.dates:
                shown[name] = ~value.str.contains(_YEARS)
            elif name in self.ages:
                shown[name] = value.map_elements(_over, return_dtype=pl.Boolean)
            elif frame.schema[name].is_temporal() or _all_days(text.get_column(name)):
                shown[name] = value.is_not_null()
        hidden = r"^\**$"
        fails = text.select(
            (expression & ~pl.col(name).str.contains(hidden)).fill_null(False).alias(name)
            for name, expression in shown.items()
        )
        count = int(fails.select(pl.any_horizontal(pl.all())).to_series().sum()) if fails.width else 0
        named = ", ".join(f"`{name}`" for name in fails.columns if fails.get_column(name).any())
        return Verdict(
            model=self.part_name(),
            state=State.FAILS if count else State.HOLDS,
            worst=count,
            wanted=0,
            failing=count,
            reason=f"{counted(count, 'row')} show more than the rule allows: {named}." if count else "",
        )

    def _zip_shows(self, value: pl.Expr) -> pl.Expr:
        small = [*self.small] or ["none"]
        return value.str.contains(r"\d{4}") | value.str.contains(rf"(?:^|\D)(?:{'|'.join(small)})(?:\D|$)")

    def _old(self, label: str) -> bool:
        """Whether a label of years of birth tells of an age over 89, and is not the one group of all such ages."""
        assert self.year is not None
        years: list[int] = [int(found[:4]) + 9 * found.endswith("s") for found in re.findall(_YEAR, label)]
        if not years:
            return False  # not a year: fails as a date
        newest = self.year - _OLDEST - 1  # the last year of birth from which an age over 89 follows
        if label.startswith(("<=", "≤")):
            return max(years) < newest
        if label.startswith("<"):
            return max(years) - 1 < newest
        return max(years) <= newest

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        kinds = {name: parameters.get(name, ()) for name in ("zips", "dates", "births", "ages")}
        if not any(kinds.values()):
            raise CannotCheck("It names no column.")
        if counts.rows is None:
            raise CannotCheck("It needs the released rows.")
        rows, total = counts.rows, 0
        small = {str(area) for area in parameters.get("small", ())}
        columns = rows.columns
        of = {column: kind for kind, named in kinds.items() for column in named if column in columns}
        undeclared = [c for c in columns if c not in of and (values := rows.combinations((c,))) and _calendar(values)]
        used = (*of, *undeclared)
        for combination, count in rows.combinations(used).items() if used else ():
            total += count * any(
                value is not None
                and value.strip("*") != ""
                and _breaks_rule(of.get(column, "dates"), value, small, parameters.get("year"))
                for column, value in zip(used, combination, strict=True)
            )
        reason = f"{total} rows show more than the rule allows."
        return ConditionResult(
            worst=total, wanted=0, passes=(), table_holds=not total, failing=total, reason=reason if total else ""
        )


def _over(label: str) -> bool:
    """Whether a label tells an age over 89 other than by one open group or the number 90."""
    numbers = [int(found) for found in re.findall(r"\d+", re.sub(r"^(\D*\d+)\.0$", r"\1", label))]
    return not numbers or (numbers[0] > _OLDEST and numbers != [_OLDEST + 1])


def _all_days(values: pl.Series) -> bool:
    """Whether text is made of dates only."""
    present = values.drop_nulls()
    return len(present) > 0 and bool(present.str.contains(_DAY).all())


def _breaks_rule(kind: str, value: str, small: set[str], year: int | None) -> bool:
    """The rule again, character by character, for the independent check."""
    digits = "".join(sign if sign.isdigit() else " " for sign in value).split()
    if kind == "zips":
        return any(len(run) > 3 or run in small for run in digits)
    if kind == "ages":
        whole = digits[:-1] if len(digits) == 2 and value.endswith(".0") else digits
        return not whole or (int(whole[0]) >= 90 and (len(whole) > 1 or int(whole[0]) > 90))
    spans = []
    for run in digits:
        if len(run) != 4 or not 1600 <= int(run) <= 2199:
            return True
        spans.append(int(run))
    letters = {sign for sign in value if sign.isalpha()}
    if not spans or letters - {"s"}:
        return True
    if kind != "births":
        return False
    if year is None:
        raise CannotCheck("It needs the year of the release.")
    last = max(spans) + (9 if "s" in letters else 0)
    if value[0] in "<≤":
        if value[0] == "<" and value[1:2] != "=":
            last -= 1
        return last < year - 90
    return last < year - 89


def _calendar(values: Mapping[tuple[str | None, ...], int]) -> bool:
    """Whether all values of a column begin like dates."""
    present = [value for (value,) in values if value is not None]
    return bool(present) and all(
        len(value) >= 10 and value[4] == value[7] == "-" and (value[:4] + value[5:7] + value[8:10]).isdigit()
        for value in present
    )
