"""Private answers: SQL in, noisy numbers with intervals out, every grain of budget accounted for."""

from sfumato.query.catalog import Catalog, PrivateTable, PublicTable
from sfumato.query.results.explain import Explanation
from sfumato.query.session import Answer, Session
from sfumato.registry import exports

__all__ = ["Answer", "Catalog", "Explanation", "PrivateTable", "PublicTable", "Session"]

__getattr__, __dir__ = exports(__name__)
