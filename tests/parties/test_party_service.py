"""`sfumato party serve` and `sfumato query --parties`: processes, mutual TLS, garbage, and parties that are killed."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

import sfumato
from parties_sample import COLUMNS, rows
from sfumato.cli import cli
from sfumato.dp.loss import approximate, pure
from sfumato.errors import PartyFailed, QueryRefused, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.parties.agreement import Agreement
from sfumato.parties.certificates import client_context, make_certificates, server_context
from sfumato.parties.channels import HttpsChannel, https_channels
from sfumato.parties.commands.party import command as party_command
from sfumato.parties.coordinator import Coordinator
from sfumato.parties.party import Party
from sfumato.parties.party_file import PartyFile
from sfumato.parties.question import PartiesQuestion

COUNTS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def setting(folder: Path, names: tuple[str, ...], **changed: Any) -> dict[str, Path]:
    """Keys, a parties file, and a party file with data and a ledger for each name."""
    public = make_certificates(folder / "keys", parties=dict.fromkeys(names, "127.0.0.1"), analysts=["ann"])
    document = {
        "sfumato": 1, "federation": "clinics", "parties_per_person": 1, "colluding": 1,
        "parties": {name: {"address": "https://127.0.0.1:1", "key": key} for name, key in public.items()},
        "person": "person", "tables": {"visits": {"bounds": {"rows": 1, "groups": 1}, "columns": COLUMNS}},
    } | changed  # fmt: skip
    YAML().dump(document, folder / "parties.yaml")
    files = {}
    for i, name in enumerate(names):
        rows("east" if i % 2 else "west", 100 * (i + 1), 10.0).write_parquet(folder / f"{name}.parquet")
        Ledger.open(folder / f"{name}.db").set_cap(pure(100), dataset="clinics")
        files[name] = folder / f"{name}.yaml"
        own = {
            "sfumato": 1, "party": name, "parties": "parties.yaml", "data": {"visits": f"{name}.parquet"},
            "ledger": f"{name}.db", "key": f"keys/{name}.key", "certificate": f"keys/{name}.crt",
            "authority": "keys/authority.crt", "listen": "127.0.0.1:0",
        }  # fmt: skip
        YAML().dump(own, files[name])
    return files


def addressed(folder: Path, ports: dict[str, int]) -> Path:
    """The analyst's copy of the parties file, with the ports that the parties chose."""
    document = YAML().load(folder / "parties.yaml")
    for name, port in ports.items():
        document["parties"][name]["address"] = f"https://127.0.0.1:{port}"
    YAML().dump(document, folder / "asked.yaml")
    return folder / "asked.yaml"


def ask(folder: Path, parties: Path, *more: str, sql: str = COUNTS) -> Any:
    command = ["query", str(parties), sql, "--parties", str(folder / "keys" / "ann.crt"), "--epsilon", "20", "--json"]
    return CliRunner().invoke(cli, [*command, *more])


def spent(folder: Path, name: str) -> float:
    ledger = Ledger.open(folder / f"{name}.db")
    ledger.verify()
    return float(ledger.balance(dataset="clinics", analyst="ann").spent.size)


@contextmanager
def serving(files: dict[str, Path]) -> Iterator[dict[str, int]]:
    """The parties in threads of this process."""
    servers = {name: PartyFile.load(path).server() for name, path in files.items()}
    for server in servers.values():
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield {name: server.port for name, server in servers.items()}
    finally:
        for server in servers.values():
            server.shutdown()
            server.server_close()


def test_five_processes_answer_and_one_that_is_killed_is_left_out(tmp_path: Path) -> None:
    names = tuple("abcde")
    files = setting(tmp_path, names, min_parties=4)
    command = [sys.executable, "-m", "sfumato", "party", "serve"]
    running = {
        name: subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for name, path in files.items()
    }
    try:
        lines = {name: process.stdout.readline() for name, process in running.items() if process.stdout}
        asked = addressed(tmp_path, {name: int(line.split()[-1].rstrip(".")) for name, line in lines.items()})
        answer = json.loads(ask(tmp_path, asked).output)
        assert [row["n"]["value"] for row in answer["rows"]] == [600, 900]
        assert [spent(tmp_path, name) for name in names] == [20] * 5
        running["c"].send_signal(signal.SIGKILL)
        running["c"].wait(90)
        answer = json.loads(ask(tmp_path, asked).output)
        assert [row["n"]["value"] for row in answer["rows"]] == [600, 600]
        running["a"].send_signal(signal.SIGTERM)
        assert running["a"].wait(90) == 0
        refused = ask(tmp_path, asked)
        assert "cannot be reached" in str(refused.exception)
        assert "Nothing was charged" in str(refused.exception)
        assert [spent(tmp_path, name) for name in names] == [40, 40, 20, 40, 40]
    finally:
        for process in running.values():
            process.kill()
            process.wait(90)


