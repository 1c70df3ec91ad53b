"""Evaluation of attacks on query answers: correct guesses beside the best guess without answers.

:func:`evaluate_sql_attack` attacks a session through SQL texts. :func:`evaluate_query_attack` attacks a policy over
secret bits: through SQL for attacks that need it, otherwise by a simulation without SQL, which is fast enough for
millions of answers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Integers
from sfumato.attacks.query._base import CountingResponder, QueryAttack, QueryOutcome
from sfumato.attacks.query._sql import SqlResponder, secret_bit
from sfumato.attacks.query._subset_sql import PeopleConditions
from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema
from sfumato.dp.loss import pure
from sfumato.errors import BadParameter
from sfumato.ledger.ledger import Ledger
from sfumato.query.plan.catalog import Catalog, PrivateTable
from sfumato.query.policies.differential_privacy import DifferentialPrivacy
from sfumato.query.policy import Policy
from sfumato.query.session import Session
from sfumato.rng import Rng

_TABLE = "people"


def evaluate_query_attack(attack: QueryAttack, policy: Policy, secrets: npt.ArrayLike, rng: Rng) -> QueryOutcome:
    """Run an attack against a policy over these secret bits and count the correct guesses."""
    truth = np.asarray(secrets)
    if truth.ndim != 1 or not truth.size or not np.isin(truth, (0, 1)).all():
        raise BadParameter("Query attacks need a sensitive column of 0 and 1.")
    if attack.needs_sql:
        responder = sql_responder(policy, truth, rng)
        return evaluate_sql_attack(attack, responder, truth[responder.conditions.rows], policy.part_name(), rng)
    truth = truth.astype(np.int8)
    counting = CountingResponder(policy.open(truth, rng.child("policy")))
    return _count(attack, counting, truth, policy.part_name(), rng)


def evaluate_sql_attack(
    attack: QueryAttack, responder: SqlResponder, truth: Integers, policy: str, rng: Rng
) -> QueryOutcome:
    """Run an attack against a session through SQL and count the correct guesses. ``truth``: the bit of each person."""
    return _count(attack, responder, truth.astype(np.int8), policy, rng)


def _count(
    attack: QueryAttack, responder: CountingResponder | SqlResponder, truth: npt.NDArray[np.int8], policy: str, rng: Rng
) -> QueryOutcome:
    recovered = attack.run(responder, rng.child("attack"))
    true_bits = truth[recovered.targets]
    ones = float(true_bits.mean())
    # Without an answer an attacker has the prior, which is the baseline's knowledge: silence gives the baseline.
    guessed = np.where(recovered.made, recovered.bits, int(ones > 0.5))
    return QueryOutcome(
        attack=attack.part_name(), policy=policy, people=len(truth), tried=len(true_bits),
        hits=int((guessed == true_bits).sum()), made=int(recovered.made.sum()), asked=responder.asked,
        refused=responder.refused, baseline=max(ones, 1 - ones), threat=attack.summary(),
    )  # fmt: skip


def sql_responder(policy: Policy, secrets: npt.ArrayLike, rng: Rng) -> SqlResponder:
    """A session over a table with a number and a secret bit of each person, answered by a policy, and its attacker."""
    frame = pl.DataFrame({"id": np.arange(len(np.asarray(secrets))), "bit": np.asarray(secrets).astype(np.int64)})
    columns = {
        "id": Column(kind=Kind.INTEGER, role=Role.PLAIN),
        "bit": Column(kind=Kind.INTEGER, role=Role.SENSITIVE, domain=RangeDomain(low=0, high=1)),
    }
    table = PrivateTable(name=_TABLE, schema=Schema(columns=columns))
    catalog = Catalog(dataset=_TABLE, private={_TABLE: table})
    ledger = Ledger.unkept()
    private = isinstance(policy, DifferentialPrivacy)
    if isinstance(policy, DifferentialPrivacy):
        ledger.set_cap(pure(policy.budget), dataset=_TABLE)
    session = Session(catalog, {_TABLE: frame}, ledger=ledger, analyst="attacker", policy=None if private else policy)
    ask: Callable[[str], object] = session.ask
    if isinstance(policy, DifferentialPrivacy):
        ask = partial(session.ask, epsilon=policy.epsilon)
    people = PeopleConditions(frame, ("id",), rng.child("people").generator, most=frame.height)
    return SqlResponder(ask, table=_TABLE, people=people, secret=secret_bit(frame["bit"], low=0, high=1))
