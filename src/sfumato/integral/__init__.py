"""Integral privacy: what a model, or an old and a new model, tell about the data they were learned from."""

from sfumato.integral.encoding import ColumnEncoding, Encoding
from sfumato.integral.explanations import Explanations, explain, explain_groups
from sfumato.integral.generators import RecurrentModel, RecurrentModels, all_generators, sampled_generators
from sfumato.integral.learner import Learner
from sfumato.integral.local_search import explain_nearby
from sfumato.integral.modification import ChangeKind, Modification
from sfumato.integral.publication import Publication, Suggestion, decide_publication, suggest_changes
from sfumato.integral.records import Records

__all__ = [
    "ChangeKind",
    "ColumnEncoding",
    "Encoding",
    "Explanations",
    "Learner",
    "Modification",
    "Publication",
    "Records",
    "RecurrentModel",
    "RecurrentModels",
    "Suggestion",
    "all_generators",
    "decide_publication",
    "explain",
    "explain_groups",
    "explain_nearby",
    "sampled_generators",
    "suggest_changes",
]