def test_a_process_that_is_killed_in_the_middle_of_a_question_is_left_out_of_its_answer(tmp_path: Path) -> None:
    """Party c holds its reply back for up to a minute; it is killed after its charge, while the others wait."""
    names = tuple("abcd")
    files = setting(tmp_path, names, min_parties=3, colluding=0, dropouts=1)
    with files["c"].open("a") as own:
        own.write("response_interval: 60\n")
    command = [sys.executable, "-m", "sfumato", "party", "serve", str(files["c"])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[-1].rstrip("."))
        with serving({name: files[name] for name in names if name != "c"}) as ports, ThreadPoolExecutor(1) as pool:
            asking = pool.submit(ask, tmp_path, addressed(tmp_path, {**ports, "c": port}))
            while not all(spent(tmp_path, name) for name in names):
                assert not asking.done()
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
            answer = json.loads(asking.result(90).output)
    finally:
        process.kill()
        process.wait(90)
    assert [row["n"]["value"] for row in answer["rows"]] == [600, 100]
    assert answer["loss"]["epsilon"] == "20"
    assert [spent(tmp_path, name) for name in names] == [20] * 4


def test_a_party_lets_in_only_analysts_with_a_certificate_of_its_authority(tmp_path: Path) -> None:
    files = setting(tmp_path, ("a", "b"))
    make_certificates(tmp_path / "strangers", parties={"x": "127.0.0.1"}, analysts=["ann"])
    keys = tmp_path / "keys"
    with serving(files) as ports:
        for folder, name in ((tmp_path / "strangers", "ann"), (keys, "b")):  # another authority; a party as a client
            context = client_context(
                certificate=folder / f"{name}.crt", key=folder / f"{name}.key", authority=keys / "authority.crt"
            )
            channel = HttpsChannel(name="a", address=f"https://127.0.0.1:{ports['a']}", context=context, seconds=90)
            with pytest.raises(PartyFailed, match="cannot be reached"):
                channel.join(PartiesQuestion.new(COUNTS, agreement="", epsilon="1"))
        blank = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        blank.load_verify_locations(keys / "authority.crt")
        with pytest.raises(PartyFailed):
            HttpsChannel(name="a", address=f"https://127.0.0.1:{ports['a']}", context=blank, seconds=90).join(
                PartiesQuestion.new(COUNTS, agreement="", epsilon="1")
            )
        other = client_context(
            certificate=keys / "ann.crt", key=keys / "ann.key", authority=tmp_path / "strangers" / "authority.crt"
        )
        with pytest.raises(PartyFailed, match="certificate"):
            HttpsChannel(name="a", address=f"https://127.0.0.1:{ports['a']}", context=other, seconds=90).join(
                PartiesQuestion.new(COUNTS, agreement="", epsilon="1")
            )
    assert spent(tmp_path, "a") == 0


def test_garbage_is_refused_with_a_code_and_costs_nothing(tmp_path: Path) -> None:
    files = setting(tmp_path, ("a", "b"))
    keys = tmp_path / "keys"
    context = client_context(certificate=keys / "ann.crt", key=keys / "ann.key", authority=keys / "authority.crt")
    bodies: list[tuple[str, bytes]] = [
        ("/join", b"\xff\xfe not json"), ("/join", b"[]"), ("/join", b"{}"), ("/join", b"[" * 100_000),
        ("/join", json.dumps({"agreement": "", "sql": "x" * 200_000, "epsilon": "1", "nonce": "0" * 32}).encode()),
        ("/contribute", b'{"question": 7, "announcements": []}'), ("/elsewhere", b"{}"),
        ("/contribute", b'{"question": "00", "announcements": [1, 2]}'),
        ("/contribute", b'{"question": "00", "announcements": [], "sealed": {"a": 1}}'),
        ("/contribute", b'{"question": "00", "announcements": [], "sealed": {}}'), ("/deal", b'{"question": "00"}'),
        ("/unmask", b'{"question": "00", "survivors": [1]}'), ("/unmask", b'{"question": "00", "survivors": ["a"]}'),
        ("/compute", b'{"question": "00", "announcements": []}'), ("/compute", b'{"question": "00"}'),
    ]  # fmt: skip
    with serving(files) as ports:
        for path, body in bodies:
            connection = http.client.HTTPSConnection("127.0.0.1", ports["a"], timeout=90, context=context)
            connection.request("POST", path, body)
            response = connection.getresponse()
            assert response.status == 422
            assert json.loads(response.read())["error"]["code"] == QueryRefused.code
            connection.close()
        with socket.create_connection(("127.0.0.1", ports["a"]), timeout=90) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        asked = addressed(tmp_path, ports)
        assert ask(tmp_path, asked).exit_code == 0
    assert spent(tmp_path, "a") == 20


