"""Differentially private counts of items and queries (ZEALOUS)."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from sfumato.dataset import Data
from sfumato.dp.contribution_bounds import bound_items
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.errors import BadParameter, NotApplicable
from sfumato.events.item_sets import declared_unit, event_codes
from sfumato.ledger.charge import Charge, charge_run
from sfumato.masking.base import Context, Step
from sfumato.rationals import rational
from sfumato.release import Change
from sfumato.release.guarantee import Guarantee
from sfumato.secret import MeasuredNumbers, SecretValue


class PrivateItemCounts(Step):
    """Replace the table by noisy counts of the frequent items, with two thresholds (ZEALOUS).

    The result is (epsilon, delta)-differentially private for all rows of one person; neighbouring tables differ by one
    person. At most ``max_items`` different items of each person are counted, drawn at random. Items of fewer than
    ``first_threshold`` people are dropped, noise is added to the other counts, and items are released if the noisy
    count reaches a second threshold, which follows from epsilon and delta. A rare query, such as one that contains a
    name, is released with probability at most delta. Noise is exact discrete Laplace noise from the operating system.

    The released table has the item and its noisy number of people, the most frequent first. Sessions, sequences and who
    searched what are gone. Must be the first step: the guarantee does not hold for values that another step made from
    the data of several people.
    """

    report_phrase = "counted with differentially private noise; rare values are not released"
    simulable = False
    keeps_rows = False
    formal_guarantee = True
    stronger = {"epsilon": "less", "delta": "less", "first_threshold": "more"}
    exempt = {
        "repeatable by seed": "Noise that can be repeated can be subtracted.",
        "no data value in public": "Everything published is noisy.",
    }
    examples = ({"item": "diagnosis", "person": "household", "epsilon": 3, "delta": 1e-3, "max_items": 2},)
    synthetic = True
    reference = (
        "Götz, Machanavajjhala, Wang, Xiao, Gehrke: Publishing search logs (2012), doi:10.1109/TKDE.2011.26; "
        "Korolova, Kenthapadi, Mishra, Ntoulas: Releasing search queries and clicks privately (2009), "
        "doi:10.1145/1526709.1526733"
    )

    item: str
    """Column with the items: products, queries, films, places."""
    epsilon: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
    """Privacy loss. There is no default."""
    delta: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
    """Probability with which an item of a single person may be released."""
    max_items: Annotated[int, Field(ge=1, le=100_000)]
    """Number of different items of one person that are counted, at most. More items need more noise."""
    first_threshold: Annotated[int, Field(ge=1)] = 1
    """Items of fewer people are dropped before noise is added; the second threshold rises by as much."""
    person: str | None = None
    """Column that identifies a person. Default: the recipe's ``unit``."""
    count: str = "people"
    """Name of the column with the noisy counts."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.count == self.item:
            raise ValueError("`count` must be another name than `item`")
        return self

    def mechanism(self) -> ThresholdedLaplace:
        """Noise and second threshold. They depend on the parameters alone.

        Adding a person moves at most ``max_items`` counts by 1. An item that only the larger table keeps has a count of
        exactly ``first_threshold`` there, so a single person decides over its release if the noise bridges the distance
        of the two thresholds: this is the ``max_contribution`` of the mechanism.
        """
        return ThresholdedLaplace.for_budget(
            rational(self.epsilon),
            rational(self.delta),
            sensitivity=self.max_items,
            max_contribution=self.first_threshold,
            keys=self.max_items,
        )

    def apply(self, data: Data, context: Context) -> Change:
        if context.before:
            raise NotApplicable(
                "private-item-counts must be the first step: its guarantee does not hold for values that another step "
                "made from the data of several people.",
                fix="Move it to the front.",
            )
        unit = declared_unit(data, self.person, self.part_name())
        data.table.require([self.item])
        if unit == self.item:
            raise BadParameter("private-item-counts: the unit cannot be the item.", fix="Name the column of the items.")
        mechanism = self.mechanism()
        loss = mechanism.loss(self.max_items)
        # A row without a person counts for nobody; to refuse it would tell that there is one.
        units, codes, items = event_codes(data.table.frame.drop_nulls(unit), unit, self.item)
        person = data.schema.privacy_unit if unit in (data.schema.unit, data.schema.key) else unit
        counts, cut = bound_items(units, codes, count=len(items), most=self.max_items, unit=person)
        run = Charge.of_run(loss, unit=person, name=self.part_name(), public=self.public(), bounds=cut)
        ledger, dataset = context.account or (None, None)
        receipt = charge_run(run, ledger=ledger, dataset=dataset)
        kept = np.flatnonzero(counts >= self.first_threshold)
        measured = MeasuredNumbers(kind="items", numbers={"most": self.max_items, "alone": self.first_threshold})
        secret = SecretValue(counts[kept], measured=measured)
        noisy = mechanism.release(secret, receipt=receipt, sensitivity=self.max_items)
        shown = ~np.isnan(noisy)
        frame = pl.DataFrame(
            {self.item: items.gather(kept[shown]), self.count: noisy[shown].astype(np.int64)}
        ).sort(self.count, self.item, descending=[True, False])  # fmt: skip
        guarantee = Guarantee(
            loss=loss, unit=person, max_rows=self.max_items,
            proof=f"{mechanism.proof}; two thresholds: Götz et al. 2012",
            parameters={
                "max_items": self.max_items, "first_threshold": self.first_threshold,
                "second_threshold": float(mechanism.limit), "noise_scale": float(mechanism.scale),
            },
        ).charged(receipt)  # fmt: skip
        return Change(
            table=data.table.with_frame(frame),
            rows=np.full(frame.height, -1, dtype=np.int64),
            public={"columns": [self.item, self.count], "formal_guarantee": True, "guarantee": guarantee.to_dict()},
            private={"items": len(items), "items_released": frame.height},
            verdicts=(guarantee.verdict(wanted=self.epsilon),),
        )
