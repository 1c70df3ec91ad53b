"""The Python API as somebody meets it in a notebook: help, few words instead of walls of values, frames everywhere."""

import importlib
import inspect
import pickle

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.auditing import SizeControl
from sfumato.errors import BadParameter, InvalidRecipe, OverBudget
from sfumato.query.policy import Policy
from sfumato.query.session import QueryOptions
from sfumato.registry import registry

draw = np.random.default_rng(5)
PEOPLE = pl.DataFrame(
    {
        "name": [f"Person Nr {i}" for i in range(400)],
        "age": draw.integers(20, 60, 400),
        "sex": draw.choice(["f", "m"], 400),
        "diagnosis": draw.choice(["flu", "asthma", "none"], 400),
    }
)
WARD = {"kind": "category", "domain": {"values": ["f", "m"]}}
DESCRIBED = {"dataset": "trial", "person": "row", "tables": {"people": {"columns": {"sex": WARD}}}}


@pytest.fixture(scope="module")
def done():
    return sfumato.protect(sfumato.propose(PEOPLE).recipe(k=5), PEOPLE, seed=1)


def test_help_tells_how_to_call_a_verb():
    for name in ("protect", "attack", "measure", "study"):
        verb = getattr(sfumato, name)
        function = getattr(importlib.import_module(f"sfumato.api.{name}"), name)
        assert inspect.signature(verb) == inspect.signature(function)
        assert inspect.isfunction(verb)
        assert len(inspect.getdoc(verb)) > 80
        assert pickle.loads(pickle.dumps(verb)) is verb


@pytest.mark.parametrize("frame", [PEOPLE, PEOPLE.lazy(), PEOPLE.to_arrow(), PEOPLE.to_pandas()])
def test_propose_takes_any_frame(frame):
    proposal = sfumato.propose(frame)
    assert [column.role.value for column in proposal.columns] == ["identifier", "quasi", "quasi", "sensitive"]
    shown = repr(proposal).splitlines()
    assert [line.split()[0] for line in shown[:4]] == PEOPLE.columns
    assert "age + diagnosis single out 2.5% of the rows" in shown[4:]
    table = proposal.to_frame()
    assert table["role"].to_list() == ["identifier", "quasi", "quasi", "sensitive"]
    assert table.columns == ["column", "role", "kind", "reason", "confidence", "distinct", "missing"]
    assert [entry["role"] for entry in proposal.to_dict()["columns"]] == table["role"].to_list()
    assert proposal._repr_html_().count("<tr>") == 5
    assert "k-anonymity: {k: 5}" in proposal.recipe(k=5)


def test_what_protect_returns_can_be_attacked_and_measured(done):
    attacks = sfumato.attack(done, seed=1)
    assert attacks[0].truth == "row map"
    same = sfumato.attack(done.release, original=PEOPLE, lineage=done.lineage, seed=1)
    assert [outcome.main for outcome in attacks] == [outcome.main for outcome in same]
    assert sfumato.measure(done)[0].value == sfumato.measure(done.release, original=PEOPLE)[0].value >= 5


def test_it_shows_itself_in_few_words(done):
    attacks, measures = sfumato.attack(done, seed=1), sfumato.measure(done)
    for result in (done, attacks, measures, sfumato.check(done)):
        assert repr(result).startswith(f"<{type(result).__name__.removeprefix('InMemory')}: ")
        assert len(repr(result)) < 120
        assert f"{result}" == str(result)
        html = result._repr_html_()
        assert "<table>" in html
        assert "Person Nr" not in html
    assert "<svg" in attacks._repr_html_()
    assert "<svg" in done._repr_html_()
    for shown in (str(done), str(attacks), str(measures)):
        assert 1 < shown.count("\n") < 40
        assert max(map(len, shown.splitlines())) <= 120
        assert "\x1b" not in shown
        assert "Outcome(" not in shown
        assert "Person Nr" not in shown
    assert "400 of 400 records kept" in str(done)


def test_the_order_of_arguments_is_told():
    with pytest.raises(BadParameter, match="recipe comes first"):
        sfumato.protect(PEOPLE)
    with pytest.raises(BadParameter, match="original="):
        sfumato.attack(PEOPLE)