REPLIES = {
    "garbage": b"\x00\x01\x02",
    "not JSON": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "other JSON": b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"masked\":\"zz\"}",
    "silence": b"",
    "an error without words": b"HTTP/1.1 500 No\r\nContent-Length: 13\r\n\r\n{\"error\": {}}",
}  # fmt: skip


@pytest.mark.parametrize("reply", REPLIES)
def test_a_party_that_sends_garbage_ends_the_question(tmp_path: Path, reply: str) -> None:
    files = setting(tmp_path, ("a", "b"))
    keys = tmp_path / "keys"
    context = server_context(certificate=keys / "b.crt", key=keys / "b.key", authority=keys / "authority.crt")
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        accepted, _ = listening.accept()
        accepted.settimeout(90)
        with context.wrap_socket(accepted, server_side=True) as secure:
            secure.recv(65536)
            secure.sendall(REPLIES[reply])

    threading.Thread(target=answer, daemon=True).start()
    with listening, serving({"a": files["a"]}) as ports:
        asked = addressed(tmp_path, {**ports, "b": listening.getsockname()[1]})
        result = ask(tmp_path, asked)
    assert isinstance(result.exception, PartyFailed)
    assert "b" in str(result.exception)
    assert spent(tmp_path, "a") == 0


SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: sfumato-compute\r\n\r\n"
FRAMES = {
    "no switch": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "no frame": SWITCHED + b"zzzzzzzz",
    "a frame too long": SWITCHED + b"m\xff\xff\xff\xff",
    "half a frame": SWITCHED + b"m\x00\x00\x00\x09abc",
    "an error without words": SWITCHED + b"e\x00\x00\x00\x02[]",
    "an error that is none": SWITCHED + b"e\x00\x00\x00\x01{",
}  # fmt: skip


def test_frames_that_are_none_are_the_failure_of_a_party(tmp_path: Path) -> None:
    setting(tmp_path, ("a", "b"))
    keys = tmp_path / "keys"
    served = server_context(certificate=keys / "b.crt", key=keys / "b.key", authority=keys / "authority.crt")
    context = client_context(certificate=keys / "ann.crt", key=keys / "ann.key", authority=keys / "authority.crt")
    for reply in FRAMES.values():
        with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:

            def answer(listening: socket.socket = listening, reply: bytes = reply) -> None:
                with served.wrap_socket(listening.accept()[0], server_side=True) as secure:
                    secure.recv(65536)
                    secure.sendall(reply)

            answering = pool.submit(answer)
            address = f"https://127.0.0.1:{listening.getsockname()[1]}"
            stream = HttpsChannel(name="b", address=address, context=context, seconds=60).compute("00", [])
            with pytest.raises(PartyFailed, match="b"):
                stream.receive()
            stream.close()
            answering.result(60)


def test_a_party_whose_table_is_not_as_agreed_does_not_start(tmp_path: Path) -> None:
    files = setting(tmp_path, ("a", "b"))
    rows("east", 5, 1.0).drop("bill").write_parquet(tmp_path / "a.parquet")
    result = CliRunner().invoke(party_command, ["serve", str(files["a"])])
    assert "declared columns" in str(result.exception)


def test_paths_are_relative_to_the_party_file_and_not_to_the_folder_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting(tmp_path, ("a", "b"))
    (tmp_path / "shared").mkdir()
    (tmp_path / "parties.yaml").rename(tmp_path / "shared" / "parties.yaml")
    own = tmp_path / "a.yaml"
    own.write_text(own.read_text().replace("parties.yaml", "shared/parties.yaml"))
    monkeypatch.chdir(tmp_path.parent)
    relative = Path(tmp_path.name) / "a.yaml"
    party = PartyFile.load(relative).open()
    assert float(party.ledger.balance(dataset="clinics").left.size) == 100  # type: ignore[union-attr]


