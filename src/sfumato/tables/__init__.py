"""Published tables about people: suppressed, rounded or with a guarantee, and attacks on them."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    AreaBound="topdown_plan",
    Geography="geography",
    HierarchicalTables="hierarchical_tables",
    ProtectionLevels="sensitivity",
    PublishedStatistic="reconstruction",
    PublishedTable="interval_audit",
    ReconstructedPeople="reconstruction",
    RoundedTable="controlled_rounding",
    SensitivityRules="sensitivity",
    SummaryFile="summary_file",
    SuppressedTable="suppression",
    TablePlan="plan",
    TopDownFile="topdown_file",
    TopDownPlan="topdown_plan",
    combine="interval_audit",
    interval_attack="interval_audit",
    reconstruct="reconstruction",
    round_table="controlled_rounding",
    suppress="suppression",
    tabulate="cells",
)
