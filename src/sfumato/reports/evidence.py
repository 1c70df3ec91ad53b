"""Evidence of a run for the compliance crosswalk: a state and one or two sentences with its figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sfumato.evaluation.formatting import attack_label, interval_ends, join_words, percent
from sfumato.reports import text
from sfumato.reports.report_data import ColumnSummary, ReportData
from sfumato.wording import counted


@dataclass(frozen=True)
class Evidence:
    """What a run shows about a requirement."""

    state: Literal["shown", "not met", "open", "not applicable"] = "open"
    text: str = ""


EVIDENCE: dict[str, Callable[[ReportData], Evidence]] = {}
"""Evidence by the name that the YAML files of frameworks use."""


def _evidence(function: Callable[[ReportData], Evidence]) -> Callable[[ReportData], Evidence]:
    EVIDENCE[function.__name__.strip("_").replace("_", "-")] = function
    return function


def _names(columns: list[ColumnSummary]) -> str:
    return join_words([f"`{column.column}`" for column in columns])


@_evidence
def _identifiers(report: ReportData) -> Evidence:
    """Identifiers do not leave."""
    declared = [column for column in report.column_table if column.role == "identifier"]
    leaving = [column for column in declared if column.released]
    if any(column.unchanged for column in leaving):
        return Evidence("not met", f"Declared identifiers leave unchanged: {_names(leaving)}.")
    if leaving:
        return Evidence("open", f"Identifiers leave in another form: {_names(leaving)}.")
    removed = [column for column in report.column_table if not column.released]
    if not declared:
        return Evidence("open", "No column is declared as an identifier.")
    return Evidence("shown", f"Removed: {_names(removed)}.")


@_evidence
def _leaving_columns(report: ReportData) -> Evidence:
    """Columns that leave, and how."""
    leaving = [column for column in report.column_table if column.released]
    words = [
        f"`{column.column}` ({'unchanged' if column.unchanged else column.done or 'unchanged'})" for column in leaving
    ]
    return Evidence("open", f"These columns leave: {join_words(words)}.") if words else Evidence()


@_evidence
def _safe_harbor_form(report: ReportData) -> Evidence:
    """Dates, ZIP codes and ages have the form of HIPAA Safe Harbor, if a model checked it."""
    leaving = _leaving_columns(report)
    states = {verdict["state"] for verdict in report.verdicts if verdict["model"] == "safe-harbor"}
    if "fails" in states:
        return Evidence("not met", f"The model safe-harbor fails. {leaving.text}".strip())
    if states == {"holds"}:
        return Evidence("open", f"The model safe-harbor holds for the columns that the recipe names. {leaving.text}")
    return leaving


@_evidence
def _unchanged_columns(report: ReportData) -> Evidence:
    """Columns that leave as they were."""
    unchanged = [column for column in report.column_table if column.released and column.unchanged]
    if not report.column_table:
        return Evidence()
    return (
        Evidence("open", f"Unchanged: {_names(unchanged)}.")
        if unchanged
        else Evidence("shown", "No column leaves unchanged.")
    )


@_evidence
def _roles(report: ReportData) -> Evidence:
    """Every column has a role that somebody decided."""
    if not report.column_table:
        return Evidence()
    counts: dict[str, int] = {}
    for column in report.column_table:
        counts[column.role] = counts.get(column.role, 0) + 1
    shown = ", ".join(f"{number} {role}" for role, number in counts.items())
    nobody = [column for column in report.column_table if not column.decided_by]
    if nobody:
        return Evidence("open", f"Roles of columns: {shown}. No person is named for {_names(nobody)}.")
    return Evidence("shown", f"Roles of columns: {shown}. Each is decided by a named person.")


@_evidence
def _models(report: ReportData) -> Evidence:
    """Privacy models hold."""
    verdicts = text.verdicts(report)
    if not verdicts:
        return Evidence("open", "The recipe names no privacy model.")
    words = join_words([f"{verdict['model']} {verdict['state']}" for verdict in verdicts])
    states = {verdict["state"] for verdict in verdicts}
    return Evidence("not met" if "fails" in states else "shown" if states == {"holds"} else "open", f"{words}.")


def _attacks(limit: str, discloses: str, report: ReportData) -> Evidence:
    """The strongest attack of a kind against the limit of the recipe."""
    run = [one for one in report.attacks if one.get("discloses") == discloses and one.get("risk") is not None]
    if not run:
        return Evidence("open", "No attack of this kind gave a result.")
    worst = max(run, key=lambda one: (float(one.get("judged") or 0), float(one["risk"])))
    words = (
        f"{counted(len(run), 'attack')} of this kind; the strongest, {attack_label(worst)}, succeeds for "
        f"{percent(worst['risk'])} of the targets ({interval_ends(worst['low'], worst['high'])}), "
        f"{percent(worst.get('baseline'))} without the release."
    )
    set_limit = next((one for one in report.limits if one["limit"] == limit), None)
    if set_limit is None:
        return Evidence("open", f"{words} The recipe sets no limit on it.")
    against = f"{words} The limit is {percent(set_limit['wanted'])}"
    if set_limit["met"] is None:
        return Evidence("open", f"{against}; it could not be judged.")
    return (
        Evidence("shown", f"{against} and is met.")
        if set_limit["met"]
        else Evidence("not met", f"{against} and is exceeded.")
    )


EVIDENCE |= {
    "identity-attacks": partial(_attacks, "risk", "identity"),
    "singling-out-attacks": partial(_attacks, "singling-out", "singling-out"),
    "attribute-attacks": partial(_attacks, "attribute", "attribute"),
    "membership-attacks": partial(_attacks, "membership", "membership"),
}


@_evidence
def _adversaries(report: ReportData) -> Evidence:
    """Who was simulated, with what knowledge."""
    if not report.attacks:
        return Evidence("open", "No attack was run.")
    known = sorted({name for one in report.attacks for name in one.get("knows") or ()})
    label = join_words(sorted({attack_label(one) for one in report.attacks}))
    return Evidence(
        "shown", f"Simulated: {label}. They know {join_words([f'`{name}`' for name in known]) or 'no column'}."
    )


@_evidence
def _limits(report: ReportData) -> Evidence:
    """A threshold was set and compared with."""
    if not report.limits:
        return Evidence("open", "The recipe sets no limit on risk.")
    words = join_words(
        [f"{one['limit']} at most {percent(one['wanted'])}, found {percent(one.get('value'))}" for one in report.limits]
    )
    met = {one["met"] for one in report.limits}
    return Evidence(
        "not met" if False in met else "shown" if met == {True} else "open", f"{words[0].upper()}{words[1:]}."
    )


@_evidence
def _pseudonyms(report: ReportData) -> Evidence:
    """Whether a key leads back to people."""
    used = [step for step in report.manifest.get("steps", ()) if step.get("step") == "pseudonymize"]
    if used:
        return Evidence("open", "Columns are pseudonymized: who holds the key can attribute the records.")
    return Evidence("shown", "No column is pseudonymized.")


@_evidence
def _steps(report: ReportData) -> Evidence:
    """How the data was transformed."""
    names = [str(step.get("step")) for step in report.manifest.get("steps", ())]
    if not names:
        return Evidence("open", "No step was applied.")
    return Evidence("shown", f"Applied in this order: {', '.join(names)}. The report has all parameters.")


@_evidence
def _utility(report: ReportData) -> Evidence:
    """What is left for analysts."""
    names = [str(one["measure"]) for one in report.measures if one.get("value") is not None]
    return Evidence("shown", f"Measured: {', '.join(names)}.") if names else Evidence("open", "Nothing was measured.")


@_evidence
def _record(report: ReportData) -> Evidence:
    """What documents the run."""
    version = report.versions.get("sfumato", "")
    return Evidence(
        "shown",
        f"This report, the recipe and the manifest with hashes of {counted(len(report.files), 'file')}; "
        f"made by sfumato {version}.",
    )


def _field(key: str, label: str, report: ReportData) -> Evidence:
    value = report.about.get(key)
    return (
        Evidence("shown", f"{label}: {value}.")
        if value
        else Evidence("open", f"The report does not name it ({label.lower()}).")
    )


EVIDENCE |= {
    key.replace("_", "-"): partial(_field, key, label) for key, label in {**text.ABOUT_LABELS, **text.SIGN_OFF}.items()
}


def _differential_privacy(report: ReportData) -> list[dict[str, object]]:
    """Parameters of the steps that have an epsilon."""
    steps = ({**step, **step.get("parameters", {})} for step in report.manifest.get("steps", ()))
    return [step for step in steps if step.get("epsilon") is not None]


@_evidence
def _epsilon(report: ReportData) -> Evidence:
    """Privacy parameters of a differentially private release."""
    private = _differential_privacy(report)
    if not private:
        return Evidence("not applicable", "The release claims no differential privacy.")
    words = join_words([f"{step['step']}: ε = {step['epsilon']:g}, δ = {step.get('delta', 0):g}" for step in private])
    return Evidence("shown", f"{words}.")


@_evidence
def _unit(report: ReportData) -> Evidence:
    """Whom differential privacy protects."""
    if not _differential_privacy(report):
        return Evidence("not applicable", "The release claims no differential privacy.")
    unit = report.recipe_public.get("unit") or "row"
    return Evidence("shown", f"The unit of privacy is: {unit}.")


@_evidence
def _formal_privacy(report: ReportData) -> Evidence:
    """For requirements that only a person can judge, if differential privacy is claimed at all."""
    if not _differential_privacy(report):
        return Evidence("not applicable", "The release claims no differential privacy.")
    return Evidence()
