"""Audits of one sensitive column, one class per family of queries.

* :class:`ValuesAudit`: a column with a known, short list of possible values. Lists, counts, sums and extremes are
  audited together, exactly, over whole numbers of people.
* :class:`SumsAudit`: sums of other numbers. Real numbers by linear algebra, whole numbers within bounds by search.
* :class:`ExtremesAudit`: MAX and MIN of other numbers.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.errors import BadParameter, QueryRefused
from sfumato.query.auditing.answer_forms import AnswerForm, CountForm, ExtremeForm, ListForm, SumForm
from sfumato.query.auditing.atoms import Ints
from sfumato.query.auditing.bounded_sums import BoundedSums
from sfumato.query.auditing.delta2 import Delta2Auditor
from sfumato.query.auditing.extremes import ExtremeAnswer, ExtremeAuditor
from sfumato.query.auditing.k_assign import AssignAuditor
from sfumato.query.auditing.number_steps import steps_per_unit
from sfumato.query.auditing.repair import counterfeits
from sfumato.query.auditing.rules import AuditRules
from sfumato.query.auditing.simulatable import SimulatableAuditor
from sfumato.query.auditing.sums import SumAuditor, pinned

__all__ = ["AuditOutcome", "Bounds", "ColumnAudit", "ExtremesAudit", "SumsAudit", "ValuesAudit"]

_STEPS = 10_000
"""Fractions of units are audited exactly within bounds of at most this many steps, else as real numbers."""
_FIXED = "it would fix somebody's value"
_NOBODY = "fixes nobody's value"


@dataclass(frozen=True, kw_only=True)
class AuditOutcome:
    """The decision of a column's audit about one query."""

    verdict: Literal["answered", "counterfeits", "refused"]
    reason: str
    looked: bool
    """Whether the decision depends on the true answer, so that a refusal reveals something."""
    answer: Any = field(default=None, repr=False)
    fakes: tuple[int, ...] = ()
    exposed: Ints = field(default_factory=lambda: np.empty(0, np.int64), repr=False)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Public bounds of a column."""

    low: float
    high: float
    per: int | None
    """Steps per unit, 1 for whole numbers; None for real numbers. An adversary may know it, so it counts as public."""

    @classmethod
    def within(cls, series: pl.Series, low: float, high: float) -> Bounds:
        """Bounds of a column; the ends of numbers in steps are steps."""
        per = steps_per_unit(series)
        if per is not None and max(abs(low), abs(high)) * per * max(series.len(), 1) >= 2**53:
            per = None
        if per is not None and per > 1 and (high - low) * per > _STEPS:
            per = None
        if per is None:
            return cls(low=low, high=high, per=None)
        return cls(low=math.ceil(low * per - 1e-9) / per, high=math.floor(high * per + 1e-9) / per, per=per)


class ColumnAudit(ABC):
    """Decides queries of one family about one column and remembers the answers that were given."""

    family: ClassVar[str]

    @abstractmethod
    def decide(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> AuditOutcome:
        """Decide one query. ``meets``: for a count, which values satisfy its condition on the column."""

    @abstractmethod
    def allows(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> bool:
        """Whether a query would be answered without counterfeits. Nothing is recorded."""


class ValuesAudit(ColumnAudit):
    """Lists, counts, sums and extremes of a column with known possible values, audited together.

    ``labels`` are the possible values and ``codes`` the positions of the true ones. ``per`` is the number of steps per
    unit for numbers, None for other values. ``seed`` is a secret for the random choice of counterfeits.
    """

    family = "values"

    def __init__(
        self, column: str, codes: Ints, labels: Sequence[Any], *, per: int | None, rules: AuditRules, seed: bytes,
        known: Ints,
    ) -> None:  # fmt: skip
        if len(labels) < rules.k:
            raise QueryRefused(f"`{column}` has too few different values for this rule.")
        self.column, self.codes, self.labels, self.rules, self._seed = column, codes, labels, rules, seed
        self.per = per
        self.numbers = None if per is None else np.array([round(label * per) for label in labels], np.int64)
        self.known = known
        self.auditor = self.new_auditor()
        self._public: SimulatableAuditor | None = None
        if rules.simulatable:
            self._public = SimulatableAuditor(
                people=len(codes), values=len(labels), k=rules.k, allow=rules.allow, shares=self._shares(),
                probable=rules.probable,
            )  # fmt: skip
        self._delta2 = Delta2Auditor(codes, values=len(labels)) if rules.auditor == "delta2" else None

    def allows(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> bool:
        form, others = self.form(kind, meets), np.setdiff1d(rows, self.known)
        if self._public is not None:
            return self._public.allows(others, form)
        if self._delta2 is not None:
            return isinstance(form, ListForm) and self._delta2.safe(others.tolist(), self.rules.k)
        return self.auditor.judge(rows, told=form.of).safe

    def new_auditor(self) -> AssignAuditor:
        """An auditor of this column without any answers."""
        rules = self.rules
        shares = self._shares() if rules.probable is not None else None
        return AssignAuditor(
            self.codes, values=len(self.labels), k=rules.k, effort=rules.effort, probable=rules.probable,
            shares=shares or (), known=self.known,
        )  # fmt: skip

    def _shares(self) -> list[float] | None:
        if not self.rules.shares:
            return None
        shares, names = self.rules.shares.get(self.column), [str(label) for label in self.labels]
        if shares is None or set(shares) != set(names):
            raise BadParameter(
                f"`shares` must give a share for each possible value of `{self.column}` and for nothing else."
            )
        return [shares[name] for name in names]

    def decide(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> AuditOutcome:
        form = self.form(kind, meets)
        if self._public is not None:
            return self._decide_publicly(self._public, rows, form)
        if self._delta2 is not None:
            return self._decide_by_delta2(self._delta2, rows, form)
        auditor, rules = self.auditor, self.rules
        assessment = auditor.judge(rows, told=form.of)
        kept = self._kept
        if rules.counterfeits and isinstance(form, ListForm) and (assessment.safe or assessment.certain):
            rng = np.random.default_rng(list(hashlib.blake2b(rows.tobytes(), key=self._seed, digest_size=32).digest()))
            if not assessment.safe or rng.random() < 0.5:
                repair = counterfeits(auditor, rows, most=rules.counterfeits, rng=rng)
                if repair is not None:
                    exposed = self._exposed(rows, form) if not assessment.safe else np.empty(0, np.int64)
                    auditor.accept(repair.assessment)
                    return AuditOutcome(
                        verdict="counterfeits", reason=kept, looked=True, fakes=repair.fakes, exposed=exposed,
                        answer=form.value(repair.assessment.answer.totals),
                    )  # fmt: skip
        if not assessment.safe:
            if not assessment.certain:
                ran_out = "the search ran out of effort before it was certain that the rule holds"
                return AuditOutcome(verdict="refused", reason=ran_out, looked=True, exposed=assessment.exposed)
            reason = f"somebody would keep fewer than {rules.k} values"
            if assessment.probability is not None:
                reason = f"a value of somebody would be more probable than {rules.probable:g}"
                return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=assessment.exposed)
            return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=self._exposed(rows, form))
        auditor.accept(assessment)
        return AuditOutcome(verdict="answered", reason=kept, looked=True, answer=form.value(self._counts(rows)))

    @property
    def _kept(self) -> str:
        most = "" if self.rules.probable is None else f", none of them more probable than {self.rules.probable:g}"
        others = " whose value is not known" if len(self.known) else ""
        return f"everyone{others} keeps {self.rules.k} values{most}"

    def _decide_publicly(self, public: SimulatableAuditor, rows: Ints, form: AnswerForm) -> AuditOutcome:
        """Decide without the answer. The assessment only tells the owner who is exposed."""
        assessment = self.auditor.judge(rows, told=form.of)
        every = self.rules.allow == 0
        if not public.allows(np.setdiff1d(rows, self.known), form):
            reason = (
                "a possible answer would break the rule" if every else "too many possible answers would break the rule"
            )
            return AuditOutcome(verdict="refused", reason=reason, looked=False, exposed=assessment.exposed)
        self.auditor.accept(assessment)
        public.learn(np.setdiff1d(rows, self.known), assessment.answer)
        reason = f"{'all' if every else 'most'} possible answers keep the rule"
        return AuditOutcome(
            verdict="answered", reason=reason, looked=False, answer=form.value(self._counts(rows)),
            exposed=assessment.exposed,
        )  # fmt: skip

    def _decide_by_delta2(self, delta2: Delta2Auditor, rows: Ints, form: AnswerForm) -> AuditOutcome:
        if not isinstance(form, ListForm):
            raise QueryRefused("The delta2 auditor decides lists of values.", fix=f"Use SELECT {self.column}.")
        others = np.setdiff1d(rows, self.known).tolist()
        if not delta2.safe(others, self.rules.k):
            reason = f"delta-2 matchings do not show that everyone keeps {self.rules.k} values"
            exposed = self._exposed(rows, form)
            return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=exposed)
        self.auditor.accept(self.auditor.judge(rows, told=form.of))
        delta2.accept(others)
        return AuditOutcome(
            verdict="answered", reason=self._kept, looked=True,
            answer=form.value(self._counts(rows)),
        )  # fmt: skip

    def form(self, kind: str, meets: Sequence[bool] | None) -> AnswerForm:
        """What a query of this kind tells."""
        if kind == "values":
            return ListForm(self.labels)
        if kind == "count":
            assert meets is not None
            return CountForm(tuple(meets))
        if self.numbers is None:
            raise QueryRefused(f"`{self.column}` is not a numeric column without missing values.")
        if kind in ("sum", "avg"):
            return SumForm(self.numbers, mean=kind == "avg", per=self.per or 1)
        return ExtremeForm(self.numbers, largest=kind == "max", per=self.per or 1)

    def _counts(self, rows: Ints) -> Ints:
        return self.auditor.partition.count(rows)

    def _exposed(self, rows: Ints, form: AnswerForm) -> Ints:
        return self.auditor.judge(rows, told=form.of, full=True).exposed


class SumsAudit(ColumnAudit):
    """Sums and averages of numbers.

    Without bounds a value is determined iff linear algebra determines it, and otherwise any number is possible; this
    does not look at the answers. Whole numbers within public bounds are audited exactly, ``k`` included; real numbers
    within bounds must keep an interval. Both look at the answers, so simulatable decisions leave the bounds out.
    """

    family = "sums"

    def __init__(self, numbers: npt.NDArray[Any], bounds: Bounds | None, rules: AuditRules, known: Ints) -> None:
        self.numbers, self.rules, self.known = numbers, rules, known
        self.bounds = None if rules.simulatable else bounds
        self._auditor = SumAuditor(len(numbers))
        self._totals: list[Any] = []

    def decide(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> AuditOutcome:
        others = np.setdiff1d(rows, self.known)
        safe, exposed, state = self._auditor.judge(others)
        if not safe:
            reason = "the sums together would fix somebody's value"
            return AuditOutcome(verdict="refused", reason=reason, looked=False, exposed=exposed)
        split, total = state[0], self.numbers[others].sum()
        if self.bounds is not None:
            reason, few = self._within(split, [*self._totals, total], self.bounds)
            if len(few):
                people = self._auditor.partition.persons_after(split, few)
                return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=people)
        self._auditor.accept(state)
        self._totals.append(total)
        published = self.numbers[rows].sum()
        answer = published if kind == "sum" else published / len(rows)
        return AuditOutcome(verdict="answered", reason=_NOBODY, looked=self.bounds is not None, answer=answer)

    def allows(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> bool:
        others = np.setdiff1d(rows, self.known)
        safe, _, state = self._auditor.judge(others)
        if not safe or self.bounds is None:
            return safe
        return not len(self._within(state[0], [*self._totals, self.numbers[others].sum()], self.bounds)[1])

    def _within(self, split: Any, totals: list[Any], bounds: Bounds) -> tuple[str, Ints]:
        """Why a sum is refused because of the bounds, and the atoms it would expose."""
        if bounds.per is None:
            known = pinned(split, [float(total) for total in totals], low=bounds.low, high=bounds.high)
            return "the sums together would fix somebody's value within its bounds", known
        truth = np.zeros(len(split.truth), np.int64)
        atoms = self._auditor.partition.after(split)
        np.add.at(truth, atoms, np.rint(self.numbers * bounds.per).astype(np.int64))
        low, high = round(bounds.low * bounds.per), round(bounds.high * bounds.per)
        sums = BoundedSums(low=low, high=high, k=self.rules.k, effort=self.rules.effort)
        assessment = sums.judge(split, [round(float(total) * bounds.per) for total in totals], truth)
        if not assessment.certain:
            return "the search ran out of effort before it was certain that the rule holds", assessment.few
        return f"somebody would keep fewer than {self.rules.k} values within its bounds", assessment.few


class ExtremesAudit(ColumnAudit):
    """MAX and MIN of numbers."""

    family = "extremes"

    def __init__(self, numbers: npt.NDArray[Any], bounds: Bounds | None, rules: AuditRules, known: Ints) -> None:
        self.numbers, self.rules = numbers, rules
        low, high = (bounds.low, bounds.high) if bounds and not rules.simulatable else (-np.inf, np.inf)
        facts = dict(zip(known.tolist(), numbers[known].tolist(), strict=True))
        self._auditor = ExtremeAuditor(len(numbers), low=low, high=high, effort=rules.effort, known=facts)

    def decide(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> AuditOutcome:
        chosen: Literal["max", "min"] = "max" if kind == "max" else "min"
        held = self.numbers[rows]
        extreme = ExtremeAnswer(
            kind=chosen, people=tuple(rows.tolist()), value=float(held.max() if kind == "max" else held.min())
        )
        exposed = self._auditor.exposed(extreme)
        safe = exposed is not None and not len(exposed)
        if self.rules.simulatable:
            safe = self._auditor.simulatable(chosen, extreme.people)
        looked = not self.rules.simulatable
        if not safe:
            people = exposed if exposed is not None else np.empty(0, np.int64)
            return AuditOutcome(verdict="refused", reason=_FIXED, looked=looked, exposed=people)
        self._auditor.accept(extreme)
        return AuditOutcome(verdict="answered", reason=_NOBODY, looked=looked, answer=extreme.value)

    def allows(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> bool:
        chosen: Literal["max", "min"] = "max" if kind == "max" else "min"
        people, held = tuple(rows.tolist()), self.numbers[rows]
        if self.rules.simulatable:
            return self._auditor.simulatable(chosen, people)
        value = float(held.max() if kind == "max" else held.min())
        return self._auditor.safe(ExtremeAnswer(kind=chosen, people=people, value=value))
