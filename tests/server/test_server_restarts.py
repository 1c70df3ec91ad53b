"""PostgreSQL is restarted while a question runs: a clear error, charged at most once, nothing unpaid, the server goes
on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
import psycopg

from postgres import restart, server
from server_sample import COUNT, METADATA, REASON, analyst, hospital_service
from sfumato.dp.loss import pure
from sfumato.errors import AnswerFailed, WriteFailed
from sfumato.server.service import QueryService


@pytest.fixture(scope="module")
def database() -> Iterator[tuple[str, Path]]:
    try:
        with server() as (url, data):
            yield url, data
    except RuntimeError as reason:
        pytest.skip(str(reason))


def charges(service: QueryService) -> int:
    return sum(entry.kind == "spend" for entry in service.state.ledger.entries())


def once(work: Callable[[], None], then: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does some work before its first call."""
    waiting = [work]

    def wrapped(*given: Any, **options: Any) -> Any:
        while waiting:
            waiting.pop()()
        return then(*given, **options)

    return wrapped


def test_the_database_of_the_ledger_is_restarted_in_mid_question(
    database: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sfumato.ledger.stores.postgres as store
    import sfumato.query.session as session

    url, data = database
    service = hospital_service(tmp_path, where=url)
    ada = analyst(service, "ada")

    # After the charge: the answer is computed on other tables, and the ledger is reached again.
    with monkeypatch.context() as patched:
        patched.setattr(session, "execute_plan", once(lambda: restart(data), session.execute_plan))
        first = service.ask(ada, "hospital", COUNT, epsilon="0.3", idempotency_key="a")
    assert (charges(service), first.remaining) == (1, pure("0.7"))

    # Within the transaction that charges: nothing is charged, nothing is answered.
    def within(*given: Any) -> Any:
        restart(data)
        return query(*given)

    query = store._Transaction.query
    other = f"{COUNT} WHERE age > 3"
    begun = service.begin(ada, "hospital", other, epsilon="0.3", idempotency_key="b")
    with monkeypatch.context() as patched:
        reserve = service.state.ledger.charge.__func__  # type: ignore[attr-defined]

        def reserving(*given: Any, **options: Any) -> Any:
            with patched.context() as inner:
                inner.setattr(store._Transaction, "query", within)
                return reserve(*given, **options)

        patched.setattr("sfumato.ledger.ledger.Ledger.charge", reserving)
        with pytest.raises(WriteFailed, match="nothing is answered"):
            service.run(ada, begun)
    assert charges(service) == 1

    # The same request again is answered and paid once; the first answer is still there.
    again = service.ask(ada, "hospital", other, epsilon="0.3", idempotency_key="b")
    assert (charges(service), again.remaining) == (2, pure("0.4"))
    assert service.ask(ada, "hospital", COUNT, epsilon="0.3").value == first.value
    assert [question.state for question in service.questions(ada)] == ["done"] * 3
    service.state.ledger.verify()


def test_the_database_of_the_data_is_restarted_in_mid_question(
    database: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sfumato.query.session as session

    url, data = database
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE patients (ward text, age bigint)")
        connection.execute("INSERT INTO patients SELECT 'east', i % 90 FROM generate_series(1, 400) AS i")
    path = tmp_path / "hospital.yaml"
    path.write_text(METADATA.replace("data: patients.csv", f"data: {url}#public.patients"))
    service = QueryService.open(tmp_path / "state")
    service.registered.register_file(path, by="owner")
    service.budgets.set_cap(pure(10), dataset="hospital", holder="", by="owner", why=REASON)
    ada = analyst(service, "ada")
    with monkeypatch.context() as patched:
        patched.setattr(session, "execute_plan", once(lambda: restart(data), session.execute_plan))
        for _ in range(2):  # a retry with the same key gets the same error, and pays nothing
            with pytest.raises(AnswerFailed, match="charged"):
                service.ask(ada, "hospital", COUNT, epsilon="0.3", idempotency_key="a")
            assert charges(service) == 1
    [question] = service.questions(ada)
    assert (question.state, len(question.entries or ())) == ("failed", 1)
    restart(data)  # between two questions: it is not noticed
    answer = service.ask(ada, "hospital", COUNT, epsilon="0.3")
    assert (charges(service), answer.cached) == (2, False)
    service.state.ledger.verify()
