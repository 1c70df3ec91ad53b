"""Check a certificate: every bound, every loss, what they add up to, and the place in the hash chain of the ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.proof.losses import (
    NotProved,
    Pure,
    StatedLoss,
    compose,
    implies,
    of_group,
    repeated,
    sampled_within,
)
from sfumato.proof.rules import MECHANISMS, Fields, UnitChange, copies_of, most_sums, moved_in, reach_of, reads_part
from sfumato.proof.signature import public_key, sign, signature_holds

FORMAT = "sfumato-certificate-1"
NEIGHBOURS = "add or remove one unit with everything that it contributed"
_START = "0" * 64
_COLUMNS = (
    "number", "at", "kind", "dataset", "analyst", "unit", "measure", "size", "delta", "bounds", "about", "totals",
    "previous",
)  # fmt: skip
"""What the hash of a ledger's entry covers, in this order."""
_PLACES = ("dataset", "unit", "charges[].entry", "charges[].run.key")
"""Fields that the ledger has, or else a signature covers."""
_UNDERIVED = ("versions", "charges[].run.name")
"""Fields that only a signature covers."""
_ROUNDING = Fraction(1, 1 << 127)
"""A ledger rounds costs with long denominators up, by less than this."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The result of a check: whether the certificate proves what it states, and if not, which node fails and why."""

    holds: bool
    node: str = ""
    reason: str = ""
    nodes: int = 0
    """Number of nodes that were derived again."""
    rules: tuple[str, ...] = ()
    """The rules that were used."""
    ledger: str = "not checked"
    """``holds`` if the entries were found in the chain; ``not checked`` without a ledger."""
    signed_by: str = ""
    """The public key of a signature that holds; empty without one."""
    proved: str = ""
    """What is proved: the loss, the unit and the data set of the certificate."""
    beside: str = "nothing"
    """What stands beside the certificate in its file or folder (numbers, tables, a model, the guarantee in words):
    ``nothing``; ``holds`` if the ledger has the fingerprint of all of it; ``not checked`` otherwise."""
    not_covered: tuple[str, ...] = ()
    """Fields that nothing confirms: no rule derives them, no entry of the ledger has them, and nobody signed them."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {"holds": self.holds, "node": self.node, "reason": self.reason, "nodes": self.nodes,
                "rules": list(self.rules), "ledger": self.ledger, "signed_by": self.signed_by,
                "proved": self.proved, "beside": self.beside, "not_covered": list(self.not_covered)}  # fmt: skip


def sealed(certificate: Mapping[str, object]) -> dict[str, object]:
    """A certificate with the SHA-256 of its contents."""
    content = {name: value for name, value in certificate.items() if name not in ("sha256", "signature")}
    return {**content, "sha256": digest(content)}


def signed(certificate: Mapping[str, object], seed: bytes) -> dict[str, object]:
    """A certificate with the signature of the one who has a secret of 32 bytes."""
    whole = sealed(certificate)
    made = {"algorithm": "Ed25519", "key": public_key(seed).hex(), "value": sign(seed, _signed_text(whole)).hex()}
    return {**whole, "signature": made}


def _signed_text(whole: Mapping[str, object]) -> bytes:
    return f"{FORMAT} {whole['sha256']}".encode()


def digest(content: Any) -> str:
    """The SHA-256 of plain data: of its JSON with sorted names and without spaces."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def verify_certificate(
    certificate: Mapping[str, object], ledger: Iterable[Mapping[str, object]] | None = None, key: str | None = None
) -> Verification:
    """Derive everything again. ``ledger`` are all entries of the ledger, in order, each with the columns of an export;
    ``key`` is the public key (hexadecimal) that must have signed.

    A certificate from elsewhere may hold anything: what cannot be read is refused like what is wrong.
    """
    rules: list[str] = []
    try:
        _check(Fields.read(certificate, "certificate"), rules)
        if ledger is not None:
            _check_chain(Fields.read(certificate, "certificate"), ledger)
        signed_by = _check_signature(Fields.read(certificate, "certificate"), key)
    except NotProved as refused:
        return Verification(holds=False, node=refused.node, reason=refused.reason)
    except (ArithmeticError, ValueError, TypeError, KeyError, RecursionError) as error:
        return Verification(holds=False, node="certificate", reason=f"cannot be read ({type(error).__name__})")
    unconfirmed = _UNDERIVED if ledger is not None else (*_PLACES, *_UNDERIVED)
    return Verification(
        holds=True, nodes=len(rules), rules=tuple(sorted(set(rules))),
        ledger="not checked" if ledger is None else "holds", signed_by=signed_by,
        not_covered=() if signed_by else unconfirmed, proved=_proved(certificate),
    )  # fmt: skip


