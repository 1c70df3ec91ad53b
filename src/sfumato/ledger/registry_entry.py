"""Entries for the Differential Privacy Deployments Registry (https://registry.opendp.org), drafted from a ledger.

Fields and names are those of the records in github.com/opendp/deployments-registry-data (autumn 2025). The ledger knows
whose privacy is kept, what was lost, how it is added up and what left; what it does not know, its owner states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import BadParameter
from sfumato.ledger.composition import BudgetCap, Composition
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.register import RegisterLine, register
from sfumato.wording import did_you_mean

_PRODUCTS = {"answers": "Summary statistics", "tables": "Summary statistics", "graph": "Summary statistics",
             "microdata": "Synthetic data", "model": "Machine learning model"}  # fmt: skip
OWNER_FIELDS: Mapping[str, tuple[str, int]] = {
    "name": ("product", 1),
    "data_curators": ("product", 1),
    "intended_use": ("product", 1),
    "description": ("product", 1),
    "data_product_region": ("product", 1),
    "data_product_sector": ("product", 1),
    "data_domain": ("dp_flavor", 3),
    "actors": ("model", 3),
    "pre_processing_eda_hyperparameter_tuning": ("implementation", 3),
    "justification": ("implementation", 3),
    "sources": ("resources", 1),
    "registry_authors": ("resources", 1),
}
"""What the owner states: the section of each field, and the transparency tier that asks for it."""
_OPTIONAL = {"data_product_region", "data_product_sector", "sources", "name"}


@dataclass(frozen=True, kw_only=True)
class RegistryEntry:
    """A draft of one entry."""

    fields: Mapping[str, Any]
    missing: tuple[str, ...] = field(default=())
    """Fields that the owner has yet to state for tier 3, as ``section.field``."""

    @property
    def tier(self) -> int:
        """The highest transparency tier whose fields are all stated; 0 if tier 1 lacks something."""
        return int(self.fields["tier"])


def registry_entries(
    ledger: Ledger, stated: Mapping[str, Any] | None = None, *, dataset: str | None = None
) -> tuple[RegistryEntry, ...]:
    """One entry for each data set and privacy unit that was charged; ``stated`` is what the owner adds."""
    stated = dict(stated or {})
    for name in stated:
        if name not in OWNER_FIELDS:
            raise BadParameter(
                f"`{name}` is no field that the owner states.", fix=did_you_mean(name, list(OWNER_FIELDS))
            )
    first: dict[tuple[str, str], str] = {}
    for entry in ledger.entries():
        if entry.kind == "spend" and dataset in (None, entry.dataset):
            first.setdefault((entry.dataset, entry.unit), entry.at)
    lines = register(ledger, dataset=dataset)
    return tuple(
        _entry(ledger, name, unit, at, [one for one in lines if one.dataset == name and one.unit == unit], stated)
        for (name, unit), at in first.items()
    )


def _entry(
    ledger: Ledger, dataset: str, unit: str, since: str, lines: Sequence[RegisterLine], stated: Mapping[str, Any]
) -> RegistryEntry:
    from sfumato import __version__

    balance, cap = ledger.balance(dataset=dataset, unit=unit), ledger.cap(dataset=dataset, unit=unit)
    bound = balance.spent if cap is None else cap.loss
    answers = any(line.kind == "answers" for line in lines)
    known: dict[str, dict[str, Any]] = {
        "product": {
            "name": dataset,
            "data_product_type": ", ".join(sorted({_PRODUCTS.get(line.kind, line.kind) for line in lines})),
            "publication_date": since[:10],
        },
        "dp_flavor": {
            "name": _flavour(bound),
            "unprotected_quantities": "None by this ledger: every number that it paid for is protected.",
        },
        "privacy_loss": {
            "privacy_unit": "Person-level" if unit not in ("row", "edge", "node") else f"{unit.capitalize()}-level",
            "privacy_unit_description": f"Two data sets are adjacent if one has everything of one more unit ({unit}).",
            "privacy_parameters": _parameters(bound),
            "privacy_parameters_description": f"The cap of all releases and answers together. Spent: {balance.spent}.",
        },
        "model": {
            "model_name": "Central",
            "release_type": "One release" if len(lines) == 1 and not answers else "Many releases",
            "access_type": "Interactive" if answers else "Non-interactive",
            "access_type_description": "All analysts share the cap; none is assumed not to collude.",
        },
        "accounting": {
            "post_processing": "Of noisy numbers alone: rounding, intervals, ratios, least squares, samples of models",
            "composition": _composition(cap),
        },
        "implementation": {
            "mechanisms": f"sfumato {__version__}. Noise is drawn by exact samplers on a grid of whole numbers, from "
            "the entropy of the operating system, against a receipt of the ledger; no floating-point noise. Times of "
            "answers can be quantized. Answers have certificates, which `sfumato verify` derives again.",
        },
        "resources": {},
    }  # fmt: skip
    missing = []
    for name, (section, _) in OWNER_FIELDS.items():
        if stated.get(name):
            known[section][name] = stated[name]
        elif name not in _OPTIONAL:
            missing.append(f"{section}.{name}")
    open_tiers = {OWNER_FIELDS[path.partition(".")[2]][1] for path in missing}
    tier = 0 if 1 in open_tiers else 2 if 3 in open_tiers else 3
    whole = {"status": "Draft", "tier": tier, "deployment": {name: part for name, part in known.items() if part}}
    return RegistryEntry(fields=whole, missing=tuple(missing))


def _flavour(loss: PrivacyLoss) -> str:
    if loss.measure is PrivacyMeasure.RHO:
        return "Zero-concentrated DP"
    return "Approximate DP" if loss.delta else "Pure DP"


def _parameters(loss: PrivacyLoss) -> dict[str, float]:
    name = "rho" if loss.measure is PrivacyMeasure.RHO else "epsilon"
    return {name: float(loss.size), **({"delta": float(loss.delta)} if loss.delta else {})}


def _composition(cap: BudgetCap | None) -> str:
    text = "A ledger charges every answer and release before it is computed, and refuses what does not fit the cap. "
    if cap is None or not cap.filtered:
        return text + "Losses add up; questions may depend on earlier answers."
    accounts = {
        Composition.ALL: "sums, Gaussian and zero-concentrated differential privacy, which share delta",
        Composition.SUMS: "sums of epsilon and delta",
        Composition.GAUSSIAN: "Gaussian differential privacy",
        Composition.RHO: "zero-concentrated differential privacy",
    }
    return text + f"Privacy filter over {accounts[cap.composition]}; questions may depend on earlier answers."
