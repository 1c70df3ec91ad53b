"""Query service: grants, charges, retries, shared budgets, what analysts are told, tokens and budget requests."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from server_sample import COUNT, REASON, analyst, hospital_service, staff, write_hospital
from sfumato.dp.loss import pure
from sfumato.errors import (
    AccessDenied,
    AccountMoved,
    AnswerFailed,
    BadParameter,
    Cancelled,
    Conflict,
    LedgerBroken,
    NoSuchItem,
    NotSignedIn,
    OverBudget,
    QueryRefused,
    SfumatoError,
    UnknownBudget,
)
from sfumato.ledger.accounts import Period
from sfumato.server.datasets import DatasetState
from sfumato.server.roles import AccountRole, Scope
from sfumato.server.service import QueryService
from sfumato.server.tokens import PREFIX


@pytest.fixture
def service(tmp_path: Path) -> QueryService:
    return hospital_service(tmp_path)


def spent(service: QueryService, holder: str = "") -> object:
    return service.state.ledger.balance(dataset="hospital", analyst=holder).spent.size


def charges(service: QueryService) -> int:
    return sum(entry.kind == "spend" for entry in service.state.ledger.entries())


def test_an_analyst_asks_and_asks_again_for_free(service: QueryService) -> None:
    ada = analyst(service, "ada")
    first = service.ask(ada, "hospital", COUNT, epsilon="0.5")
    again = service.ask(ada, "hospital", COUNT, epsilon="0.5")
    assert (first.cached, again.cached) == (False, True)
    assert first.value == again.value
    assert first.remaining == pure("0.5")
    assert spent(service) == spent(service, "ada") == pure("0.5").size
    assert [question.state for question in service.questions(ada)] == ["done", "done"]


def test_the_answer_of_another_analyst_looks_new_and_costs_what_a_new_one_costs(service: QueryService) -> None:
    ada, bob = analyst(service, "ada"), analyst(service, "bob")
    first = service.ask(ada, "hospital", COUNT, epsilon="0.5")
    second = service.ask(bob, "hospital", COUNT, epsilon="0.5")
    assert replace(second, certificate=first.certificate) == first, (
        "value, cost, `cached` and remaining budget tell nothing about the other analyst"
    )
    assert first.certificate is not None
    assert second.certificate is not None
    one, other = (dict(answer.certificate["charges"][0]) for answer in (first, second))
    assert {**one, "entry": {}} == {**other, "entry": {}}, "only the hash of the own entry is another"
    assert set(one["entry"]) == {"hash"}
    assert spent(service) == pure(1).size
    assert spent(service, "bob") == pure("0.5").size
    service.state.ledger.verify()


def test_a_data_set_without_a_grant_does_not_exist(service: QueryService, tmp_path: Path) -> None:
    ada = analyst(service, "ada")
    service.registered.register_file(write_hospital(tmp_path / "other", dataset="clinic"), by="owner")
    seen = []
    for name in ("clinic", "nothing"):
        for attempt in (service.schema, service.explain, service.ask):
            more = () if attempt == service.schema else (COUNT,)
            with pytest.raises(NoSuchItem) as refusal:
                attempt(ada, name, *more)  # type: ignore[operator]
            seen.append(str(refusal.value))
    assert len(set(seen)) == 1
    assert [dataset.name for dataset in service.datasets(ada)] == ["hospital"]
    service.registered.set_grant("hospital", "ada", False, by="owner")
    with pytest.raises(NoSuchItem):
        service.ask(ada, "hospital", COUNT, epsilon="0.1")
    assert service.datasets(ada) == ()


@pytest.mark.parametrize("role", [AccountRole.ADMINISTRATOR, AccountRole.OWNER, AccountRole.AUDITOR])
def test_only_analysts_ask(service: QueryService, role: AccountRole) -> None:
    other = staff(service, "someone", role)
    service.registered.set_grant("hospital", "someone", True, by="owner")
    with pytest.raises(AccessDenied):
        service.ask(other, "hospital", COUNT, epsilon="0.1")
    assert charges(service) == 0


def test_an_analyst_without_a_budget_is_not_answered(service: QueryService) -> None:
    service.users.add("ada", roles=[AccountRole.ANALYST], by="owner")
    service.registered.set_grant("hospital", "ada", True, by="owner")
    with pytest.raises(UnknownBudget):
        service.ask(service.users.get("ada").principal(), "hospital", COUNT, epsilon="0.1")
    assert charges(service) == 0


def test_shared_budgets_tell_no_number(tmp_path: Path) -> None:
    service = hospital_service(tmp_path, epsilon="0.75")
    ada, bob = analyst(service, "ada"), analyst(service, "bob")
    service.ask(ada, "hospital", COUNT, epsilon="0.5")
    with pytest.raises(OverBudget) as refusal:
        service.ask(bob, "hospital", f"{COUNT} WHERE age > 3", epsilon="0.5")
    assert "0.25" not in str(refusal.value)
    assert "1/4" not in str(refusal.value)
    assert {balance.holder for balance in service.budget(bob)} == {"bob"}
    assert service.questions(bob)[0].state == "refused"


def test_groups_share_a_cap(service: QueryService) -> None:
    service.users.add_group("icu", by="owner")
    service.registered.set_grant("hospital", "@icu", True, by="owner")
    service.budgets.set_cap(pure("0.6"), dataset="hospital", holder="@icu", by="owner", why=REASON)
    principals = []
    for name in ("ada", "bob"):
        service.users.add(name, roles=[AccountRole.ANALYST], by="owner")
        service.users.set_member("icu", name, True, by="owner")
        principals.append(service.users.get(name).principal())
    service.ask(principals[0], "hospital", COUNT, epsilon="0.4")
    with pytest.raises(OverBudget):
        service.ask(principals[1], "hospital", f"{COUNT} WHERE age > 3", epsilon="0.4")
    service.ask(principals[1], "hospital", f"{COUNT} WHERE age > 3", epsilon="0.2")
    assert service.state.ledger.balance(dataset="hospital", analyst="@icu").left == pure(0)
    service.state.ledger.verify()
    with service.state.store.write() as transaction:
        transaction.query("DELETE FROM sfumato_ledger_index")
    with pytest.raises(LedgerBroken):
        service.state.ledger.verify()


def test_windows_need_a_lifetime_cap_and_show_the_accumulated_loss(service: QueryService) -> None:
    ada = analyst(service, "ada", epsilon=1)
    for period in (Period.MONTH, Period.YEAR):
        with pytest.raises(BadParameter, match="lifetime"):
            service.budgets.set_cap(pure(1), dataset="hospital", holder="bob", by="o", why=REASON, period=period)
    service.budgets.set_cap(pure("0.3"), dataset="hospital", holder="ada", by="o", why=REASON, period=Period.MONTH)
    service.ask(ada, "hospital", COUNT, epsilon="0.2")
    with pytest.raises(OverBudget, match="this month"):
        service.ask(ada, "hospital", f"{COUNT} WHERE age > 3", epsilon="0.2")
    by_period = {balance.period: balance for balance in service.budget(ada) if balance.dataset}
    assert by_period[Period.MONTH].left == pure("0.1")
    assert by_period[Period.MONTH].since_beginning == pure("0.2")
    assert by_period[Period.LIFETIME].left == pure("0.8")


def test_a_new_month_renews_the_window_and_not_the_lifetime(
    service: QueryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import datetime

    import sfumato.ledger.ledger as ledger_module

    ada = analyst(service, "ada", epsilon="0.5")
    service.budgets.set_cap(pure("0.3"), dataset="hospital", holder="ada", by="o", why=REASON, period=Period.MONTH)

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return datetime.fromisoformat(f"2099-{month:02d}-03T00:00:00+00:00")

    monkeypatch.setattr(ledger_module, "datetime", Later)
    answered = 0
    for month in (1, 2, 3):
        for age in range(3):
            try:
                service.ask(ada, "hospital", f"{COUNT} WHERE age > {10 * month + age}", epsilon="0.15")
                answered += 1
            except OverBudget:
                pass
    assert answered == 3, "two in January, one in February, none after the lifetime cap"
    month = 1
    service.state.ledger.record_event("the clock is set back")
    times = [entry.at for entry in service.state.ledger.entries()]
    assert times == sorted(times)


def test_a_cap_on_single_questions(service: QueryService) -> None:
    ada = analyst(service, "ada")
    service.budgets.set_cap(pure("0.2"), dataset="hospital", holder="", by="o", why=REASON, period=Period.QUESTION)
    with pytest.raises(OverBudget):
        service.ask(ada, "hospital", COUNT, epsilon="0.3")
    for age in range(3):
        service.ask(ada, "hospital", f"{COUNT} WHERE age > {age}", epsilon="0.2")


def test_a_limit_of_the_request(service: QueryService) -> None:
    ada = analyst(service, "ada", epsilon=5)
    with pytest.raises(OverBudget, match="limit of this request"):
        service.ask(ada, "hospital", f"{COUNT} ERROR 5 CONFIDENCE 95%", max_epsilon="0.1")
    assert charges(service) == 0
    service.ask(ada, "hospital", f"{COUNT} ERROR 5 CONFIDENCE 95%", max_epsilon=2)


def test_a_retry_never_pays_twice(service: QueryService) -> None:
    ada = analyst(service, "ada")
    first = service.ask(ada, "hospital", COUNT, epsilon="0.5", idempotency_key="k1")
    again = service.ask(ada, "hospital", COUNT, epsilon="0.5", idempotency_key="k1")
    assert (again.value, charges(service), len(service.questions(ada))) == (first.value, 1, 1)
    with pytest.raises(Conflict, match="another question"):
        service.ask(ada, "hospital", COUNT, epsilon="0.4", idempotency_key="k1")


def test_an_interrupted_question_is_finished_without_paying_again(
    service: QueryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = analyst(service, "ada", epsilon="0.5")

    class Killed(BaseException):
        pass

    def killed(*_: object) -> str:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.server.analyst_ledger.AnalystLedger.remember", killed)
        with pytest.raises(Killed):
            service.ask(ada, "hospital", COUNT, epsilon="0.5", idempotency_key="k")
    assert charges(service) == 1
    answer = service.ask(ada, "hospital", COUNT, epsilon="0.5", idempotency_key="k")
    assert (charges(service), answer.remaining) == (1, pure(0))


def test_a_failed_run_stays_charged_and_is_paid_again(service: QueryService, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = analyst(service, "ada")

    def failing(*_: object) -> object:
        raise ValueError("a value of the data: 17")

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.query.session.execute_plan", failing)
        for _ in range(2):  # a retry with the same key gets the same error, and pays nothing
            with pytest.raises(AnswerFailed) as failure:
                service.ask(ada, "hospital", COUNT, epsilon="0.3", idempotency_key="k")
            assert "17" not in str(failure.value)
            assert charges(service) == 1
    service.ask(ada, "hospital", COUNT, epsilon="0.3")
    assert charges(service) == 2


def test_cancelled_questions_give_no_answer(service: QueryService) -> None:
    ada, bob = analyst(service, "ada"), analyst(service, "bob")
    begun = service.begin(ada, "hospital", COUNT, epsilon="0.5")
    with pytest.raises(NoSuchItem):
        service.cancel(bob, begun.id)
    assert service.cancel(ada, begun.id).state == "cancelled"
    with pytest.raises(Cancelled):
        service.run(ada, service.log.get(begun.id))
    with pytest.raises(Cancelled):
        service.run(ada, begun)
    assert charges(service) == 0, "it was cancelled before its turn"
    question = service.log.get(begun.id)
    assert (question.state, question.entries) == ("cancelled", ())


@pytest.mark.parametrize("failing", [False, True])
def test_the_charge_of_a_question_that_is_cancelled_while_it_runs_is_recorded(
    service: QueryService, monkeypatch: pytest.MonkeyPatch, failing: bool
) -> None:
    import sfumato.query.session as module

    ada = analyst(service, "ada")
    begun = service.begin(ada, "hospital", COUNT, epsilon="0.5", idempotency_key="k")
    execute = module.execute_plan

    def cancelled(*given: object) -> object:
        assert service.cancel(ada, begun.id).entries is None, "not known while it runs"
        if failing:
            raise ValueError("a value of the data: 17")
        return execute(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "execute_plan", cancelled)
    with pytest.raises(Cancelled):  # whether it would have failed is not told
        service.run(ada, begun)
    [charge] = [entry.number for entry in service.state.ledger.entries() if entry.kind == "spend"]
    for _ in range(2):
        question = service.log.get(begun.id)
        assert (question.state, question.entries) == ("cancelled", (charge,))
        with pytest.raises(Cancelled):
            service.ask(ada, "hospital", COUNT, epsilon="0.5", idempotency_key="k")
    assert charges(service) == 1


def test_a_question_that_has_ended_cannot_be_cancelled(service: QueryService) -> None:
    ada = analyst(service, "ada")
    service.ask(ada, "hospital", COUNT, epsilon="0.5")
    [question] = service.questions(ada)
    service.log.cancel(question.id)  # as if it had ended just before
    assert service.log.get(question.id) == question
    assert service.result(ada, question.id).answer.cached


WORKLOAD = [f"{COUNT} WHERE age < {age}" for age in (20, 40, 60)]


def test_a_workload_is_charged_once_and_read_again_for_free(service: QueryService) -> None:
    ada, bob = analyst(service, "ada"), analyst(service, "bob")
    begun = service.begin_workload(ada, "hospital", WORKLOAD, epsilon="0.5", idempotency_key="k")
    assert begun.queries == tuple(WORKLOAD)
    first = service.run_workload(ada, begun).answer
    assert (first.cached, first.loss.size, len(first.values)) == (False, pure("0.5").size, 3)
    again = service.begin_workload(ada, "hospital", WORKLOAD, epsilon="0.5", idempotency_key="k")
    assert again.id == begun.id
    for read in (service.run_workload(ada, again).answer, service.result(ada, begun.id).answer):
        assert read == replace(first, cached=True)
    assert charges(service) == 1
    with pytest.raises(Conflict, match="another question"):
        service.ask(ada, "hospital", COUNT, epsilon="0.5", idempotency_key="k")
    with pytest.raises(NoSuchItem):
        service.result(bob, begun.id)
    other = service.run_workload(bob, service.begin_workload(bob, "hospital", WORKLOAD, epsilon="0.5")).answer
    own = [replace(answer, certificate=None) for answer in (other, first)]
    assert own[0] == own[1], "what another analyst asked is not told"
    entries = [answer.certificate["charges"][0]["entry"] for answer in (other, first) if answer.certificate]
    assert [set(entry) for entry in entries] == [{"hash"}] * 2
    assert entries[0] != entries[1], "each has the certificate of an own charge"
    assert spent(service) == pure(1).size
    assert spent(service, "ada") == spent(service, "bob") == pure("0.5").size
    [question] = service.questions(bob)
    assert (question.state, len(question.entries or ())) == ("done", 1)
    service.state.ledger.verify()


def test_refused_workloads_are_not_charged(service: QueryService) -> None:
    ada = analyst(service, "ada")

    def ask(queries: list[str], most: object = None, **cost: object) -> None:
        begun = service.begin_workload(ada, "hospital", queries, **cost)  # type: ignore[arg-type]
        service.run_workload(ada, begun, max_epsilon=most)  # type: ignore[arg-type]

    with pytest.raises(OverBudget):
        ask(WORKLOAD, epsilon="1.5")
    with pytest.raises(OverBudget, match="limit of this request"):
        ask(WORKLOAD, "0.1", epsilon="0.5")
    with pytest.raises(BadParameter, match="cost"):
        ask(WORKLOAD)
    for queries in ([COUNT] * 201, [COUNT + " " * 60_000] * 2, ["SELECT " + "(" * 300], [COUNT, "SELECT nonsense"]):
        with pytest.raises(QueryRefused):
            ask(queries, epsilon="0.1")
    service.registered.set_state("hospital", DatasetState.FROZEN, by="owner", why=REASON)
    with pytest.raises(Conflict):
        ask(WORKLOAD, epsilon="0.1")
    service.registered.set_grant("hospital", "ada", False, by="owner")
    with pytest.raises(NoSuchItem):
        ask(WORKLOAD, epsilon="0.1")
    with pytest.raises(NoSuchItem):
        service.analyze(ada, "hospital", COUNT, epsilon="0.1")
    assert charges(service) == 0


def test_frozen_data_sets_give_old_answers_only_and_retired_ones_none(service: QueryService) -> None:
    ada = analyst(service, "ada")
    first = service.ask(ada, "hospital", COUNT, epsilon="0.5")
    service.registered.set_state("hospital", DatasetState.FROZEN, by="owner", why=REASON)
    assert service.ask(ada, "hospital", COUNT, epsilon="0.5").value == first.value
    with pytest.raises(Conflict):
        service.ask(ada, "hospital", f"{COUNT} WHERE age > 3", epsilon="0.1")
    service.registered.set_state("hospital", DatasetState.RETIRED, by="owner", why=REASON)
    with pytest.raises(NoSuchItem):
        service.ask(ada, "hospital", COUNT, epsilon="0.5")
    with pytest.raises(Conflict):
        service.registered.set_state("hospital", DatasetState.ACTIVE, by="owner", why=REASON)
    assert charges(service) == 1


@pytest.mark.parametrize(
    "sql", ["SELECT " + "(" * 10_000 + "1" + ")" * 10_000, COUNT + " WHERE age > 0" + " " * 200_000, "SELECT '\ud800"]
)
def test_texts_that_no_parser_should_read(service: QueryService, sql: str) -> None:
    ada = analyst(service, "ada")
    with pytest.raises(SfumatoError):
        service.ask(ada, "hospital", sql, epsilon="0.1")
    with pytest.raises(QueryRefused):
        service.explain(ada, "hospital", sql, epsilon="0.1")
    assert charges(service) == 0


def test_tokens_are_stored_as_hashes_expire_and_are_revoked(service: QueryService, tmp_path: Path) -> None:
    analyst(service, "ada")
    made = service.tokens.create("ada", scopes=[Scope.ASK], days=1)
    assert made.secret.startswith(PREFIX)
    assert len(bytes.fromhex(made.secret.removeprefix(PREFIX))) == 32
    assert made.secret not in repr(made)
    with sqlite3.connect(tmp_path / "state" / "server.db") as outside:
        everything = "\n".join(outside.iterdump())
    assert made.secret not in everything
    assert hashlib.sha256(made.secret.encode()).hexdigest() in everything
    holder = service.tokens.authenticate(made.secret)
    assert (holder.name, holder.scopes) == ("ada", {Scope.ASK})
    assert service.tokens.get(made.token.id).last_used
    service.tokens.revoke(made.token.id)
    refusals = set()
    old = service.tokens.create("ada", scopes=[Scope.ASK], days=1e-9).secret
    service.users.add("bob", roles=[AccountRole.ANALYST], by="o")
    inactive = service.tokens.create("bob", scopes=[Scope.ASK], days=1).secret
    service.users.set_active("bob", False, by="o")
    for secret in (made.secret, old, inactive, "sfu_unknown", "", "\ud800"):
        with pytest.raises(NotSignedIn) as refusal:
            service.tokens.authenticate(secret)
        refusals.add(str(refusal.value))
    assert len(refusals) == 1


def test_the_scope_of_a_token_limits_its_holder(service: QueryService) -> None:
    ada = replace(analyst(service, "ada"), scopes=frozenset({Scope.READ}))
    with pytest.raises(AccessDenied):
        service.ask(ada, "hospital", COUNT, epsilon="0.1")


def test_scram_verifiers_prove_a_token_and_unknown_users_look_alike(service: QueryService) -> None:
    analyst(service, "ada")
    made = service.tokens.create("ada", scopes=[Scope.ASK], days=1)
    login, unknown = service.tokens.scram_login("ada"), service.tokens.scram_login("nobody")
    salted = hashlib.pbkdf2_hmac("sha256", made.secret.encode(), login.salt, login.iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    assert login.keys[0].stored_key == hashlib.sha256(client_key).digest()
    assert service.tokens.authenticated(login.keys[0].token).name == "ada"
    assert (len(unknown.salt), unknown.iterations) == (len(login.salt), login.iterations)
    assert unknown == service.tokens.scram_login("nobody")
    assert not unknown.keys


def test_a_higher_cap_needs_two_people(service: QueryService) -> None:
    analyst(service, "ada", epsilon="0.5")
    with pytest.raises(Conflict, match="two people"):
        service.budgets.set_cap(pure(1), dataset="hospital", holder="ada", by="owner", why=REASON)
    request = service.budgets.request(pure(1), dataset="hospital", holder="ada", by="ada", why="the second survey")
    with pytest.raises(AccessDenied):
        service.budgets.approve(request.id, by="ada")
    for _ in range(2):
        assert service.budgets.approve(request.id, by="olga").state == "open"
    assert service.state.ledger.balance(dataset="hospital", analyst="ada").cap == pure("0.5")
    assert service.budgets.approve(request.id, by="otto").state == "open"  # the owner of the data set has not agreed
    assert service.budgets.approve(request.id, by="owner").state == "approved"
    assert service.state.ledger.balance(dataset="hospital", analyst="ada").cap == pure(1)
    *_, last = service.state.ledger.entries()
    assert all(word in last.about for word in ("olga", "otto", "owner", "ada", "the second survey"))
    with pytest.raises(Conflict):
        service.budgets.approve(request.id, by="oscar")
    service.state.ledger.verify()


def test_earlier_charges_of_the_file_are_carried_over(tmp_path: Path) -> None:
    from sfumato.ledger import Charge, Ledger

    path = write_hospital(tmp_path / "data")
    earlier = Ledger.open(tmp_path / "data" / "unused.db")
    earlier.set_cap(pure(2), dataset="hospital")
    earlier.charge(Charge(loss=pure("0.5"), unit="row", what="q"), dataset="hospital", analyst="ana")
    service = QueryService.open(tmp_path / "state")
    for _ in range(2):
        service.registered.register_file(path, by="owner")
    assert service.state.ledger.balance(dataset="hospital").left == pure("1.5")


def test_a_registered_data_set_has_one_account(tmp_path: Path) -> None:
    """Registration moves the budget: the file's own ledger is closed, and no other server takes it."""
    import sfumato
    from sfumato.ledger.ledger import Ledger

    path = write_hospital(tmp_path / "data")
    Ledger.open(tmp_path / "data" / "unused.db").set_cap(pure(1), dataset="hospital")
    before = sfumato.session(path, analyst="ana")
    before.ask(COUNT, epsilon="0.25")
    service = QueryService.open(tmp_path / "state")
    service.registered.register_file(path, by="owner")
    assert service.state.ledger.balance(dataset="hospital").left == pure("0.75")
    again = f"{COUNT} WHERE age > 2"
    for session in (before, sfumato.session(path, analyst="ana")):
        with pytest.raises(AccountMoved, match="the sfumato server"):
            session.ask(again, epsilon="0.25")
        assert session.ask(COUNT, epsilon="0.25").cached
    with pytest.raises(AccountMoved):
        Ledger.open(tmp_path / "data" / "unused.db").set_cap(pure(2), dataset="hospital")
    for _ in range(2):  # a new version carries nothing over again
        path.write_text(path.read_text() + "\n# a comment\n")
        service.registered.register_file(path, by="owner")
    assert service.state.ledger.balance(dataset="hospital").left == pure("0.75")
    with pytest.raises(AccountMoved):
        QueryService.open(tmp_path / "other").registered.register_file(path, by="owner")
    service.state.ledger.verify()