def _proved(certificate: Mapping[str, Any]) -> str:
    loss = certificate["loss"]
    delta = "" if Fraction(loss["delta"]) == 0 else f", delta = {float(Fraction(loss['delta'])):.6g}"
    size = f"{loss['measure']} = {float(Fraction(loss['size'])):.6g}{delta}"
    return f"{size} for one {certificate['unit']} of the data set {certificate['dataset']}"


def contradiction(stated: Mapping[str, Any]) -> str:
    """The field of a guarantee in words that does not follow from the certificate in it, or nothing.

    A guarantee is written in floating-point numbers, which are right to one part in 10**9.
    """
    certificate, near = stated["certificate"], 1 + Fraction(1, 10**9)
    loss = StatedLoss.read(certificate["loss"], "certificate.loss")
    runs = [charge["run"] for charge in certificate["charges"] if "run" in charge]
    numbers = [(charge["entry"] or {}).get("number") for charge in certificate["charges"]]
    rows = {str(run["rows"]) for run in runs}
    for name, right in (
        ("unit", stated["unit"] == certificate["unit"]),
        ("dataset", stated.get("dataset") in (None, certificate["dataset"])),
        ("entry", stated.get("entry") is None or stated["entry"] in numbers),
        ("max_rows", not rows or str(stated.get("max_rows")) in rows),
        ("rho", stated.get("rho") is None or Fraction(stated["rho"]) * near >= loss.rho),
        ("mu", stated.get("mu") is None or _at_most(loss.squared_mu, (Fraction(stated["mu"]) * near) ** 2)),
        ("curve_delta", stated.get("rho") is None or Fraction(stated.get("curve_delta", 0)) * near >= loss.curve_delta),
    ):
        if not right:
            return name
    size, delta = Fraction(stated["epsilon"]) * near, Fraction(stated["delta"]) * near
    claimed = replace(loss, measure="epsilon", size=size, delta=delta)
    return "" if implies(loss, claimed) else "epsilon"


def _at_most(value: Fraction | None, limit: Fraction) -> bool:
    return value is not None and value <= limit


