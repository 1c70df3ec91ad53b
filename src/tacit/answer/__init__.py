"""Private answers: SQL in, noisy numbers with intervals out, every grain of budget accounted for."""

from tacit.answer.catalog import Catalog, PrivateTable, PublicTable
from tacit.answer.explanation import Explanation
from tacit.answer.session import Answer, Session

__all__ = ["Answer", "Catalog", "Explanation", "PrivateTable", "PublicTable", "Session"]
