"""Questions to several parties: what is sent to each, and the noise plan that everybody derives from it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil

from sfumato.collecting.parties.agreement import Agreement
from sfumato.collecting.parties.private_keys import COLLISION, Padding, PrivateKeys
from sfumato.collecting.parties.shared_computation import degree_for
from sfumato.dp.loss import PrivacyLoss, approximate, pure
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.dp.rational_bounds import exp_bracket
from sfumato.errors import QueryRefused
from sfumato.query.answer_key import answer_key
from sfumato.query.catalog import Catalog
from sfumato.query.execute.executor import shared_measurements, shared_size
from sfumato.query.options import FIT_SHARE
from sfumato.query.plan.aggregates import Count, FittingUnits
from sfumato.query.plan.noise import Measurement, NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import Query, parse_query
from sfumato.rationals import Number, rational

__all__ = ["PartiesPlan", "PartiesQuestion", "plan_question"]

_LONGEST = 100_000
_ANSWERED = "Over several parties, COUNT, SUM, AVG, VARIANCE and STDDEV by public keys are answered."
_SIZES = Fraction(1, 20)
"""Share of epsilon for the lengths of the parties' lists of private keys."""
_MOST_STEPS = 1 << 32
"""Of one row, so that a million rows of one key and party fit the numbers of a shared computation."""
_MOST_COMPUTING = 9
"""Parties of a shared computation: each group of more than half of them shuffles once."""


@dataclass(frozen=True, kw_only=True)
class PartiesQuestion:
    """A query with its cost, for all parties of an agreement."""

    agreement: str
    """Hash of the parties file."""
    sql: str
    epsilon: str
    """A rational number as text; everybody computes with the same one."""
    delta: str = "0"
    """Above 0 for private keys."""
    rows: int | None = None
    groups: int | None = None
    fit: str = str(FIT_SHARE)
    """Share of epsilon that measures whom the limits cut."""
    nonce: str
    """Random, so that no two questions are the same."""

    @classmethod
    def new(
        cls,
        sql: str,
        *,
        agreement: str,
        epsilon: str,
        delta: Number = 0,
        rows: int | None = None,
        groups: int | None = None,
        fit: Number = FIT_SHARE,
    ) -> PartiesQuestion:
        return cls(
            agreement=agreement, sql=sql, epsilon=str(rational(epsilon)), delta=str(rational(delta)), rows=rows,
            groups=groups, fit=str(rational(fit)), nonce=os.urandom(16).hex(),
        )  # fmt: skip

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @classmethod
    def from_dict(cls, document: object) -> PartiesQuestion:
        """A question as it was received; anything malformed is refused."""
        texts, limits = ("agreement", "sql", "epsilon", "delta", "fit", "nonce"), ("rows", "groups")
        if isinstance(document, dict) and set(document) == {*texts, *limits}:
            right = all(isinstance(document[name], str) and len(document[name]) <= _LONGEST for name in texts)
            whole = all(document[name] is None or type(document[name]) is int for name in limits)
            short = all(len(str(document[name])) <= 1000 for name in ("epsilon", "delta", "fit"))
            if right and whole and short and len(document["nonce"]) == 32:
                return cls(**document)
        raise QueryRefused("The question is not well-formed.", fix="Use the same version of sfumato everywhere.")


@dataclass(frozen=True, kw_only=True)
class PartiesPlan:
    """The noise plan that each party executes on its own table, and the cost of the total."""

    noise: NoisePlan
    cost: PrivacyLoss
    """Loss of one person by the answer; charged to every party's ledger."""
    digest: str
    size: int
    """How many numbers each party sends; none where they compute together."""
    private: PrivateKeys | None = None
    """The computation on shares that reports private keys."""

    def reported(self, parties: int, noise_shares: int) -> NoisePlan:
        """The plan whose Laplace noise bounds the noise of the answer, for intervals.

        The shares of ``parties``, of which ``noise_shares`` make up the noise of a central curator, add up to noise of
        shape r = parties / noise_shares. Its absolute value is stochastically smaller than that of Laplace noise of r
        times the scale, which equals it for r = 1. As both are symmetric and unimodal, the same holds for weighted sums
        (Birnbaum 1948, doi:10.1214/aoms/1177730293).
        """
        ratio = Fraction(parties, noise_shares)
        wider = []
        for measurement in self.noise.measurements:
            mechanism = measurement.mechanism
            assert isinstance(mechanism, Laplace)
            scaled = mechanism.model_copy(update={"scale": mechanism.scale * ratio})
            wider.append(replace(measurement, mechanism=scaled))
        return replace(self.noise, measurements=tuple(wider), cost=self.cost)


def plan_question(agreement: Agreement, catalog: Catalog, question: PartiesQuestion) -> PartiesPlan:
    """The plan of a question, from public facts alone: every party and the analyst derive the same one.

    A person who may be in k parties adds up to k times one party's bounded contribution, so that each party plans for
    epsilon / k.
    """
    query = parse_query(question.sql, catalog)
    if query.target is not None:
        raise QueryRefused("ERROR is not supported over several parties.", fix="Give epsilon.")
    if not query.public_keys:
        return _plan_private_keys(agreement, query, question)
    epsilon = rational(question.epsilon)
    if rational(question.delta):
        raise QueryRefused("A delta is for private keys; the noise of this answer needs none.", fix="Leave out delta.")
    noise = plan_query(
        query, pure(epsilon / agreement.parties_per_person), rows=question.rows, groups=question.groups,
        fit=rational(question.fit), select=False,
    )  # fmt: skip
    additive = _checked_noise(agreement, noise)
    return PartiesPlan(
        noise=noise,
        cost=pure(epsilon),
        digest=answer_key(agreement.federation, question.agreement, noise),
        size=sum(shared_size(noise, measurement) for measurement in additive),
    )