def read_document(text: str) -> Any:
    """JSON in which every name of an object is there once. Readers disagree on which of two they take.

    >>> read_document('{"loss": "1/1000", "loss": "1/2"}')
    Traceback (most recent call last):
    ...
    sfumato.proof.losses.NotProved: loss: is there twice
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise NotProved(name, "is there twice")
            found[name] = value
        return found

    return json.loads(text, object_pairs_hook=once)


def _check(whole: Fields, rules: list[str]) -> None:
    whole.only("certificate", "dataset", "unit", "neighbours", "versions", "charges", "loss", "sha256", "signature")
    if whole.value("certificate") != FORMAT:
        raise NotProved("certificate", "has another format")
    if whole.value("neighbours") != NEIGHBOURS:
        raise NotProved("certificate.neighbours", "there are rules for one relation of neighbours only")
    for name in ("dataset", "unit"):
        if not isinstance(whole.value(name), str) or not whole.value(name):
            raise NotProved(f"certificate.{name}", "is missing")
    version = Fields.read(whole.value("versions"), "certificate.versions").only("sfumato").value("sfumato")
    if not isinstance(version, str):
        raise NotProved("certificate.versions.sfumato", "is not a text")
    charges = whole.each("charges")
    if not charges:
        raise NotProved("certificate.charges", "there are none")
    totals = [
        _check_run(charge, by_row=whole.value("unit") == "row", rules=rules) if "run" in charge.stated
        else _check_charge(charge, by_row=whole.value("unit") == "row", rules=rules)
        for charge in charges
    ]  # fmt: skip
    _covered(totals, StatedLoss.read(whole.value("loss"), "certificate.loss"), "certificate.loss", exact=True)
    if sealed(whole.stated)["sha256"] != whole.value("sha256"):
        raise NotProved("certificate.sha256", "the contents were changed")


def _check_signature(whole: Fields, key: str | None) -> str:
    """H2: the key that signed; empty without a signature where none is demanded."""
    if "signature" not in whole.stated:
        if key is not None:
            raise NotProved("certificate.signature", "is missing")
        return ""
    given = Fields.read(whole.value("signature"), "certificate.signature")
    stated, value = given.value("key"), given.value("value")
    if given.value("algorithm") != "Ed25519" or set(given.stated) != {"algorithm", "key", "value"}:
        raise NotProved(given.node, "is of another kind")
    if not signature_holds(bytes.fromhex(stated), _signed_text(whole.stated), bytes.fromhex(value)):
        raise NotProved(given.node, "does not hold")
    if key is not None and key.lower() != stated.lower():
        raise NotProved(given.node, "is by another key")
    return str(stated)


def _covered(losses: list[StatedLoss], stated: StatedLoss, node: str, *, exact: bool = False) -> None:
    """C1: refuse a total that does not follow; ``exact``: one that is not the sum."""
    total = compose(losses)
    if not implies(total, stated) or (exact and total != stated):
        raise NotProved(node, "does not cover the losses below it")


def _check_place(charge: Fields) -> None:
    """The entry of the ledger that a charge names."""
    entry = Fields.read(charge.value("entry"), f"{charge.node}.entry").only("number", "previous", "hash")
    # A server states the hash alone: number and predecessor would tell how much others ask.
    if set(entry.stated) != {"hash"}:
        entry.whole("number")
    for name in ("previous", "hash") if "number" in entry.stated else ("hash",):
        text = entry.value(name)
        if not isinstance(text, str) or len(text) != 64 or set(text) - set("0123456789abcdef"):
            raise NotProved(f"{entry.node}.{name}", "is not a SHA-256")


def _check_charge(charge: Fields, *, by_row: bool, rules: list[str]) -> StatedLoss:
    charge.only("entry", "part", "plans", "loss")
    _check_place(charge)
    plans = charge.each("plans")
    if not plans:
        raise NotProved(f"{charge.node}.plans", "there are none")
    if "part" in charge.stated:
        part = Fields.read(charge.value("part"), f"{charge.node}.part").only("partition", "name")
        for plan in plans:
            tree = Fields.read(plan.value("rows_from"), f"{plan.node}.rows_from")
            if not by_row or not reads_part(tree, part):
                raise NotProved(part.node, "the plan reads other people, too")
        rules.append("P1")
    stated = StatedLoss.read(charge.value("loss"), f"{charge.node}.loss")
    _covered([_check_plan(plan, by_row=by_row, rules=rules) for plan in plans], stated, f"{charge.node}.loss")
    return stated


def _check_plan(plan: Fields, *, by_row: bool, rules: list[str]) -> StatedLoss:
    plan.only("rows_from", "bounding", "rows", "groups", "draws", "reserved", "loss")
    tree = Fields.read(plan.value("rows_from"), f"{plan.node}.rows_from")
    copies = copies_of(tree)
    rules += _rules_of(tree)
    if copies is not None and not by_row:
        raise NotProved(tree.node, "the rows are about another unit than the certificate")
    bounding, rows, groups = plan.value("bounding"), plan.whole("rows"), plan.whole("groups")
    if copies is None and bounding not in ("sample", "clip"):
        raise NotProved(f"{plan.node}.bounding", "contributions of a unit with many rows are not bounded")
    if copies is not None and (bounding != "row" or rows < copies):
        raise NotProved(f"{plan.node}.rows", f"one row can become {copies}")
    draws = plan.each("draws")
    reserved = [StatedLoss.read(item.stated, item.node) for item in plan.each("reserved")]
    own: list[list[StatedLoss]] = [[] for _ in reserved]
    selected = [draw for draw in draws if _mechanism(draw) == "top-keys"]
    for draw in draws:
        loss = _check_draw(draw, bounding, rows, groups, selected, by_copies=copies is not None and copies > 1)
        place = draw.whole("reservation", 0)
        if place >= len(own):
            raise NotProved(f"{draw.node}.reservation", "there is no such part")
        own[place].append(loss)
        rules += [draw.value("rule"), Fields.read(draw.value("measures"), draw.node).value("rule")]
    for place, losses in enumerate(own):
        if not losses:
            raise NotProved(f"{plan.node}.reserved[{place}]", "covers no draw")
        _covered(losses, reserved[place], f"{plan.node}.reserved[{place}]")
    stated = StatedLoss.read(plan.value("loss"), f"{plan.node}.loss")
    _covered(reserved, stated, f"{plan.node}.loss")
    return stated


def _check_run(charge: Fields, *, by_row: bool, rules: list[str]) -> StatedLoss:
    """A run as a whole: tables, synthetic data, a model. What was drawn was charged at once, before."""
    charge.only("entry", "run", "loss")
    if charge.value("entry") is not None:  # a run without a ledger that is kept
        _check_place(charge)
    run = Fields.read(charge.value("run"), f"{charge.node}.run")
    run.only("name", "key", "bounding", "rows", "loss_of", "spent")
    bounding, rows, per = run.value("bounding"), run.whole("rows"), run.value("loss_of")
    if per not in ("row", "unit"):
        raise NotProved(f"{run.node}.loss_of", "is neither row nor unit")
    if by_row and (bounding, rows, per) != ("row", 1, "unit"):
        raise NotProved(f"{run.node}.rows", "each row is a unit")
    if not by_row:  # B8 is an assumption of the caller, which the result names
        if bounding not in ("cut", "promised") or (bounding == "promised" and per == "row"):
            raise NotProved(f"{run.node}.bounding", "contributions of a unit with many rows are not bounded")
        rules.append("B7" if bounding == "cut" else "B8")
    spent = _check_spent(Fields.read(run.value("spent"), f"{run.node}.spent"), 1 if per == "row" else rows, rules)
    if per == "row":
        spent = of_group(spent, rows, run.node)
        rules.append("G1")
    stated = StatedLoss.read(charge.value("loss"), f"{charge.node}.loss")
    _covered([spent], stated, f"{charge.node}.loss")
    return stated


def _check_spent(node: Fields, rows: int, rules: list[str]) -> StatedLoss:
    """A receipt: it covers what was drawn and split off."""
    node.only("covers", "over", "exchange")
    covers, losses = StatedLoss.read(node.value("covers"), f"{node.node}.covers"), []
    if "exchange" in node.stated:
        _check_samples(node, covers, rows, rules)
        return covers
    for one in node.each("over"):
        if "covers" in one.stated:
            losses.append(_check_spent(one, rows, rules))
        else:
            losses.append(repeated(_check_run_draw(one, rows, rules), one.whole("times")))
    if losses:
        _covered(losses, covers, f"{node.node}.covers")
    return covers


def _check_run_draw(draw: Fields, rows: int, rules: list[str]) -> StatedLoss:
    """The loss of one draw of a run, by the rule of its mechanism from the rule of what it measures."""
    draw.only("rule", "measures", "noise", "loss", "times")
    what = Fields.read(draw.value("measures"), f"{draw.node}.measures")
    noise = Fields.read(draw.value("noise"), f"{draw.node}.noise")
    name = noise.value("mechanism")
    if name not in MECHANISMS:
        raise NotProved(noise.node, f"there is no rule for the mechanism `{name}`")
    rule, law, _ = MECHANISMS[name]
    if draw.value("rule") != rule:
        raise NotProved(draw.node, f"a mechanism `{name}` loses by rule {rule}")
    if "grid" in noise.stated and (1 / noise.positive("grid")).denominator != 1:
        raise NotProved(f"{noise.node}.grid", "one step is not a whole number of grid steps")
    stated = StatedLoss.read(draw.value("loss"), f"{draw.node}.loss")
    problem = law(noise, moved_in(what, rows, name)).problem(stated)
    if problem:
        raise NotProved(f"{draw.node}.loss", f"by rule {rule}, {problem}")
    rules += [rule, what.value("rule")]
    return stated


def _check_samples(node: Fields, covers: StatedLoss, rows: int, rules: list[str]) -> None:
    """A1: steps of normal noise, each on a Poisson sample of the rows, of which a unit has up to ``rows``."""
    given = Fields.read(node.value("exchange"), f"{node.node}.exchange")
    rate, steps, most = given.positive("rate"), given.whole("steps"), given.positive("squared_mu")
    if given.value("rule") != "A1" or rate > 1:
        raise NotProved(given.node, "there is no such rule")
    for receipt in node.each("over"):
        _check_spent(receipt, rows, rules)
        for draw in receipt.each("over"):
            if "rule" not in draw.stated or draw.value("rule") != "M4":
                raise NotProved(draw.node, "rule A1 is about normal noise")
            if StatedLoss.read(draw.value("loss"), draw.node).rho > most / 2:
                raise NotProved(draw.node, "the noise of a step is smaller than stated")
            steps -= draw.whole("times")
    if steps < 0:
        raise NotProved(given.node, "there are more draws than steps")
    touched = 1 - (1 - rate) ** rows
    if not sampled_within(touched, most, given.whole("steps"), covers.size, covers.delta):
        raise NotProved(f"{node.node}.covers", "does not follow by rule A1")
    problem = Pure(epsilon=covers.size, draws=1, chance=covers.delta).problem(covers)
    if problem:
        raise NotProved(f"{node.node}.covers", problem)
    rules.append("A1")


def _rules_of(node: Fields) -> list[str]:
    node.only("node", "rule", "copies", "table", "unit_column", "demands", "over")
    return [node.value("rule"), *(rule for child in node.each("over") for rule in _rules_of(child))]


def _mechanism(draw: Fields) -> Any:
    return Fields.read(draw.value("noise"), f"{draw.node}.noise").value("mechanism")


def _check_draw(
    draw: Fields, bounding: str, rows: int, groups: int, selected: list[Fields], *, by_copies: bool
) -> StatedLoss:
    """The loss of one draw, by the rule of its mechanism from the rule of what it measures."""
    draw.only("rule", "over", "sums", "reach", "parts", "measures", "noise", "loss", "reservation")
    what = Fields.read(draw.value("measures"), f"{draw.node}.measures")
    noise = Fields.read(draw.value("noise"), f"{draw.node}.noise")
    name = noise.value("mechanism")
    if name not in MECHANISMS:
        raise NotProved(noise.node, f"there is no rule for the mechanism `{name}`")
    rule, law, measures = MECHANISMS[name]
    kind = what.value("kind")
    if draw.value("rule") != rule:
        raise NotProved(draw.node, f"a mechanism `{name}` loses by rule {rule}")
    reach = reach_of(what, rows)
    if kind not in measures:
        raise NotProved(draw.node, f"rule {rule} is not about `{kind}`")
    if draw.number("reach") != reach:
        raise NotProved(f"{draw.node}.reach", f"one unit moves {reach} steps in one group")
    step = what.positive("step")
    touched, change = groups, reach * step  # B1
    match draw.value("over"):
        case "groups" if kind != "fitting-units" and name != "top-keys":
            if selected:
                raise NotProved(draw.node, "only the selected groups are measured")
        case "all" if kind == "fitting-units":  # B3: a unit counts once, whatever groups it is in
            touched = 1
        case "keys" if name == "top-keys":  # M10 is about any number of groups; ``most`` bounds private keys
            pass
        case "selected" if len(selected) == 1:  # B4: a unit is in all selected groups at most
            touched = Fields.read(selected[0].value("noise"), selected[0].node).whole("count")
        case "marginal" if bounding != "clip" and name in ("laplace", "gaussian", "rounded-gaussian"):
            touched, change = 1, groups * change  # B5: all groups of a unit may fall into one number
        case "sums" if bounding != "clip" and kind == "count" and name in ("laplace", "gaussian", "rounded-gaussian"):
            sums = Fields.read(draw.value("sums"), f"{draw.node}.sums")
            touched, change = most_sums(sums), groups * change  # B6: so do all cells, in every sum that has them
        case over:
            raise NotProved(f"{draw.node}.over", f"there is no rule for a draw over `{over}`")
    if by_copies and (name in ("partition-selection", "top-keys") or name.startswith("thresholded")):
        raise NotProved(draw.node, "keys are not selected where one row can become several")
    additive = kind in ("count", "sum", "bernstein-sum")
    if bounding == "clip" and additive and name not in ("gaussian", "rounded-gaussian"):
        raise NotProved(draw.node, "a clipped norm bounds L2 distances only")  # B2
    if additive and "grid" in noise.stated and (step / noise.positive("grid")).denominator != 1:
        raise NotProved(f"{noise.node}.grid", "one step is not a whole number of grid steps")
    parts = draw.whole("parts")
    if kind == "bernstein-sum" and parts != what.whole("parts"):
        raise NotProved(f"{draw.node}.parts", "are not the shares of one number")
    if kind not in ("bernstein-sum", "bin-counts") and parts != 1:
        raise NotProved(f"{draw.node}.parts", "is 1 for all but shares and quantiles")
    if name == "quantile" and parts != 1:
        raise NotProved(f"{draw.node}.parts", "one quantile is one number")
    stated = StatedLoss.read(draw.value("loss"), f"{draw.node}.loss")
    problem = law(noise, UnitChange(touched, change, parts)).problem(stated)
    if problem:
        raise NotProved(f"{draw.node}.loss", f"by rule {rule}, {problem}")
    return stated


def _check_chain(whole: Fields, ledger: Iterable[Mapping[str, object]]) -> None:
    """H1: every hash of the ledger again, and in it the entry of each charge with its cost."""
    for charge in whole.each("charges"):
        if charge.value("entry") is None:
            raise NotProved(f"{charge.node}.entry", "was charged to no ledger that is kept")
    charges = {
        Fields.read(charge.value("entry"), charge.node).value("hash"): charge for charge in whole.each("charges")
    }
    previous, found = _START, set()
    for place, entry in enumerate(ledger, start=1):
        body = [entry[name] for name in _COLUMNS]
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        if (
            entry["number"] != place
            or entry["previous"] != previous
            or (hashlib.sha256(text.encode()).hexdigest() != entry["hash"])
        ):
            raise NotProved(f"ledger[{place}]", "the entry does not follow from the one before it")
        previous = entry["hash"]
        if previous in charges:
            _check_entry(whole, charges[previous], entry)
            found.add(previous)
    for missing in set(charges) - found:
        raise NotProved(f"{charges[missing].node}.entry", "the ledger has no entry with this hash")


def _check_entry(whole: Fields, charge: Fields, entry: Mapping[str, Any]) -> None:
    node, claimed = f"{charge.node}.entry", Fields.read(charge.value("entry"), charge.node)
    if any(claimed.stated[name] != entry[name] for name in ("number", "previous") if name in claimed.stated):
        raise NotProved(node, "the entry has another place in the chain")
    if (entry["kind"], entry["dataset"], entry["unit"]) != ("spend", whole.value("dataset"), whole.value("unit")):
        raise NotProved(node, "the entry is not a charge about this data set and unit")
    totals = json.loads(entry["totals"])
    if "run" in charge.stated:
        run = Fields.read(charge.value("run"), charge.node)
        cut = f"cut at {run.whole('rows')} per {entry['unit']}" if run.value("bounding") == "cut" else None
        if entry["about"] != run.value("key") or (cut is not None and entry["bounds"] != cut):
            raise NotProved(f"{charge.node}.run", "the ledger was charged for another run")
    elif totals.get("plan") != digest(charge.value("plans")):
        raise NotProved(f"{charge.node}.plans", "the ledger was charged for another plan")
    about, part = charge.stated.get("part"), totals.get("part")
    if about != (None if part is None else {name: part[name] for name in ("partition", "name")}):
        raise NotProved(f"{charge.node}.part", "the ledger was charged for another part")
    loss, charged = StatedLoss.read(charge.value("loss"), charge.node), totals["charge"]
    stated = [loss.size, loss.delta, loss.rho, loss.squared_mu, loss.curve_delta]
    paid = [entry["size"], entry["delta"], charged[2], charged[3], charged[4]]
    for name, cost, amount in zip(("size", "delta", "rho", "squared_mu", "curve_delta"), stated, paid, strict=True):
        same = cost is amount if cost is None or amount is None else 0 <= Fraction(amount) - cost < _ROUNDING
        if not same or entry["measure"] != loss.measure:
            raise NotProved(f"{charge.node}.loss.{name}", "the ledger was charged another cost")
