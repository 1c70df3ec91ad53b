"""Drafts for the registry of deployments: what the ledger knows, what the owner states, and the tier of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sfumato.cli import main
from sfumato.dp.loss import PrivacyLoss, approximate, concentrated, pure
from sfumato.errors import BadParameter
from sfumato.ledger.charge import Charge
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.register import ReleaseRecord
from sfumato.ledger.registry_entry import OWNER_FIELDS, registry_entries

FIRST = {"data_curators": ["office"], "intended_use": "plans", "description": "counts", "registry_authors": ["A"]}


def book(cap: PrivacyLoss, loss: PrivacyLoss) -> Ledger:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(cap, dataset="d")
    ledger.charge(Charge(loss=loss, unit="person", what="q"), dataset="d", analyst="a")
    return ledger


@pytest.mark.parametrize(("cap", "flavour", "parameters"), [
    (pure(2), "Pure DP", {"epsilon": 2.0}),
    (approximate(2, "1e-6"), "Approximate DP", {"epsilon": 2.0, "delta": 1e-6}),
    (concentrated("1/2"), "Zero-concentrated DP", {"rho": 0.5}),
])  # fmt: skip
def test_the_cap_is_what_is_promised(cap: PrivacyLoss, flavour: str, parameters: dict[str, float]) -> None:
    [entry] = registry_entries(book(cap, pure("1/10")))
    deployment = entry.fields["deployment"]
    assert deployment["dp_flavor"]["name"] == flavour
    assert deployment["privacy_loss"]["privacy_parameters"] == parameters
    assert deployment["privacy_loss"]["privacy_unit"] == "Person-level"
    assert deployment["model"]["access_type"] == "Interactive"
    assert entry.tier == 0


def test_tiers_follow_from_what_is_stated() -> None:
    ledger = book(pure(1), pure("1/10"))
    assert [entry.tier for entry in registry_entries(ledger, FIRST)] == [2]
    everything = dict.fromkeys(OWNER_FIELDS, "text") | FIRST
    [entry] = registry_entries(ledger, everything)
    assert (entry.tier, entry.missing) == (3, ())
    [less] = registry_entries(ledger, {**everything, "justification": ""})
    assert (less.tier, less.missing) == (2, ("implementation.justification",))
    with pytest.raises(BadParameter, match="intended_use"):
        registry_entries(ledger, {"intended_usage": "plans"})


def test_each_unit_and_data_set_has_its_own_entry_and_knows_what_left() -> None:
    ledger = book(pure(1), pure("1/10"))
    ledger.set_cap(pure(3), dataset="d", unit="edge")
    ledger.charge(Charge.of_run(pure(1), unit="edge", name="learn", public={}), dataset="d", analyst="owner")
    run = max(entry.number for entry in ledger.entries())
    record = ReleaseRecord(kind="model", name="m", sha256="0", plan="0", charges=(run,))
    ledger.register(record, dataset="d", by="owner")
    people, edges = registry_entries(ledger, dataset="d")
    assert edges.fields["deployment"]["privacy_loss"]["privacy_unit"] == "Edge-level"
    assert edges.fields["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 3.0}
    assert edges.fields["deployment"]["product"]["data_product_type"] == "Machine learning model"
    assert edges.fields["deployment"]["model"]["access_type"] == "Non-interactive"
    assert people.fields["deployment"]["product"]["data_product_type"] == "Summary statistics"
    assert registry_entries(ledger, dataset="another") == ()


def test_the_command_writes_yaml_and_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, about = tmp_path / "l.db", tmp_path / "about.yaml"
    ledger = Ledger.open(place)
    ledger.set_cap(pure(1), dataset="d")
    ledger.charge(Charge(loss=pure("1/3"), unit="row", what="q"), dataset="d", analyst="a")
    YAML().dump(FIRST, about)
    assert main(["ledger", "export", str(place), "--registry", "--about", str(about)]) == 0
    out, said = capsys.readouterr()
    [entry] = YAML(typ="safe").load_all(out)
    assert (entry["status"], entry["tier"]) == ("Draft", 2)
    assert "model.actors" in said
    about.write_text("[a, b]")
    assert main(["ledger", "export", str(place), "--registry", "--about", str(about)]) == 2
    assert main(["ledger", "export", str(place), "--about", str(about)]) == 2
    assert main(["ledger", "export", str(place), "--registry", "--events"]) == 2
