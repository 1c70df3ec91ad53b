"""Published tables about people: hierarchical tables with a guarantee, and reconstruction of people from tables."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    Geography="geography",
    HierarchicalTables="topdown",
    PublishedStatistic="reconstruction",
    ReconstructedPeople="reconstruction",
    TopDownPlan="topdown",
    reconstruct="reconstruction",
)
