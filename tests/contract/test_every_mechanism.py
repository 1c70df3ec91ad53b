"""What every registered mechanism promises."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from sfumato.dp.loss import concentrated, pure
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.receipt import Receipt, issue
from sfumato.errors import BadParameter, NoReceipt, SecretAccessRefused, SfumatoError
from sfumato.registry import registry
from sfumato.secret import Permit, SecretValue

KINDS = [kind for kind in registry("mechanism") if issubclass(kind, Mechanism)]
PARTS = [kind.build(example) for kind in KINDS for example in kind.examples]


def paid(part: Mechanism, times: int = 1) -> Receipt:
    return issue(part.loss(1).times(times), entry=1)


def label(part: Mechanism) -> str:
    return f"{part.part_name()} {part.to_dict()}"


@pytest.mark.parametrize("part", PARTS, ids=label)
class TestEveryMechanism:
    def test_loss_grows_with_sensitivity(self, part: Mechanism) -> None:
        assert part.loss(1).size > 0
        assert part.loss(1) <= part.loss(2)
        assert not part.loss(2) <= part.loss(1)
        assert part.loss(0).size == 0

    def test_negative_sensitivity_is_refused(self, part: Mechanism) -> None:
        with pytest.raises(BadParameter):
            part.loss(-1)

    def test_error_grows_with_confidence_and_outputs(self, part: Mechanism) -> None:
        assert 0 <= part.error(confidence=0.5) <= part.error(confidence=0.99)
        assert part.error(confidence=0.9) <= part.error(confidence=0.9, outputs=10)
        with pytest.raises(BadParameter):
            part.error(confidence=1)

    def test_release_draws_on_the_receipt(self, part: Mechanism) -> None:
        receipt = paid(part)
        part.release(SecretValue(part.specimen), receipt=receipt)
        assert receipt.used == part.loss(1)
        with pytest.raises(NoReceipt):
            part.release(SecretValue(part.specimen), receipt=receipt)

    def test_receipt_must_cover_the_sensitivity(self, part: Mechanism) -> None:
        with pytest.raises(NoReceipt):
            part.release(SecretValue(part.specimen), receipt=paid(part), sensitivity=2)

    @pytest.mark.parametrize("not_one", [None, Permit("a look"), 1.0])
    def test_no_noise_without_a_receipt(self, part: Mechanism, not_one: Any) -> None:
        with pytest.raises(NoReceipt):
            part.release(SecretValue(part.specimen), receipt=not_one)

    def test_bare_values_are_refused_and_cost_nothing(self, part: Mechanism) -> None:
        receipt = paid(part)
        with pytest.raises(NoReceipt):
            part.release(part.specimen, receipt=receipt)
        assert receipt.used.size == 0

    def test_proof_and_reference_are_named(self, part: Mechanism) -> None:
        assert part.proof
        assert part.reference
        assert len(part.summary()) > 20

    def test_comes_back_from_plain_data(self, part: Mechanism) -> None:
        assert type(part).build(part.to_dict()) == part


def test_a_receipt_is_issued_by_a_ledger_only() -> None:
    with pytest.raises(NoReceipt):
        Receipt(pure(1), entry=1)


@pytest.mark.parametrize("stealing", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_receipt_cannot_be_copied(stealing: Any) -> None:
    with pytest.raises(NoReceipt):
        stealing(issue(pure(1), entry=1))


def test_a_receipt_adds_up_what_is_drawn() -> None:
    receipt = issue(concentrated("1/2"), entry=1)
    receipt.use(concentrated("1/4"))
    receipt.use(pure("1/2"))
    assert receipt.used == concentrated("3/8")
    with pytest.raises(NoReceipt):
        receipt.use(concentrated("1/4"))


def test_sealed_values_stay_sealed() -> None:
    with pytest.raises(SecretAccessRefused):
        str(SecretValue(4))
    assert issubclass(SecretAccessRefused, SfumatoError)
