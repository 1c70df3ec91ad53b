# Made by `make docs`.
from sfumato.events.methods.generalize_items import GeneralizeItems as GeneralizeItems
from sfumato.events.item_sets import ItemSets as ItemSets
from sfumato.events.methods.microaggregate_units import MicroaggregateUnits as MicroaggregateUnits
from sfumato.events.methods.private_item_counts import PrivateItemCounts as PrivateItemCounts
from sfumato.events.methods.remove_identifying_items import RemoveIdentifyingItems as RemoveIdentifyingItems
from sfumato.events.methods.suppress_associations import SuppressAssociations as SuppressAssociations
from sfumato.events.methods.suppress_items import SuppressItems as SuppressItems
from sfumato.events.methods.truncate_times import TruncateTimes as TruncateTimes
from sfumato.events.identifying_queries import identifying_kinds as identifying_kinds
from sfumato.events.item_set_check import smallest_support as smallest_support
