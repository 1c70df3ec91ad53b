"""Backup and restore: a restored old ledger gives no budget back. Migrations of an older state. Settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from server_sample import COUNT, analyst, hospital_service, token
from sfumato.dp.loss import pure
from sfumato.errors import InvalidRecipe, LedgerBroken, LedgerRolledBack, NotSignedIn, OutputExists
from sfumato.ledger.ledger import Ledger
from sfumato.server.backup import back_up, restore, verify
from sfumato.server.heads import check_head, signed_head
from sfumato.server.service import QueryService
from sfumato.server.settings import load_settings
from sfumato.server.state import ServerState
from sfumato.server.witness import Witness


@pytest.mark.parametrize("known_by", ["witness", "present database"])
def test_a_restore_charges_again_what_was_charged_since(tmp_path: Path, known_by: str) -> None:
    service = hospital_service(tmp_path)
    ada = analyst(service, "ada")
    service.ask(ada, "hospital", COUNT, epsilon="0.1")
    back_up(service.state, tmp_path / "backup.db")
    with pytest.raises(OutputExists):
        back_up(service.state, tmp_path / "backup.db")
    assert (tmp_path / "backup.db").stat().st_mode & 0o077 == 0
    service.ask(ada, "hospital", f"{COUNT} WHERE age > 1", epsilon="0.4")
    witness = Witness(tmp_path / "outside" / "witness.json", service.state.ledger)
    witness.write()
    folder = tmp_path / "state"
    if known_by == "witness":
        folder = tmp_path / "new machine"
    charged = restore(
        tmp_path / "backup.db", folder, by="op",
        witness=tmp_path / "outside" / "witness.json" if known_by == "witness" else None,
    )  # fmt: skip
    assert charged == {("hospital", "ada"): pure("0.4")}
    restored = ServerState.open(folder)
    assert restored.ledger.balance(dataset="hospital", analyst="ada").left == pure("0.5")
    assert restored.ledger.balance(dataset="hospital").spent == pure("0.5")
    restored.ledger.verify()


def test_a_copied_back_file_is_noticed_at_the_start_and_by_verify(tmp_path: Path) -> None:
    service = hospital_service(tmp_path)
    ada = analyst(service, "ada")
    back_up(service.state, tmp_path / "backup.db")
    service.ask(ada, "hospital", COUNT, epsilon="0.1")
    path = tmp_path / "witness.json"
    Witness(path, service.state.ledger).write()
    verify(service.state, witness=path)
    old = Ledger.open(tmp_path / "backup.db")
    with pytest.raises(LedgerRolledBack):
        Witness(path, old).start()
    with pytest.raises(LedgerRolledBack):
        verify(ServerState(old, where=tmp_path), witness=path)
    with pytest.raises(LedgerBroken):
        verify(ServerState(old, where=tmp_path), witness=None, last=service.state.ledger.head()[1])


def test_a_restore_ends_sessions_and_tokens_and_clears_the_alarm(tmp_path: Path) -> None:
    service = hospital_service(tmp_path)
    ada = analyst(service, "ada")
    secret = token(service, "ada")
    back_up(service.state, tmp_path / "backup.db")
    service.ask(ada, "hospital", COUNT, epsilon="0.1")
    head = signed_head(service.state)
    restore(tmp_path / "backup.db", tmp_path / "state", witness=None, by="op")
    restored = QueryService.open(tmp_path / "state")
    with pytest.raises(NotSignedIn):
        restored.tokens.authenticate(secret)
    restored.ask(ada, "hospital", f"{COUNT} WHERE age > 1", epsilon="0.1")
    check_head(restored.state, head)  # the charges were entered again: a head from before is no alarm
    restored.ask(ada, "hospital", f"{COUNT} WHERE age > 2", epsilon="0.1")
    assert restored.state.ledger.balance(dataset="hospital", analyst="ada").spent == pure("0.3")


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