DOCUMENT = """
sfumato: 1
dataset: hospital
person: people
ledger: a.db
answering: {min_epsilon: 0.5}
tables:
  people: {data: people.csv, key: id, columns: {id: identifier}}
  visits:
    data: a.parquet
    links: {person: people}
    bounds: {rows: 9, groups: 9}
    columns: {person: {role: identifier}, ward: {role: quasi, kind: category}, bill: {role: quasi, kind: number}}
"""


def described(folder: Path, before: str = "", after: str = "") -> Party:
    """Party `a`, whose file names the document of its data set."""
    (folder / "hospital.yaml").write_text(DOCUMENT.replace(before, after) if before else DOCUMENT)
    own = YAML().load(folder / "a.yaml")
    plain = {key: value for key, value in own.items() if key not in ("data", "ledger")}
    YAML().dump({**plain, "dataset": "hospital.yaml"}, folder / "a.yaml")
    return PartyFile.load(folder / "a.yaml").open()


def test_answers_of_a_party_are_charged_to_the_people_of_its_document(tmp_path: Path) -> None:
    files = setting(tmp_path, ("a", "b"))
    described(tmp_path)
    book = Ledger.open(tmp_path / "a.db")
    with serving(files) as ports:
        asked = addressed(tmp_path, ports)
        assert "has set no budget for `hospital`" in str(ask(tmp_path, asked).exception)
        book.set_cap(pure(30), dataset="hospital")
        assert [row["n"]["value"] for row in json.loads(ask(tmp_path, asked).output)["rows"]] == [200, 100]
        assert "does not cover" in str(ask(tmp_path, asked).exception)
    [line] = sfumato.ledger_overview(tmp_path / "hospital.yaml").register
    assert (line.kind, line.who, line.unit, line.answers, line.loss) == ("answers", "ann", "id, person", 1, pure(20))
    assert spent(tmp_path, "a") == 0  # nothing under the name of the federation
    assert spent(tmp_path, "b") == 20


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("ward: {role: quasi", "ward: {role: drop", "cannot be asked about"),
        ("bill: {role: quasi, kind: number", "bill: {role: quasi, kind: category", "another kind"),
        ("    links: {person: people}\n", "    links: {ward: people}\n", "is a person"),
        ("  visits:", "  stays:", "no table `visits`"),
        ("ledger: a.db\n", "", "names no ledger"),
    ],
)
def test_a_party_shares_nothing_that_its_document_does_not(before: str, after: str, said: str, tmp_path: Path) -> None:
    setting(tmp_path, ("a", "b"))
    with pytest.raises(SfumatoError, match=said):
        described(tmp_path, before, after)


def test_the_smallest_question_of_the_document_holds_for_parties(tmp_path: Path) -> None:
    files = setting(tmp_path, ("a", "b"))
    described(tmp_path)
    Ledger.open(tmp_path / "a.db").set_cap(pure(30), dataset="hospital")
    with serving(files) as ports:
        refused = ask(tmp_path, addressed(tmp_path, ports), "--epsilon", "0.1")
    assert "0.5" in str(refused.exception)


