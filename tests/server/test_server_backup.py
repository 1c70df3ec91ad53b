"""Restore drills: an old ledger gives no budget back, on SQLite and PostgreSQL, with every kind of witness."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from server_sample import COUNT, REASON, analyst, hospital_service, token
from sfumato.cli import main
from sfumato.dp.loss import PrivacyLoss, approximate, pure
from sfumato.errors import (
    Conflict,
    InvalidRecipe,
    LedgerBroken,
    LedgerRolledBack,
    NotSignedIn,
    OutputExists,
    SfumatoError,
    WriteFailed,
)
from sfumato.ledger.ledger import Entry
from sfumato.server.backup import back_up, restore, verify
from sfumato.server.service import QueryService
from sfumato.server.settings import load_settings
from sfumato.server.state import ServerState
from sfumato.server.witness import Witness, WitnessStore, witness_store


@pytest.fixture(params=["file", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the witness is kept."""
    if request.param == "file":
        yield str(tmp_path / "outside" / "witness.jsonl")
        return
    yield _database(request.getfixturevalue("postgresql"), "witness")


def _database(server: str, name: str) -> str:
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres", f"/{name}")


def seen(service: QueryService, place: str | None) -> WitnessStore:
    """Write the witness once, as a server does every second."""
    store = witness_store(service.state, place)
    Witness(service.state, store).write()
    return store


def started(state: ServerState, place: str | None) -> Witness:
    witness = Witness(state, witness_store(state, place))
    witness.start()
    return witness


def drill(service: QueryService) -> Callable[[], None]:
    """Spend before the backup; what is returned spends after it, by a group, a repeat and another analyst."""
    service.users.add_group("team", by="test")
    ada, bob = analyst(service, "ada", epsilon=8), analyst(service, "bob", epsilon=8)
    service.users.set_member("team", "ada", True, by="test")
    service.users.set_member("team", "bob", True, by="test")
    service.budgets.set_cap(pure(8), dataset="hospital", holder="@team", by="test", why=REASON)
    ada, bob = (service.users.get(name).principal() for name in ("ada", "bob"))
    service.ask(ada, "hospital", COUNT, epsilon="1")

    def later() -> None:
        service.ask(ada, "hospital", f"{COUNT} WHERE age > 1", epsilon="2")
        service.ask(bob, "hospital", f"{COUNT} WHERE age > 1", epsilon="2")
        service.ask(bob, "hospital", f"{COUNT} WHERE age > 2", epsilon="0.5")
        service.budgets.set_cap(pure(9), dataset="hospital", holder="", by="owner", why="lower")

    return later


def standing(state: ServerState) -> list[tuple[PrivacyLoss, PrivacyLoss | None]]:
    """Spent and cap of the data set, the group and both analysts."""
    balances = [state.ledger.balance(dataset="hospital", analyst=who) for who in ("", "@team", "ada", "bob")]
    return [(one.spent, one.cap) for one in balances]


def test_a_restore_brings_no_budget_back(tmp_path: Path, place: str) -> None:
    service = hospital_service(tmp_path)
    later = drill(service)
    back_up(service.state, tmp_path / "backup.db")
    with pytest.raises(OutputExists):
        back_up(service.state, tmp_path / "backup.db")
    assert (tmp_path / "backup.db").stat().st_mode & 0o077 == 0
    later()
    seen(service, place)
    before = standing(service.state)
    assert before[1][0] == pure("5.5")
    for folder in ("new machine", "a third one"):  # a second restore of the same backup charges as much
        charged = restore(str(tmp_path / folder), tmp_path / "backup.db", witness=place, by="op")
        assert charged == {("hospital", "ada"): pure("2"), ("hospital", "bob"): pure("2.5")}
        restored = ServerState.open(tmp_path / folder)
        assert standing(restored) == before
        verify(restored, witness_store(restored, place))
        started(restored, place).stop()  # the server starts again


