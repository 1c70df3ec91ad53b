"""Base of the steps that reach k^m-anonymity."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sfumato.events.item_set_check import item_set_verdict
from sfumato.events.item_sets import Known, MinUnits
from sfumato.masking.base import Step
from sfumato.release import Verdict


class ItemSetStep(Step):
    """A truthful step after which every set of at most ``m`` items occurs in no unit or in at least ``k``."""

    truthful = True
    simulable = False
    stronger = {"k": "more", "m": "more"}
    reference = (
        "Terrovitis, Mamoulis, Kalnis: Privacy-preserving anonymization of set-valued data (2008), "
        "doi:10.14778/1453856.1453874"
    )

    item: str
    """Column with the items: products, queries, films, places."""
    k: MinUnits
    """Minimum number of people who share any ``m`` items."""
    m: Known
    """Number of items of a person that an attacker knows, at most."""
    person: str | None = None
    """Column that identifies a person. Default: the recipe's ``unit``."""

    @classmethod
    def verify_release(cls, published: Mapping[str, object], release: pl.DataFrame) -> tuple[Verdict, ...]:
        return (item_set_verdict(published, release),)
