"""Schema of a table: column roles, kinds, domains and generalization hierarchies."""

from sfumato.dataset.column import Column, Kind, Role
from sfumato.dataset.data import Data, Schema
from sfumato.dataset.domain import Domain, PeriodDomain, RangeDomain, ValuesDomain
from sfumato.dataset.hierarchy import ROOT, BoundHierarchy, Hierarchy, Level
from sfumato.registry import exports

__all__ = [
    "ROOT",
    "BoundHierarchy",
    "Column",
    "Data",
    "Domain",
    "Hierarchy",
    "Kind",
    "Level",
    "PeriodDomain",
    "RangeDomain",
    "Role",
    "Schema",
    "ValuesDomain",
]

__getattr__, __dir__ = exports(__name__)