def test_a_restore_on_postgresql_brings_no_budget_back(tmp_path: Path, postgresql: str) -> None:
    """The database is put back by PostgreSQL's own means; then one command charges again."""
    address, copy = _database(postgresql, "served"), _database(postgresql, "restored")
    service = hospital_service(tmp_path, where=address)
    later = drill(service)
    _copy_database(postgresql, "served", "restored", service)
    later()
    place = str(tmp_path / "witness.jsonl")
    seen(service, place)
    before = standing(service.state)
    with pytest.raises(LedgerRolledBack, match="old copy"):
        verify(ServerState.open(copy), witness_store(ServerState.open(copy), place))
    assert main(["server", "--state", copy, "restore", "--witness", place]) == 0
    assert standing(ServerState.open(copy)) == before
    assert main(["server", "--state", copy, "verify", "--witness", place]) == 0


def _copy_database(server: str, source: str, target: str, service: QueryService) -> None:
    import psycopg

    service.state.close()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {target} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {target} TEMPLATE {source}")
    service.state.store._connection.close()  # type: ignore[attr-defined]


def test_the_database_that_is_replaced_stays_whole_and_is_charged_again(tmp_path: Path) -> None:
    service = hospital_service(tmp_path)
    later = drill(service)
    back_up(service.state, tmp_path / "backup.db")
    later()
    before, folder = standing(service.state), tmp_path / "state"
    place = str(tmp_path / "never written.jsonl")
    with pytest.raises(Conflict, match="in use"):
        restore(str(folder), tmp_path / "backup.db", witness=place, by="op")
    service.state.close()
    restore(str(folder), tmp_path / "backup.db", witness=place, by="op")
    assert standing(ServerState.open(folder)) == before
    [kept] = folder.glob("replaced-*.db")
    with closing(sqlite3.connect(kept)) as database:
        assert database.execute("SELECT count(*) FROM sfumato_server_questions").fetchone() == (4,)


def test_what_is_in_the_write_ahead_log_alone_is_kept(tmp_path: Path) -> None:
    """A server that was killed leaves everything since the last checkpoint in the log."""
    service = hospital_service(tmp_path)
    back_up(service.state, tmp_path / "backup.db")
    service.ask(analyst(service, "ada"), "hospital", COUNT, epsilon="1")
    folder = tmp_path / "killed"
    folder.mkdir()
    for name in ("server.db", "server.db-wal"):
        (folder / name).write_bytes((tmp_path / "state" / name).read_bytes())
    assert (folder / "server.db-wal").stat().st_size > 0
    restore(str(folder), tmp_path / "backup.db", witness=str(tmp_path / "none"), by="op")
    assert ServerState.open(folder).ledger.balance(dataset="hospital").spent == pure(1)


def test_losses_that_compose_are_charged_one_by_one(tmp_path: Path) -> None:
    """A sum of ε would cost more than the composition of the same charges did."""
    service = hospital_service(tmp_path, epsilon=100)
    service.state.ledger.set_cap(approximate("20", "1e-6"), dataset="hospital", by="owner", why=REASON)
    ada = analyst(service, "ada", epsilon=50)
    back_up(service.state, tmp_path / "backup.db")
    for age in range(40):
        service.ask(ada, "hospital", f"{COUNT} WHERE age > {age}", epsilon="0.1")
    place = str(tmp_path / "witness.jsonl")
    seen(service, place)
    restore(str(tmp_path / "new"), tmp_path / "backup.db", witness=place, by="op")
    balance = ServerState.open(tmp_path / "new").ledger.balance(dataset="hospital")
    assert balance == service.state.ledger.balance(dataset="hospital")
    assert balance.spent.size < pure(4).size


def test_an_interrupted_restore_does_not_charge_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = hospital_service(tmp_path)
    later = drill(service)
    back_up(service.state, tmp_path / "backup.db")
    later()
    place, folder = str(tmp_path / "witness.jsonl"), str(tmp_path / "new")
    store = seen(service, place)
    carried = ServerState.open
    monkeypatch.setattr(type(store), "extend", lambda *_: 1 / 0)  # it ends before the witness is told
    with pytest.raises(ZeroDivisionError):
        restore(folder, tmp_path / "backup.db", witness=place, by="op")
    monkeypatch.undo()
    restore(folder, None, witness=place, by="op")
    assert standing(carried(folder)) == standing(service.state)


