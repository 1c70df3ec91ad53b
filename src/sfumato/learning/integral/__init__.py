"""Integral privacy: what a model, or an old and a new model, tell about the data they were learned from."""

from sfumato.learning.integral.encoding import ColumnEncoding, Encoding
from sfumato.learning.integral.explanations import Explanations, explain, explain_groups
from sfumato.learning.integral.generators import RecurrentModel, RecurrentModels, all_generators, sampled_generators
from sfumato.learning.integral.learner import Learner
from sfumato.learning.integral.local_search import explain_nearby
from sfumato.learning.integral.modification import ChangeKind, Modification
from sfumato.learning.integral.publication import Publication, Suggestion, decide_publication, suggest_changes
from sfumato.learning.integral.records import Records

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