def test_a_session_on_a_frame():
    session = sfumato.session(DESCRIBED, {"people": PEOPLE}, epsilon=1)
    answer = session.ask("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon="0.75")
    assert answer.frame["sex"].to_list() == ["f", "m"]
    with pytest.raises(OverBudget):
        session.ask("SELECT COUNT(*) FROM people", epsilon="0.5")


def test_a_session_from_a_file_has_its_ledger(tmp_path):
    from sfumato.dp.loss import pure
    from sfumato.ledger.ledger import Ledger

    PEOPLE.write_parquet(tmp_path / "people.parquet")
    text = (
        "sfumato: 1\ndataset: d\nledger: book.db\nperson: row\ntables:\n  people:\n    data: people.parquet\n"
        "    columns: {sex: {kind: category, domain: {values: [f, m]}}}\n"
    )
    (tmp_path / "d.yaml").write_text(text)
    Ledger.open(tmp_path / "book.db").set_cap(pure(1), dataset="d")
    session = sfumato.session(tmp_path / "d.yaml", analyst="ana")
    session.ask("SELECT COUNT(*) FROM people", epsilon="0.25")
    assert str(sfumato.session(tmp_path / "d.yaml", analyst="bob").remaining()) == "ε = 0.75"
    with pytest.raises(BadParameter, match="sfumato ledger cap"):
        sfumato.session(tmp_path / "d.yaml", epsilon=1)


def test_what_is_wrong_with_a_session_is_told():
    with pytest.raises(BadParameter, match="needs a budget"):
        sfumato.session(DESCRIBED, {"people": PEOPLE})
    with pytest.raises(BadParameter, match="no table `persons`"):
        sfumato.session(
            DESCRIBED | {"tables": {"people": DESCRIBED["tables"]["people"] | {"data": "x"}}}, {"persons": 1}
        )
    with pytest.raises(InvalidRecipe, match=r"tables.people.data"):
        sfumato.session(DESCRIBED, epsilon=1)


def test_a_session_takes_every_policy() -> None:
    """`sfumato.session` opens a data set with any policy; ask and explain have one shape."""
    frame = pl.DataFrame({"zip": [1, 1, 2, 2] * 2, "ill": [1, 0, 1, 0] * 2})
    columns = {"zip": {"kind": "integer"}, "ill": {"kind": "integer", "role": "sensitive"}}
    described = {"dataset": "trial", "person": "row", "tables": {"t": {"columns": columns}}}
    opened = 0
    for kind in registry("policy"):
        assert issubclass(kind, Policy)
        policy = kind.build(kind.examples[0])
        if policy.table_problem():
            continue
        key = kind.part_name() if kind.spends_budget else {kind.part_name(): policy.to_dict()}
        session = sfumato.session(
            {**described, "answering": {"policy": key}}, {"t": frame}, epsilon=1 if kind.spends_budget else None
        )
        options: QueryOptions = {"epsilon": "0.5"} if kind.spends_budget else {}
        explanation = session.explain("SELECT COUNT(*) FROM t", **options)
        assert explanation.policy == kind.part_name()
        assert explanation.differential_privacy is kind.spends_budget
        opened += 1
        if not kind.spends_budget:
            with pytest.raises(BadParameter, match="belongs to differential privacy"):
                session.ask("SELECT COUNT(*) FROM t", epsilon=1)
            with pytest.raises(BadParameter, match="has no budget"):
                sfumato.session({**described, "answering": {"policy": key}}, {"t": frame}, epsilon=1)
            with pytest.raises(BadParameter, match="workloads need"):
                session.workload(["SELECT COUNT(*) FROM t"], epsilon=1)
        answer = session.ask("SELECT COUNT(*) FROM t", **options) if kind is not SizeControl else None
        if answer is not None:
            assert answer.columns == ("COUNT(*)",)
            assert (answer.loss is None) is not kind.spends_budget
            assert answer.to_dict()["rows"][0]["COUNT(*)"]["value"] == answer.value
    assert opened >= 9


def test_a_proposal_in_a_notebook_escapes_column_names() -> None:
    shown = sfumato.propose(pl.DataFrame({"<b>age</b>": [1, 2, 3]}))._repr_html_()
    assert "&lt;b&gt;age" in shown
    assert "<b>" not in shown
