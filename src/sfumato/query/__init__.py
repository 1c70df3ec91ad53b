"""Private answers: SQL in, noisy numbers with intervals out, every grain of budget accounted for."""

from sfumato.query.plan.catalog import Catalog, PrivateTable, PublicTable
from sfumato.query.results.answer import Answer
from sfumato.query.results.explain import Explanation
from sfumato.query.session import QueryOptions, Session
from sfumato.registry import exports

__all__ = ["Answer", "Catalog", "Explanation", "PrivateTable", "PublicTable", "QueryOptions", "Session"]

__getattr__, __dir__ = exports(__name__)