def test_an_old_copy_is_noticed_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness belongs to the ledger, not to a path."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    service = hospital_service(tmp_path)
    ada = analyst(service, "ada")
    started(service.state, None).stop()
    back_up(service.state, tmp_path / "backup.db")
    service.ask(ada, "hospital", COUNT, epsilon="0.1")
    store = seen(service, None)
    verify(service.state, store)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "backup.db").rename(tmp_path / "elsewhere" / "server.db")
    old = ServerState.open(tmp_path / "elsewhere")
    with pytest.raises(LedgerRolledBack, match="old copy"):
        Witness(old, witness_store(old, None)).start()
    with pytest.raises(LedgerRolledBack, match="old copy"):
        verify(old, witness_store(old, None))
    with pytest.raises(LedgerBroken):
        verify(old, store, last=service.state.ledger.head()[1])


def test_a_start_without_the_witness_is_decided_and_entered(tmp_path: Path) -> None:
    service = hospital_service(tmp_path)
    path = tmp_path / "witness.jsonl"
    started(service.state, str(path)).stop()
    path.unlink()
    lost = Witness(service.state, witness_store(service.state, str(path)))
    with pytest.raises(LedgerRolledBack, match="not there"):
        lost.start()
    with pytest.raises(LedgerRolledBack, match="not there"):
        verify(service.state, witness_store(service.state, str(path)))
    lost.start(without="the disk burnt", by="op")
    lost.stop()
    events = [json.loads(one.about) for one in service.state.ledger.entries() if '"witness"' in one.about]
    assert [(one["by"], one["why"]) for one in events] == [("server", "first start"), ("op", "the disk burnt")]
    assert verify(service.state, witness_store(service.state, str(path)))


class Failing:
    """A witness on a disk that is full for a while."""

    place, full, breaks = "somewhere", False, False

    def __init__(self) -> None:
        self.kept: list[Entry] = []

    def extend(self, following: Callable[[Entry | None], object]) -> None:
        if self.full:
            raise OSError
        new = list(following(self.kept[-1] if self.kept else None))  # type: ignore[call-overload]
        if self.breaks:
            raise OSError("full")
        self.kept += new

    def entries(self) -> Iterator[Entry]:
        return iter(self.kept)


def test_a_witness_that_cannot_be_written_stops_questions_until_it_can(tmp_path: Path) -> None:
    service = hospital_service(tmp_path)
    ada, store = analyst(service, "ada"), Failing()
    service.witness = Witness(service.state, store, seconds=0.01)  # type: ignore[arg-type]
    service.witness.start()
    service.ask(ada, "hospital", COUNT, epsilon="0.1")
    store.full = True
    _until(service, WriteFailed)
    with pytest.raises(WriteFailed, match="witness"):
        service.ask(ada, "hospital", f"{COUNT} WHERE age > 1", epsilon="0.1")
    store.full = False
    _until(service, None)
    service.ask(ada, "hospital", f"{COUNT} WHERE age > 1", epsilon="0.1")
    service.witness.stop()
    assert [one.hash for one in store.kept] == [one.hash for one in service.state.ledger.entries()]


