"""Baskets, search logs, ratings and trajectories: tables with many rows (events) per person.

The recipe's ``unit`` is the column that identifies a person; a step names the column with the items. The methods are
masking methods like all others and run by ``sfumato protect``:

>>> import polars as pl
>>> from sfumato.data.table import Table
>>> from sfumato.masking.base import Context
>>> from sfumato.rng import Rng
>>> from sfumato.dataset import Data, Schema
>>> from sfumato.events import SuppressItems
>>> baskets = pl.DataFrame({"buyer": [1, 1, 2, 2, 3], "product": ["bread", "milk", "bread", "milk", "caviar"]})
>>> data = Data.of(Table(frame=baskets), Schema(columns={}, unit="buyer"))
>>> step = SuppressItems(item="product", k=2, m=2)
>>> step.apply(data, Context(rng=Rng(1))).table.frame["product"].unique().sort().to_list()
['bread', 'milk']
"""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    ItemSets="item_sets",
    identifying_kinds="identifying_queries",
    smallest_support="item_set_check",
)
