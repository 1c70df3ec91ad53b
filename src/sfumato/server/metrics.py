"""Metrics in Prometheus' format. No number depends on the data: there are no times and no outcomes of questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from sfumato import __version__
from sfumato.errors import SfumatoError

if TYPE_CHECKING:
    from sfumato.server.service import QueryService


class Metrics:
    """Counts of one server process, at both doors."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()  # not the process collector: its CPU time depends on the data
        self._requests = Counter("sfumato_requests", "Requests by door and operation.", ["door", "operation"],
                                 registry=registry)  # fmt: skip
        self.connections = Gauge("sfumato_postgres_connections", "Open PostgreSQL connections.", registry=registry)
        self._entries = Gauge("sfumato_ledger_entries", "Entries of the ledger.", registry=registry)
        self._ready = Gauge("sfumato_ready", "Whether questions can be answered, as /readyz says.", registry=registry)
        Gauge("sfumato_build", "Version.", ["version"], registry=registry).labels(__version__).set(1)

    def count(self, door: str, operation: str) -> None:
        """Count a request."""
        self._requests.labels(door, operation).inc()

    def text(self, service: QueryService) -> bytes:
        """All metrics."""
        self._entries.set(service.state.ledger.head()[0])
        try:
            service.check_ready()
            self._ready.set(1)
        except SfumatoError:
            self._ready.set(0)
        return generate_latest(self._registry)
