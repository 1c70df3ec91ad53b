"""Choose contribution limits privately: `rows` and `groups` that fit most people, and the share of people they fit.

A limit below what people have cuts their contributions, and the interval of an answer does not include what was cut. A
limit far above adds noise. The limits are quantiles over people of their rows per group and of their groups, found by
the exponential mechanism; the share of people of whom nothing is cut is a noisy count over another. All of it is asked
through the session: it is differentially private and charged like any query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from sfumato.data.sql_quoting import quoted_name
from sfumato.dp.loss import PrivacyLoss, sequential
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.query.results.postprocess import NoisyValue
from sfumato.rationals import Number, rational
from sfumato.wording import did_you_mean

if TYPE_CHECKING:
    from sfumato.query.session import Session


@dataclass(frozen=True, kw_only=True)
class FittedLimits:
    """Contribution limits and how well they fit."""

    rows: int
    """Rows of one person that count within a group."""
    groups: int
    """Groups in which one person counts."""
    kept: NoisyValue
    """Share of people of whom nothing is cut, with an interval of at least 90 %."""
    loss: PrivacyLoss
    """What the choice cost."""


def fit_limits(
    session: Session, table: str, *, epsilon: Number, by: Sequence[str] = (), share: Number = "0.95", most: int = 100
) -> FittedLimits:
    """Limits that fit a share of the people of a table, for queries that GROUP BY the columns ``by``.

    ``most`` is the largest limit that may be chosen: a public number. A third of ``epsilon`` is for each of the two
    limits and for the share of people that they fit.
    """
    private = session.catalog.private.get(table)
    if private is None:
        raise BadParameter(f"there is no private table `{table}`.", fix=did_you_mean(table, session.catalog.private))
    unit = private.schema.unit
    if unit is None:
        raise BadParameter("each row of the table is a person, so nothing is cut.", fix="Leave out rows and groups.")
    for name in by:
        if name not in private.schema.columns:
            raise UnknownColumn(f"There is no column `{name}`.", fix=did_you_mean(name, private.schema.columns))
    if not 0 < rational(share) < 1 or most < 1:
        raise BadParameter("`share` lies between 0 and 1 and `most` is at least 1.")
    each = rational(epsilon) / 3
    keys = ", ".join(quoted_name(name) for name in dict.fromkeys([unit, *by]))
    inner = f"SELECT {keys}, COUNT(*) AS m FROM {quoted_name(table)} GROUP BY {keys}"
    outer = f"SELECT {quoted_name(unit)}, MAX(m) AS n, COUNT(*) AS g FROM ({inner}) AS a GROUP BY {quoted_name(unit)}"
    losses: list[PrivacyLoss] = []

    def ask(items: str) -> tuple[NoisyValue, ...]:
        answer = session.ask(f"SELECT {items} FROM ({outer}) AS b", epsilon=each, rows=1)
        assert answer.loss is not None
        losses.append(answer.loss)
        return answer.rows[0]

    rank = float(rational(share))
    rows, groups = (
        max(1, ceil(ask(f"QUANTILE_CONT(CLIP({column}, 1, {most}), {rank})")[0].value - 1e-3)) for column in ("n", "g")
    )
    people, fitting = ask(f"COUNT(*), COUNT(*) FILTER (WHERE n <= {rows} AND g <= {groups})")
    return FittedLimits(rows=rows, groups=groups, kept=_ratio(fitting, people), loss=sequential(losses))


def _ratio(part: NoisyValue, whole: NoisyValue) -> NoisyValue:
    """The ratio of two noisy counts, one of which is part of the other; each is in its interval 19 times in 20."""
    assert part.low is not None
    assert part.high is not None
    assert whole.low is not None
    assert whole.high is not None
    if whole.low <= 0:
        return NoisyValue(value=None)
    low, high = max(0.0, part.low / whole.high), min(1.0, max(0.0, part.high / whole.low))
    value = min(max(part.value / whole.value, low), high) if whole.value > 0 else low
    return NoisyValue(value=value, low=low, high=high)
