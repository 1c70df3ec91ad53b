"""sfumato: statistical data privacy. Release microdata, answer queries, attack both, measure what is left.

>>> import sfumato
>>> proposal = sfumato.propose(frame)                                # doctest: +SKIP
>>> recipe = sfumato.decide(proposal.recipe(k=5), {"ht": "quasi"}, rest="drop", by="A. Steward")  # doctest: +SKIP
>>> result = sfumato.protect(recipe, frame)                          # doctest: +SKIP
>>> result.data                                                      # doctest: +SKIP
>>> sfumato.attack(result)                                           # doctest: +SKIP
>>> result.save("release/")                                          # doctest: +SKIP
>>> sfumato.session("hospital.yaml").ask("SELECT COUNT(*) FROM visits", epsilon=1)      # doctest: +SKIP

Everything below is loaded on first use, so that ``import sfumato`` stays fast. Type checkers see the real signatures.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # known to type checkers; `typing` takes longer to load than the rest of this module
    from sfumato.api.attack import attack as attack
    from sfumato.api.attack_model import attack_model as attack_model
    from sfumato.api.attack_queries import attack_queries as attack_queries
    from sfumato.api.check import check as check
    from sfumato.api.collect import SurveyEstimates as SurveyEstimates
    from sfumato.api.collect import design_survey as design_survey
    from sfumato.api.collect import estimate_survey as estimate_survey
    from sfumato.api.collect import randomize_answers as randomize_answers
    from sfumato.api.connect import RemoteSession as RemoteSession
    from sfumato.api.connect import connect as connect
    from sfumato.api.decide import decide as decide
    from sfumato.api.hierarchy import HierarchyCheck as HierarchyCheck
    from sfumato.api.hierarchy import check_hierarchies as check_hierarchies
    from sfumato.api.hierarchy import hierarchy_of as hierarchy_of
    from sfumato.api.init import Draft as Draft
    from sfumato.api.init import init as init
    from sfumato.api.learn import LearnResults as LearnResults
    from sfumato.api.learn import learn as learn
    from sfumato.api.ledger import LedgerOverview as LedgerOverview
    from sfumato.api.ledger import ledger_overview as ledger_overview
    from sfumato.api.ledger import set_budget as set_budget
    from sfumato.api.link import LinkResult as LinkResult
    from sfumato.api.link import link as link
    from sfumato.api.measure import measure as measure
    from sfumato.api.predict import predict as predict
    from sfumato.api.propose import propose as propose
    from sfumato.api.protect import protect as protect
    from sfumato.api.protection import Protection as Protection
    from sfumato.api.report import report as report
    from sfumato.api.results import AttackResults as AttackResults
    from sfumato.api.results import CheckResults as CheckResults
    from sfumato.api.results import MeasureResults as MeasureResults
    from sfumato.api.session import session as session
    from sfumato.api.study import study as study
    from sfumato.api.verify import verify as verify
    from sfumato.data import read as read
    from sfumato.data import write as write
    from sfumato.dataset import Column as Column
    from sfumato.dataset import Data as Data
    from sfumato.dataset import Role as Role
    from sfumato.dataset import Schema as Schema
    from sfumato.errors import SfumatoError as SfumatoError
    from sfumato.query import Session as Session
    from sfumato.recipe import Limits as Limits
    from sfumato.recipe import Recipe as Recipe
    from sfumato.rng import KeyedRng as KeyedRng
    from sfumato.rng import Rng as Rng
    from sfumato.studies import Study as Study

__version__ = "0.2.0.dev0"

_HOME = {
    "api.attack": ("attack",),
    "api.attack_model": ("attack_model",),
    "api.attack_queries": ("attack_queries",),
    "api.check": ("check",),
    "api.collect": ("SurveyEstimates", "design_survey", "estimate_survey", "randomize_answers"),
    "api.connect": ("RemoteSession", "connect"),
    "api.decide": ("decide",),
    "api.hierarchy": ("HierarchyCheck", "check_hierarchies", "hierarchy_of"),
    "api.init": ("Draft", "init"),
    "api.learn": ("LearnResults", "learn"),
    "api.ledger": ("LedgerOverview", "ledger_overview", "set_budget"),
    "api.link": ("LinkResult", "link"),
    "api.measure": ("measure",),
    "api.predict": ("predict",),
    "api.propose": ("propose",),
    "api.protect": ("protect",),
    "api.protection": ("Protection",),
    "api.report": ("report",),
    "api.results": ("AttackResults", "CheckResults", "MeasureResults"),
    "api.session": ("session",),
    "api.study": ("study",),
    "api.verify": ("verify",),
    "data": ("read", "write"),
    "errors": ("SfumatoError",),
    "query": ("Session",),
    "recipe": ("Limits", "Recipe"),
    "rng": ("KeyedRng", "Rng"),
    "dataset": ("Column", "Data", "Role", "Schema"),
    "studies": ("Study",),
}
"""Module of each public name. A test compares it with the imports above."""

__all__ = [
    "__version__",
    *(name for names in _HOME.values() for name in names),
]

if not TYPE_CHECKING:

    def __getattr__(name):
        import importlib

        for module, names in _HOME.items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted(__all__)
