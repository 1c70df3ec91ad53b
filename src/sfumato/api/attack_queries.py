"""``sfumato.attack_queries``: attack the answers of a query service through SQL and report the risk of each attack."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from sfumato.api.results import AttackResults
from sfumato.api.session import load_dataset
from sfumato.attacks.base import Discloses
from sfumato.attacks.evaluation.loop import AttackRun, run_loop
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.query import QueryAttack, QueryOutcome, evaluate_sql_attack
from sfumato.attacks.query._sql import SecretBit, SqlResponder, secret_bit
from sfumato.attacks.query._subset_sql import PeopleConditions
from sfumato.dataset import RangeDomain, Role
from sfumato.deadline import Deadline, stopping
from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.errors import BadParameter, OutOfTime
from sfumato.ledger.ledger import Ledger
from sfumato.progress import AUTO, Progress
from sfumato.query.declared_rows import read_declared
from sfumato.query.open_session import open_session
from sfumato.query.plan.catalog import Catalog, PrivateTable
from sfumato.registry import registry
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.dataset.document import Dataset
    from sfumato.rationals import Number


def attack_queries(
    dataset: str | Path | Mapping[str, object],
    tables: Mapping[str, object] | None = None,
    *,
    attacks: Sequence[QueryAttack | str] = (),
    knows: Sequence[str] | None = None,
    secrets: Sequence[str] = (),
    epsilon: Number | None = None,
    budget: Number | None = None,
    seed: int | None = None,
    n_targets: int = 40,
    seconds: float | None = None,
    limit: float | None = None,
    progress: Progress = AUTO,
    clock: Callable[[], float] = time.monotonic,
) -> AttackResults:
    """Attack the answers of a query service through SQL and report the risk of each attack with its interval.

    The attacker knows some columns of everybody, asks SQL queries, and guesses one secret bit of each person: whether a
    number is above the median, or whether a category is the most frequent one. Each attack starts with a new ledger in
    memory, so neither the budget nor the stored decisions of the service change.

    Parameters
    ----------
    dataset, tables
        The data set document of the service and its tables, as for :func:`session`. One table with ``person: row``.
    attacks
        Names or parts of query attacks, for example ``["tracker"]``. All of them if left out.
    knows
        Columns that the attacker knows. All columns that are not sensitive if left out.
    secrets
        Columns that the attacker wants to know. The sensitive columns if left out.
    epsilon, budget
        Under differential privacy: the cost of each of the attacker's queries, and the budget. The budget of the
        service's ledger if left out.
    n_targets
        The number of targets of attacks on one person at a time.
    seconds
        Stop after this time. An attack that was not finished is returned as :class:`~sfumato.errors.OutOfTime`.
    limit
        The largest acceptable risk beyond the baseline, as a share of what was left to learn. The result then has
        ``limits``.

    Returns
    -------
    AttackResults
        One entry per attack and sensitive column.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"id": range(60), "ill": ["no", "no", "yes"] * 20})
    >>> columns = {"id": {"kind": "integer"}, "ill": {"kind": "category", "role": "sensitive"}}
    >>> ward = {"dataset": "ward", "person": "row", "answering": {"policy": "exact"}}
    >>> ward["tables"] = {"people": {"columns": columns}}
    >>> results = attack_queries(ward, {"people": people}, attacks=["differencing"], seed=1)
    >>> results.to_frame().select("attack", "secret", "risk").row(0)
    ('differencing', 'ill', 1.0)
    """
    frames = dict(tables or {})
    loaded = load_dataset(dataset, frames)
    policy = loaded.answering.policy
    frame, private = _table(loaded, frames)
    table, roles = private.name, {name: column.role for name, column in private.schema.columns.items()}
    chosen_secrets = tuple(secrets) or tuple(name for name, role in roles.items() if role is Role.SENSITIVE)
    known = tuple(knows) if knows else tuple(name for name in roles if name not in chosen_secrets)
    unknown = [name for name in (*chosen_secrets, *known) if name not in roles]
    if unknown or not chosen_secrets:
        raise BadParameter(
            f"the data set has no column `{unknown[0]}`." if unknown else "no sensitive column is named.",
            fix="Name declared columns with `knows` and `secrets`, or give a column the role `sensitive`.",
        )
    cap, cost = _budget(loaded, epsilon, budget)
    rng = Rng(seed)
    progress = stopping(progress, seconds, clock=clock)

    def prepared(number: int, column: str, attack: QueryAttack) -> AttackRun:
        def run(own: Progress) -> Iterator[Outcome]:
            stream = rng.child("query-attacks", number)
            left = own.left if isinstance(own, Deadline) else None
            bit = _bit(private, frame[column], sums=policy is not None)
            people = PeopleConditions(frame, known, stream.child("people").generator, most=max(n_targets, 200))
            ledger = Ledger.unkept()
            if cap is not None:
                ledger.set_cap(cap, dataset=loaded.dataset)
            session = open_session(loaded, analyst="attacker", ledger=ledger, tables=frames)
            ask = session.ask if cost is None else partial(session.ask, epsilon=cost)
            responder = SqlResponder(ask, table=table, people=people, secret=bit, seconds=left, clock=clock)
            truth = bit.bits(frame[column])[people.rows]
            title = "differential-privacy" if policy is None else policy.part_name()
            result = evaluate_sql_attack(attack, responder, truth, title, stream)
            if responder.stopped:
                raise OutOfTime("Stopped: the time allowed was used up before all queries were asked.")
            yield _outcome(attack, result, column, known)

        return AttackRun(attack=attack.part_name(), discloses=Discloses.ATTRIBUTE, setting=attack.setting, run=run)

    jobs = [(column, attack) for column in chosen_secrets for attack in _parts(attacks, n_targets)]
    outcomes = run_loop([prepared(number, *job) for number, job in enumerate(jobs)], progress=progress)
    return AttackResults.judged(outcomes, limit)


def _outcome(attack: QueryAttack, result: QueryOutcome, column: str, known: Sequence[str]) -> Outcome:
    return Outcome(
        attack=result.attack, discloses=Discloses.ATTRIBUTE, main=Arm(hits=result.hits, trials=result.tried),
        baseline=Arm(hits=result.baseline * result.tried, trials=result.tried), claims=result.made, knows=tuple(known),
        secret=column, parameters=attack.to_dict(), threat=result.threat, setting=attack.setting, truth="data",
        detail={
            "policy": result.policy, "queries": result.asked, "refused": result.refused, "people": result.people,
        },
    )  # fmt: skip


def _bit(table: PrivateTable, series: pl.Series, *, sums: bool) -> SecretBit:
    domain = table.schema.columns[series.name].domain
    if isinstance(domain, RangeDomain):
        return secret_bit(series, low=domain.low, high=domain.high)
    return secret_bit(series, sums=sums)


def _table(loaded: Dataset, frames: Mapping[str, object]) -> tuple[pl.DataFrame, PrivateTable]:
    """The true data of the one private table, cast as the service reads them, and its declaration."""
    from sfumato.engines.choice import is_address

    [table, *others] = loaded.tables
    if others or loaded.person != "row":
        raise BadParameter("query attacks need a data set of one table with `person: row`.")
    source = frames.get(table, loaded.tables[table].data.address)
    if isinstance(source, str) and is_address(source):
        raise BadParameter("query attacks need the table in a file or a frame, not in a database.")
    private = Catalog.of(loaded).private[table]
    return read_declared(source, private), private


def _budget(loaded: Dataset, epsilon: Number | None, budget: Number | None) -> tuple[PrivacyLoss | None, Number | None]:
    """Budget and cost of a query under differential privacy."""
    policy = loaded.answering.policy
    if policy is not None:
        if epsilon is not None or budget is not None:
            raise BadParameter(f"policy `{policy.part_name()}` has no budget.", fix="Leave out epsilon and budget.")
        return None, None
    if epsilon is None:
        raise BadParameter("under differential privacy, `epsilon` is required: the cost of each of the queries.")
    if budget is not None:
        return pure(budget), epsilon
    place = loaded.ledger
    kept = Ledger.open(place) if place is not None and ("://" in place or Path(place).is_file()) else None
    balance = kept.balance(dataset=loaded.dataset) if kept is not None else None
    if balance is None or balance.cap is None:
        raise BadParameter("there is no budget.", fix="Pass `budget`, or set one with `sfumato ledger cap`.")
    return balance.cap, epsilon


def _parts(attacks: Sequence[QueryAttack | Mapping[str, object] | str], n_targets: int) -> list[QueryAttack]:
    """The attacks by name or part; each example of every attack if none is named, with fewer repetitions."""
    chosen: list[QueryAttack] = []
    for item in attacks or registry("query-attack").names():
        if not isinstance(item, str):
            chosen.append(registry("query-attack").part(item, QueryAttack))
            continue
        kind = registry("query-attack").get(item)
        assert issubclass(kind, QueryAttack)
        chosen += [kind.build(parameters) for parameters in kind.sql_settings(n_targets)]
    return chosen
