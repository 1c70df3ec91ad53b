"""Risk and utility of all candidates: points, the Pareto frontier, and a recommendation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from sfumato.evaluation.check import SEVERAL_ROWS
from sfumato.evaluation.formatting import percent, readable_name
from sfumato.evaluation.limits import judge_entries
from sfumato.recipe import Limits
from sfumato.release.standing import limit_state, limit_words
from sfumato.studies.plan import Candidate, StudyPlan

_ENDS = ("mean", "low", "high")
_NESTED = ("steps", "attacks", "measures", "losses", "stopped", "skipped", "unmet")
"""Entries of a candidate that are no cell of a table."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Risk and utility of one candidate, averaged over its seeds."""

    candidate: Candidate
    risk: float | None
    """Mean risk over the seeds; None if it could not be determined."""
    risk_low: float | None
    """The smallest lower interval end of the worst attack over the seeds."""
    risk_high: float | None
    """The largest upper interval end over attacks and seeds, which a limit is compared with."""
    risk_by: str
    """The attack or measure behind the risk; the most frequent one if it differs between seeds."""
    loss: float | None
    """Mean over the seeds of the utility loss: the measure itself, or one minus it where high values are good."""
    loss_low: float | None
    loss_high: float | None
    """Smallest and largest over the seeds."""
    losses: Mapping[str, tuple[float, float, float]]
    """Mean, smallest and largest loss over the seeds by every utility measure of the plan that applied."""
    holds: bool
    """Whether every privacy model of the recipe held in every run."""
    seconds: float
    attacks: Mapping[str, float]
    """Mean risk of every attack that applied."""
    measures: Mapping[str, float]
    """Mean value of every measure that applied."""
    reason: str = ""
    """Why the candidate has no risk or no loss."""
    efficient: bool = False
    """Whether no other candidate has both less risk and less loss."""
    stopped: tuple[str, ...] = ()
    """Attacks that ran out of time without a result."""
    skipped: tuple[str, ...] = ()
    """Attacks that were skipped, because the limit was exceeded already. The risk is then a lower bound."""
    judged: float | None = None
    """The largest value over attacks and seeds that ``protect`` would compare with a limit on risk: also by attackers
    who know undeclared columns, unless the recipe accepts them."""
    judged_by: str = ""
    unmet: tuple[str, ...] = ()
    """What else ``protect`` would refuse in a run: verdicts that do not hold, limits that are not met or not judged."""

    @property
    def complete(self) -> bool:
        """Whether risk and loss are known and no attack is missing."""
        return self.risk is not None and self.loss is not None and not self.stopped and not self.skipped

    @property
    def remark(self) -> str:
        """What limits the result, in words; empty if nothing does."""
        if self.reason:
            return self.reason
        parts = []
        parts += [text[:1].lower() + text[1:] for text in self.unmet]
        if self.judged is not None and self.risk_high is not None and self.judged > self.risk_high:
            parts.append(f"judged {percent(self.judged)} by {readable_name(self.judged_by)}")
        if self.stopped:
            parts.append(f"out of time: {', '.join(self.stopped)}")
        if self.skipped:
            count = len(self.skipped)
            parts.append(f"beyond the limit; {count} further attack{'s' if count > 1 else ''} skipped, risk at least")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, object]:
        return {
            "candidate": self.candidate.name,
            "steps": self.candidate.to_dict(),
            **{
                name: getattr(self, name)
                for name in (
                    "risk", "risk_low", "risk_high", "risk_by", "loss", "loss_low", "loss_high", "holds", "efficient",
                    "seconds", "judged",
                )
            },
            **({"judged_by": self.judged_by} if self.judged_by else {}),
            **({"unmet": list(self.unmet)} if self.unmet else {}),
            "attacks": dict(self.attacks),
            "measures": dict(self.measures),
            "losses": {name: dict(zip(_ENDS, ends, strict=True)) for name, ends in self.losses.items()},
            **({"reason": self.reason} if self.reason else {}),
            **{name: list(getattr(self, name)) for name in ("stopped", "skipped") if getattr(self, name)},
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True, repr=False)
class Study:
    """The results of all candidates."""

    plan: StudyPlan
    points: tuple[Point, ...]
    resumed: int = 0
    """Runs that were finished before and not repeated."""

    @property
    def frontier(self) -> tuple[Point, ...]:
        """Efficient candidates, least risk first."""
        efficient = [point for point in self.points if point.efficient]
        return tuple(sorted(efficient, key=lambda point: (point.risk or 0.0, point.loss or 0.0)))

    def recommend(self, *, risk: float | None = None, loss: float | None = None) -> Point | None:
        """The best candidate under a limit, or None if no candidate meets it.

        With ``risk``: least loss among those whose risk stays below it at the upper end of its interval, as ``protect``
        judges it. With ``loss``: least risk among those that lose no more. Candidates that ``protect`` would refuse and
        candidates with attacks that ran out of time or were skipped are never recommended.
        """
        usable = [p for p in self.points if p.complete and p.holds and not p.unmet]
        if risk is not None:
            usable = [p for p in usable if p.risk_high is not None and max(p.risk_high, p.judged or 0.0) <= risk]
        if loss is not None:
            usable = [p for p in usable if p.loss is not None and p.loss <= loss]
        if not usable or (risk is None and loss is None):
            return None
        first, second = ("loss", "risk") if risk is not None else ("risk", "loss")
        return min(usable, key=lambda p: (getattr(p, first), getattr(p, second)))

    def to_frame(self) -> pl.DataFrame:
        """One row per candidate, with the mean of every attack and measure, as a Polars data frame."""
        rows = []
        for point in self.points:
            entry = {k: v for k, v in point.to_dict().items() if k not in _NESTED}
            attacks = {f"attack {name}": value for name, value in point.attacks.items()}
            measures = {f"measure {name}": value for name, value in point.measures.items()}
            rows.append({**entry, "remark": point.remark, **attacks, **measures})
        return pl.DataFrame(rows, infer_schema_length=None)

    def __repr__(self) -> str:
        return f"<Study: {len(self.points)} candidates, {len(self.frontier)} efficient, utility by {self.plan.utility}>"

    def __str__(self) -> str:
        return str(self.to_frame())

    def _repr_html_(self) -> str:
        from sfumato.studies.page import notebook_html

        return notebook_html(self)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``sfumato study --json`` prints."""
        limit = self.plan.recipe.limits.risk
        best = self.recommend(risk=limit) if limit is not None else None
        return {
            "risk": self.plan.risk or "worst attack on identity",
            "utility": self.plan.utility,
            "seeds": len(self.plan.seeds),
            "resumed": self.resumed,
            "candidates": [point.to_dict() for point in self.points],
            "frontier": [point.candidate.name for point in self.frontier],
            "limit": limit,
            "recommended": best.candidate.name if best is not None else None,
        }


def points_of(plan: StudyPlan, cells: Mapping[tuple[int, int], Mapping[str, object]]) -> tuple[Point, ...]:
    """Average the cells of each candidate and mark the efficient ones."""
    points = [
        _point(plan, candidate, [cells[number, seed] for seed in plan.seeds])
        for number, candidate in enumerate(plan.candidates)
    ]
    known = [(p.risk, p.loss) for p in points if p.complete and p.risk is not None and p.loss is not None]
    return tuple(replace(p, efficient=_efficient(p, known)) for p in points)


def _efficient(point: Point, known: list[tuple[float, float]]) -> bool:
    if not point.complete or point.risk is None or point.loss is None:
        return False
    here = (point.risk, point.loss)
    return not any(r <= here[0] and u <= here[1] and (r, u) != here for r, u in known)


def _point(plan: StudyPlan, candidate: Candidate, cells: list[Mapping[str, Any]]) -> Point:
    refused = [str(cell["reason"]) for cell in cells if "refused" in cell]
    risks = [_risk(plan, cell) for cell in cells]
    by_measure = {name: [_loss(name, cell) for cell in cells] for name in plan.utilities}
    losses = by_measure[plan.utility]
    known_risks = [risk for risk in risks if risk is not None]
    known_losses = [loss for loss in losses if loss is not None]
    complete = not refused and len(known_risks) == len(known_losses) == len(cells)
    reason = refused[0] if refused else ""
    if not complete and not reason:
        if len(known_risks) < len(cells):
            cause = "no attack on identity applies" if plan.risk is None else f"{plan.risk} does not apply"
            cause = "the attacks ran out of time" if any(cell["stopped"] for cell in cells) else cause
            reason = f"The risk could not be determined: {cause}."
        else:
            reason = f"The measure {plan.utility} did not apply."
    names = [name for *_, name in known_risks]
    judged, judged_by, unmet = _as_protect_judges(plan, [cell for cell in cells if "refused" not in cell])
    spans = {
        name: (float(np.mean(values)), min(values), max(values))
        for name, found in by_measure.items()
        if (values := [value for value in found if value is not None]) and len(values) == len(cells)
    }
    return Point(
        candidate=candidate,
        risk=float(np.mean([value for _, value, _, _ in known_risks])) if complete else None,
        risk_low=float(min(low for low, _, _, _ in known_risks)) if complete else None,
        risk_high=float(max(high for _, _, high, _ in known_risks)) if complete else None,
        risk_by=max(set(names), key=names.count) if names else "",
        loss=float(np.mean(known_losses)) if complete else None,
        loss_low=float(min(known_losses)) if complete else None,
        loss_high=float(max(known_losses)) if complete else None,
        losses=spans if complete else {},
        holds=all(v["state"] == "holds" for cell in cells for v in cell["verdicts"]) and not refused,
        seconds=float(sum(cell["seconds"] for cell in cells)),
        attacks=_means(cells, "attacks", "attack", "risk"),
        measures=_means(cells, "measures", "measure", "value"),
        reason=reason,
        stopped=_named(cells, "stopped"),
        skipped=_named(cells, "skipped"),
        judged=judged,
        judged_by=judged_by,
        unmet=unmet,
    )


def _as_protect_judges(plan: StudyPlan, cells: list[Mapping[str, Any]]) -> tuple[float | None, str, tuple[str, ...]]:
    """The largest value compared with a limit on risk, its attack, and what else is not met in any of the runs."""
    limits = plan.recipe.limits
    largest: tuple[float, str] | None = None
    unmet: dict[str, None] = {}
    for cell in cells:
        failed = [verdict for verdict in cell["verdicts"] if verdict["state"] != "holds"]
        unmet |= {f"{readable_name(verdict['model'])}: {verdict['state']}": None for verdict in failed}
        people = all(verdict["model"] != SEVERAL_ROWS for verdict in failed)
        any_limit = limits.model_copy(update={"risk": 1.0 if limits.risk is None else limits.risk})
        for result in judge_entries(any_limit, cell["attacks"], for_people=people):
            if result.limit == "risk" and result.value is not None:
                largest = max(largest or (0.0, ""), (result.value, str(result.attack)))
            elif not result.met and getattr(limits, Limits.names()[result.limit]) is not None:
                unmet[f"limit on {result.limit}: {limit_words(limit_state(result.met))}"] = None
    return (*(largest or (None, "")), tuple(unmet))


def _named(cells: list[Mapping[str, Any]], key: str) -> tuple[str, ...]:
    """Attacks named in any of the cells, each once."""
    return tuple(dict.fromkeys(name for cell in cells for name in cell[key]))


def _means(cells: list[Mapping[str, Any]], key: str, name: str, value: str) -> dict[str, float]:
    values_by_name: dict[str, list[float]] = {}
    for cell in cells:
        for entry in cell[key]:
            if entry.get(value) is not None:
                values_by_name.setdefault(entry[name], []).append(entry[value])
    return {label: float(np.mean(values)) for label, values in values_by_name.items()}


def _risk(plan: StudyPlan, cell: Mapping[str, Any]) -> tuple[float, float, float, str] | None:
    """The attack with the largest risk: lower end, risk, the largest upper end of all attacks, and its name.

    A limit is compared with the upper end, so it is the largest of all selected attacks.
    """
    risks = []
    for attack in cell["attacks"]:
        selected = attack["attack"] == plan.risk if plan.risk is not None else _declared(attack)
        if selected and attack["risk"] is not None:
            risks.append((float(attack["risk"]), attack["low"], float(attack["high"]), str(attack["attack"])))
    for measure in cell["measures"]:
        if plan.risk is not None and measure["measure"] == plan.risk and measure["value"] is not None:
            low, high = (measure[end] if measure[end] is not None else measure["value"] for end in ("low", "high"))
            risks.append((float(measure["value"]), low, float(high), str(measure["measure"])))
    if not risks:
        return None
    value, low, _, name = max(risks)
    return float(low), value, max(high for _, _, high, _ in risks), name


def _declared(attack: Mapping[str, object]) -> bool:
    """Whether the attack finds people by columns that are declared as known."""
    return bool(attack["discloses"] == "identity" and not attack.get("any_columns"))


def _loss(utility: str, cell: Mapping[str, Any]) -> float | None:
    for measure in cell["measures"]:
        if measure["measure"] == utility and measure["value"] is not None:
            value = float(measure["value"])
            return value if measure["better"] == "low" else 1 - value
    return None
