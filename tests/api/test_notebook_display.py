"""Results, proposals, sessions, reports, progress and errors as a notebook shows them."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import rich.console

import sfumato
from sfumato.errors import BadParameter, QueryRefused
from sfumato.progress import AUTO, NotebookProgress
from sfumato.reports.text import measure_label, measure_value

draw = np.random.default_rng(5)
PEOPLE = pl.DataFrame(
    {
        "age": draw.integers(20, 60, 300),
        "sex": draw.choice(["f", "m"], 300),
        "diagnosis": draw.choice(["flu", "asthma", "none"], 300),
    }
)
RECIPE = {
    "sfumato": 1,
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
        "sex": "quasi",
        "diagnosis": "sensitive",
    },
    "models": [{"k-anonymity": 5}],
    "steps": ["generalize"],
    "attacks": ["linkage"],
    "measures": ["marginals"],
}
DESCRIBED = {
    "dataset": "trial",
    "person": "row",
    "tables": {
        "people": {
            "columns": {
                "sex": {"kind": "category", "domain": {"values": ["f", "m"]}},
                "age": {"kind": "integer", "domain": {"low": 0, "high": 120}},
            },
        }
    },
}


@pytest.fixture(scope="module")
def done() -> sfumato.Protection:
    return sfumato.protect(RECIPE, PEOPLE, seed=1)


@pytest.fixture
def session() -> sfumato.Session:
    return sfumato.session(DESCRIBED, {"people": PEOPLE}, epsilon=1, analyst="ana")


def test_str_returns_text_in_a_notebook(done: sfumato.Protection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich displays instead of writing once it detects Jupyter; str() was empty then."""
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    for result in (done, done.attacks, done.measures, done.verdicts, sfumato.check(done)):
        assert len(str(result)) > 20
        assert f"{result}" == str(result)
    assert "k-anonymity holds" in str(sfumato.check(done))


def test_a_report_shows_and_saves_itself(done: sfumato.Protection, tmp_path: Any) -> None:
    report = done.report()
    assert report._repr_html_().startswith('<iframe sandbox=""')
    assert "<script" not in report._repr_html_()
    assert repr(report).startswith("<Report: ")
    assert "records of 300 were released" in str(report)
    assert report.save(tmp_path / "page.html").read_text(encoding="utf-8") == report.html
    external = done.report(audience="external")
    assert "of 300" not in str(external)
    assert "external: may be published" in external.html


def test_attacks_show_headline_verdict_and_picture(done: sfumato.Protection) -> None:
    attacks = sfumato.attack(done, limit=0.0001, seed=1)
    shown = attacks._repr_html_()
    assert shown.index("<strong>") < shown.index("limit on risk not met  at most ") < shown.index("<svg")
    assert "upper end of the interval of the risk; " in shown
    assert "What to change against" in shown
    assert done._repr_html_().startswith(f"<p>Not judged: {done.rows} rows in the release. No limit on risk was set")


def test_measures_have_the_names_and_values_of_the_terminal(done: sfumato.Protection) -> None:
    shown, [entry] = done.measures._repr_html_(), done.measures.entries()
    for words in (measure_label(entry), measure_value(entry, entry["value"])):
        assert words in str(done.measures)
        assert f"<td>{words}</td>" in shown


def test_a_proposal_shows_what_singles_people_out() -> None:
    proposal = sfumato.propose(PEOPLE.with_columns(height=pl.Series(np.arange(300) % 250)))
    worst = proposal.singling.minimal[0]  # type: ignore[union-attr]
    words = f"{' + '.join(worst.columns)} {'single' if len(worst.columns) > 1 else 'singles'} out {worst.unique:.1%}"
    for shown in (repr(proposal), str(proposal), proposal._repr_html_()):
        assert words in shown


def test_a_session_shows_its_public_schema(session: sfumato.Session) -> None:
    assert repr(session) == "<Session: data set trial, analyst ana, policy differential-privacy, left ε = 1>"
    shown = session._repr_html_()
    assert "<td>sex</td><td>category</td><td>f, m</td>" in shown
    assert "<td>0 to 120</td>" in shown


def test_show_tables_and_describe_cost_nothing(session: sfumato.Session) -> None:
    tables = session.ask("show tables;")
    assert tables.to_dict()["rows"][0]["name"]["value"] == "people"
    assert tables.columns == ("name", "access", "unit")
    for sql in ("DESCRIBE people", 'describe table "People" ;', "DESC people"):
        answer = session.ask(sql)
        assert answer.frame.rows() == [("sex", "category", "f, m"), ("age", "integer", "0 to 120")]
        assert not session.explain(sql).differential_privacy
    with pytest.raises(QueryRefused, match="no table `persons`"):
        session.ask("DESCRIBE persons")
    with pytest.raises(QueryRefused):
        session.ask("DESCRIBE people; SELECT COUNT(*) FROM people")
    assert str(session.remaining()) == "ε = 1"


def test_an_error_shows_the_callers_line_and_the_fix_only() -> None:
    def cell() -> None:
        sfumato.protect(PEOPLE)  # type: ignore[arg-type]

    with pytest.raises(BadParameter) as caught:
        cell()
    shown = caught.value._render_traceback_()
    assert shown[-2].startswith("BadParameter (SFU-")
    assert "sfumato.propose(data)" in shown[-1]
    assert shown[-3].endswith("sfumato.protect(PEOPLE)  # type: ignore[arg-type]")
    assert not [line for line in shown if "api/protect.py" in line or "raise " in line]


class _Cell:
    """What a notebook displays below one cell."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.displays = 0

    def display(self, page: Any, *, display_id: bool) -> _Cell:
        self.pages.append(page.data)
        self.displays += 1
        return self

    def update(self, page: Any) -> None:
        self.pages.append(page.data)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> _Cell:
    below = _Cell()
    monkeypatch.setattr("IPython.display.display", below.display)
    return below


def test_progress_is_shown_by_default_in_a_notebook(cell: _Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    sfumato.propose(PEOPLE)
    assert cell.pages == []
    monkeypatch.setattr(
        sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(kernel=object(), execution_count=3)
    )
    sfumato.propose(PEOPLE)
    assert cell.displays == 1
    assert any("Looking at the columns" in page for page in cell.pages)
    assert cell.pages[-1] == ""
    monkeypatch.setenv("SFUMATO_PROGRESS", "0")
    shown = len(cell.pages)
    with AUTO.task("x", 1) as tick:
        tick(1)
    assert len(cell.pages) == shown


def test_progress_bars_tell_share_time_and_time_left(cell: _Cell) -> None:
    seconds = iter(float(second) for second in range(100))
    progress = NotebookProgress(clock=lambda: next(seconds), every=0)
    with progress.task("Attacks <all>", 4) as outer, progress.task("one", None):
        outer(1)
    assert 'Attacks &lt;all&gt; <progress value="0.250" max="1"></progress>' in "".join(cell.pages)
    assert "s left" in "".join(cell.pages)
    assert "one <progress></progress>" in "".join(cell.pages)
    assert cell.pages[-1] == ""
