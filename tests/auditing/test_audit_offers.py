"""Offers of a refusal: coarser queries and queries about other people, each of which is then answered."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.offers import offers
from sfumato.auditing.rules import AuditRules
from sfumato.cli import main
from sfumato.dataset import RangeDomain
from sfumato.errors import AnswerDenied

TABLE = pl.DataFrame(
    {"id": range(6), "zip": [1, 1, 1, 1, 2, 2], "score": [1, 2, 3, 2, 1, 3], "bill": [1.5, 2.1, 7, 8, 9, 3.3]}
)
DOMAINS = {"score": RangeDomain(low=1, high=3), "bill": RangeDomain(low=0, high=50, step=0.1)}


@pytest.mark.parametrize("simulatable", [False, True])
@pytest.mark.parametrize("column", ["score", "bill"])
def test_what_is_offered_is_answered_and_nothing_is_recorded(column: str, simulatable: bool) -> None:
    rules = AuditRules(k=2, simulatable=simulatable)
    auditor = Auditor(TABLE, secrets=["score", "bill"], rules=rules, domains=DOMAINS)
    for query in (f"SELECT SUM({column}) FROM t WHERE zip = 2 AND id = 4", f"SELECT SUM({column}) FROM t WHERE id < 3",
                  f"SELECT SUM({column}) FROM t WHERE zip = 1 AND id IN (0, 1)"):  # fmt: skip
        named = offers(auditor, query, most=3)
        assert named == offers(auditor, query, most=3)
        if auditor.ask(query).verdict == "refused" and named:
            fresh = Auditor(TABLE, secrets=["score", "bill"], rules=auditor.rules, domains=DOMAINS)
            assert fresh.ask(named[0]).verdict == "answered" or simulatable
        for text in offers(auditor, query, most=1):
            assert auditor.ask(text).verdict == "answered"


def test_a_list_is_offered_as_an_aggregate() -> None:
    """The list 1 2 of two people has one solution up to exchange; both keep 2 values. The list 1 of one person not."""
    auditor = Auditor(TABLE, secrets=["score"], rules=AuditRules(k=2))
    named = offers(auditor, "SELECT score FROM t WHERE zip = 1 AND id = 1", most=10)
    assert named == ("SELECT score FROM t WHERE zip = 1",)
    pair = pl.DataFrame({"id": [0, 1, 2], "score": [2, 2, 1]})
    auditor = Auditor(pair, secrets=["score"], rules=AuditRules(k=2), domains={"score": RangeDomain(low=1, high=2)})
    assert auditor.ask("SELECT score FROM t WHERE id < 2").verdict == "refused"
    assert offers(auditor, "SELECT score FROM t WHERE id < 2", most=5) == ('SELECT MAX("score") FROM t WHERE id < 2',)


def test_from_the_service_and_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    (tmp_path / "m.yaml").write_text(
        "sfumato: 1\ndataset: w\nledger: l.db\nanswering: {policy: {audit: {k: 2, offers: 2}}}\n"
        "person: row\ntables:\n  t:\n    data: t.csv\n"
        "    columns: {id: {kind: integer}, zip: {kind: integer}, "
        "score: {kind: integer, role: sensitive}}\n"
    )
    session = sfumato.session(tmp_path / "m.yaml")
    with pytest.raises(AnswerDenied, match="Would be answered: SELECT score FROM t WHERE zip = 1"):
        session.ask("SELECT score FROM t WHERE zip = 1 AND id = 1")
    (tmp_path / "log.sql").write_text("SELECT score FROM t WHERE zip = 1 AND id = 1\n")
    options = ["--data", str(tmp_path / "t.csv"), "--secret", "score", "--k", "2", "--offers", "1"]
    assert main(["audit", str(tmp_path / "log.sql"), *options]) == 1
    assert "would be answered: SELECT score FROM t WHERE zip = 1" in " ".join(capsys.readouterr().out.split())
