"""Checks of an installation by itself, for the file of a data-protection officer: ``sfumato verify --self``.

They use real entropy and the real engine, and no data but their own. A check that fails names what it found.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import erf, log, sqrt
from time import monotonic
from typing import Any

import numpy as np
import polars as pl

from sfumato import __version__
from sfumato.arrays import Array
from sfumato.attacks.models import audit_one_run
from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema
from sfumato.dp.loss import approximate
from sfumato.dp.mechanism import Mechanism
from sfumato.ledger.charge import Charge, charge_run
from sfumato.ledger.ledger import Ledger
from sfumato.proof import sealed, verify_certificate
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.plan.catalog import PublicTable
from sfumato.registry import registry
from sfumato.rng import Rng
from sfumato.secret import SecretValue
from sfumato.testing.mechanisms import check_mechanism
from sfumato.testing.sql import (
    BOUNDED,
    DECLARED,
    LIMITS,
    QUESTIONS,
    WARDS,
    Ask,
    Tables,
    check_sql_answer,
    check_sql_neighbours,
    sql_tables,
)

_DRAWS = 400_000
_FALSE_ALARM = 1e-6
"""Chance at which a sound sampler fails, for each mechanism."""
_PEOPLE = 10_000
_EPSILON = 1
_FORGED = 20
"""Number of certificates of which a changed copy is checked, too."""


@dataclass(frozen=True, kw_only=True)
class CheckedPart:
    """One check: what was tried how often, and what was found."""

    name: str
    what: str
    holds: bool
    cases: int
    found: str
    """What was seen; if it does not hold, what is wrong."""
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Installation:
    """All checks of an installation."""

    parts: tuple[CheckedPart, ...]
    version: str
    python: str
    machine: str
    at: str

    @property
    def holds(self) -> bool:
        """Whether every check holds, and there is one."""
        return bool(self.parts) and all(part.holds for part in self.parts)

    def to_dict(self) -> dict[str, object]:
        """As plain data, ready for JSON."""
        return {"holds": self.holds, **asdict(self)}


def check_installation(checks: Sequence[Callable[[], tuple[int, str]]] | None = None) -> Installation:
    """Run the checks, by default all; one that fails does not end the others."""
    return Installation(
        parts=tuple(_run(check) for check in (INSTALLATION_CHECKS if checks is None else checks)),
        version=__version__, python=platform.python_version(), machine=platform.platform(terse=True),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def _run(check: Callable[[], tuple[int, str]]) -> CheckedPart:
    start, what = monotonic(), " ".join((check.__doc__ or "").split())
    name = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        cases, found = check()
        holds = cases > 0
    except Exception as error:  # whatever goes wrong, the check does not hold and the others go on
        cases, found, holds = 0, f"{type(error).__name__}: {error}", False
    return CheckedPart(
        name=name, what=what, holds=holds, cases=cases, found=found, seconds=round(monotonic() - start, 1)
    )


def check_mechanisms() -> tuple[int, str]:
    """Every mechanism keeps its contract: loss computed twice, receipts, secret inputs, mean square of the noise."""
    mechanisms = _mechanisms()
    for mechanism in mechanisms:
        check_mechanism(mechanism)
    return len(mechanisms), f"{len({type(one) for one in mechanisms})} mechanisms keep their contract"


def check_samplers() -> tuple[int, str]:
    """Noise follows the stated distribution, by its largest distance (Massart 1990, doi:10.1214/aop/1176990746)."""
    far, cases = 0.0, 0
    for mechanism in _mechanisms():
        if mechanism.noise is None or mechanism.key_threshold("0.5") is not None:
            continue
        distance, allowed = _distance(mechanism)
        assert distance <= allowed, (
            f"noise of {mechanism.part_name()} is {distance:.4f} from its distribution; {allowed:.4f} is chance"
        )
        far, cases = max(far, distance), cases + 1
    return cases, f"largest distance {far:.4f} in {_DRAWS:,} draws each"


def _mechanisms() -> list[Mechanism]:
    kinds = [kind for kind in registry("mechanism") if issubclass(kind, Mechanism)]
    return [kind.build(example) for kind in kinds for example in kind.examples]


def _distance(mechanism: Mechanism) -> tuple[float, float]:
    """Distance of the distribution function of draws from that of the noise, and what chance and rounding explain."""
    noise = mechanism.noise
    assert noise is not None
    run = Charge.of_run(mechanism.loss(1), unit="row", name="check of a sampler", public={})
    receipt = charge_run(run, ledger=None, dataset=None)
    drawn = mechanism.release(SecretValue(np.zeros(_DRAWS, dtype=np.int64)), receipt=receipt)
    steps, counts = np.unique(np.rint(np.asarray(drawn, dtype=np.float64) / float(noise.grid)), return_counts=True)
    seen, rounding = np.cumsum(counts) / _DRAWS, 0.0
    if noise.scale:
        rate = np.exp(-float(noise.grid / noise.scale))
        exact = np.where(steps >= 0, 1 - rate ** (steps + 1) / (1 + rate), rate ** np.abs(steps) / (1 + rate))
    else:
        deviation = sqrt(noise.variance) / float(noise.grid)
        exact = np.array([(1 + erf((step + 0.5) / deviation / sqrt(2))) / 2 for step in steps])
        rounding = 0.0102 / deviation**2  # between a discrete and a rounded normal variable: max |phi'| / 24
    return float(np.abs(seen - exact).max()), sqrt(log(2 / _FALSE_ALARM) / (2 * _DRAWS)) + rounding


def check_audit() -> tuple[int, str]:
    """An attacker who knows all but who is in the data sees no more than epsilon, and does see half of it."""

    def counts(inside: Array) -> Array:
        people = np.flatnonzero(inside)
        rows = pl.DataFrame({"u": np.repeat(people, 3), "g": np.repeat(people, 3)})
        columns = {
            "u": Column(role=Role.PLAIN, kind=Kind.INTEGER),
            "g": Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=_PEOPLE - 1)),
        }
        schema = Schema(columns=columns, unit="u")
        table = PrivateTable(name="t", schema=schema, rows=3, groups=1)
        answer = _opened(Catalog(dataset="audit", private={"t": table}), {"t": rows}).ask(
            "SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=_EPSILON, fit=0
        )
        assert answer.loss is not None
        assert answer.loss.size == _EPSILON, "the answer cost another epsilon"
        return np.array([row[1].value for row in answer.rows], dtype=np.float64)

    audit = audit_one_run(counts, _PEOPLE, rng=Rng(_PEOPLE), share=0.2, confidence=1 - _FALSE_ALARM)
    assert not audit.refutes(_EPSILON), (
        f"the audit shows at least epsilon = {audit.epsilon:.2f}, {_EPSILON} was charged"
    )
    assert audit.refutes(_EPSILON / 2), f"the audit shows epsilon = {audit.epsilon:.2f} only: it would notice nothing"
    return _PEOPLE, f"at least epsilon = {audit.epsilon:.2f} of {_EPSILON}"


def check_answers() -> tuple[int, str]:
    """Without noise, answers are those of plain SQL."""
    tables = sql_tables()
    ask = sql_system(tables)
    answered = sum(check_sql_answer(ask, sql, tables) for sql in QUESTIONS)
    return answered, f"{answered} of {len(QUESTIONS)} questions are answered, all of them right"


def check_neighbours() -> tuple[int, str]:
    """One person with 500 rows moves a number by no more than the declared limits."""
    refused = check_sql_neighbours(sql_system)
    return len(BOUNDED) - len(refused), f"{len(BOUNDED) - len(refused)} questions, each on two neighbouring data sets"


def check_certificates() -> tuple[int, str]:
    """Certificates follow from the numbered rules, and a copy that states less loss does not."""
    session, proved = sql_session(sql_tables()), 0
    for sql in QUESTIONS:
        certificate = session.ask(sql, epsilon=1, delta="1e-9").certificate
        assert certificate is not None, "an answer has no certificate"
        found = verify_certificate(certificate, [entry.to_dict() for entry in session.ledger.entries()])
        assert found.holds, f"{found.node}: {found.reason}"
        proved += 1
        if proved <= _FORGED:
            assert not verify_certificate(_understated(certificate)).holds, "a smaller loss is accepted"
    return proved, f"{proved} certificates hold; {min(proved, _FORGED)} forged ones are refused"


def _understated(certificate: dict[str, Any]) -> dict[str, object]:
    """The certificate with a hundredth less noise in each draw, under a hash that fits."""
    from copy import deepcopy
    from fractions import Fraction

    forged = deepcopy(certificate)
    for plan in (plan for charge in forged["charges"] for plan in charge["plans"]):
        for draw in plan["draws"]:
            loss = draw["loss"]
            loss.update({name: str(Fraction(loss[name]) * 99 / 100) for name in ("size", "rho")})
            if loss["squared_mu"] is not None:
                loss["squared_mu"] = str(Fraction(loss["squared_mu"]) * 99 / 100)
    return sealed(forged)


INSTALLATION_CHECKS: tuple[Callable[[], tuple[int, str]], ...] = (
    check_mechanisms,
    check_samplers,
    check_audit,
    check_answers,
    check_neighbours,
    check_certificates,
)


def sql_session(tables: Tables) -> Session:
    """A session on the tables of the conformance suite, with a budget at which noise is negligible."""
    private = {
        name: PrivateTable(
            name=name, **LIMITS[name],
            schema=Schema(
                columns={key: Column.model_validate({"role": "plain", **facts}) for key, facts in columns.items()},
                unit="u",
            ),
        )
        for name, columns in DECLARED.items()
    }  # fmt: skip
    public = {"w": PublicTable(name="w", frame=WARDS, key=("ward",))}
    return _opened(Catalog(dataset="d", private=private, public=public), {name: tables[name] for name in private})


def _opened(catalog: Catalog, tables: Tables) -> Session:
    book = Ledger.unkept()
    book.set_cap(approximate(10**9, "0.5"), dataset=catalog.dataset)
    return Session(catalog, tables, ledger=book, analyst="check")


def sql_system(tables: Tables) -> Ask:
    """Private answers as a system of the conformance suite (:mod:`sfumato.testing.sql`)."""
    session = sql_session(tables)

    def ask(sql: str) -> Sequence[Sequence[object]] | None:
        return [[cell.value for cell in row] for row in session.ask(sql, epsilon=10**6, delta="1e-9").rows]

    return ask