@pytest.mark.parametrize(
    "data",
    ["../data/patients.csv", "{folder}/patients.csv", "postgresql://u@h/b#t", "{{file: ../data/patients.csv}}",
     "{{url: ../data/patients.csv}}", "{{url: {folder}/patients.csv}}", "{{url: '{folder}/absent.csv'}}"],
)  # fmt: skip
def test_files_outside_the_data_folder_cannot_be_registered_by_request(tmp_path: Path, data: str) -> None:
    service = QueryService.open(tmp_path / "state")
    path = write_hospital(tmp_path / "data")
    text = path.read_text().replace("ledger: unused.db\n", "")
    text = text.replace("data: patients.csv", f"data: {data.format(folder=path.parent)}")
    with pytest.raises((BadParameter, AccessDenied), match=r"outside of|server's machine only"):
        service.registered.register(text, base=tmp_path / "elsewhere", by="o", confined=True)
    assert service.registered.all() == ()


@pytest.mark.parametrize("tables", ["[1]", "[]"])
@pytest.mark.parametrize("place", ["{folder}/hospital.yaml", "../data/hospital.yaml", "inner.yml"])
def test_a_request_names_no_other_document(tmp_path: Path, tables: str, place: str) -> None:
    """A document that lies somewhere would bring a ledger and files of its own."""
    service = QueryService.open(tmp_path / "state")
    path = write_hospital(tmp_path / "data")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "inner.yml").write_text(path.read_text())
    text = f"sfumato: 1\ndataset: {place.format(folder=path.parent)}\ntables: {tables}\n"
    with pytest.raises(BadParameter, match="names no other one"):
        service.registered.register(text, base=tmp_path / "elsewhere", by="o", confined=True)
    assert service.registered.all() == ()
    assert not list(tmp_path.rglob("unused.db"))


