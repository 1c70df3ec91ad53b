"""Questions in the app: what the recipe declares for them, cost and error before spending, answers, budget."""

from __future__ import annotations

from typing import Any, cast

from sfumato.app.documents import AskRequest, AskSetup, AskState, TextEdit
from sfumato.app.project import text_version
from sfumato.app.workspace import AppWorkspace
from sfumato.data import preview
from sfumato.data.yaml_documents import parse_yaml
from sfumato.dataset import Kind
from sfumato.dataset.document import Dataset, sql_name
from sfumato.dp.loss import pure
from sfumato.errors import BadParameter, SfumatoError
from sfumato.ledger.ledger import Balance
from sfumato.query import Session
from sfumato.query.open_session import open_ledger, open_session
from sfumato.query.plan.catalog import Catalog
from sfumato.query.policy.base import Policy
from sfumato.query.results.public_schema import describe_table
from sfumato.recipe.edit import set_column, set_section
from sfumato.registry import family_module

_ROWS = 100_000
_HISTORY = 100


def set_up(workspace: AppWorkspace, request: AskSetup) -> None:
    """Declare in the recipe whose privacy is kept and how queries are answered, and set the budget."""
    if (request.epsilon is None) == (request.k is None):
        raise BadParameter("Set a budget for noisy answers, or k for an auditor of exact ones, and not both.")
    project = workspace.need()
    location, options = project.source()
    name, sample = sql_name(location), preview(location, most=_ROWS, **options).table
    if request.unit != "row":
        sample.require([request.unit])
    sections: dict[str, object] = {"dataset": name, "unit": request.unit, "ledger": f"{name}-ledger.db"}
    if request.k is not None:
        sections["answering"] = {"policy": {"audit": {"k": request.k}}}

    def declared(text: str) -> str:
        known = parse_yaml(text).value
        for key, value in sections.items():
            if key not in known or key in ("unit", "answering"):
                text = set_section(text, key, value)
        for column in request.sensitive:
            text = set_column(text, column, "role", "sensitive")
        for column, setting in (known.get("columns") or {}).items():
            if column in sample.columns and not (isinstance(setting, dict) and "kind" in setting):
                text = set_column(text, str(column), "kind", str(Kind.of(sample.column(column).dtype)))
        return text

    project.edit("set up for questions", declared)
    loaded = _load(workspace)
    if request.epsilon is not None:
        open_ledger(loaded).set_cap(pure(request.epsilon), dataset=loaded.dataset, by=request.by)


def change_metadata(workspace: AppWorkspace, edit: TextEdit) -> None:
    """Write the edited document."""
    workspace.need().edit("edited for questions", lambda _: edit.text, version=edit.version)


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
    columns, left_out = _view().told_answers(_load(workspace))
    sentences = family_module("auditing.report.audit_page").audit_sentences
    return {
        "columns": [{**column.to_dict(), "sentences": list(sentences(column))} for column in columns],
        "left_out": list(left_out),
    }


def told_page(workspace: AppWorkspace) -> str:
    """The same with pictures, as a page without scripts."""
    page: str = family_module("auditing.report.audit_page").audit_html(*_view().told_answers(_load(workspace)))
    return page


def _view() -> Any:
    """The owner's view of an auditor."""
    return family_module("auditing.owner_view")


def _load(workspace: AppWorkspace) -> Dataset:
    project = workspace.need()
    text = project.text()
    if not _is_set_up(workspace) or text is None:
        raise BadParameter("The table is not set up for questions.", fix="Set the unit and the budget first.")
    return Dataset.parse(text, base=project.recipe_path.parent, source=project.recipe_path.name)


def _is_set_up(workspace: AppWorkspace) -> bool:
    """Whether the recipe says whose privacy is kept and where budgets are kept."""
    return {"unit", "ledger"} <= set(workspace.need().document()) or "tables" in workspace.need().document()


def _session(workspace: AppWorkspace, question: AskRequest) -> Session:
    return open_session(_load(workspace), analyst=question.analyst)


def _options(question: AskRequest) -> dict[str, Any]:
    given = {"epsilon": question.epsilon, "delta": question.delta}
    return {name: value for name, value in given.items() if value is not None}


def ask_state(workspace: AppWorkspace) -> AskState:
    """What the Ask page shows."""
    columns = list(workspace.view().columns)
    path, text = workspace.need().recipe_path, workspace.need().text()
    if text is None or not _is_set_up(workspace):
        return AskState(text=None, version="", columns=columns, sensitive=_sensitive(workspace))
    found = AskState(text=text, version=text_version(text), path=str(path), columns=columns)
    try:
        loaded = _load(workspace)
        catalog, policy = Catalog.of(loaded), cast("Policy | None", loaded.answering.policy)
        found.dataset = loaded.dataset
        found.policy = policy.part_name() if policy is not None else "differential-privacy"
        for name in [*catalog.private, *catalog.public]:
            found.tables[name] = [list(row) for row in describe_table(catalog, name)[1]]
        if policy is not None:
            found.promise = policy.promise_text()
            found.history = [
                {"number": number, "text": query, "verdict": verdict}
                for number, query, verdict in reversed(_view().decisions(loaded)[-_HISTORY:])
            ]
        else:
            ledger = open_ledger(loaded)
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


def _balance(balance: Balance) -> dict[str, object]:
    return {
        name: None if (loss := getattr(balance, name)) is None else {"text": str(loss), **loss.to_dict()}
        for name in ("cap", "spent", "left")
    }
