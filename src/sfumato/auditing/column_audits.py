"""Audits of one sensitive column, one class per family of queries.

* :class:`ValuesAudit`: a column with a known, short list of possible values. Lists, counts, sums and extremes are
  audited together, exactly, over whole numbers of people.
* :class:`SumsAudit`: sums of numbers in declared steps between declared bounds.
* :class:`ExtremesAudit`: MAX and MIN of such numbers.

All of them decide on exactly the declared numbers, and everybody keeps ``k`` of them.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.arrays import Ints
from sfumato.auditing.answer_forms import AnswerForm, CountForm, ExtremeForm, ListForm, SumForm
from sfumato.auditing.atoms import AtomSplit
from sfumato.auditing.bounded_sums import BoundedSums, SumsAssessment
from sfumato.auditing.delta2 import Delta2Auditor
from sfumato.auditing.extremes import ExtremeAnswer, ExtremeAuditor
from sfumato.auditing.k_assign import AssignAuditor
from sfumato.auditing.number_domain import NumberDomain
from sfumato.auditing.repair import counterfeits
from sfumato.auditing.rules import AuditRules
from sfumato.auditing.simulatable import SimulatableAuditor
from sfumato.auditing.sums import SumAuditor
from sfumato.auditing.worlds import Worlds
from sfumato.errors import BadParameter, QueryRefused

_RAN_OUT = "the search ran out of effort before it was certain that the rule holds"


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


class ColumnAudit(ABC):
    """Decides queries of one family about one column and remembers the answers that were given."""

    family: ClassVar[str]

    @abstractmethod
    def decide(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> AuditOutcome:
        """Decide one query. ``meets``: for a count, which values satisfy its condition on the column."""

    @abstractmethod
    def allows(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> bool:
        """Whether a query would be answered without counterfeits. Nothing is recorded."""

    def worlds(self) -> Worlds | None:
        """How many assignments of values to the people asked about all answers leave. None where it is not counted."""
        return None


class ValuesAudit(ColumnAudit):
    """Lists, counts, sums and extremes of a column with known possible values, audited together.

    ``labels`` are the possible values and ``codes`` the positions of the true ones. ``numbers`` are the labels where
    they are declared numbers, None for other values. ``seed`` is a secret for the random choice of counterfeits.
    """

    family = "values"

    def __init__(
        self, column: str, codes: Ints, labels: Sequence[object], *, numbers: NumberDomain | None, rules: AuditRules,
        seed: bytes, known: Ints,
    ) -> None:  # fmt: skip
        if len(labels) < rules.k:
            raise QueryRefused(f"`{column}` has too few different values for this rule.")
        self.column, self.codes, self.labels, self.rules, self._seed = column, codes, labels, rules, seed
        self.numbers, self.known = numbers, known
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

    def worlds(self) -> Worlds:
        return self.auditor.worlds()

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
        kept = _kept(rules, self.known)
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
                return AuditOutcome(verdict="refused", reason=_RAN_OUT, looked=True, exposed=assessment.exposed)
            reason = _few(rules)
            if assessment.probability is not None:
                reason = f"a value of somebody would be more probable than {rules.probable:g}"
                return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=assessment.exposed)
            return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=self._exposed(rows, form))
        auditor.accept(assessment)
        return AuditOutcome(verdict="answered", reason=kept, looked=True, answer=form.value(self._counts(rows)))

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
            verdict="answered", reason=_kept(self.rules, self.known), looked=True,
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
    """Sums and averages of numbers in declared steps between declared bounds.

    A sum that linear algebra alone shows to determine somebody is refused without a look at the answers. For the others
    integer search shows for everybody ``k`` numbers that agree with all answers.
    """

    family = "sums"

    def __init__(self, domain: NumberDomain, codes: Ints, rules: AuditRules, known: Ints) -> None:
        self.domain, self.codes, self.rules, self.known = domain, codes, rules, known
        self._auditor = SumAuditor(len(codes))
        self._totals: list[int] = []

    def decide(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> AuditOutcome:
        others = np.setdiff1d(rows, self.known)
        safe, exposed, state = self._auditor.judge(others)
        if not safe:
            reason = "the sums together would fix somebody's value"
            return AuditOutcome(verdict="refused", reason=reason, looked=False, exposed=exposed)
        total = int(self.codes[others].sum())
        judged = self._judge(state[0], [*self._totals, total])
        if not judged.safe:
            people = self._auditor.partition.persons_after(state[0], judged.few)
            reason = _few(self.rules) if judged.certain else _RAN_OUT
            return AuditOutcome(verdict="refused", reason=reason, looked=True, exposed=people)
        self._auditor.accept(state)
        self._totals.append(total)
        published, people_asked = int(self.codes[rows].sum()), len(rows)
        sum_or_mean = self.domain.total if kind == "sum" else self.domain.mean
        return AuditOutcome(
            verdict="answered", reason=_kept(self.rules, self.known), looked=True,
            answer=sum_or_mean(published, people_asked),
        )  # fmt: skip

    def allows(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> bool:
        others = np.setdiff1d(rows, self.known)
        safe, _, state = self._auditor.judge(others)
        return safe and self._judge(state[0], [*self._totals, int(self.codes[others].sum())]).safe

    def exposed_by(self, queries: Sequence[Ints]) -> dict[int, int]:
        """How many values the people keep who have fewer than k if all these sums are told, by row."""
        auditor = SumAuditor(len(self.codes))
        totals: list[int] = []
        exposed: dict[int, int] = {}
        for rows in queries:
            others = np.setdiff1d(rows, self.known)
            _, _, state = auditor.judge(others)
            totals.append(int(self.codes[others].sum()))
            judged = self._judge(state[0], totals, auditor)
            for atom, kept in zip(judged.few, judged.kept.tolist(), strict=True):
                exposed |= dict.fromkeys(auditor.partition.persons_after(state[0], np.array([atom])).tolist(), kept)
            auditor.accept(state)
        return exposed

    def _judge(self, split: AtomSplit, totals: list[int], auditor: SumAuditor | None = None) -> SumsAssessment:
        atoms = (auditor or self._auditor).partition.after(split)
        truth = np.zeros(len(split.truth), np.int64)
        np.add.at(truth, atoms, self.codes)
        sums = BoundedSums(low=0, high=len(self.domain) - 1, k=self.rules.k, effort=self.rules.effort)
        return sums.judge(split, totals, truth)


class ExtremesAudit(ColumnAudit):
    """MAX and MIN of numbers in declared steps between declared bounds."""

    family = "extremes"

    def __init__(self, domain: NumberDomain, codes: Ints, rules: AuditRules, known: Ints) -> None:
        self.domain, self.codes, self.rules, self.known = domain, codes, rules, known
        facts = dict(zip(known.tolist(), codes[known].tolist(), strict=True))
        self._auditor = ExtremeAuditor(len(codes), values=len(domain), k=rules.k, effort=rules.effort, known=facts)

    def decide(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> AuditOutcome:
        extreme = self._answer(kind, rows)
        exposed = self._auditor.exposed(extreme)
        if exposed is None or len(exposed):
            people = exposed if exposed is not None else np.empty(0, np.int64)
            return AuditOutcome(verdict="refused", reason=_few(self.rules), looked=True, exposed=people)
        self._auditor.accept(extreme)
        return AuditOutcome(
            verdict="answered", reason=_kept(self.rules, self.known), looked=True,
            answer=self.domain.total(extreme.value, 1),
        )  # fmt: skip

    def allows(self, kind: str, rows: Ints, meets: Sequence[bool] | None) -> bool:
        return self._auditor.safe(self._answer(kind, rows))

    def _answer(self, kind: str, rows: Ints) -> ExtremeAnswer:
        chosen: Literal["max", "min"] = "max" if kind == "max" else "min"
        held = self.codes[rows]
        value = int(held.max() if kind == "max" else held.min())
        return ExtremeAnswer(kind=chosen, people=tuple(rows.tolist()), value=value)


def _few(rules: AuditRules) -> str:
    return f"somebody would keep fewer than {rules.k} values"


def _kept(rules: AuditRules, known: Ints) -> str:
    most = "" if rules.probable is None else f", none of them more probable than {rules.probable:g}"
    others = " whose value is not known" if len(known) else ""
    return f"everyone{others} keeps {rules.k} values{most}"
