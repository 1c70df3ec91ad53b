"""Connect to a query server: the methods of a session, answered over REST."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Unpack, cast
from urllib.parse import urlsplit
from uuid import uuid4

from sfumato.errors import BadParameter, DatabaseFailed, NotSignedIn, SfumatoError, catalogue
from sfumato.extras import missing_extra
from sfumato.rationals import rational
from sfumato.wording import did_you_mean

if TYPE_CHECKING:
    import httpx

    from sfumato.dp.loss import PrivacyLoss
    from sfumato.query.builder import Builder
    from sfumato.query.dbapi import Connection
    from sfumato.query.fit_limits import FittedLimits
    from sfumato.query.plan.catalog import Catalog
    from sfumato.query.results.answer import Answer
    from sfumato.query.results.explain import Explanation
    from sfumato.query.session import QueryOptions, Session
    from sfumato.query.workload import WorkloadAnswer
    from sfumato.rationals import Number

_TRIES = 4


def connect(url: str, *, token: str | None = None, dataset: str | None = None) -> RemoteSession:
    """Connect to a data set on a query server.

    Parameters
    ----------
    url
        Address of the server, as ``sfumato serve`` prints it.
    token
        An API token; the environment variable ``SFUMATO_TOKEN`` if left out.
    dataset
        Name of the data set; may be left out if there is only one that you may ask.

    Returns
    -------
    RemoteSession
        With the methods of :class:`sfumato.Session`: ``ask``, ``explain``, ``analyze``, ``workload``, ``catalog``.
    """
    secret = token or os.environ.get("SFUMATO_TOKEN")
    if not secret:
        raise NotSignedIn("A token is needed.", fix="Pass token=..., or set SFUMATO_TOKEN.")
    place = urlsplit(url)
    local = place.hostname in ("127.0.0.1", "localhost", "::1")
    if place.scheme not in ("http", "https") or not place.hostname or (place.scheme == "http" and not local):
        raise BadParameter(
            "a server is reached by https, or by http on this machine.", fix="Use the address that it prints."
        )
    remote = _Remote(f"{place.scheme}://{place.netloc}", secret)
    known = [entry["name"] for entry in remote.get("/datasets")["datasets"]]
    if dataset is None and len(known) != 1:
        raise BadParameter("which data set?", fix=f"Pass dataset=... {did_you_mean('', known)}")
    return RemoteSession(remote, dataset or known[0])


class _Remote:
    """Requests to one server."""

    def __init__(self, address: str, token: str) -> None:
        try:
            import httpx
        except ImportError:
            raise missing_extra("server", "httpx", needed_by="A connection to a server") from None
        self.address = address
        self._client = httpx.Client(
            base_url=f"{address}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(10, read=None),
        )

    def get(self, path: str) -> dict[str, Any]:
        return self._send("GET", path)

    def post(self, path: str, body: Mapping[str, object], *, key: str | None = None) -> dict[str, Any]:
        return self._send("POST", path, body, key)

    def _send(
        self, method: str, path: str, body: Mapping[str, object] | None = None, key: str | None = None
    ) -> dict[str, object]:
        """Send a request; one with an idempotency key is sent again if the connection breaks, and pays once."""
        import httpx

        headers = {"Idempotency-Key": key} if key else {}
        tries = _TRIES if key or method == "GET" else 1
        for attempt in range(tries):
            try:
                response = self._client.request(method, path, json=body, headers=headers)
                break
            except httpx.TransportError:
                if attempt == tries - 1:
                    raise DatabaseFailed(
                        "The server cannot be reached.", fix="Check the address. A question that was charged is kept."
                    ) from None
                time.sleep(0.2 * 2**attempt)
        if not response.is_success:
            _raise(response)
        found: dict[str, object] = response.json()
        return found


def _raise(response: httpx.Response) -> NoReturn:
    """The server's error, as the error that a local session raises."""
    try:
        error = dict(response.json()["error"])
        code, message, fix = error.pop("code"), error.pop("message"), error.pop("fix")
    except (ValueError, KeyError, TypeError):
        raise DatabaseFailed(f"The server answered with status {response.status_code}.") from None
    kind = next((kind for kind in catalogue() if kind.code == code), SfumatoError)
    refusal = kind.__new__(kind)
    SfumatoError.__init__(refusal, message, fix=fix, **error)
    raise refusal


