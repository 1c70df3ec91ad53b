"""Parallel composition: questions to disjoint parts of a data set cost it the largest loss of a part, not the sum.

A data set is split by a column: each of its people is in at most one part, and stays in it as long as the data stay as
they are. A charge to a part is added to the part, and every account that it goes to grows by as much as its largest
part grows. The name of a partition says what is split, into what and in which state of the data, so that other parts
of the same people, or the same parts of changed data, are another partition: its largest part is added.

**Theorem.** For every person, the charges to the whole data set and to the parts that the person is in are at most the
account's total in each of five numbers: epsilon, the delta of curves, all other delta, rho and the squared Gaussian
parameter. The accounts of :mod:`sfumato.ledger.composition` accept a total only if they accept every total that is
smaller in each of the five. So all answers together keep to the cap, also if every question, its loss and its part is
chosen after seeing the answers so far (McSherry 2009, doi:10.1145/1559845.1559850, for fixed losses in epsilon).

*Proof.* Fix a person, and two data sets that differ in this person. In a partition the person is in one part at most.
The answer to a question about another part reads rows that are the same in both, so that its density given the earlier
answers is the same: it multiplies the densities of a transcript by one factor, with loss 0. What is left are the
charges to the whole and to the person's parts, chosen by the answers so far. In the proof of the composition, the
sets S, G and R are those in which the accounts hold for the total; within them they hold for the smaller sums of this
person. The division of delta depends on the first charge alone, which is the same for everybody. ∎

Delta has two kinds, and each has a largest part of its own: the largest of all delta, less the largest delta of curves,
would count too little of the rest (:func:`larger`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.dp.curve import Curve
from sfumato.ledger.exact_budget import Amount

ANY_PART = "part"
"""The name under which the ledger's index has every charge to a part. Names of groups start with @."""


@dataclass(frozen=True, kw_only=True)
class DataPart:
    """One part of a data set.

    >>> DataPart(partition="ward", name="east").index
    ('part', 'part of ward', 'part of ward: east')
    """

    partition: str
    """What the data set is split by, and the state of its data. Parts of one partition have no person in common."""
    name: str

    @property
    def index(self) -> tuple[str, str, str]:
        """The names under which the ledger finds charges: to any part, to the partition, to the part."""
        whole = f"part of {self.partition}"
        return ANY_PART, whole, f"{whole}: {self.name}"


def larger(one: Amount, other: Amount) -> Amount:
    """The smallest amount that is at least each of two, in each of the five numbers that accounts compare.

    >>> from sfumato.dp.loss import approximate, pure
    >>> from sfumato.ledger.exact_budget import cost_amount
    >>> both = larger(cost_amount(approximate(1, "1/8")), cost_amount(pure(2)))
    >>> float(both.epsilon), float(both.delta)
    (2.0, 0.125)
    """
    a, b = one.curve, other.curve
    known = a.gaussian is not None and b.gaussian is not None
    squared = max(a.gaussian or Fraction(0), b.gaussian or Fraction(0)) if known else None
    chance, rest = max(a.delta, b.delta), max(one.delta - a.delta, other.delta - b.delta)
    return Amount(
        epsilon=max(one.epsilon, other.epsilon), delta=chance + rest,
        curve=Curve(rho=max(a.rho, b.rho), gaussian=squared, delta=chance),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PartCharge:
    """A charge to a part, for each account that it goes to."""

    part: DataPart
    totals: tuple[Amount, ...]
    """All charges of the account to this part."""
    largest: tuple[Amount, ...]
    """The largest part of the partition, for each account."""
    growth: tuple[Amount, ...]
    """By how much the totals of the accounts grow."""

    @classmethod
    def of(
        cls, part: DataPart, charges: Sequence[Amount], totals: Sequence[Amount], largest: Sequence[Amount]
    ) -> PartCharge:
        """Add charges to what the accounts were charged for the part, and for the largest one, before."""
        after = tuple(total + charge for total, charge in zip(totals, charges, strict=True))
        widest = tuple(larger(before, now) for before, now in zip(largest, after, strict=True))
        growth = tuple(_growth(now, before) for now, before in zip(widest, largest, strict=True))
        return cls(part=part, totals=after, largest=widest, growth=growth)


def _growth(now: Amount, before: Amount) -> Amount:
    """What was added; what was unknown before is in the total already."""
    grown = now - before
    if now.curve.gaussian is None and before.curve.gaussian is None:
        grown = replace(grown, curve=replace(grown.curve, gaussian=Fraction(0)))
    return grown
