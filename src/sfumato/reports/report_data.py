"""The data of a report as one value, and its external copy without private figures.

:meth:`ReportData.external` gives the copy that others may read. Pictures and text are made from the copy, so that no
private figure can reach an external report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from sfumato.errors import BadParameter, SecretAccessRefused
from sfumato.evaluation import Advice, advice
from sfumato.evaluation.formatting import Plain
from sfumato.recipe.about import INTERNAL
from sfumato.release.public_folder import Leaving, Why, promised
from sfumato.reports.redaction import SECTIONS, external_attack, external_limit, external_measures

Audience = Literal["internal", "external"]

WITHHELD = "changed; the method is not published"

_MEASURED = ("attacks", "measures", "columns", "limits")


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One category or range of a column with its share of the original and of the released rows."""

    label: str
    before: float | None
    """None in an external report."""
    after: float


@dataclass(frozen=True, kw_only=True)
class ColumnPicture:
    """A column before and after, in at most about twenty bars."""

    column: str
    role: str
    kind: str
    bars: tuple[Bar, ...]
    note: str = ""
    """How the values were grouped into bars, in words."""
    nothing_left: bool = False
    """Whether every released value is empty or ``*``."""


@dataclass(frozen=True, kw_only=True)
class ColumnSummary:
    """One line of the table of columns. Fields marked *owner* are dropped in an external report."""

    column: str
    role: str
    done: str
    """What the steps did to it, in words; empty if nothing."""
    released: bool
    unchanged: bool
    """Whether it is released as it was."""
    decided_by: str = ""
    """Who decided the role."""
    reason: str = ""
    """Why it has the role."""
    nothing_left: bool = False
    """Whether every released value is empty or ``*``."""
    example_before: str | None = None
    """Owner: a value of the original."""
    example_after: str | None = None
    """Owner: what that value became."""
    distinct_before: int | None = None
    """Owner: distinct values of the original."""
    distinct_after: int | None = None


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """The data of a report as plain data. Fields marked *owner* are dropped by :meth:`external`.

    The manifest and the public recipe are taken as they are; only a seed in the public recipe is refused.
    """

    title: str
    created: str
    """When, in ISO 8601 with time zone."""
    versions: Mapping[str, str]
    """Library to version; ``sfumato`` and ``python`` first."""
    manifest: Plain
    """The public manifest of the release: columns, models, steps, verdicts, rows."""
    files: Mapping[str, str]
    """Released file to its SHA-256."""
    recipe_public: Plain
    """The recipe as it may be published."""
    recipe: Plain | None = None
    """Owner: the recipe as it was run, with seed and paths."""
    original_rows: int | None = None
    """Owner."""
    original_columns: tuple[str, ...] | None = None
    """Owner."""
    outcomes: tuple[Plain, ...] = ()
    """Owner: the private outcome of each step, for example ``{"step": "generalize", "suppressed": 1346}``."""
    verdicts: tuple[Plain, ...] = ()
    """Owner: the verdicts in full, as :meth:`sfumato.release.Verdict.to_dict` gives them; the manifest's when
    empty."""
    attacks_before: tuple[Plain, ...] = ()
    """Owner: attack outcomes on the table without protection."""
    attacks: tuple[Plain, ...] = ()
    """Attack outcomes on the release, as :meth:`sfumato.attacks.evaluation.outcome.Outcome.to_dict` gives them."""
    measures: tuple[Plain, ...] = ()
    """What :meth:`sfumato.measures.base.Measurement.to_dict` gives."""
    columns: tuple[ColumnPicture, ...] = ()
    """Made by :func:`sfumato.reports.columns.column_pictures`."""
    released_columns: tuple[ColumnPicture, ...] = ()
    """Pictures of the released table alone, for others, where the release promises differential privacy."""
    column_table: tuple[ColumnSummary, ...] = ()
    """Made by :func:`sfumato.reports.column_table.column_summaries`."""
    limits: tuple[Plain, ...] = ()
    """``{"limit": "risk", "wanted": 0.09, "value": 0.02, "met": True}``: ``value`` is what was judged (the upper end
    of the worst interval), ``met`` is None when nothing could be judged."""
    riskiest: tuple[int, ...] | None = None
    """Owner: row numbers (from 1) of the original's records that are easiest to find in the release."""
    about: Plain = field(default_factory=dict)
    """Purpose, recipient, legal basis, re-evaluation date and sign-off: the ``about`` section of a recipe."""
    audience: Audience = "internal"

    def __post_init__(self) -> None:
        if "seed" in self.recipe_public:
            raise BadParameter(
                "The public recipe of a report names the seed.",
                fix="Method and seed together can undo a masking: leave `seed` out of `recipe_public`.",
            )

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What to change about attacks that exceed their limit; empty in an external report."""
        return advice(self.attacks, self.limits, self.manifest) if self.audience == "internal" else ()

    def for_audience(self, audience: Audience) -> ReportData:
        """The report data as that reader may see it. An external copy cannot become internal again."""
        if audience == self.audience:
            return self
        if audience == "external":
            return self.external()
        if audience == "internal":
            raise BadParameter(
                "An external report cannot become an internal one: the private part is not in it.",
                fix="Start from the internal report data.",
            )
        raise BadParameter(f"A report is for `internal` or `external` readers, not for `{audience}`.")

    @property
    def promised(self) -> bool:
        """Whether the release promises differential privacy."""
        return promised(self.manifest)

    @property
    def pictures(self) -> tuple[ColumnPicture, ...]:
        """The pictures of columns that this reader may see."""
        return self.columns or self.released_columns

    @property
    def why(self) -> Why:
        """Why text that is made from this report may leave: for the weakest reason of its fields."""
        return Why.MEASURED if any(getattr(self, name) for name in _MEASURED) else Why.RELEASED

    def leaving(self) -> dict[str, Leaving[object]]:
        """The fields of an external report with their reasons."""
        plain = self.to_dict()
        owner = [name for name in plain if name not in SECTIONS and plain[name]]
        if owner or self.audience != "external":
            raise SecretAccessRefused("A report of the owner does not leave.")
        return {name: Leaving(value, SECTIONS[name].why if value else Why.DECLARED) for name, value in plain.items()}

    def external(self) -> ReportData:
        """The copy for others: no count, share or row number of the original, no suppressed count, no seed.

        Beside a promise of differential privacy it has no figure that was computed with the original: no attack, no
        measure, no limit, and pictures of released values only.
        """
        withheld = self.about.get("method") == "withheld"
        copy = self._without_owner(withheld)
        return replace(copy, attacks=(), measures=(), columns=(), limits=()) if self.promised else copy

    def _without_owner(self, withheld: bool) -> ReportData:
        return replace(
            self,
            audience="external",
            manifest=published_manifest(self.manifest),
            recipe_public={**self.recipe_public, "steps": []} if withheld else self.recipe_public,
            about={key: value for key, value in self.about.items() if key not in INTERNAL},
            title=self._public_title(),
            recipe=None,
            original_rows=None,
            original_columns=None,
            outcomes=(),
            verdicts=(),
            attacks_before=(),
            attacks=tuple(external_attack(attack) for attack in self.attacks),
            measures=tuple(external_measures(self.measures)),
            columns=tuple(_public_column(column) for column in self.columns),
            released_columns=tuple(_public_column(column) for column in self.released_columns),
            column_table=tuple(
                replace(
                    line,
                    done=WITHHELD if withheld and line.released and line.done else line.done,
                    example_before=None,
                    example_after=None,
                    distinct_before=None,
                )
                for line in self.column_table
            ),
            limits=tuple(external_limit(limit) for limit in self.limits),
            riskiest=None,
        )

    def _public_title(self) -> str:
        """The title from the recipe; one made from the file name would publish that name."""
        return "Release" if self.recipe is not None and not self.recipe.get("title") else self.title

    def to_dict(self) -> dict[str, object]:
        """Plain data for the JSON report; :meth:`from_dict` reads it."""
        return _plain(asdict(self))  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, value: Plain) -> ReportData:
        """The data of a JSON report; unknown keys (pictures, words) are skipped."""
        known = {name: value[name] for name in cls.__dataclass_fields__ if name in value}
        for name in (
            "original_columns",
            "outcomes",
            "verdicts",
            "attacks_before",
            "attacks",
            "measures",
            "limits",
            "riskiest",
        ):
            if known.get(name) is not None:
                known[name] = tuple(known[name])
        for name in ("columns", "released_columns"):
            known[name] = tuple(
                ColumnPicture(**{**column, "bars": tuple(Bar(**bar) for bar in column["bars"])})
                for column in known.get(name, ())
            )
        known["column_table"] = tuple(ColumnSummary(**line) for line in known.get("column_table", ()))
        return cls(**known)


def published_manifest(manifest: Plain) -> Plain:
    """The manifest as the release shows it: without the steps if the owner withholds the method.

    A step with a formal guarantee stays: nobody could rely on a guarantee that is not stated.
    """
    recipe = manifest.get("recipe", {})
    if recipe.get("about", {}).get("method") != "withheld":
        return manifest
    stated = [step for step in manifest.get("steps", ()) if step.get("formal_guarantee")]
    return {**manifest, "recipe": {**recipe, "steps": []}, "steps": stated}


def _plain(value: Any) -> Any:
    """JSON types only: tuples become lists, NaN and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "item"):  # a NumPy scalar
        return _plain(value.item())
    return str(value)


def _public_column(picture: ColumnPicture) -> ColumnPicture:
    # A label without released rows exists only in the original.
    bars = tuple(replace(bar, before=None) for bar in picture.bars if bar.after > 0)
    return replace(picture, bars=bars)