def _checked_noise(agreement: Agreement, noise: NoisePlan) -> list[Measurement]:
    """The measurements of a plan; one with numbers that do not add up over parties is refused."""
    additive = shared_measurements(noise)
    if len(additive) < len(noise.measurements) or not all(isinstance(m.mechanism, Laplace) for m in additive):
        raise QueryRefused(_ANSWERED, fix="Leave out quantiles, MIN, MAX, MODE and COUNT(DISTINCT column).")
    if agreement.parties_per_person > 1 and any(isinstance(m, Count) and m.once for m in noise.query.aggregates):
        raise QueryRefused(
            "People are counted once in each party, and the parties file says that they may be in several.",
            fix="Count rows, or ask about one party.",
        )
    for measurement in additive:
        measurement.mechanism.check_drawable()
    return additive


def _plan_private_keys(agreement: Agreement, query: Query, question: PartiesQuestion) -> PartiesPlan:
    """Private keys are reported by their noisy count, in a computation of all parties on shares."""
    epsilon, delta = rational(question.epsilon), rational(question.delta)
    if not delta:
        raise QueryRefused(
            "The keys of GROUP BY are private; no party may name them to the others.",
            fix="Give a delta such as 1e-6, or declare the column's values in the parties file.",
        )
    check_computing(agreement)
    # One person is up to k units, one in each of k parties: epsilon adds up, and delta grows with the others' epsilon.
    most = agreement.parties_per_person
    each_epsilon = epsilon / most
    each_delta = delta if most == 1 else delta / (most * exp_bracket(epsilon)[1])
    noise = plan_query(
        query, approximate(each_epsilon * (1 - _SIZES), each_delta / 2), rows=question.rows, groups=question.groups,
        fit=rational(question.fit), select=False, laplace=True,
    )  # fmt: skip
    additive = _checked_noise(agreement, noise)
    host = noise.threshold_selection
    if host is None:
        raise QueryRefused("Private keys are reported by a count of their rows.", fix="Add COUNT(*) to the query.")
    if any(_steps(noise, measurement) > _MOST_STEPS for measurement in additive):
        raise QueryRefused(
            "Numbers by private keys are too fine to be compared over several parties.",
            fix="Leave out VARIANCE and STDDEV, or narrow the column's range.",
        )
    if COLLISION * noise.groups > each_delta / 4:
        raise QueryRefused("The delta is too small for private keys over several parties.", fix="Use 1e-9 or more.")
    assert isinstance(host.mechanism, ThresholdedLaplace)
    if agreement.colluding:
        # The colluding parties, fewer than half, know their shares of the noise. The noise of all is symmetric and
        # unimodal, and with more such noise it is that of two central curators, which exceeds a limit more often.
        raised = replace(host, mechanism=host.mechanism.limited_for(2, each_delta / 2))
        noise = replace(noise, measurements=tuple(raised if m is host else m for m in noise.measurements))
        additive, host = shared_measurements(noise), raised
    scales: list[Fraction] = []
    counted, fitting = range(0), None
    for measurement in additive:
        mechanism = measurement.mechanism
        assert isinstance(mechanism, Laplace)
        if isinstance(noise.query.aggregates[measurement.aggregate or 0], FittingUnits):
            fitting = mechanism.steps()
            continue
        if measurement is host:
            counted = range(len(scales), len(scales) + measurement.parts)
        scales += [mechanism.steps()] * measurement.parts
    private = PrivateKeys(
        scales=tuple(scales),
        counted=counted,
        limit=ceil(host.mechanism.limit / host.mechanism.grid),  # type: ignore[attr-defined]
        fitting=fitting,
        padding=Padding.for_budget(each_epsilon * _SIZES, each_delta / 4, keys=noise.groups),
    )
    digest = answer_key(agreement.federation, question.agreement, noise)
    return PartiesPlan(
        noise=noise,
        cost=approximate(epsilon, delta),
        digest=hashlib.sha256(f"{digest} {private!r}".encode()).hexdigest(),
        size=0,
        private=private,
    )


def check_computing(agreement: Agreement) -> None:
    """Refuse a computation on shares unless fewer than half of the parties collude."""
    least, most = agreement.fewest, len(agreement.parties)
    if least < 3:
        raise QueryRefused(
            "Private keys need at least 3 parties: of two, each could read the other's shares.",
            fix="Set `least` to 3 or more in the parties file, or declare the column's values.",
        )
    if agreement.colluding > degree_for(least):
        raise QueryRefused(
            f"Private keys need more honest parties than colluding ones: of {least} parties, "
            f"{degree_for(least)} may collude, and `colluding` is {agreement.colluding}.",
            fix="Declare the column's values.",
        )
    if most > _MOST_COMPUTING:
        raise QueryRefused(
            f"Private keys are supported with up to {_MOST_COMPUTING} parties.", fix="Declare the column's values."
        )


def _steps(noise: NoisePlan, measurement: Measurement) -> int:
    return noise.query.aggregates[measurement.aggregate or 0].sensitivity(1)
