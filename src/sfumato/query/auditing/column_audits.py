"""Audits of one sensitive column, one class per family of queries.

* :class:`ValuesAudit`: a column with a known, short list of possible values. Lists, counts, sums and extremes are
  audited together, exactly, over whole numbers of people.
* :class:`SumsAudit`: sums of other numbers. Real numbers by linear algebra, whole numbers within bounds by search.
* :class:`ExtremesAudit`: MAX and MIN of other numbers.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter, QueryRefused
from sfumato.query.auditing.answer_forms import AnswerForm, CountForm, ExtremeForm, ListForm, SumForm
from sfumato.query.auditing.atoms import Ints
from sfumato.query.auditing.bounded_sums import BoundedSums
from sfumato.query.auditing.delta2 import Delta2Auditor
from sfumato.query.auditing.extremes import ExtremeAnswer, ExtremeAuditor
from sfumato.query.auditing.k_assign import AssignAuditor
from sfumato.query.auditing.repair import counterfeits
from sfumato.query.auditing.rules import AuditRules
from sfumato.query.auditing.simulatable import SimulatableAuditor
from sfumato.query.auditing.sums import SumAuditor, pinned

__all__ = ["AuditOutcome", "Bounds", "ColumnAudit", "ExtremesAudit", "SumsAudit", "ValuesAudit"]

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
    whole: bool
    """Whether all values are whole numbers. An adversary may know it, so it counts as public."""


class ColumnAudit(ABC):
    """Decides queries of one family about one column and remembers the answers that were given."""

    family: ClassVar[str]

    @abstractmethod
    def decide(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> AuditOutcome:
        """Decide one query. ``meets``: for a count, which values satisfy its condition on the column."""


class ValuesAudit(ColumnAudit):
    """Lists, counts, sums and extremes of a column with known possible values, audited together.

    ``labels`` are the possible values and ``codes`` the positions of the true ones. ``seed`` is a secret for the random
    choice of counterfeits.
    """

    family = "values"

    def __init__(
        self, column: str, codes: Ints, labels: Sequence[Any], *, numeric: bool, rules: AuditRules, seed: bytes
    ) -> None:
        if len(labels) < rules.k:
            raise QueryRefused(f"`{column}` has too few different values for this rule.")
        self.column, self.codes, self.labels, self.rules, self._seed = column, codes, labels, rules, seed
        self.numbers = np.array([int(label) for label in labels], np.int64) if numeric else None
        self.auditor = AssignAuditor(codes, values=len(labels), k=rules.k, effort=rules.effort)
        self._public: SimulatableAuditor | None = None
        if rules.simulatable:
            self._public = SimulatableAuditor(
                people=len(codes), values=len(labels), k=rules.k, allow=rules.allow, shares=self._shares()
            )
        self._delta2 = Delta2Auditor(codes, values=len(labels)) if rules.auditor == "delta2" else None

    def _shares(self) -> list[float] | None:
        if not self.rules.allow:
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
        kept = f"everyone keeps {rules.k} values"
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
            return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=self._exposed(rows, form))
        auditor.accept(assessment)
        return AuditOutcome(verdict="answered", reason=kept, looked=True, answer=form.value(self._counts(rows)))

    def _decide_publicly(self, public: SimulatableAuditor, rows: Ints, form: AnswerForm) -> AuditOutcome:
        """Decide without the answer. The assessment only tells the owner who is exposed."""
        assessment = self.auditor.judge(rows, told=form.of)
        every = self.rules.allow == 0
        if not public.allows(rows, form):
            reason = (
                "a possible answer would break the rule" if every else "too many possible answers would break the rule"
            )
            return AuditOutcome(verdict="refused", reason=reason, looked=False, exposed=assessment.exposed)
        self.auditor.accept(assessment)
        public.learn(rows, assessment.answer)
        reason = f"{'all' if every else 'most'} possible answers keep the rule"
        return AuditOutcome(
            verdict="answered", reason=reason, looked=False, answer=form.value(self._counts(rows)),
            exposed=assessment.exposed,
        )  # fmt: skip

    def _decide_by_delta2(self, delta2: Delta2Auditor, rows: Ints, form: AnswerForm) -> AuditOutcome:
        if not isinstance(form, ListForm):
            raise QueryRefused("The delta2 auditor decides lists of values.", fix=f"Use SELECT {self.column}.")
        if not delta2.safe(rows.tolist(), self.rules.k):
            reason = f"delta-2 matchings do not show that everyone keeps {self.rules.k} values"
            exposed = self._exposed(rows, form)
            return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=exposed)
        self.auditor.accept(self.auditor.judge(rows, told=form.of))
        delta2.accept(rows.tolist())
        return AuditOutcome(
            verdict="answered", reason=f"everyone keeps {self.rules.k} values", looked=True,
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
            return SumForm(self.numbers, mean=kind == "avg")
        return ExtremeForm(self.numbers, largest=kind == "max")

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

    def __init__(self, numbers: npt.NDArray[Any], bounds: Bounds | None, rules: AuditRules) -> None:
        self.numbers, self.rules = numbers, rules
        self.bounds = None if rules.simulatable else bounds
        self._auditor = SumAuditor(len(numbers))
        self._totals: list[Any] = []

    def decide(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> AuditOutcome:
        safe, exposed, state = self._auditor.judge(rows)
        if not safe:
            reason = "the sums together would fix somebody's value"
            return AuditOutcome(verdict="refused", reason=reason, looked=False, exposed=exposed)
        split, total = state[0], self.numbers[rows].sum()
        if self.bounds is not None:
            reason, few = self._within(split, [*self._totals, total], self.bounds)
            if len(few):
                people = self._auditor.partition.persons_after(split, few)
                return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=people)
        self._auditor.accept(state)
        self._totals.append(total)
        answer = total if kind == "sum" else total / len(rows)
        return AuditOutcome(verdict="answered", reason=_NOBODY, looked=self.bounds is not None, answer=answer)

    def _within(self, split: Any, totals: list[Any], bounds: Bounds) -> tuple[str, Ints]:
        """Why a sum is refused because of the bounds, and the atoms it would expose."""
        if not bounds.whole:
            known = pinned(split, [float(total) for total in totals], low=bounds.low, high=bounds.high)
            return "the sums together would fix somebody's value within its bounds", known
        truth = np.zeros(len(split.truth), np.int64)
        atoms = self._auditor.partition.after(split)
        np.add.at(truth, atoms, self.numbers.astype(np.int64))
        sums = BoundedSums(low=int(bounds.low), high=int(bounds.high), k=self.rules.k, effort=self.rules.effort)
        assessment = sums.judge(split, [int(total) for total in totals], truth)
        if not assessment.certain:
            return "the search ran out of effort before it was certain that the rule holds", assessment.few
        return f"somebody would keep fewer than {self.rules.k} values within its bounds", assessment.few


class ExtremesAudit(ColumnAudit):
    """MAX and MIN of numbers."""

    family = "extremes"

    def __init__(self, numbers: npt.NDArray[Any], bounds: Bounds | None, rules: AuditRules) -> None:
        self.numbers, self.rules = numbers, rules
        low, high = (bounds.low, bounds.high) if bounds and not rules.simulatable else (-np.inf, np.inf)
        self._auditor = ExtremeAuditor(len(numbers), low=low, high=high, effort=rules.effort)

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
