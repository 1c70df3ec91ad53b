"""Contract of every registered mechanism, and of receipts."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from sfumato.dp.loss import PrivacyLoss, concentrated, pure
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.receipt import Receipt, issue
from sfumato.errors import NoReceipt, SecretAccessRefused, SfumatoError
from sfumato.registry import registry
from sfumato.secret import SecretValue
from sfumato.testing import check_part
from sfumato.testing.mechanisms import MECHANISM_CHECKS, contribution_bounds

KINDS = [kind for kind in registry("mechanism") if issubclass(kind, Mechanism)]
PARTS = [kind.build(example) for kind in KINDS for example in kind.examples]


def label(part: Mechanism) -> str:
    return f"{part.part_name()} {part.to_dict()}"


@pytest.mark.parametrize("check", [check_part, *MECHANISM_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize("part", PARTS, ids=label)
def test_contract(part: Mechanism, check: Callable[[Mechanism], None]) -> None:
    check(part)
    assert type(part).build(part.to_dict()) == part


@pytest.mark.parametrize("part", PARTS, ids=label)
def test_the_second_loss_comes_from_no_first_loss(part: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the check of the same purpose, but with the first computation of every mechanism unavailable."""
    bounds, sensitivity = contribution_bounds(part)
    stated = part.loss(sensitivity)

    def unavailable(self: Mechanism, sensitivity: Any = 1) -> PrivacyLoss:
        raise AssertionError("the first computation of the loss was used")

    for cls in (kind for kind in KINDS if hasattr(kind, "loss")):
        monkeypatch.setattr(cls, "loss", unavailable)
        monkeypatch.setattr(cls, "loss_at", unavailable)
    assert part.loss_from_bounds(bounds) == stated


def test_a_receipt_is_issued_by_a_ledger_only() -> None:
    with pytest.raises(NoReceipt):
        Receipt(pure(1), entry=1, kept=True, dataset="d")


@pytest.mark.parametrize("stealing", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_receipt_cannot_be_copied(stealing: Any) -> None:
    with pytest.raises(NoReceipt):
        stealing(issue(pure(1), dataset="d", entry=1))


def test_a_receipt_adds_up_what_is_drawn() -> None:
    receipt = issue(concentrated("1/2"), dataset="d", entry=1)
    receipt.use(concentrated("1/4"))
    receipt.use(pure("1/2"))
    assert receipt.used == concentrated("3/8")
    with pytest.raises(NoReceipt):
        receipt.use(concentrated("1/4"))


def test_secret_values_cannot_be_printed() -> None:
    with pytest.raises(SecretAccessRefused):
        str(SecretValue(4))
    assert issubclass(SecretAccessRefused, SfumatoError)
