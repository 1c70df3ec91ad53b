"""Removal of identifying queries."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.dataset import Data
from sfumato.errors import BadParameter
from sfumato.events.identifying_queries import KINDS, QueryKind, identifying_kinds
from sfumato.masking.base import Context, Step
from sfumato.release import Change


class RemoveIdentifyingItems(Step):
    """Remove events whose text contains a name, a place, an account number or a contact.

    For search queries and other short texts. Names are found by lists of given and family names, account numbers by
    their check digits, places by ZIP codes, streets and US states. Rules miss names that are not in the lists. A single
    query seldom identifies its author, and many harmless ones together do: this step alone protects nobody. Use it with
    ``suppress-items`` or ``private-item-counts`` and measure ``item-uniqueness``. Truthful.
    """

    report_phrase = "texts with names, places, accounts or contacts removed"
    truthful = True
    keeps_rows = False
    simulable = False
    examples = ({"item": "diagnosis"}, {"item": "diagnosis", "kinds": ["name", "account"]})
    reference = (
        "Jones, Kumar, Pang, Tomkins: Vanity fair: privacy in querylog bundles (2008), doi:10.1145/1458082.1458195"
    )

    item: str
    """Column with the texts."""
    kinds: tuple[QueryKind, ...] = KINDS
    """Kinds of identifiers whose texts are removed."""

    def apply(self, data: Data, context: Context) -> Change:
        data.table.require([self.item])
        texts = data.table.column(self.item)
        if texts.dtype not in (pl.String, pl.Categorical) and not isinstance(texts.dtype, pl.Enum):
            raise BadParameter(f"remove-identifying-items: `{self.item}` holds no texts.", column=self.item)
        found = identifying_kinds(texts)
        rows = np.flatnonzero(~found.is_in(list(self.kinds)).fill_null(value=False).to_numpy()).astype(np.int64)
        counts = found.drop_nulls().value_counts().sort(texts.name).iter_rows()
        return Change(
            table=data.table.with_frame(data.table.frame[rows]),
            rows=rows,
            public={"columns": [self.item]},
            private={"found": {str(kind): int(count) for kind, count in counts}, "rows_removed": data.rows - len(rows)},
        )
