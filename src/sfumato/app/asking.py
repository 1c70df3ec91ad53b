"""Questions in the app: metadata of the table, cost and error before spending, answers, budget and history."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sfumato.app.audit_view import decisions, told_answers
from sfumato.app.documents import AskRequest, AskSetup, AskState, TextEdit
from sfumato.app.project import changed_meanwhile, text_version
from sfumato.app.workspace import AppWorkspace
from sfumato.data import preview, replacing
from sfumato.data.url import is_url
from sfumato.dp.loss import pure
from sfumato.errors import BadParameter, NotThatFormat, SfumatoError
from sfumato.ledger.ledger import Balance, Ledger
from sfumato.query import Session
from sfumato.query.metadata import Metadata, load
from sfumato.query.metadata import propose as propose_metadata
from sfumato.query.results.public_schema import describe_table
from sfumato.reports.audit_page import audit_html, audit_sentences

__all__ = ["answer", "ask_state", "change_metadata", "explain", "set_up", "told", "told_page"]

_ROWS = 100_000
_HISTORY = 100


def set_up(workspace: AppWorkspace, request: AskSetup) -> None:
    """Write the metadata of the table and set its budget."""
    project = workspace.need()
    location, options = project.source()
    suffix = Path(location).suffix.lower()
    if is_url(location) or options or suffix not in (".csv", ".tsv", ".parquet"):
        raise NotThatFormat(
            "Questions are answered on Parquet files and plain CSV files.",
            fix="Convert the file to Parquet, or use `sfumato init FILE --query` for a database.",
        )
    if (request.epsilon is None) == (request.k is None):
        raise BadParameter("Set a budget for noisy answers, or k for an auditor of exact ones, and not both.")
    table = preview(location, most=_ROWS).table
    if request.unit != "row":
        table.require([request.unit])
    name = _sql_name(Path(location).stem)
    place = Path(os.path.relpath(location, project.recipe_path.parent)).as_posix()
    path = _metadata_path(workspace)
    with replacing(path, force=False) as temporary:
        text = propose_metadata(
            table, data=place, dataset=name, unit=request.unit, sensitive=request.sensitive, audit=request.k
        )
        temporary.write_text(text, encoding="utf-8")
    loaded = load(path)
    if request.epsilon is not None:
        ledger = Ledger.open(loaded.ledger_place(path.parent))
        ledger.set_cap(pure(request.epsilon), dataset=loaded.dataset, by=request.by)


def change_metadata(workspace: AppWorkspace, edit: TextEdit) -> None:
    """Write the edited metadata file."""
    path = _metadata_path(workspace)
    if not path.is_file() or text_version(path.read_text(encoding="utf-8")) != edit.version:
        raise changed_meanwhile("metadata file")
    with replacing(path, force=True) as temporary:
        temporary.write_text(edit.text, encoding="utf-8")


def explain(workspace: AppWorkspace, question: AskRequest) -> dict[str, Any]:
    """Cost and expected error; spends nothing."""
    options: Any = _options(question)
    explanation = _session(workspace, question).explain(question.sql, **options)
    return {"text": str(explanation), "explanation": explanation.to_dict()}


def answer(workspace: AppWorkspace, question: AskRequest) -> dict[str, Any]:
    """Answer a question and charge the budget."""
    options: Any = _options(question)
    return _session(workspace, question).ask(question.sql, **options).to_dict()


def told(workspace: AppWorkspace) -> dict[str, Any]:
    """What the answers of the auditor give away together, for the owner."""
    columns, left_out = told_answers(*_load(workspace))
    return {
        "columns": [{**column.to_dict(), "sentences": list(audit_sentences(column))} for column in columns],
        "left_out": list(left_out),
    }


def told_page(workspace: AppWorkspace) -> str:
    """The same with pictures, as a page without scripts."""
    return audit_html(*told_answers(*_load(workspace)))


def _metadata_path(workspace: AppWorkspace) -> Path:
    path = workspace.need().recipe_path
    return path.with_name(f"{path.name.removesuffix('.yaml')}.query.yaml")


def _sql_name(text: str) -> str:
    plain = re.sub(r"\W+", "_", text).strip("_").lower() or "data"
    return plain if plain[0].isalpha() else f"t_{plain}"


def _load(workspace: AppWorkspace) -> tuple[Metadata, Path]:
    path = _metadata_path(workspace)
    if not path.is_file():
        raise BadParameter("The table is not set up for questions.", fix="Set the unit and the budget first.")
    return load(path), path.parent


def _session(workspace: AppWorkspace, question: AskRequest) -> Session:
    loaded, base = _load(workspace)
    return loaded.session(base=base, analyst=question.analyst)


def _options(question: AskRequest) -> dict[str, Any]:
    given = {"epsilon": question.epsilon, "delta": question.delta}
    return {name: value for name, value in given.items() if value is not None}


def ask_state(workspace: AppWorkspace) -> AskState:
    """What the Ask page shows."""
    path = _metadata_path(workspace)
    columns = list(workspace.view().columns)
    if not path.is_file():
        return AskState(text=None, version="", columns=columns, sensitive=_sensitive(workspace))
    text = path.read_text(encoding="utf-8")
    found = AskState(text=text, version=text_version(text), path=str(path), columns=columns)
    try:
        loaded, base = _load(workspace)
        catalog = loaded.catalog(base)
        found.dataset = loaded.dataset
        found.policy = loaded.policy.part_name() if loaded.policy is not None else "differential-privacy"
        for name in [*catalog.private, *catalog.public]:
            found.tables[name] = [list(row) for row in describe_table(catalog, name)[1]]
        if loaded.policy is not None:
            found.promise = loaded.policy.promise_text()
            found.history = [
                {"number": number, "text": query, "verdict": verdict}
                for number, query, verdict in reversed(decisions(loaded, base)[-_HISTORY:])
            ]
        else:
            ledger = Ledger.open(loaded.ledger_place(base))
            found.budget = _balance(ledger.balance(dataset=loaded.dataset))
            texts = ledger.queries()
            spent = [entry for entry in ledger.entries() if entry.kind == "spend"]
            found.history = [
                {"at": entry.at, "analyst": entry.analyst, "text": texts.get(entry.number, "")}
                for entry in reversed(spent[-_HISTORY:])
            ]
    except SfumatoError as refusal:
        found.problem = str(refusal)
    return found


def _sensitive(workspace: AppWorkspace) -> list[str]:
    declared = workspace.need().document().get("columns") or {}
    roles = {name: setting.get("role") if isinstance(setting, dict) else setting for name, setting in declared.items()}
    return [str(name) for name, role in roles.items() if role == "sensitive"]


def _balance(balance: Balance) -> dict[str, Any]:
    return {
        name: None if (loss := getattr(balance, name)) is None else {"text": str(loss), **loss.to_dict()}
        for name in ("cap", "spent", "left")
    }
