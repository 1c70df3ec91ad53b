"""Contract checks for every kind of part, for our tests and yours: ``check_step(MyStep(...))``.

Each check raises AssertionError with a message that names the broken promise. Each module also exports its list of
single checks (``STEP_CHECKS``, ``MODEL_CHECKS``, ...), so that a test can run them one by one.
"""

from sfumato.testing.attacks import check_attack
from sfumato.testing.demos import check_demo
from sfumato.testing.engines import check_engine
from sfumato.testing.formats import check_format
from sfumato.testing.graphs import (
    check_graph_attack,
    check_graph_measure,
    check_graph_method,
    check_graph_model,
)
from sfumato.testing.hierarchies import check_hierarchy
from sfumato.testing.learners import check_learner
from sfumato.testing.measures import check_measure
from sfumato.testing.mechanisms import check_mechanism
from sfumato.testing.metrics import check_metric
from sfumato.testing.model_attacks import check_model_attack
from sfumato.testing.models import check_model
from sfumato.testing.parts import check_part
from sfumato.testing.policies import check_policy
from sfumato.testing.protocols import check_frequency_protocol, check_number_protocol
from sfumato.testing.query_attacks import check_query_attack
from sfumato.testing.release_checks import check_check
from sfumato.testing.sample import sample
from sfumato.testing.steps import check_step
from sfumato.testing.taggers import check_tagger

__all__ = [
    "check_attack",
    "check_check",
    "check_demo",
    "check_engine",
    "check_format",
    "check_frequency_protocol",
    "check_graph_attack",
    "check_graph_measure",
    "check_graph_method",
    "check_graph_model",
    "check_hierarchy",
    "check_learner",
    "check_measure",
    "check_mechanism",
    "check_metric",
    "check_model",
    "check_model_attack",
    "check_number_protocol",
    "check_part",
    "check_policy",
    "check_query_attack",
    "check_step",
    "check_tagger",
    "sample",
]
