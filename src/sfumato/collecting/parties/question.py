"""Questions to several parties: what is sent to each, and the noise plan that everybody derives from it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from fractions import Fraction

from sfumato.collecting.parties.agreement import Agreement
from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.errors import QueryRefused
from sfumato.query.answer_key import answer_key
from sfumato.query.catalog import Catalog
from sfumato.query.execute.executor import shared_measurements, shared_size
from sfumato.query.options import FIT_SHARE
from sfumato.query.plan.aggregates import Count
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.rationals import Number, rational

__all__ = ["PartiesPlan", "PartiesQuestion", "plan_question"]

_LONGEST = 100_000
_ANSWERED = "Over several parties, COUNT, SUM, AVG, VARIANCE and STDDEV by public keys are answered."


@dataclass(frozen=True, kw_only=True)
class PartiesQuestion:
    """A query with its cost, for all parties of an agreement."""

    agreement: str
    """Hash of the parties file."""
    sql: str
    epsilon: str
    """A rational number as text; everybody computes with the same one."""
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
        rows: int | None = None,
        groups: int | None = None,
        fit: Number = FIT_SHARE,
    ) -> PartiesQuestion:
        return cls(
            agreement=agreement, sql=sql, epsilon=str(rational(epsilon)), rows=rows, groups=groups,
            fit=str(rational(fit)), nonce=os.urandom(16).hex(),
        )  # fmt: skip

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @classmethod
    def from_dict(cls, document: object) -> PartiesQuestion:
        """A question as it was received; anything malformed is refused."""
        texts, limits = ("agreement", "sql", "epsilon", "fit", "nonce"), ("rows", "groups")
        if isinstance(document, dict) and set(document) == {*texts, *limits}:
            right = all(isinstance(document[name], str) and len(document[name]) <= _LONGEST for name in texts)
            whole = all(document[name] is None or type(document[name]) is int for name in limits)
            short = all(len(str(document[name])) <= 1000 for name in ("epsilon", "fit"))
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
    """How many numbers each party sends."""

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
            scaled = Laplace(scale=mechanism.scale * ratio, grid=mechanism.grid)
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
        raise QueryRefused(
            "The keys of GROUP BY are private; no party may name them to the others.",
            fix="Declare the column's values in the parties file.",
        )
    epsilon = rational(question.epsilon)
    noise = plan_query(
        query, pure(epsilon / agreement.parties_per_person), rows=question.rows, groups=question.groups,
        fit=rational(question.fit), select=False,
    )  # fmt: skip
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
    return PartiesPlan(
        noise=noise,
        cost=pure(epsilon),
        digest=answer_key(agreement.federation, question.agreement, noise),
        size=sum(shared_size(noise, measurement) for measurement in additive),
    )