class RemoteSession:
    """Asks a data set on a server, with the methods of :class:`sfumato.Session`."""

    def __init__(self, remote: _Remote, dataset: str) -> None:
        self._remote, self.dataset = remote, dataset

    def __repr__(self) -> str:
        return f"<RemoteSession: data set {self.dataset} at {self._remote.address}>"

    def ask(self, sql: str, **options: Unpack[QueryOptions]) -> Answer:
        """The answer to a query, as :meth:`sfumato.Session.ask`. If the connection breaks, it is asked again and paid
        once."""
        return _answer(
            self._remote.post(f"/datasets/{self.dataset}/ask", _body({"sql": sql}, options), key=uuid4().hex)
        )

    def explain(self, sql: str, **options: Unpack[QueryOptions]) -> Explanation:
        """Cost and expected error, as :meth:`sfumato.Session.explain`."""
        body = _body({"sql": sql}, options)
        return _explanation(self._remote.post(f"/datasets/{self.dataset}/explain", body)["explanation"])

    def analyze(self, sql: str, **options: Unpack[QueryOptions]) -> str:
        """The privacy analysis of a query, as :meth:`sfumato.Session.analyze`."""
        return str(self._remote.post(f"/datasets/{self.dataset}/analyze", _body({"sql": sql}, options))["analysis"])

    @cached_property
    def catalog(self) -> Catalog:
        """The declared tables, columns and domains, and the public tables; read once."""
        from sfumato.query.catalog_document import catalog_from_dict

        return catalog_from_dict(self._remote.get(f"/datasets/{self.dataset}/catalog"))

    def schema(self) -> list[dict[str, object]]:
        """The tables with their columns and declared domains."""
        tables: list[dict[str, object]] = self._remote.get(f"/datasets/{self.dataset}/schema")["tables"]
        return tables

    def remaining(self) -> PrivacyLoss | None:
        """The smallest of your own remaining budgets."""
        budgets = self._remote.get("/budget")["budgets"]
        known = [
            _loss(budget["left"])
            for budget in budgets
            if budget["left"] and budget["dataset"] in ("", self.dataset) and budget["period"] != "question"
        ]
        return min(known, key=lambda loss: loss.size, default=None)

    def connect(self, *, intervals: bool = False, **options: Unpack[QueryOptions]) -> Connection:
        """A DB-API 2.0 connection, as :meth:`sfumato.Session.connect`."""
        from sfumato.query.dbapi import Connection

        return Connection(cast("Session", self), intervals=intervals, options=options)

    def table(self, name: str) -> Builder:
        """Start a query without SQL, as :meth:`sfumato.Session.table`."""
        from sfumato.query.builder import Builder

        return Builder(session=cast("Session", self), source=name)

    def fit_limits(
        self, table: str, *, epsilon: Number, by: Sequence[str] = (), share: Number = "0.95", most: int = 100
    ) -> FittedLimits:
        """Choose ``rows`` and ``groups`` privately, as :meth:`sfumato.Session.fit_limits`."""
        from sfumato.query.fit_limits import fit_limits

        return fit_limits(cast("Session", self), table, epsilon=epsilon, by=by, share=share, most=most)

    def workload(
        self,
        queries: Sequence[str],
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        rows: int | None = None,
        groups: int | None = None,
    ) -> WorkloadAnswer:
        """Many counts for one cost, as :meth:`sfumato.Session.workload`. If the connection breaks, they are asked again
        and paid once."""
        options = {"epsilon": epsilon, "delta": delta, "rho": rho, "rows": rows, "groups": groups}
        body = _body({"queries": list(queries)}, options)
        return _workload_answer(self._remote.post(f"/datasets/{self.dataset}/workload", body, key=uuid4().hex))


def _body(asked: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, object]:
    given = dict(asked)
    for name, value in options.items():
        if value is not None:
            given[name] = value if name in ("rows", "groups", "bounding") else _written(value)
    return given


def _written(amount: Number) -> str:
    """An amount as the server reads it: as given, without an exponent."""
    text = str(amount)
    return str(rational(amount)) if "e" in text.lower() else text


def _loss(shown: Mapping[str, str]) -> PrivacyLoss:
    from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure

    [measure] = shown.keys() - {"delta"}
    return PrivacyLoss(measure=PrivacyMeasure(measure), size=Fraction(shown[measure]), delta=Fraction(shown["delta"]))


def _explanation(shown: Mapping[str, Any]) -> Explanation:
    from sfumato.query.results.explain import Explanation, NoiseSummary

    if "cost" not in shown:
        return Explanation(policy=shown["policy"], notes=tuple(shown["notes"][1:]))
    return Explanation(
        cost=shown["cost"], replaced=shown.get("replaced", ""), groups=shown["groups"],
        bounding=shown["bounding"], needed=shown["needed"],
        noises=tuple(NoiseSummary(**noise) for noise in shown["noise"]),
        confidence=Fraction(str(shown["confidence"])), notes=tuple(shown["notes"]),
    )  # fmt: skip


def _workload_answer(shown: Mapping[str, Any]) -> WorkloadAnswer:
    from sfumato.query.results.postprocess import NoisyValue
    from sfumato.query.workload import WorkloadAnswer

    return WorkloadAnswer(
        values=tuple(NoisyValue(**cell) for cell in shown["values"]), strategy=shown["strategy"],
        error=shown["root_mean_square_error"], alternatives=shown["alternatives"], loss=_loss(shown["loss"]),
        cached=shown["cached"], limits=shown["limits"], certificate=shown["certificate"],
        kept=None if shown["kept"] is None else NoisyValue(**shown["kept"]),
    )  # fmt: skip


_READ = {"date": date.fromisoformat, "datetime": datetime.fromisoformat}


def _answer(shown: Mapping[str, Any]) -> Answer:
    from sfumato.query.results.answer import Answer
    from sfumato.query.results.explain import Explanation
    from sfumato.query.results.postprocess import NoisyValue

    def cell(value: Any, kind: str, low: Any, high: Any) -> NoisyValue:
        read = _READ[kind](value) if kind in _READ and value is not None else value
        return NoisyValue(value=read, low=low, high=high)

    columns = tuple(shown["columns"])
    rows = tuple(
        tuple(cell(row[name]["value"], kind, row[name]["low"], row[name]["high"])
              for name, kind in zip(columns, shown["types"], strict=True))
        for row in shown["rows"]
    )  # fmt: skip
    if "loss" not in shown:
        explanation = Explanation(policy=shown["policy"], notes=tuple(shown["notes"]))
        return Answer(columns=columns, rows=rows, explanation=explanation, counterfeits=shown["counterfeits"])
    remaining = shown["remaining"]
    return Answer(
        columns=columns, rows=rows, explanation=_explanation(shown["explanation"]), loss=_loss(shown["loss"]),
        cached=shown["cached"], remaining=None if remaining is None else _loss(remaining),
        kept=None if shown.get("kept") is None else NoisyValue(**shown["kept"]),
        limits=shown.get("limits"), certificate=shown.get("certificate"),
    )  # fmt: skip
