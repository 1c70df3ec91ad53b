"""Proof and planner agree on every generated question; mutants of either side are refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from test_query_plans import MANY, REGIONS, TYPES, catalog, cost, query

import sfumato.proof.rules as rules
from sfumato.dp.loss import PrivacyLoss, approximate, concentrated, pure
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.errors import SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.proof import sealed, verify_certificate
from sfumato.proof.certificate import FORMAT
from sfumato.query import Session
from sfumato.query.certificate import certificate_of, charge_record, stated_plans
from sfumato.query.plan.grouping_sets import CubePlan, plan_sets
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.compound import parse_compound
from sfumato.query.sql.parse import parse_query

EXTRA = [
    "SELECT city, COUNT(*) AS m FROM t GROUP BY city ORDER BY m DESC LIMIT 1",
    "SELECT city FROM t GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2",
    "SELECT word FROM t GROUP BY word ORDER BY COUNT(*) DESC LIMIT 1",
    "SELECT word, COUNT(*) FROM t GROUP BY word",
    "SELECT word, AVG(x), COUNT(DISTINCT n) FROM t GROUP BY word",
    "SELECT MODE(city) FROM t",
    "SELECT COUNT(*) FROM t WHERE person IN (SELECT person FROM t WHERE flag)",
]
COSTS = [pure(1), approximate("0.7", "1e-6"), concentrated("0.2"), concentrated("0.2", "1e-6"), approximate(3, "1e-40")]
LEDGER = Ledger.open(":memory:")
ENTRY = LEDGER.set_cap(pure(1), dataset="d")


def certificate(plan: NoisePlan | CubePlan) -> dict[str, Any]:
    """The certificate that an answer by this plan would have. It went through JSON, like one that is read."""
    by_row = (plan.cells if isinstance(plan, CubePlan) else plan).query.rows.by_row
    charge = charge_record(ENTRY, plan.cost, stated_plans([plan], {}))
    return dict(json.loads(json.dumps(certificate_of([charge], dataset="d", unit="row" if by_row else "person"))))


def plans(count: int, seed: int) -> Iterator[NoisePlan | CubePlan]:
    draw = random.Random(seed)
    while count > 0:
        unit = draw.random() < 0.7
        known = catalog("person" if unit else None, draw.randint(1, 3), draw.randint(1, 5))
        limits = {"fit": draw.choice([0, "1/20"])}
        try:
            if draw.random() < 0.1:
                compound = parse_compound(
                    "SELECT city, flag, COUNT(*), AVG(n) FROM t GROUP BY CUBE (city, flag)", known
                )
                assert compound is not None
                together = plan_sets(compound.parts, draw.choice(COSTS), **limits)
                assert together is not None
                yield together
            else:
                sql = draw.choice(EXTRA) if draw.random() < 0.3 else query(draw, unit)
                yield plan_query(parse_query(sql, known), draw.choice([cost(draw), *COSTS]), **limits)
        except SfumatoError:
            continue
        count -= 1


def agree(count: int, seed: int) -> set[str]:
    used: set[str] = set()
    for plan in plans(count, seed):
        found = verify_certificate(certificate(plan))
        assert found.holds, (found, plan)
        used |= set(found.rules)
    return used


def test_proof_and_planner_agree_and_every_rule_is_used() -> None:
    used = agree(300, seed=3)
    tables: list[dict[str, Any]] = [rules.NODES, rules.REACHES, rules.MECHANISMS]
    assert used == {entry[0] for table in tables for entry in table.values()}


@pytest.mark.slow
def test_proof_and_planner_agree_on_many_questions() -> None:
    assert agree(2 * MANY, seed=4)


def less_noise(draw: dict[str, Any]) -> None:
    name = next(n for n in ("scale", "variance", "rate", "price", "epsilon") if n in draw["noise"])
    factor = Fraction(97, 100) if name in ("scale", "variance") else Fraction(100, 97)
    for field in {name, "drawn"} & set(draw["noise"]):
        draw["noise"][field] = str(Fraction(draw["noise"][field]) * factor)


def less_reach(draw: dict[str, Any]) -> None:
    draw["reach"] -= 1


def another_rule(draw: dict[str, Any]) -> None:
    draw["rule"] = "M1" if draw["rule"] != "M1" else "M3"


def another_mechanism(draw: dict[str, Any]) -> None:
    draw["noise"]["mechanism"] = "laplace" if draw["noise"]["mechanism"] != "laplace" else "gaussian"


def less_loss(draw: dict[str, Any]) -> None:
    draw["loss"]["size"] = str(Fraction(draw["loss"]["size"]) * Fraction(999, 1000))


def unknown_aggregate(draw: dict[str, Any]) -> None:
    draw["measures"]["kind"] = "product"


def no_delta(draw: dict[str, Any]) -> None:
    draw["loss"]["delta"] = draw["loss"]["curve_delta"] = "0"


@pytest.mark.parametrize(
    "change", [less_noise, less_reach, another_rule, another_mechanism, less_loss, unknown_aggregate]
)
def test_a_changed_draw_is_refused_at_its_node(change: Callable[[dict[str, Any]], None]) -> None:
    for plan in plans(60, seed=5):
        honest = certificate(plan)
        for place in range(len(honest["charges"][0]["plans"][0]["draws"])):
            forged = deepcopy(honest)
            change(forged["charges"][0]["plans"][0]["draws"][place])
            found = verify_certificate(sealed(forged))
            assert not found.holds
            assert found.node.startswith(f"certificate.charges[0].plans[0].draws[{place}]")


def test_a_dropped_delta_is_refused() -> None:
    tried = 0
    for plan in plans(300, seed=6):
        forged = certificate(plan)
        for draw in forged["charges"][0]["plans"][0]["draws"]:
            if draw["loss"]["delta"] != "0":
                no_delta(draw)
                tried += 1
                assert not verify_certificate(sealed(forged)).holds
                break
    assert tried > 10


@pytest.mark.parametrize("name", ["rows", "groups"])
def test_a_bound_that_is_one_more_is_refused(name: str) -> None:
    """What the noise hides is less than what the engine would let through."""
    caught = 0
    for plan in plans(60, seed=7):
        forged = certificate(plan)
        own = forged["charges"][0]["plans"][0]
        once = all(
            draw["measures"]["kind"] in ("fitting-units", "keys") or draw["measures"].get("once")
            for draw in own["draws"]
        )
        selects = any(draw["over"] == "keys" for draw in own["draws"])
        own[name] += 1
        found = verify_certificate(sealed(forged))
        if (name == "rows" and once) or (name == "groups" and selects):
            continue  # these numbers have no effect on the loss of such draws
        assert not found.holds, found
        caught += 1
    assert caught > 30


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of everything in a certificate that is not a container."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(item, (*path, key))
    else:
        yield path


def test_a_certificate_in_which_anything_was_changed_is_refused() -> None:
    for plan in plans(10, seed=8):
        honest = certificate(plan)
        for *path, last in numbers(honest):
            forged = deepcopy(honest)
            inner: Any = forged
            for key in path:
                inner = inner[key]
            inner[last] = "7/9" if inner[last] != "7/9" else "1"
            assert not verify_certificate(forged).holds, (path, last)
            del inner[last]
            assert not verify_certificate(forged).holds, (path, last)


def test_what_is_no_certificate_is_refused() -> None:
    for value in ({}, {"certificate": FORMAT}, [], None, "x", {"certificate": FORMAT, "charges": [1]}):
        assert not verify_certificate(value).holds  # type: ignore[arg-type]


def test_a_planner_that_understates_a_loss_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both computations of the planner wrong in the same way: the proof is a third that shares no code with them."""

    def less(self: Mechanism, *_: Any) -> PrivacyLoss:
        return pure("0.97")

    monkeypatch.setattr(Laplace, "loss_at", less)
    monkeypatch.setattr(Laplace, "loss_from_bounds", less)
    plan = plan_query(parse_query("SELECT COUNT(*) FROM t", catalog(None)), pure(1))
    found = verify_certificate(certificate(plan))
    assert not found.holds
    assert found.node.endswith("draws[0].loss")


