"""Metrics in Prometheus' format. No number depends on the data: there are no times and no outcomes of questions."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from sfumato import __version__
from sfumato.ledger.ledger import Ledger


class Metrics:
    """Counts of one server process."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._registry = CollectorRegistry()  # without the process collector: its CPU time depends on the data
        self._requests = Counter("sfumato_requests", "Requests, by operation.", ["operation"], registry=self._registry)
        self._entries = Gauge("sfumato_ledger_entries", "Entries of the ledger.", registry=self._registry)
        Gauge("sfumato_build", "Version.", ["version"], registry=self._registry).labels(__version__).set(1)

    def count(self, operation: str) -> None:
        """Count a request."""
        self._requests.labels(operation).inc()

    def text(self) -> bytes:
        """All metrics."""
        self._entries.set(self._ledger.head()[0])
        return generate_latest(self._registry)
