"""One table, one policy, one memory: whatever a table is called and however its rows and columns are declared."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import AnswerDenied, LedgerBroken, QueryRefused
from sfumato.server.roles import AccountRole
from sfumato.server.service import QueryService

pytest.importorskip("ortools")

ROWS = ["1,10,f,103", "2,10,m,207", "3,11,f,301", "4,11,m,409", "5,12,f,500", "6,12,m,655"]
METADATA = """\
sfumato: 1
dataset: wages
ledger: ledger.db
answering: {policy: {audit: {k: 2}}}
person: row
tables:
  t:
    data: t.csv
    columns:
      id: {kind: integer}
      zip: {kind: integer}
      sex: {kind: category}
      wage: {kind: integer, role: sensitive, domain: {low: 0, high: 1000}}
"""
ALL, BUT_ONE = "SELECT SUM(wage) FROM t", "SELECT SUM(wage) FROM t WHERE id <> 3"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "t.csv", ROWS)
    (tmp_path / "m.yaml").write_text(METADATA)
    assert sfumato.session(tmp_path / "m.yaml").ask(ALL).value == 2175
    return tmp_path


def write(path: Path, rows: list[str]) -> None:
    path.write_text("\n".join(["id,zip,sex,wage", *rows]) + "\n")


def asked(folder: Path, sql: str, *changes: tuple[str, str]) -> int:
    text = METADATA
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "other.yaml").write_text(text)
    return int(sfumato.session(folder / "other.yaml").ask(sql).value)


NAMED = ("dataset: wages", "dataset: others")


def test_another_order_of_rows_forgets_nothing(folder: Path) -> None:
    write(folder / "turned.csv", ROWS[::-1])
    for changes in ((NAMED,), (NAMED, ("t.csv", "turned.csv")), (("t.csv", "turned.csv"),)):
        with pytest.raises(AnswerDenied, match="fix somebody's value"):
            asked(folder, BUT_ONE, *changes)


def test_another_name_of_the_table_forgets_nothing(folder: Path) -> None:
    """Decisions are repeated from queries that name the table as it was called then."""
    for changes in ((("  t:\n", "  staff:\n"),), (NAMED, ("  t:\n", "  staff:\n"))):
        assert asked(folder, ALL.replace("FROM t", "FROM staff"), *changes) == 2175
        with pytest.raises(AnswerDenied, match="fix somebody's value"):
            asked(folder, BUT_ONE.replace("FROM t", "FROM staff"), *changes)
        with pytest.raises(QueryRefused, match="no table"):
            asked(folder, BUT_ONE, *changes)
    assert asked(folder, ALL) == 2175


@pytest.mark.parametrize(
    "changes",
    [
        (("      zip: {kind: integer}\n", ""),),
        (("k: 2", "k: 3"),),
        (("{audit: {k: 2}}", "exact"),),
        (("{audit: {k: 2}}", "{size-control: 1}"),),
        (("answering: {policy: {audit: {k: 2}}}\n", ""),),
        (("high: 1000", "high: 2000"),),
        (("zip: {kind: integer}", "zip: {kind: category}"),),
    ],
)
@pytest.mark.parametrize("name", [(), (NAMED,)])
def test_another_policy_or_declaration_is_refused(
    folder: Path, changes: tuple[tuple[str, str], ...], name: tuple[tuple[str, str], ...]
) -> None:
    with pytest.raises(LedgerBroken):
        asked(folder, BUT_ONE, *changes, *name)


@pytest.mark.parametrize(
    "source",
    ["t JOIN places ON t.zip = places.zip", "places JOIN T ON t.zip = places.zip", '"t" AS p JOIN places USING (zip)'],
)
def test_another_name_of_the_table_forgets_no_join(tmp_path: Path, source: str) -> None:
    (tmp_path / "places.csv").write_text("zip,side\n10,a\n11,a\n12,a\n")
    write(tmp_path / "t.csv", ROWS)
    write(tmp_path / "copy.csv", ROWS)
    public = ("tables:\n", "public:\n  places: {data: places.csv, key: [zip]}\ntables:\n")
    assert asked(tmp_path, f"SELECT SUM(wage) FROM {source} WHERE side = 'a'", public) == 2175
    with pytest.raises(AnswerDenied, match="fix somebody's value"):
        asked(
            tmp_path,
            "SELECT SUM(wage) FROM u WHERE id <> 3",
            public,
            NAMED,
            ("t.csv", "copy.csv"),
            ("  t:\n", "  u:\n"),
        )


def test_a_changed_table_is_refused_under_every_name(folder: Path) -> None:
    """The sum of one person more would tell the wage of that person."""
    write(folder / "more.csv", [*ROWS, "7,12,f,777"])
    write(folder / "t.csv", [*ROWS, "7,12,f,777"])
    dropped = ("      zip: {kind: integer}\n", "")
    for changes in ((), (NAMED,), (("t.csv", "more.csv"), NAMED), (("t.csv", "more.csv"), NAMED, dropped)):
        with pytest.raises(LedgerBroken, match="has changed") as no:
            asked(folder, ALL, *changes)
        assert "Restore the table" in str(no.value)
        assert "777" not in str(no.value)
    write(folder / "t.csv", ROWS)
    with pytest.raises(AnswerDenied):
        asked(folder, BUT_ONE)


def test_other_people_are_another_table(folder: Path) -> None:
    write(folder / "t2.csv", [f"{i},{20 + i},f,{i * 7}" for i in range(100, 106)])
    assert asked(folder, ALL, NAMED, ("t.csv", "t2.csv")) == 7 * sum(range(100, 106))


def test_an_unasked_policy_binds_nobody(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", ROWS)
    for policy in ("exact", "{audit: {k: 3}}", "{consistent-sample: {share: 0.9, smallest: 2}}"):
        (tmp_path / "m.yaml").write_text(METADATA.replace("{audit: {k: 2}}", policy))
        sfumato.session(tmp_path / "m.yaml")
    (tmp_path / "m.yaml").write_text(METADATA)
    assert sfumato.session(tmp_path / "m.yaml").ask(ALL).value == 2175


def test_two_sessions_that_were_open_before_the_first_answer(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", ROWS)
    (tmp_path / "m.yaml").write_text(METADATA)
    (tmp_path / "n.yaml").write_text(METADATA.replace("{audit: {k: 2}}", "exact"))
    first, second = sfumato.session(tmp_path / "m.yaml"), sfumato.session(tmp_path / "n.yaml")
    first.ask(ALL)
    with pytest.raises(LedgerBroken, match="another policy"):
        second.ask(BUT_ONE)


def test_differential_privacy_first(tmp_path: Path) -> None:
    from sfumato.dp.loss import pure
    from sfumato.ledger.ledger import Ledger

    write(tmp_path / "t.csv", ROWS)
    (tmp_path / "m.yaml").write_text(METADATA.replace("answering: {policy: {audit: {k: 2}}}\n", ""))
    Ledger.open(tmp_path / "ledger.db").set_cap(pure(5000), dataset="wages")
    sfumato.session(tmp_path / "m.yaml").ask("SELECT SUM(wage) FROM t WHERE zip <> 11", epsilon=1000)
    (tmp_path / "m.yaml").write_text(METADATA)
    with pytest.raises(LedgerBroken, match="by differential privacy"):
        sfumato.session(tmp_path / "m.yaml")


def test_the_server_keeps_the_only_memory(tmp_path: Path) -> None:
    """Two names on a server have one memory, and the ledger of the file has none beside it."""
    write(tmp_path / "t.csv", ROWS)
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(METADATA.replace("dataset: wages", f"dataset: {name}"))
    service = QueryService.open(tmp_path / "state")
    service.users.add("ada", roles=[AccountRole.ANALYST], by="test")
    for name in ("one", "two"):
        service.registered.register_file(tmp_path / f"{name}.yaml", by="owner")
        service.registered.set_grant(name, "ada", True, by="test")
    ada = service.users.get("ada").principal()
    assert service.ask(ada, "one", ALL).value == 2175
    with pytest.raises(AnswerDenied, match="fix somebody's value"):
        service.ask(ada, "two", BUT_ONE)
    with pytest.raises(LedgerBroken):
        sfumato.session(tmp_path / "one.yaml")
    (tmp_path / "three.yaml").write_text(METADATA.replace("dataset: wages", "dataset: three").replace("k: 2", "k: 3"))
    with pytest.raises(LedgerBroken):
        service.registered.register_file(tmp_path / "three.yaml", by="owner")


def test_a_table_that_was_asked_about_is_not_registered_on_a_server(folder: Path) -> None:
    service = QueryService.open(folder / "state")
    with pytest.raises(LedgerBroken, match="another policy"):
        service.registered.register_file(folder / "m.yaml", by="owner")


def test_the_command_audits_a_log_with_one_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "t.csv", ROWS)
    write(tmp_path / "turned.csv", ROWS[::-1])
    write(tmp_path / "more.csv", [*ROWS, "7,12,f,777"])
    pl.read_csv(tmp_path / "t.csv").drop("zip").write_csv(tmp_path / "narrow.csv")
    (tmp_path / "1.sql").write_text(ALL)
    (tmp_path / "2.sql").write_text(BUT_ONE)
    ledger = ["--ledger", str(tmp_path / "ledger.db"), "--json"]
    rules = ["--secret", "wage", "--k", "2", "--domain", "wage:0..1000"]

    def run(log: str, data: str) -> int:
        return main(["audit", str(tmp_path / log), "--data", str(tmp_path / data), *rules, *ledger])

    assert run("1.sql", "t.csv") == 0
    capsys.readouterr()
    assert run("2.sql", "turned.csv") == 1
    [decision] = json.loads(capsys.readouterr().out)["decisions"]
    assert decision["exposed"] == [4]  # the row of the turned file
    for data in ("more.csv", "narrow.csv"):
        assert run("1.sql", data) == 3
        assert "SFU-704" in capsys.readouterr().out
