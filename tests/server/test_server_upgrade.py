"""States of earlier versions: `samples/server_state.sql` is one as the first version with these tables left it.

Where tables or entries change, the sample stays and a migration reads it; a sample of the new state is put beside it.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from server_sample import COUNT, write_hospital
from sfumato.dp.loss import pure
from sfumato.errors import LedgerBroken, OverBudget
from sfumato.ledger.ledger import Ledger
from sfumato.server.service import QueryService

SAMPLE = Path(__file__).parents[1] / "samples" / "server_state.sql"


def test_a_state_of_the_version_before_goes_on(tmp_path: Path) -> None:
    write_hospital(tmp_path / "data")
    (tmp_path / "state").mkdir()
    with sqlite3.connect(tmp_path / "state" / "server.db") as database:
        database.executescript(SAMPLE.read_text().replace("FOLDER", str(tmp_path)))
    service = QueryService.open(tmp_path / "state")
    service.state.ledger.verify()
    ada = service.users.get("ada").principal()
    for holder in ("ada", "@icu", ""):
        assert service.state.ledger.balance(dataset="hospital", analyst=holder).spent == pure("1/2"), holder
    assert [question.state for question in service.questions(ada)] == ["done"]
    assert 350 < service.ask(ada, "hospital", COUNT, epsilon="0.4").value < 450  # the file lies elsewhere: a new answer
    with pytest.raises(OverBudget):
        service.ask(ada, "hospital", f"{COUNT} WHERE age > 30", epsilon="0.2")
    service.state.ledger.verify()


def test_what_a_later_version_wrote_is_refused_and_not_changed(tmp_path: Path) -> None:
    """A ledger that were made anew beside it would give its budget back."""
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE sfumato_schema (version_num TEXT); INSERT INTO sfumato_schema VALUES ('0004')"
        )

    def tables() -> list[tuple[str]]:
        with sqlite3.connect(path) as database:
            return database.execute("SELECT sql FROM sqlite_master ORDER BY sql").fetchall()

    before = tables()
    with pytest.raises(LedgerBroken, match="later version"):
        Ledger.open(path)
    assert tables() == before
