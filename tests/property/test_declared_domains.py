"""Sequences of queries about declared numbers, against every database that agrees with the answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from sfumato.auditing.auditor import Auditor
from sfumato.auditing.number_domain import NumberDomain
from sfumato.auditing.rules import AuditRules
from sfumato.dataset import Domain, RangeDomain, ValuesDomain
from sfumato.errors import BadParameter, MetadataMissing

pytest.importorskip("ortools")

Held = npt.NDArray[Any]
"""Databases by people."""
ITEMS: dict[str, Callable[[Held], Held]] = {
    "SUM(s)": lambda held: held.sum(axis=1), "AVG(s)": lambda held: held.mean(axis=1),
    "s": lambda held: np.sort(held, axis=1), "MAX(s)": lambda held: held.max(axis=1),
    "MIN(s)": lambda held: held.min(axis=1),
}  # fmt: skip
FAMILIES = (["SUM(s)", "AVG(s)"], ["MAX(s)", "MIN(s)"], ["s", "COUNT(*)"], [*ITEMS, "COUNT(*)"])


def at_least(bound: float, held: Held) -> Held:
    return np.asarray((held >= bound).sum(axis=1))


def declared(draw: Random) -> tuple[Domain, list[Any]]:
    """A list, a range in steps of more than 1, whole numbers or quarters; few values or more than are listed."""
    match draw.randrange(4):
        case 0:
            numbers: list[Any] = sorted(draw.sample(range(60), draw.randint(3, 7)))
            return ValuesDomain(values=tuple(numbers)), numbers
        case 1:
            step, count = draw.choice([1000, 25]), draw.choice([3, 5, 40])
            return RangeDomain(low=0, high=step * count - 1, step=step), [i * step for i in range(count)]
        case 2:
            low, count = draw.choice([0, -3, 50]), draw.choice([4, 36])
            return RangeDomain(low=low - 0.5, high=low + count - 0.5), list(range(low, low + count))
        case _:
            count = draw.choice([5, 41])
            return RangeDomain(low=0, high=(count - 1) / 4, step=0.25), [i / 4 for i in range(count)]


@pytest.mark.parametrize("seed", range(24))
def test_everybody_keeps_k_of_the_declared_numbers(seed: int) -> None:
    """No answer leaves fewer than k, and no refusal was needless: the decision is that of enumeration."""
    draw = Random(seed)
    domain, numbers = declared(draw)
    people = 3 if len(numbers) > 10 else draw.randint(2, 4)
    k = draw.randint(2, min(5, len(numbers)))
    likely = [numbers[0], numbers[1], numbers[-2], numbers[-1], numbers[len(numbers) // 2]]
    truth = [draw.choice(likely) for _ in range(people)]
    frame = pl.DataFrame({"id": range(people), "s": truth})
    auditor = Auditor(frame, secrets=["s"], rules=AuditRules(k=k), domains={"s": domain})
    items, worlds = draw.choice(FAMILIES), np.array(numbers)[np.indices((len(numbers),) * people)].reshape(people, -1).T
    for _ in range(7):
        chosen = sorted(draw.sample(range(people), draw.randint(1, people)))
        item, bound = draw.choice(items), draw.choice(numbers)
        count = item == "COUNT(*)"
        told: Callable[[Held], Held] = partial(at_least, bound) if count else ITEMS[item]
        text = f"SELECT {item} FROM t WHERE id IN ({', '.join(map(str, chosen))})" + f" AND s >= {bound}" * count
        decision, true = auditor.ask(text), told(np.array([truth])[:, chosen])[0]
        same = told(worlds[:, chosen]) == true
        after = worlds[same if same.ndim == 1 else same.all(axis=1)]
        kept = min(len(np.unique(after[:, person])) for person in range(people))
        if decision.verdict == "answered":
            assert np.asarray(decision.answer) == pytest.approx(np.asarray(true))
            assert kept >= k, (domain, truth, text)
            worlds = after
        else:
            assert kept < k or "not audited together" in decision.reason, (domain, truth, text)


def worlds_of(seed: int) -> tuple[Domain, list[Any], int, list[str], dict[str, Any]]:
    draw = Random(seed)
    numbers = sorted(draw.sample(range(9), 3)) if seed % 2 else [0, 1, 2]
    domain = ValuesDomain(values=tuple(numbers)) if seed % 2 else RangeDomain(low=0, high=2)
    rules: dict[str, Any] = {"k": 2, "simulatable": True}
    if seed:
        rules |= {"allow": 0.4, "shares": {"s": {str(number): 1 / 3 for number in numbers}}}
    log = []
    for _ in range(3):
        chosen = sorted(draw.sample(range(3), draw.randint(2, 3)))
        item, bound = draw.choice([*ITEMS, "COUNT(*)"]), draw.choice(numbers)
        log.append(f"SELECT {item} FROM t WHERE id IN ({', '.join(map(str, chosen))})"
                   + f" AND s >= {bound}" * (item == "COUNT(*)"))  # fmt: skip
    return domain, numbers, 3, log, rules


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_simulatable_decisions_are_a_function_of_the_answers(seed: int) -> None:
    """Databases with the same answers so far get the same next decision, whatever else is in them."""
    domain, numbers, people, log, rules = worlds_of(seed)
    draw = Random(seed + 100)
    seen: dict[tuple[Any, ...], str] = {}
    answered = 0
    for _ in range(4):
        truth = [draw.choice(numbers) for _ in range(people)]
        frame = pl.DataFrame({"id": range(people), "s": truth})
        auditor = Auditor(frame, secrets=["s"], rules=AuditRules.model_validate(rules), domains={"s": domain})
        past: tuple[Any, ...] = ()
        for text in log:
            decision = auditor.ask(text)
            assert not decision.looked
            assert seen.setdefault((*past, text), decision.verdict) == decision.verdict
            past += (text, str(decision.answer))
            answered += decision.verdict == "answered"
    assert answered or seed == 0  # every first answer could determine everybody, so `allow: 0` refuses


@pytest.mark.parametrize(
    ("domain", "numbers"),
    [(RangeDomain(low=0, high=9999, step=0.01), [0.0, 0.0, 0.0]), (RangeDomain(low=0, high=5000), [0, 0, 0]),
     (None, [0, 0, 0])],
)  # fmt: skip
def test_simulatable_sums_of_many_numbers_are_refused_whatever_they_are(domain: Any, numbers: list[Any]) -> None:
    """Without a look at the data: everybody who is asked about might have the lowest number."""
    for values in (numbers, [number + 7 for number in numbers]):
        frame = pl.DataFrame({"id": range(3), "s": values})
        rules = AuditRules(k=2, simulatable=True)
        auditor = Auditor(frame, secrets=["s"], rules=rules, domains={} if domain is None else {"s": domain})
        for item in ("SUM(s)", "MAX(s)", "MIN(s)", "AVG(s)", "s"):
            decision = auditor.ask(f"SELECT {item} FROM t")
            assert (decision.verdict, decision.looked) == ("refused", False)


def test_numbers_are_read_as_they_are_written() -> None:
    cents = NumberDomain.declared(RangeDomain(low=0.1, high=0.5, step=0.1), whole=False)
    assert cents is not None
    assert cents.labels == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert cents.codes(pl.Series([0.1 + 0.2, 0.5])).tolist() == [2, 4]  # type: ignore[union-attr]
    assert cents.codes(pl.Series([0.25])) is None
    assert cents.total(3, 3) == 0.6
    whole = NumberDomain.declared(RangeDomain(low=-0.5, high=2.5), whole=True)
    assert whole is not None
    assert whole.labels == [0, 1, 2]
    assert NumberDomain.declared(RangeDomain(low=0, high=2), whole=False) is None  # no step
    listed = NumberDomain.declared(ValuesDomain(values=(25, 0, 10)), whole=True)
    assert listed is not None
    assert (listed.labels, listed.places) == ([0, 10, 25], (0, 2, 5))
    with pytest.raises(BadParameter, match="whole"):
        NumberDomain.declared(RangeDomain(low=0, high=2, step=0.5), whole=True)


def test_a_coarser_grid_than_declared_is_no_coincidence() -> None:
    wages = NumberDomain.declared(RangeDomain(low=0, high=9999), whole=True)
    assert wages is not None
    thousands = wages.coarser(np.array([1500, 3500, 4500, 9500]))
    assert thousands is not None
    assert thousands.labels == [500, 1500, 2500, 3500, 4500, 5500, 6500, 7500, 8500, 9500]
    for codes in ([1000, 3000], [2, 4, 8, 16], [5, 5, 5]):
        assert wages.coarser(np.array(codes)) is None
    assert wages.coarser(np.arange(0, 100, 2)) is not None


def test_wages_in_thousands_are_audited_in_thousands() -> None:
    """A sum of 2,000 over two: 2,001 pairs of whole numbers, and three pairs of thousands."""
    frame = pl.DataFrame({"id": range(6), "s": [1000, 1000, 3000, 4000, 7000, 9000]})
    for declared_step in (None, 1000):
        domains = {"s": RangeDomain(low=0, high=90_000, step=declared_step)}
        for k, verdict in ((3, "answered"), (4, "refused")):
            auditor = Auditor(frame, secrets=["s"], rules=AuditRules(k=k), domains=domains)
            assert auditor.ask("SELECT SUM(s) FROM t WHERE id < 2").verdict == verdict
    simulatable = AuditRules(k=2, simulatable=True)
    every = pl.DataFrame({"s": range(0, 9000, 1000)})
    with pytest.raises(MetadataMissing, match="coarser grid"):
        Auditor(every, secrets=["s"], rules=simulatable, domains={"s": RangeDomain(low=0, high=9500, step=100)})