def test_the_files_on_the_page_are_valid() -> None:
    page = (Path(__file__).parents[2] / "docs" / "parties.md").read_text(encoding="utf-8")
    shared, own, *_ = re.findall(r"^```yaml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    shared = shared.replace("5f0c...", "5f" * 32).replace("9b1e...", "9b" * 32)
    assert Agreement.model_validate(YAML(typ="safe").load(shared)).fewest == 2
    assert PartyFile.model_validate(YAML(typ="safe").load(own)).party == "north"


def test_keys_are_made_once_and_private(tmp_path: Path) -> None:
    command = ["keys", str(tmp_path / "keys"), "--party", "a=localhost", "--party", "b=localhost", "--analyst", "ann"]
    made = CliRunner().invoke(party_command, [*command, "--json"])
    assert set(json.loads(made.output)) == {"a", "b"}
    assert os.stat(tmp_path / "keys" / "a.key").st_mode & 0o077 == 0
    assert "has keys already" in str(CliRunner().invoke(party_command, command).exception)


@pytest.mark.parametrize("option", [["--rho", "1"], ["--analyst", "eve"], ["--engine", "duckdb"]])
def test_options_without_meaning_for_parties_are_refused(tmp_path: Path, option: list[str]) -> None:
    setting(tmp_path, ("a", "b"))
    result = ask(tmp_path, tmp_path / "parties.yaml", *option)
    assert result.exit_code == 2
    assert "not used" in result.output


@pytest.mark.parametrize("computed", [False, True])
def test_a_party_that_dies_while_it_contributes_ends_the_attempt_and_the_next_one_answers(
    tmp_path: Path, computed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks off before or after the party charged its ledger."""
    files = setting(tmp_path, ("a", "b", "c"), min_parties=2)
    whole = Party.contribute

    def dying(self: Party, *given: Any, **more: Any) -> Any:
        if self.name == "b":
            if computed:
                whole(self, *given, **more)
            raise ConnectionResetError
        return whole(self, *given, **more)

    monkeypatch.setattr(Party, "contribute", dying)
    with serving(files) as ports:
        asked = addressed(tmp_path, ports)
        ended = ask(tmp_path, asked)
        assert isinstance(ended.exception, PartyFailed)
        assert "b did not contribute" in str(ended.exception)
        assert [spent(tmp_path, name) for name in files] == [20, 20 if computed else 0, 20]
        again = json.loads(ask(tmp_path, asked, "--attempts", "2").output)
    assert [row["n"]["value"] for row in again["rows"]] == [0, 400]
    assert again["loss"]["epsilon"] == "40"
    assert [spent(tmp_path, name) for name in files] == [60, 40 if computed else 0, 60]


def test_questions_at_the_same_time_are_answered_and_charged_each(tmp_path: Path) -> None:
    files = setting(tmp_path, ("a", "b"))
    with serving(files) as ports:
        agreement = Agreement.load(addressed(tmp_path, ports))
        keys = tmp_path / "keys"
        tls = client_context(certificate=keys / "ann.crt", key=keys / "ann.key", authority=keys / "authority.crt")
        coordinator = Coordinator(agreement=agreement, channels=https_channels(agreement, tls))
        with ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(lambda _: coordinator.ask(COUNTS, epsilon=15).frame["n"].to_list(), range(5)))
    assert answers == [[200, 100]] * 5
    assert [spent(tmp_path, name) for name in files] == [75, 75]


def test_three_processes_report_private_keys_and_one_that_is_killed_ends_the_question(tmp_path: Path) -> None:
    """A key of one person stays unknown; a process that stops in the middle ends the computation of all."""
    columns = {**COLUMNS, "city": {"kind": "category"}}
    tables = {"visits": {"bounds": {"rows": 1, "groups": 1}, "columns": columns}}
    files = setting(tmp_path, ("a", "b", "c"), tables=tables)
    for i, name in enumerate(files):
        cities = pl.Series("city", ["Basel"] * (99 + 100 * i) + [f"rare {name}"])
        rows("east", 100 * (i + 1), 10.0).with_columns(cities).write_parquet(tmp_path / f"{name}.parquet")
        Ledger.open(tmp_path / f"{name}.db").set_cap(approximate(100, "1e-3"), dataset="clinics")
    with files["c"].open("a") as own:
        own.write("response_interval: 5\n")
    command = [sys.executable, "-m", "sfumato", "party", "serve"]
    running = {
        name: subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for name, path in files.items()
    }
    sql = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    try:
        lines = {name: process.stdout.readline() for name, process in running.items() if process.stdout}
        asked = addressed(tmp_path, {name: int(line.split()[-1].rstrip(".")) for name, line in lines.items()})
        answer = json.loads(ask(tmp_path, asked, "--delta", "1e-6", sql=sql).output)
        assert [(row["city"]["value"], row["n"]["value"]) for row in answer["rows"]] == [("Basel", 597)]
        assert [spent(tmp_path, name) for name in files] == [20] * 3
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(ask, tmp_path, asked, "--delta", "1e-6", sql=sql)
            while spent(tmp_path, "c") == 20:
                assert not asking.done()
                time.sleep(0.05)
            running["c"].send_signal(signal.SIGKILL)  # it has charged, and holds its first message back
            ended = asking.result(90)
        assert "Party c did not contribute" in str(ended.exception)
        assert [spent(tmp_path, name) for name in files] == [40] * 3
    finally:
        for process in running.values():
            process.kill()
            process.wait(90)
