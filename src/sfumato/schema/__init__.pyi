# Made by `make docs`.
from sfumato.schema.hierarchy import BoundHierarchy as BoundHierarchy
from sfumato.schema.column import Column as Column
from sfumato.schema.dataset import Dataset as Dataset
from sfumato.schema.hierarchies.dates import DatesHierarchy as DatesHierarchy
from sfumato.schema.column import Domain as Domain
from sfumato.schema.hierarchies.file import FileHierarchy as FileHierarchy
from sfumato.schema.hierarchies.groups import GroupsHierarchy as GroupsHierarchy
from sfumato.schema.hierarchy import Hierarchy as Hierarchy
from sfumato.schema.hierarchies.intervals import IntervalsHierarchy as IntervalsHierarchy
from sfumato.schema.column import Kind as Kind
from sfumato.schema.hierarchy import Level as Level
from sfumato.schema.hierarchies.mask import MaskHierarchy as MaskHierarchy
from sfumato.schema.hierarchy import ROOT as ROOT
from sfumato.schema.column import Role as Role
from sfumato.schema.dataset import Schema as Schema
from sfumato.schema.hierarchies.table import TableHierarchy as TableHierarchy
from sfumato.schema.hierarchies.taxonomy import TaxonomyHierarchy as TaxonomyHierarchy
