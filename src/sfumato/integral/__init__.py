"""Integral privacy: what a model, or an old and a new model, tell about the data they were learned from."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    ChangeKind="modification",
    ColumnEncoding="encoding",
    Encoding="encoding",
    Explanations="explanations",
    Learner="learner",
    Modification="modification",
    Publication="publication",
    Records="records",
    RecurrentModel="generators",
    RecurrentModels="generators",
    Suggestion="publication",
    all_generators="generators",
    decide_publication="publication",
    explain="explanations",
    explain_groups="explanations",
    explain_nearby="local_search",
    sampled_generators="generators",
    suggest_changes="publication",
)
