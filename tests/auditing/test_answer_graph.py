"""Graphs of answers already given: query graph, merged graph and its error, T_Δ2, and their pictures."""

from __future__ import annotations

import stat
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.auditing.auditor import Auditor
from sfumato.auditing.past_answers import past_answers
from sfumato.auditing.rules import AuditRules
from sfumato.cli import main

LOG = [
    "SELECT disease FROM patients WHERE zip = 12000",
    "SELECT disease FROM patients WHERE age >= 22",
    "SELECT disease FROM patients WHERE zip = 12000 AND sex = 'F'",
]
PATIENTS = pl.DataFrame({
    "zip": [10000, 11000, 12000, 12000, 12000, 12000, 14000], "age": [18, 19, 20, 21, 22, 23, 24],
    "sex": ["F", "M", "M", "F", "F", "F", "M"],
    "disease": ["Asthma", "Bronchitis", "Cold", "Diabetes", "Earache", "Flu", "Earache"],
})  # fmt: skip


def test_graphs_are_those_of_enumeration() -> None:
    """Merged: the values each answer alone leaves. Possible: those of all worlds. T_Δ2 lies within."""
    rng = np.random.default_rng(1)
    errors = 0
    for _ in range(12):
        people, values = 6, 3
        truth = rng.integers(0, values, people)
        truth[:values] = range(values)
        frame = pl.DataFrame({"id": range(people), "v": [f"v{code}" for code in truth]})
        sets = [sorted(rng.choice(people, int(rng.integers(2, 5)), replace=False).tolist()) for _ in range(3)]
        auditor = Auditor(frame, secrets=["v"], rules=AuditRules(k=2))
        [column], _ = past_answers(auditor, [f"SELECT v FROM t WHERE id IN ({str(s)[1:-1]})" for s in sets])
        graph = column.graph
        assert graph is not None
        worlds = np.array(list(product(range(values), repeat=people)))
        fits = [(np.sort(worlds[:, s], axis=1) == np.sort(truth[s])).all(axis=1) for s in sets]
        together = worlds[np.logical_and.reduce(fits)]
        for place, person in enumerate(graph.people.tolist()):
            mine = [number for number, s in enumerate(sets) if person in s]
            assert np.flatnonzero(graph.asked[place]).tolist() == mine
            alone = set.intersection(*(set(worlds[fits[number]][:, person].tolist()) for number in mine))
            assert set(np.flatnonzero(graph.merged[place])) == alone
            assert set(np.flatnonzero(graph.possible[place])) == set(together[:, person].tolist())
        assert graph.delta2 is not None
        assert not (graph.delta2 & ~graph.possible).any()
        assert not (graph.possible & ~graph.merged).any()
        errors += graph.error
    assert errors > 10


def test_the_pictures_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PATIENTS.write_csv(tmp_path / "p.csv")
    (tmp_path / "log.sql").write_text("\n".join(LOG))
    page = tmp_path / "audit.html"
    command = ["audit", str(tmp_path / "log.sql"), "--data", str(tmp_path / "p.csv"), "--secret", "disease", "--k", "2"]
    assert main([*command, "--told", "--html", str(page)]) == 1
    assert "6 are in no assignment" in " ".join(capsys.readouterr().out.split())
    text = page.read_text()
    assert text.count("<svg") == 4
    assert "Row 3 follows from 2 answers" in text
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert main([*command, "--told", "--html", str(page)]) == 2  # private files are never replaced
    assert main([*command, "--html", str(tmp_path / "other.html")]) == 2
    assert "--told" in capsys.readouterr().err


def test_a_log_about_nobody_has_no_graph() -> None:
    auditor = Auditor(PATIENTS, secrets=["disease"], rules=AuditRules(k=2))
    [column], _ = past_answers(auditor, ["SELECT disease FROM patients WHERE zip = 1"])
    assert column.graph is not None
    assert column.graph.to_dict()["merged_edges"] == 0
    from sfumato.auditing.report.audit_pictures import audit_figures

    assert [figure.title for figure in audit_figures(column)] == ["Possible values left"]
