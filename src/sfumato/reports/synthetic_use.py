"""What a synthetic file may be used for: the marginals that its model measured, with their errors, and the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.wording import counted

MARGINALS = ("marginals", "household_marginals")
"""The keys of a published step with the errors of its marginals."""

_MOSTLY = 0.5
"""Share of the squared counts of a column that may be noise before it counts as mostly noise."""


@dataclass(frozen=True, kw_only=True)
class KnownMarginal:
    """A marginal of the synthetic rows, with the mean half width of its intervals."""

    columns: tuple[str, ...]
    cells: int
    error: float
    """Share of all rows."""
    noise: float = 0.0
    """The part of the squared counts of a column that is noise."""
    dependent: bool = True
    """Whether the columns of a measured pair depend on each other beyond its noise."""


@dataclass(frozen=True, kw_only=True)
class SyntheticUse:
    """The uses of one synthetic table that its published errors support."""

    level: str
    """What one row of the model is: ``row``, ``household`` or ``member``."""
    columns: tuple[KnownMarginal, ...]
    measured: tuple[KnownMarginal, ...]
    """Pairs with an interval from the noise, smallest error first."""
    assumed: tuple[KnownMarginal, ...]
    """Pairs that were not measured: what the rows say about them follows from other marginals."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the rows may be used for and what not, as far as it depends on the model."""
        pairs = len(self.measured) + len(self.assumed)
        found = [
            f"Use the synthetic rows for shares and counts of {counted(len(self.columns), 'column')}"
            + (f" and of {len(self.measured)} of {counted(pairs, 'pair')} of columns, " if pairs else ", ")
            + "within the errors below."
        ]
        if self.noisy:
            found.insert(
                0,
                ("The rows are mostly noise: " if 2 * len(self.noisy) > len(self.columns) else "Mostly noise: ")
                + f"the noise of the counts of {' and '.join(self.noisy)} is larger than the counts. Use a larger "
                "epsilon, fewer columns or coarser values.",
            )
        independent = sum(not one.dependent for one in self.measured)
        if independent:
            found.append(
                f"Drawn as independent: {counted(independent, 'measured pair')}, whose dependence is below the noise."
            )
        if self.assumed:
            found.append(
                f"Not measured: {counted(len(self.assumed), 'pair')}. What the rows say about them is an assumption of "
                "the model; do not draw conclusions from it."
            )
        if self.merged:
            found.append(
                f"The noise was too large to tell the values of {' and '.join(self.merged)} apart in pairs; use a "
                "larger epsilon or fewer columns."
            )
        return tuple(found)

    @property
    def noisy(self) -> tuple[str, ...]:
        """Columns whose counts have more noise than people."""
        return tuple(name for one in self.columns if one.noise > _MOSTLY for name in one.columns)

    @property
    def merged(self) -> tuple[str, ...]:
        """Columns whose values were merged into one cell."""
        return tuple(name for one in self.columns if one.cells == 1 for name in one.columns)


def synthetic_use(manifest: Mapping[str, Any]) -> tuple[SyntheticUse, ...]:
    """One entry for every model of a private synthesis in a manifest; none for other releases."""
    return tuple(_use(level, marginals) for step in manifest.get("steps", ()) for level, marginals in _levels(step))


def _levels(step: Mapping[str, Any]) -> list[tuple[str, Sequence[Mapping[str, object]]]]:
    found = [("row", step["marginals"])] if isinstance(step.get("marginals"), list | tuple) else []
    if isinstance(step.get("household_marginals"), list | tuple):
        found = [("household", step["household_marginals"]), *(("member", marginals) for _, marginals in found)]
    return found


def _use(level: str, marginals: Sequence[Mapping[str, Any]]) -> SyntheticUse:
    known = [
        (
            bool(one["measured"]),
            KnownMarginal(
                columns=tuple(map(str, one["columns"])),
                cells=int(one["cells"]),
                error=float(one["error"]),
                noise=float(one.get("noise", 0.0)),
                dependent=bool(one.get("dependent", True)),
            ),
        )
        for one in marginals
    ]
    columns = [one for _, one in known if len(one.columns) == 1]
    single = {name for one in columns if one.cells == 1 for name in one.columns}
    pairs = [(held and not single & set(one.columns), one) for held, one in known if len(one.columns) == 2]
    return SyntheticUse(
        level=level,
        columns=tuple(columns),
        measured=tuple(sorted((one for held, one in pairs if held), key=lambda one: one.error)),
        assumed=tuple(sorted((one for held, one in pairs if not held), key=lambda one: one.columns)),
    )
