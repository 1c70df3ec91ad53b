"""The noise plan of a question to several parties, which everybody derives from public facts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from sfumato.dp.loss import PrivacyLoss, approximate, pure
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms.exponential import Exponential
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.quantile import Quantile
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.dp.rational_bounds import exp_bracket
from sfumato.dp.sampler import round_scale_up
from sfumato.errors import QueryRefused
from sfumato.parties.agreement import Agreement
from sfumato.parties.private_keys import COLLISION, Padding, PrivateKeys
from sfumato.parties.question import PartiesQuestion
from sfumato.parties.selections import MOST_CANDIDATES, Selections, SharedChoice
from sfumato.parties.shared_computation import degree_for
from sfumato.query.answer_key import answer_key
from sfumato.query.execute.executor import public_groups, shared_measurements, shared_size
from sfumato.query.plan.aggregates import BinCounts, Count, Selected, ValueCounts
from sfumato.query.plan.catalog import Catalog
from sfumato.query.plan.noise import Measurement, NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.plan.query import Query
from sfumato.query.sql.parse import parse_query
from sfumato.rationals import rational

_ANSWERED = "Over several parties, COUNT, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, quantiles and MODE are answered."
_INSTEAD = "Leave out COUNT(DISTINCT column); by private keys, ask for COUNT, SUM and AVG."
_SIZES = Fraction(1, 20)
"""Share of epsilon for the lengths of the parties' lists of private keys."""
_MOST_STEPS = 1 << 32
"""Of one row, so that a million rows of one key and party fit the numbers of a shared computation."""
_MOST_COMPARED = 1 << 15
_MOST_COMPUTING = 9
"""Parties of a shared computation: each group of more than half of them shuffles once."""


@dataclass(frozen=True, kw_only=True)
class PartiesPlan:
    """The noise plan that each party executes on its own table, and the cost of the total."""

    noise: NoisePlan
    cost: PrivacyLoss
    """Loss of one person by the answer; charged to every party's ledger."""
    digest: str
    size: int
    """How many numbers each party sends; none where they compute together."""
    program: PrivateKeys | Selections | None = None
    """The computation on shares, for what is not a sum."""

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
            wider.append(replace(measurement, mechanism=_enlarged(measurement.mechanism, ratio)))
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
    program = None
    if any(isinstance(m, Selected) for m in noise.query.aggregates):
        noise, program = plan_selections(agreement, noise)
    additive = _checked_noise(agreement, noise, selected=0 if program is None else len(program.choices))
    digest = answer_key(agreement.federation, question.agreement, noise)
    return PartiesPlan(
        noise=noise,
        cost=pure(epsilon),
        digest=digest if program is None else hashlib.sha256(f"{digest} {program!r}".encode()).hexdigest(),
        size=sum(shared_size(noise, measurement) for measurement in additive),
        program=program,
    )


def _enlarged(mechanism: Mechanism, ratio: Fraction) -> Mechanism:
    match mechanism:
        case Laplace(scale=scale):
            return mechanism.model_copy(update={"scale": scale * ratio})
        case Quantile(rate=rate) | Exponential(rate=rate):
            return mechanism.model_copy(update={"rate": rate / ratio})
        case _:
            raise AssertionError("no noise of several parties")


def _checked_noise(agreement: Agreement, noise: NoisePlan, *, selected: int = 0) -> list[Measurement]:
    """The measurements of a plan; one with numbers that do not add up over parties is refused."""
    additive = shared_measurements(noise)
    laplace = all(isinstance(m.mechanism, Laplace) for m in additive)
    if len(additive) + selected < len(noise.measurements) or not laplace:
        raise QueryRefused(_ANSWERED, fix=_INSTEAD)
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
    check_computing(agreement, what="Private keys")
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
    _check_steps(noise, additive)
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
        if noise.is_fitting(measurement):
            fitting = mechanism.steps()
            continue
        if measurement is host:
            counted = range(len(scales), len(scales) + measurement.parts)
        scales += [mechanism.steps()] * measurement.parts
    program = PrivateKeys(
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
        digest=hashlib.sha256(f"{digest} {program!r}".encode()).hexdigest(),
        size=0,
        program=program,
    )


