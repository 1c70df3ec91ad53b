"""Certificates of answers: the plan as a tree with the rule of every node, for :mod:`sfumato.proof` to check.

A certificate is public. It holds what is declared (tables, domains, bounds), what kind of numbers are measured, what
was paid, and the part of the data set that was charged: no other condition, no key, no exact and no noisy number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato import __version__
from sfumato.dataset.part_column import PartColumn
from sfumato.dp.curve import Curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, sequential
from sfumato.dp.mechanisms.top_keys import TopKeys
from sfumato.dp.spending import exact, plain, stated_loss, stated_noise
from sfumato.ledger.accounts import part_of
from sfumato.ledger.entries import Entry
from sfumato.params import part_name
from sfumato.proof.certificate import FORMAT, NEIGHBOURS, sealed
from sfumato.proof.losses import StatedLoss
from sfumato.proof.rules import MECHANISMS, NODES, REACHES
from sfumato.query.plan.aggregates import Aggregate
from sfumato.query.plan.grouping_sets import CubePlan
from sfumato.query.plan.noise import Measurement, NoisePlan
from sfumato.query.plan.parts import demanded
from sfumato.query.plan.relational import Filter, PlanNode, Scan
from sfumato.query.workload import Workload

CertifiedPlan: TypeAlias = NoisePlan | CubePlan | Workload
Charged: TypeAlias = dict[str, Any]
"""A charge as a certificate records it: the entry of the ledger, the loss and the plans."""
_KEYS = {"kind": "keys", "rule": "S5", "step": 1}
"""What partition selection counts: each unit once for each of its keys."""


def certificate_of(charges: Iterable[Charged], *, dataset: str, unit: str) -> dict[str, object]:
    """The certificate of an answer that was paid for by these charges, each of which counts once."""
    once = list({charge["entry"]["hash"]: charge for charge in charges}.values())
    return sealed({
        "certificate": FORMAT, "dataset": dataset, "unit": unit, "neighbours": NEIGHBOURS,
        "versions": {"sfumato": __version__}, "charges": once,
        "loss": stated_loss(sequential(_stated(charge["loss"]) for charge in once)),
    })  # fmt: skip


def stated_plans(plans: Iterable[CertifiedPlan], parts: Mapping[str, PartColumn]) -> list[dict[str, Any]]:
    """The plans that a charge pays for, as its certificate states them; the ledger keeps the hash of the list.

    ``parts`` are the columns that split the data set.
    """
    return [_plan(plan, parts) for plan in plans]


def charge_record(entry: Entry, cost: PrivacyLoss, stated: Sequence[Mapping[str, Any]]) -> Charged:
    """A charge with what it paid for: :func:`stated_plans`."""
    place = {"number": entry.number, "previous": entry.previous, "hash": entry.hash}
    part = part_of(entry.totals)
    about = {} if part is None else {"part": {"partition": part.partition, "name": part.name}}
    return {"entry": place, **about, "loss": stated_loss(cost), "plans": list(stated)}


def plan_rows(plan: CertifiedPlan) -> PlanNode:
    """The rows that a plan measures."""
    return (plan.cells if isinstance(plan, CubePlan) else plan).query.rows


def _stated(loss: dict[str, object]) -> PrivacyLoss:
    read = StatedLoss.read(loss, "loss")
    curve = Curve(rho=read.rho, gaussian=read.squared_mu, delta=read.curve_delta)
    return PrivacyLoss(measure=PrivacyMeasure(read.measure), size=read.size, delta=read.delta, curve=curve)


def _plan(plan: CertifiedPlan, parts: Mapping[str, PartColumn]) -> dict[str, Any]:
    reserved: Sequence[PrivacyLoss]
    if isinstance(plan, Workload):
        cells, fit = plan.bounds, plan.fitting
        draws, reserved = [_sums(plan)], [plan.mechanism.loss_at(plan.sensitivity)]
        if fit is not None:
            draws.append(_draw(fit, fit.measurements[-1], "all") | {"reservation": 1})
            reserved.append(fit.measurements[-1].loss.to(plan.cost.measure))
    elif isinstance(plan, CubePlan):
        cells, reserved = plan.cells, plan.parts
        draws = [_draw(cells, draw.measurement, "marginal") for draw in plan.draws]
        draws += [_draw(cells, one, "all") for one in plan.sets[0].measurements if cells.is_fitting(one)]
    else:
        cells, reserved = plan, plan.parts
        draws = [_draw(plan, measurement, _over(plan, measurement)) for measurement in plan.measurements]
    return {
        "rows_from": _node(cells.query.rows, parts),
        "bounding": cells.bounding, "rows": cells.rows, "groups": cells.groups,
        "draws": draws, "reserved": [stated_loss(part) for part in reserved], "loss": stated_loss(plan.cost),
    }  # fmt: skip


def _node(node: PlanNode, parts: Mapping[str, PartColumn]) -> dict[str, object]:
    kind = part_name(type(node).__name__)
    about: dict[str, Any] = {}
    if isinstance(node, Scan):
        about = {"table": node.table, "unit_column": node.unit_column}
    elif isinstance(node, Filter) and node.by_row and (values := demanded(node, parts)):
        about = {"demands": {column: _demand(parts[column], value) for column, value in values.items()}}
    return {
        "node": kind, "rule": _rule(NODES, kind), "copies": node.copies if node.by_row else None, **about,
        "over": [_node(child, parts) for child in node.children()],
    }  # fmt: skip


def _demand(column: PartColumn, value: int | str) -> dict[str, object]:
    """The part in its type, and all parts that are declared. Whole numbers are text, in their one decimal form."""
    return {"kind": str(column.kind), "value": str(value), "values": [str(known) for known in column.values]}


def _over(plan: NoisePlan, measurement: Measurement) -> str:
    """Which numbers a draw is about."""
    if isinstance(measurement.mechanism, TopKeys):
        return "keys"
    if plan.is_fitting(measurement):
        return "all"
    return "groups" if plan.top_keys is None else "selected"


def _draw(plan: NoisePlan, measurement: Measurement, over: str) -> dict[str, Any]:
    mechanism = measurement.mechanism
    kind, aggregates = mechanism.part_name(), plan.query.aggregates
    index = 0 if isinstance(mechanism, TopKeys) else measurement.aggregate
    reach = 1 if index is None else aggregates[index].sensitivity(plan.rows)
    return {
        "rule": _rule(MECHANISMS, kind), "over": over, "reach": reach, "parts": measurement.parts,
        "measures": _KEYS if index is None else _measures(aggregates[index]), "noise": stated_noise(mechanism),
        "loss": stated_loss(measurement.loss), "reservation": measurement.reservation,
    }  # fmt: skip


def _sums(workload: Workload) -> dict[str, Any]:
    """The draw of a workload: sums of cells, each of which is in several."""
    mechanism, cells = workload.mechanism, workload.measured.shape[1]
    if workload.branches:
        sums: dict[str, Any] = {"kind": "tree", "cells": cells, "branches": workload.branches}
    elif workload.name == "cells":
        sums = {"kind": "cells", "cells": cells}
    else:
        bits = [sum(1 << place for place, one in enumerate(row) if one) for row in workload.measured.tolist()]
        sums = {"kind": "questions", "masks": [f"{mask:#x}" for mask in bits]}
    [count] = workload.query.aggregates
    return {
        "rule": _rule(MECHANISMS, mechanism.part_name()), "over": "sums", "sums": sums,
        "reach": count.sensitivity(workload.bounds.rows), "parts": 1, "measures": _measures(count),
        "noise": stated_noise(mechanism), "loss": stated_loss(mechanism.loss_at(workload.sensitivity)),
        "reservation": 0,
    }  # fmt: skip


def _measures(aggregate: Aggregate) -> dict[str, object]:
    """The kind of an aggregate with its whole and rational fields: bounds, grids and ranks, all of them declared."""
    kind = part_name(type(aggregate).__name__)
    values = {field.name: getattr(aggregate, field.name) for field in fields(aggregate)}  # type: ignore[arg-type]
    numbers = {name: plain(value) for name, value in values.items() if isinstance(value, int | Fraction)}
    return {**numbers, "kind": kind, "rule": _rule(REACHES, kind), "step": exact(aggregate.step)}


def _rule(rules: dict[str, Any], kind: str) -> str | None:
    """The number of a rule; None where there is none, which the check refuses."""
    return rules[kind][0] if kind in rules else None
