"""Graphs of answers already given: query graph, merged graph and its error, T_Δ2, and their pictures."""

from __future__ import annotations

import json
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
from sfumato.errors import BadParameter

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


def test_the_delta2_table_with_and_without_a_counterfeit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The six people of the lectures: T_Δ2 lacks a value of persons 3 and 5, and a counterfeit C gives person 1 C."""
    pl.DataFrame({"person": range(1, 7), "value": list("ABCBDB")}).write_csv(tmp_path / "six.csv")
    log, page = tmp_path / "log.sql", tmp_path / "audit.html"
    log.write_text("SELECT value FROM t WHERE person IN (1, 2, 3)\nSELECT value FROM t WHERE person IN (1, 4, 5, 6)")
    command = ["audit", str(log), "--data", str(tmp_path / "six.csv"), "--secret", "value", "--k", "2"]
    told = [*command, "--told", "--values", "--counterfeit", "2:C"]
    assert main([*told, "--json"]) == 0
    [column] = json.loads(capsys.readouterr().out)["columns"]
    by_person = {row.pop("person"): [cell.replace(", ", "") for cell in row.values()] for row in column["values"]}
    assert {person: cells[:2] for person, cells in by_person.items()} == {
        "row 1": ["AB", "AB"], "row 2": ["ABC", "ABC"], "row 3": ["ABC", "BC"],
        "row 4": ["ABD", "ABD"], "row 5": ["ABD", "BD"], "row 6": ["ABD", "ABD"],
    }  # fmt: skip
    assert by_person["row 1"][2] == "ABC"
    assert main([*told, "--html", str(page)]) == 0
    printed, text = capsys.readouterr().out, page.read_text()
    assert "T_Δ2 with counterfeits" in printed
    assert "A, B, D" in printed
    assert '<th scope="col">T_Δ2 with counterfeits</th>' in text
    assert '<tr><th scope="row">row 3</th><td>A, B, C</td><td>B, C</td>' in text
    assert main([*command, "--told"]) == 0
    assert "A, B" not in capsys.readouterr().out  # without --values no value is printed
    for wrong in (["--values"], ["--counterfeit", "2:C"], ["--told", "--counterfeit", "3:C"],
                  ["--told", "--counterfeit", "2:Z"], ["--told", "--counterfeit", "C"]):  # fmt: skip
        assert main([*command, *wrong]) == 2
        assert "Z" not in capsys.readouterr().err.replace("SFU", "")


def test_counterfeits_are_of_lists_only() -> None:
    auditor = Auditor(PATIENTS, secrets=["disease"], rules=AuditRules(k=2))
    with pytest.raises(BadParameter, match="not a list"):
        past_answers(auditor, ["SELECT COUNT(*) FROM t WHERE disease = 'Flu'"], counterfeits={1: ["Cold"]})


def test_a_log_about_nobody_has_no_graph() -> None:
    auditor = Auditor(PATIENTS, secrets=["disease"], rules=AuditRules(k=2))
    [column], _ = past_answers(auditor, ["SELECT disease FROM patients WHERE zip = 1"])
    assert column.graph is not None
    assert column.graph.to_dict()["merged_edges"] == 0
    from sfumato.auditing.report.audit_pictures import audit_figures

    assert [figure.title for figure in audit_figures(column)] == ["Possible values left"]