def plan_selections(agreement: Agreement, noise: NoisePlan) -> tuple[NoisePlan, Selections]:
    """The plan with a choice of its own, by report noisy max, for every quantile and mode.

    The noise is that of the loss that the plan has for it. Its error is that of the exponential mechanism at half the
    rate, which stands for it in the plan that is reported.
    """
    check_computing(agreement, what="MIN, MAX, quantiles and MODE")
    widest = Fraction(agreement.fewest, agreement.fewest - agreement.colluding)
    measurements: list[Measurement] = []
    choices: list[SharedChoice] = []
    for measurement in noise.measurements:
        first = measurement.aggregate
        aggregate = None if first is None else noise.query.aggregates[first]
        if first is None or not isinstance(aggregate, Selected):
            measurements.append(measurement)
            continue
        for index in measurement.covers:
            one = noise.query.aggregates[index]
            each = replace(measurement.loss, size=measurement.loss.size / measurement.parts)
            reach, epsilon = one.sensitivity(noise.rows), each.size / noise.groups
            if isinstance(one, BinCounts):
                stride = -(-one.cells // (MOST_CANDIDATES - 1))
                # A maximum is rounded down and a minimum up, so that neither lies beyond the rows.
                shift = stride // 2 if 0 < one.rank < 1 else 0 if one.rank else stride - 1
                last = (one.cells - 1 + shift) // stride
                shown = Quantile.for_epsilon(
                    epsilon / (2 * widest), rank=one.rank, low=one.low, grid=one.grid * stride, sensitivity=reach,
                    high=one.low + last * one.grid * stride,
                ).model_copy(update={"rate": epsilon / (4 * max(one.rank, 1 - one.rank) * reach)})  # fmt: skip
                scale = 2 * max(one.rank, 1 - one.rank) * reach / epsilon
                choices.append(
                    SharedChoice.of_quantile(
                        shown, aggregate=index, source=first, noise=scale, stride=stride, shift=shift
                    )
                )
                mechanism: Mechanism = shown
            else:
                assert isinstance(one, ValueCounts)
                scale = round_scale_up(reach / epsilon)
                choices.append(SharedChoice(aggregate=index, source=first, candidates=len(one.candidates), noise=scale))
                mechanism = Exponential.for_epsilon(epsilon / 2, sensitivity=reach, monotone=True)
            measurements.append(replace(measurement, aggregate=index, mechanism=mechanism, loss=each, parts=1))
    noise = replace(noise, measurements=tuple(measurements))
    sums = shared_measurements(noise)
    _check_steps(noise, sums)
    groups = len(public_groups(noise.query) or ())
    if groups * max(choice.candidates for choice in choices) > _MOST_COMPARED:
        raise QueryRefused(
            f"MIN, MAX, quantiles and MODE over several parties have up to {_MOST_COMPARED:,} candidates in all.",
            fix="Ask about fewer groups: a quantile has up to 1,024 candidates in each.",
        )
    scales = tuple((m.mechanism.steps(), shared_size(noise, m)) for m in sums)  # type: ignore[attr-defined]
    return noise, Selections(choices=tuple(choices), scales=scales)


def _check_steps(noise: NoisePlan, additive: list[Measurement]) -> None:
    if any(noise.query.aggregates[m.aggregate or 0].sensitivity(1) > _MOST_STEPS for m in additive):
        raise QueryRefused(
            "A sum is too fine to be computed together with comparisons over several parties.",
            fix="Leave out VARIANCE and STDDEV, or narrow the column's range.",
        )


def check_computing(agreement: Agreement, *, what: str) -> None:
    """Refuse a computation on shares unless fewer than half of the parties collude."""
    least, most = agreement.fewest, len(agreement.parties)
    if least < 3:
        raise QueryRefused(
            f"{what} need at least 3 parties: of two, each could read the other's shares.",
            fix="Set `least` to 3 or more in the parties file, or ask for counts and sums by public keys.",
        )
    if agreement.colluding > degree_for(least):
        raise QueryRefused(
            f"{what} need more honest parties than colluding ones: of {least} parties, "
            f"{degree_for(least)} may collude, and `colluding` is {agreement.colluding}.",
            fix="Ask for counts and sums by public keys.",
        )
    if most > _MOST_COMPUTING:
        raise QueryRefused(
            f"{what} are supported with up to {_MOST_COMPUTING} parties.",
            fix="Ask for counts and sums by public keys.",
        )
