"""What Python and the command line share: one typed function per verb."""

from sfumato.api.attack import attack
from sfumato.api.attack_model import attack_model
from sfumato.api.attack_queries import attack_queries
from sfumato.api.check import check
from sfumato.api.connect import RemoteSession, connect
from sfumato.api.decide import decide
from sfumato.api.learn import LearnResults, learn
from sfumato.api.ledger import LedgerOverview, ledger_overview, set_budget
from sfumato.api.link import LinkResult, link
from sfumato.api.measure import measure
from sfumato.api.propose import propose
from sfumato.api.protect import protect
from sfumato.api.protection import Protection
from sfumato.api.report import report
from sfumato.api.results import AttackResults, CheckResults, MeasureResults
from sfumato.api.session import session
from sfumato.api.study import study
from sfumato.api.verify import verify
from sfumato.registry import exports

__all__ = [
    "AttackResults",
    "CheckResults",
    "LearnResults",
    "LedgerOverview",
    "LinkResult",
    "MeasureResults",
    "Protection",
    "RemoteSession",
    "attack",
    "attack_model",
    "attack_queries",
    "check",
    "connect",
    "decide",
    "learn",
    "ledger_overview",
    "link",
    "measure",
    "propose",
    "protect",
    "report",
    "session",
    "set_budget",
    "study",
    "verify",
]

__getattr__, __dir__ = exports(__name__)