@pytest.mark.parametrize("name", sorted(rules.MECHANISMS))
def test_a_rule_that_states_less_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant of the proof: the loss of one group less, or of another rule."""
    number, law, measured = rules.MECHANISMS[name]

    def less(noise: Any, by: rules.UnitChange) -> Any:
        return law(noise, rules.UnitChange(by.groups, by.change * Fraction(97, 100), by.parts))

    monkeypatch.setitem(rules.MECHANISMS, name, (number, less, measured))
    with pytest.raises(AssertionError):
        agree(300, seed=3)


def test_answers_have_certificates_in_the_ledger() -> None:
    data = pl.DataFrame(
        [{"person": i % 50, "city": "abcd"[i % 4], "n": i % 9, "x": 0.5, "flag": i % 2 == 0, "word": "y"}
         for i in range(200)], schema=TYPES,
    )  # fmt: skip
    ledger = Ledger.open(":memory:")
    ledger.set_cap(approximate(1000, "0.1"), dataset="d")
    known = catalog("person", 2, 2)
    session = Session(known, {"t": data, "regions": REGIONS}, ledger=ledger, analyst="ana")
    asked = [
        ("SELECT COUNT(*) FROM t", {}),
        ("SELECT city, AVG(x) FROM t GROUP BY city", {"delta": "1e-6"}),
        ("SELECT city, COUNT(*) FROM t GROUP BY ROLLUP (city)", {}),
        ("SELECT COUNT(*) FROM t UNION ALL SELECT SUM(n) FROM t", {}),
        ("SELECT COUNT(*) FROM t ERROR 10%", {}),
    ]
    for sql, options in asked:
        first = session.ask(sql, epsilon=1, **options)
        again = session.for_analyst("ben", ledger).ask(sql, epsilon=1, **options)
        assert first.certificate is not None
        assert first.certificate == again.certificate
        entries = [entry.to_dict() for entry in ledger.entries()]
        found = verify_certificate(json.loads(json.dumps(first.certificate)), entries)
        assert (found.holds, found.ledger) == (True, "holds"), found
        assert first.loss is not None
        stated = first.certificate["loss"]
        assert (stated["size"], stated["delta"]) == (str(first.loss.size), str(first.loss.delta))
        for name, value in (("hash", "0" * 64), ("previous", "f" * 64), ("number", 1)):
            forged = deepcopy(first.certificate)
            forged["charges"][0]["entry"][name] = value
            assert not verify_certificate(sealed(forged), entries).holds
        cheaper = deepcopy(entries)
        cheaper[-1]["size"] = "1/1000"
        assert not verify_certificate(first.certificate, cheaper).holds


def test_the_ledger_knows_the_plan_that_was_paid_for() -> None:
    """Two plans of one cost: each is proved, and only the one that was charged is in the ledger."""
    ledger = Ledger.open(":memory:")
    ledger.set_cap(pure(1000), dataset="d")
    data = pl.DataFrame({name: [] for name in TYPES}, schema=TYPES)
    session = Session(catalog("person", 2, 2), {"t": data, "regions": REGIONS}, ledger=ledger, analyst="ana")
    paid, cheap = (
        session.ask(sql, epsilon=1).certificate for sql in ("SELECT SUM(n) FROM t", "SELECT COUNT(*) FROM t")
    )
    assert paid is not None
    assert cheap is not None
    forged = deepcopy(paid)
    forged["charges"][0]["plans"] = cheap["charges"][0]["plans"]
    forged = sealed(forged)
    assert verify_certificate(forged).holds
    entries = [entry.to_dict() for entry in ledger.entries()]
    assert verify_certificate(paid, entries).holds
    found = verify_certificate(forged, entries)
    assert (found.holds, found.node) == (False, "certificate.charges[0].plans")
    renamed = deepcopy(entries)
    renamed[-2]["totals"] = renamed[-2]["totals"].replace('"plan":"', '"plan":"0')
    assert verify_certificate(paid, renamed).node.startswith("ledger[")
    assert ledger.verify() == entries[-1]["hash"]


_TWO, _OTHER = "city IN ('a', 'b')", "city IN ('a', 'c')"
ASKED = {
    "cells": [f"SELECT COUNT(*) FROM t WHERE n = {k}" for k in range(9)],
    "questions": [f"SELECT COUNT(*) FROM t WHERE {test}" for test in ("n < 5", "flag", _TWO, _OTHER)],
    "tree": [f"SELECT COUNT(*) FROM t WHERE n < {low}" for low in range(1, 400)],
}


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("unit", ["person", None])
@pytest.mark.parametrize("cost", [{"epsilon": 1}, {"epsilon": "0.5", "delta": "1e-6"}, {"rho": "0.1"}])
def test_workloads_have_certificates_and_mutants_are_refused(kind: str, unit: str | None, cost: dict[str, Any]) -> None:
    data = pl.DataFrame(
        [{"person": i % 50, "city": "abcd"[i % 4], "n": i % 9, "x": 0.5, "flag": i % 2 == 0, "word": "y"}
         for i in range(200)], schema=TYPES,
    )  # fmt: skip
    ledger = Ledger.open(":memory:")
    ledger.set_cap(approximate(1000, "0.1"), dataset="d")
    session = Session(catalog(unit, 2, 3), {"t": data, "regions": REGIONS}, ledger=ledger, analyst="ana")
    answer = session.workload(ASKED[kind], **cost, fit="1/20")
    stated = json.loads(json.dumps(session.signed(answer).certificate))
    found = verify_certificate(stated, [entry.to_dict() for entry in ledger.entries()])
    assert (found.holds, found.ledger) == (True, "holds"), found
    assert answer.certificate == session.workload(ASKED[kind], **cost, fit="1/20").certificate
    draw = stated["charges"][0]["plans"][0]["draws"][0]
    measured = draw["sums"]["kind"]
    mutants = {
        "cells": {"kind": "tree", "cells": 9, "branches": 2},
        "tree": {**draw["sums"], "cells": draw["sums"].get("cells", 1) ** 2, "branches": 2},
        "questions": {"kind": "questions", "masks": ["0x3", "0x1", "0x7"]},
    }
    before, draw["sums"] = draw["sums"], mutants[measured]
    refused = verify_certificate(sealed(stated))
    assert (refused.holds, refused.node) == (False, "certificate.charges[0].plans[0].draws[0].loss")
    draw["sums"] = {**before, "kind": "unknown"}
    assert not verify_certificate(sealed(stated)).holds
    draw["sums"] = before
    less_noise(draw)
    assert not verify_certificate(sealed(stated)).holds


def test_every_kind_of_sums_is_chosen() -> None:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(concentrated(1000), dataset="d")
    data = pl.DataFrame({name: [] for name in TYPES}, schema=TYPES)
    session = Session(catalog(None, 1, 1), {"t": data, "regions": REGIONS}, ledger=ledger, analyst="ana")
    chosen = {session.workload(queries, rho=1).strategy.partition(" ")[0] for queries in ASKED.values()}
    assert chosen == {"cells", "questions", "tree"}
