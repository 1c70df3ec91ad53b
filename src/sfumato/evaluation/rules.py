"""Independent verdicts on the privacy models of a release.

Each model carries its condition a second time as a formula over plain counts
(:meth:`~sfumato.masking.model.PrivacyModel.independent_check`). This module counts nothing and knows no model: it looks
the model up, runs that formula over the counts of :mod:`sfumato.evaluation.counts` and forms the verdict. Neither the
counts nor the formulas use the equivalence classes, rules or distances of the masking search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sfumato.masking.model import PrivacyModel, model_of
from sfumato.release import State, Verdict
from sfumato.release.class_counts import CannotCheck, ConditionResult, ReleaseCounts

ModelLookup = Callable[[str], type[PrivacyModel]]


def verify(
    models: Iterable[Mapping[str, object]], counts: ReleaseCounts, *, lookup: ModelLookup = model_of
) -> list[Verdict]:
    """A verdict for each model of a manifest, ``{name: parameters}``. ``lookup`` gives the class of a name."""
    return [
        replace(_verdict(name, parameters, counts, lookup), column=_column(parameters))
        for model in models
        for name, parameters in model.items()
    ]


def _column(parameters: object) -> str | None:
    column = parameters.get("column") if isinstance(parameters, Mapping) else None
    return str(column) if column is not None else None


def _verdict(name: str, parameters: object, counts: ReleaseCounts, lookup: ModelLookup) -> Verdict:
    if not counts.sizes and lookup(name).on_classes:
        return Verdict.not_checked(name, "The release has no equivalence class.")
    try:
        result = _evaluate(lookup(name), parameters, counts)
    except CannotCheck as missing:
        return Verdict.not_checked(name, str(missing))
    if result.failing is not None:
        return Verdict(
            model=name,
            state=State.HOLDS if result.table_holds else State.FAILS,
            worst=_whole(result.worst),
            wanted=result.wanted,
            failing=result.failing,
            reason="" if result.table_holds else result.reason,
        )
    return Verdict.of_classes(
        name,
        failed=list(result.passes).count(False),
        classes=len(result.passes),
        failing=sum(rows for rows, passes in zip(counts.own_rows, result.passes, strict=True) if not passes),
        rows=sum(counts.own_rows),
        together=result.table_holds,
        worst=_whole(result.worst),
        wanted=result.wanted,
    )


def _whole(worst: float | None) -> float | int | None:
    return int(worst) if worst is not None and float(worst).is_integer() else worst


def _evaluate(model: type[PrivacyModel], parameters: Any, counts: ReleaseCounts) -> ConditionResult:
    try:
        return model.independent_check(parameters, counts)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CannotCheck("Its published parameters are incomplete or not valid.") from None