def test_refusals_do_not_measure_what_others_spent(tmp_path: Path) -> None:
    """A search by free refusals finds the next lower power of two of what is left, and no digit more."""
    service = hospital_service(tmp_path, epsilon=10)
    ada, bob = analyst(service, "ada", epsilon=100), analyst(service, "bob", epsilon=100)
    service.ask(bob, "hospital", COUNT, epsilon="6.87")

    def refused(epsilon: str) -> bool:
        try:
            service.ask(ada, "hospital", f"{COUNT} WHERE age > 3", epsilon=epsilon)
        except OverBudget as refusal:
            return refusal.facts["remaining"] is None
        return False

    assert [refused(epsilon) for epsilon in ("4", "3.14", "2.5", "2.01")] == [True] * 4  # 3.13 is left
    assert not refused("2")
    service.state.ledger.set_cap(pure(20), dataset="hospital", by="owner", why="more")
    assert not refused("4")


def test_the_analyst_s_own_budget_is_told_before_a_shared_one(tmp_path: Path) -> None:
    service = hospital_service(tmp_path, epsilon=1)
    with pytest.raises(OverBudget, match="your budget on this data set"):
        service.ask(analyst(service, "ada", epsilon=2), "hospital", COUNT, epsilon="3")


def test_questions_without_a_charge_are_kept_in_a_ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, cancelled before their turn, or asked before: they are free, and would fill the disk."""
    monkeypatch.setattr("sfumato.server.question_log._MOST_FREE", 5)
    service = hospital_service(tmp_path)
    ada, bob = analyst(service, "ada"), analyst(service, "bob")
    service.ask(ada, "hospital", COUNT, epsilon="0.1")
    service.ask(bob, "hospital", COUNT, epsilon="0.1")
    for number in range(12):
        with pytest.raises(QueryRefused):
            service.ask(ada, "hospital", f"SELECT age + {number} FROM patients", epsilon="0.1")
        assert service.ask(ada, "hospital", COUNT, epsilon="0.1").cached
        begun = service.begin(ada, "hospital", f"{COUNT} WHERE age > {number}", epsilon="0.1")
        service.cancel(ada, begun.id)
        with pytest.raises(Cancelled):
            service.run(ada, begun)
    kept = service.questions(ada)
    assert sum(bool(question.entries) for question in kept) == 1, "what was charged is kept"
    assert len(kept) <= 1 + 6
    assert {question.state for question in kept} == {"refused", "cancelled", "done"}
    assert len(service.questions(bob)) == 1, "of others nothing is forgotten"


@pytest.mark.parametrize("line", ["ledger: earlier.db", "ledger: /etc/passwd", "ledger: ':memory:'"])
def test_the_ledger_of_a_served_data_set_is_the_server_s(tmp_path: Path, line: str) -> None:
    service = QueryService.open(tmp_path / "state")
    path = write_hospital(tmp_path / "data")
    text = path.read_text().replace("ledger: unused.db", line)
    with pytest.raises(BadParameter, match="the server keeps the budget"):
        service.registered.register(text, base=path.parent, by="o", confined=True)
    assert not (tmp_path / "data" / "earlier.db").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dataset: hospital\nperson: row\ntables:", "dataset: /etc/nothing.yaml\nabout:"),
        ("domain: {values: [east, west]}", "hierarchy: {file: /etc/passwd}"),
        ("data: patients.csv", "data: {file: /etc/passwd}"),
    ],
)
def test_a_request_learns_nothing_about_files_elsewhere(tmp_path: Path, old: str, new: str) -> None:
    service = QueryService.open(tmp_path / "state")
    path = write_hospital(tmp_path / "data")
    plain = path.read_text().replace("ledger: unused.db\n", "")
    with pytest.raises(BadParameter, match="data set"):
        service.registered.register(plain.replace(old, new), base=path.parent, by="o", confined=True)
    with pytest.raises(SfumatoError) as refused:
        service.registered.register(plain.replace("patients.csv", "none.csv"), base=path.parent, by="o", confined=True)
    assert str(tmp_path) not in str(refused.value)
    assert "none.csv" in str(refused.value)
