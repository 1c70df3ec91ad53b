"""Requests that come at the same moment, on both stores: one of them wins, and nothing is paid or used twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server_sample import COUNT, analyst, hospital_service, staff, token
from sfumato.dp.loss import pure
from sfumato.errors import NotSignedIn, OverBudget, SfumatoError
from sfumato.server.account_sessions import AccountSessions
from sfumato.server.roles import AccountRole
from sfumato.server.service import QueryService

AT_ONCE = 8


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QueryService]:
    where = None if request.param == "sqlite" else own_database(request)
    made = hospital_service(tmp_path, where=where)
    yield made
    made.state.close()


def own_database(request: pytest.FixtureRequest) -> str:
    url = str(request.getfixturevalue("postgresql"))
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS server_races")
        connection.execute("CREATE DATABASE server_races")
    return url.replace("/postgres", "/server_races")


def at_once(work: Callable[[int], object]) -> list[object]:
    """What each of several threads returns, or the refusal that it gets; all begin at the same moment."""
    ready = threading.Barrier(AT_ONCE)

    def run(number: int) -> object:
        ready.wait()
        try:
            return work(number)
        except SfumatoError as refusal:
            return type(refusal)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(run, range(AT_ONCE)))


def spent(service: QueryService, holder: str = "") -> object:
    service.state.ledger.verify()
    return service.state.ledger.balance(dataset="hospital", analyst=holder).spent


def test_one_idempotency_key_pays_once(service: QueryService) -> None:
    ada = analyst(service, "ada")
    told = at_once(lambda _: service.ask(ada, "hospital", COUNT, epsilon="0.5", idempotency_key="k").value)
    assert len(set(told)) == 1
    assert spent(service, "ada") == pure("1/2")


def test_the_same_question_of_one_analyst_pays_once(service: QueryService) -> None:
    ada = analyst(service, "ada")
    told = at_once(lambda _: service.ask(ada, "hospital", COUNT, epsilon="0.5").value)
    assert len(set(told)) == 1
    assert spent(service, "ada") == pure("1/2")


def test_the_same_question_of_several_analysts_has_one_answer_and_each_pays(service: QueryService) -> None:
    asking = [analyst(service, f"a{number}") for number in range(AT_ONCE)]
    told = at_once(lambda number: service.ask(asking[number], "hospital", COUNT, epsilon="0.5").value)
    assert len(set(told)) == 1
    assert spent(service) == pure(f"{AT_ONCE}/2")


def test_racing_questions_do_not_pass_a_cap(service: QueryService) -> None:
    ada = analyst(service, "ada")
    told = at_once(lambda number: service.ask(ada, "hospital", f"{COUNT} WHERE age > {number}", epsilon="0.3").loss)
    assert [one for one in told if one is not OverBudget] == [pure("0.3")] * 3
    assert spent(service, "ada") == pure("0.9")


def test_caps_of_groups_hold_among_their_members(service: QueryService) -> None:
    service.users.add_group("icu", by="test")
    for number in range(AT_ONCE):
        analyst(service, f"a{number}")
        service.users.set_member("icu", f"a{number}", True, by="test")
    service.budgets.set_cap(pure(2), dataset="hospital", holder="@icu", by="test", why="trial")
    asking = [service.users.get(f"a{number}").principal() for number in range(AT_ONCE)]
    told = at_once(lambda number: service.ask(asking[number], "hospital", COUNT, epsilon="0.7").loss)
    assert told.count(OverBudget) == AT_ONCE - 2
    assert spent(service, "@icu") == pure("1.4")


def test_a_link_is_used_once(service: QueryService) -> None:
    staff(service, "otto", AccountRole.OWNER)
    sessions = AccountSessions(service.state)
    link = sessions.make_link("otto")
    told = at_once(lambda _: sessions.redeem(link))
    assert told.count("otto") == 1


def test_two_approvals_at_once_raise_a_cap_once(service: QueryService) -> None:
    analyst(service, "ada")
    wish = {"dataset": "hospital", "holder": "ada", "by": "ada", "why": "second study"}
    made = service.budgets.request(pure(3), **wish)
    at_once(lambda number: service.budgets.approve(made.id, by=("owner", "root")[number % 2]).state)
    assert service.budgets.get(made.id).state == "approved"
    assert service.state.ledger.balance(dataset="hospital", analyst="ada").cap == pure(3)
    service.state.ledger.verify()


def test_a_token_that_is_revoked_ends_what_comes_after(service: QueryService) -> None:
    analyst(service, "ada")
    secret = token(service, "ada")
    [known] = service.tokens.of("ada")

    def work(number: int) -> object:
        if not number:
            return service.tokens.revoke(known.id).revoked
        return service.ask(service.tokens.authenticate(secret), "hospital", COUNT, epsilon="0.1").value

    at_once(work)
    assert spent(service, "ada") in (pure(0), pure("0.1"))
    with pytest.raises(NotSignedIn):
        service.tokens.authenticate(secret)
