# Made by `make docs`.
from sfumato.sequences.methods.generalize_items import GeneralizeItems as GeneralizeItems
from sfumato.sequences.item_sets import ItemSets as ItemSets
from sfumato.sequences.methods.microaggregate_units import MicroaggregateUnits as MicroaggregateUnits
from sfumato.sequences.methods.private_item_counts import PrivateItemCounts as PrivateItemCounts
from sfumato.sequences.methods.remove_identifying_items import RemoveIdentifyingItems as RemoveIdentifyingItems
from sfumato.sequences.synthetic_log import SearchLog as SearchLog
from sfumato.sequences.methods.suppress_associations import SuppressAssociations as SuppressAssociations
from sfumato.sequences.methods.suppress_items import SuppressItems as SuppressItems
from sfumato.sequences.methods.truncate_times import TruncateTimes as TruncateTimes
from sfumato.sequences.synthetic_queries import held_out_queries as held_out_queries
from sfumato.sequences.identifying_queries import identifying_kinds as identifying_kinds
from sfumato.sequences.ambiguous_queries import more_held_out_queries as more_held_out_queries
from sfumato.sequences.synthetic_log import search_log as search_log
from sfumato.sequences.item_set_check import smallest_support as smallest_support