class Waiting(Failing):
    """A witness behind a network that neither answers nor fails."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.reached.set()

    def extend(self, following: Callable[[Entry | None], object]) -> None:
        self.reached.wait()
        super().extend(following)


def test_a_witness_that_does_not_answer_stops_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.witness._LATE_SECONDS", 0.5)
    service = hospital_service(tmp_path)
    ada, store = analyst(service, "ada"), Waiting()
    service.witness = Witness(service.state, store, seconds=0.01)  # type: ignore[arg-type]
    service.witness.start()
    service.ask(ada, "hospital", COUNT, epsilon="0.1")
    store.reached.clear()
    _until(service, WriteFailed)
    with pytest.raises(WriteFailed, match="witness"):
        service.ask(ada, "hospital", f"{COUNT} WHERE age > 1", epsilon="0.1")
    store.reached.set()
    _until(service, None)
    service.witness.stop()


def test_a_witness_in_postgresql_that_is_locked_fails_in_time(
    tmp_path: Path, postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr("sfumato.server.witness_stores._MOST_MILLISECONDS", 1000)
    address = _database(postgresql, "locked")
    store = seen(service := hospital_service(tmp_path), address)
    with psycopg.connect(address) as other:
        other.execute("LOCK TABLE sfumato_witness IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(WriteFailed):
            Witness(service.state, store).write()
    Witness(service.state, store).write()


def _until(service: QueryService, kind: type[Exception] | None) -> None:
    import time

    for _ in range(1000):
        try:
            service.check_ready()
            found = None
        except Exception as failure:
            found = type(failure)
        if found is kind:
            return
        time.sleep(0.01)
    raise AssertionError


def test_a_torn_line_of_the_witness_is_written_again(tmp_path: Path) -> None:
    service = hospital_service(tmp_path)
    path = tmp_path / "witness.jsonl"
    store = seen(service, str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    seen(service, str(path))
    assert path.read_bytes() == whole
    assert len(list(store.entries())) == service.state.ledger.head()[0]
    assert path.stat().st_mode & 0o077 == 0


def test_a_restore_ends_sessions_and_tokens(tmp_path: Path) -> None:
    service = hospital_service(tmp_path)
    ada = analyst(service, "ada")
    secret = token(service, "ada")
    back_up(service.state, tmp_path / "backup.db")
    service.ask(ada, "hospital", COUNT, epsilon="0.1")
    service.state.close()
    restore(str(tmp_path / "state"), tmp_path / "backup.db", witness=str(tmp_path / "none"), by="op")
    restored = QueryService.open(tmp_path / "state")
    with pytest.raises(NotSignedIn):
        restored.tokens.authenticate(secret)
    restored.ask(ada, "hospital", COUNT, epsilon="0.1")  # its answer is not stored here: it is charged again
    assert restored.state.ledger.balance(dataset="hospital", analyst="ada").spent == pure("0.2")


def test_a_restore_without_any_witness_is_decided_and_changes_nothing_before(tmp_path: Path) -> None:
    service = hospital_service(tmp_path)
    back_up(service.state, tmp_path / "backup.db")
    new, place = str(tmp_path / "new"), str(tmp_path / "none")
    with pytest.raises(LedgerRolledBack, match="not there"):
        restore(new, tmp_path / "backup.db", witness=place, by="op")
    assert not (tmp_path / "new" / "server.db").exists()
    other = hospital_service(tmp_path / "other")
    seen(other, str(tmp_path / "of another server"))
    with pytest.raises(Exception, match="another server"):
        restore(new, tmp_path / "backup.db", witness=str(tmp_path / "of another server"), by="op")
    restore(new, tmp_path / "backup.db", witness=place, by="op", without="the disk burnt")
    assert any("the disk burnt" in one.about for one in ServerState.open(new).ledger.entries())


def test_an_old_copy_does_not_stand_in_for_the_witness(tmp_path: Path) -> None:
    """Two old copies, one of them in place, and the witness taken away: nobody knows what was charged since."""
    service = hospital_service(tmp_path)
    place = tmp_path / "witness.jsonl"
    started(service.state, str(place)).stop()
    for copy in (tmp_path / "one.db", tmp_path / "two.db"):
        back_up(service.state, copy)
    service.ask(analyst(service, "ada"), "hospital", COUNT, epsilon="1")
    seen(service, str(place))
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "server.db").write_bytes((tmp_path / "one.db").read_bytes())
    away = place.rename(tmp_path / "away.jsonl")
    with pytest.raises(LedgerRolledBack, match="not there"):
        restore(str(folder), tmp_path / "two.db", witness=str(place), by="op")
    assert not place.exists(), "no new witness was begun"
    restore(str(folder), tmp_path / "two.db", witness=str(away), by="op")
    assert ServerState.open(folder).ledger.balance(dataset="hospital").spent == pure(1)


def test_a_witness_that_is_taken_away_while_the_server_runs_is_entered(tmp_path: Path) -> None:
    service = hospital_service(tmp_path)
    store = Failing()
    witness = Witness(service.state, store)  # type: ignore[arg-type]
    witness.start()
    witness.write()
    store.kept.clear()
    store.breaks = True  # the disk takes nothing, for a while
    for _ in range(3):
        with pytest.raises(OSError, match="full"):
            witness.write()
    store.breaks = False
    witness.write()
    assert store.kept == list(service.state.ledger.entries())
    assert sum("was gone" in entry.about for entry in store.kept) == 1
    other = hospital_service(tmp_path / "other")
    witness._state = other.state
    store.kept.clear()
    with pytest.raises(LedgerRolledBack, match="old copy"):
        witness.write()
    witness._stop.set()


def test_restore_and_verify_use_the_witness_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = hospital_service(tmp_path)
    ada = analyst(service, "ada")
    back_up(service.state, tmp_path / "backup.db")
    service.ask(ada, "hospital", COUNT, epsilon="0.4")
    place = tmp_path / "witness.jsonl"
    seen(service, str(place))
    (tmp_path / "server.yaml").write_text(f"witness: {place}\n")
    old = tmp_path / "old"
    old.mkdir()
    (old / "server.db").write_bytes((tmp_path / "backup.db").read_bytes())
    assert main(["server", "--state", str(old), "--config", str(tmp_path / "server.yaml"), "verify"]) == 3
    monkeypatch.setenv("SFUMATO_SERVER_WITNESS", str(place))
    assert main(["server", "--state", str(old), "verify"]) == 3
    capsys.readouterr()
    assert main(["server", "--state", str(tmp_path / "new"), "restore", str(tmp_path / "backup.db")]) == 0
    assert "Charged again: hospital, ada: ε = 0.4" in capsys.readouterr().out
    assert main(["server", "--state", str(tmp_path / "new"), "verify"]) == 0


def test_settings_come_from_options_then_environment_then_file(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(
        "port: 1001\nhost: 127.0.0.3\nworkers: 3\noidc: {issuer: https://a, client_id: b, client_secret: c}\n"
    )
    environment = {
        "SFUMATO_SERVER_PORT": "1002",
        "SFUMATO_SERVER_HOST": "127.0.0.2",
        "SFUMATO_SERVER_OIDC_CLIENT_ID": "d",
    }
    settings = load_settings(path, given={"port": 1003, "state": None}, environment=environment)
    assert (settings.port, settings.host, settings.workers) == (1003, "127.0.0.2", 3)
    assert settings.oidc is not None
    assert (settings.oidc.issuer, settings.oidc.client_id) == ("https://a", "d")
    assert "client_secret='c'" not in repr(settings)
    path.write_text("prot: 1\n")
    with pytest.raises(InvalidRecipe, match="prot"):
        load_settings(path, given={}, environment={})


@pytest.mark.parametrize("where", ["file", "postgres"])
def test_servers_that_start_at_once_begin_one_witness(
    tmp_path: Path, where: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one comes when the first has entered that there is a witness, and not written it yet."""
    place = str(tmp_path / "witness.jsonl") if where == "file" else request.getfixturevalue("postgresql")
    services = [hospital_service(tmp_path), QueryService.open(tmp_path / "state")]
    witnesses = [Witness(service.state, witness_store(service.state, place)) for service in services]
    refused: list[Exception] = []

    def start_second() -> None:
        try:
            witnesses[1].start()
        except SfumatoError as refusal:
            refused.append(refusal)

    second = threading.Thread(target=start_second)
    record = services[0].state.ledger.record_event

    def recorded(about: str) -> object:
        entry = record(about)
        second.start()
        second.join(0.5)
        return entry

    monkeypatch.setattr(services[0].state.ledger, "record_event", recorded)
    witnesses[0].start()
    second.join(30)
    for witness in witnesses:
        witness.stop()
    assert refused == []
    assert sum('"witness"' in entry.about for entry in services[0].state.ledger.entries()) == 1
