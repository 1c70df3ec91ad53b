"""What every registered mechanism promises."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.dp.loss import PrivacyLoss, concentrated, pure
from sfumato.dp.mechanism import ContributionBounds, Mechanism
from sfumato.dp.receipt import Receipt, issue
from sfumato.errors import BadParameter, NoReceipt, SecretAccessRefused, SfumatoError
from sfumato.registry import registry
from sfumato.secret import Permit, SecretValue

KINDS = [kind for kind in registry("mechanism") if issubclass(kind, Mechanism)]
PARTS = [kind.build(example) for kind in KINDS for example in kind.examples]


def paid(part: Mechanism, times: int = 1) -> Receipt:
    return issue(part.loss(1).times(times), entry=1)


def one_group(part: Mechanism) -> tuple[ContributionBounds, Fraction]:
    """Contribution bounds and the sensitivity that they imply; a mechanism that selects keys fixes its own."""
    groups, change, parts = (getattr(part, name, 1) for name in ("keys", "reach", "parts"))
    return ContributionBounds(groups=groups, change=Fraction(change), parts=parts), Fraction(groups * change)


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

    def test_both_computations_of_the_loss_agree(self, part: Mechanism) -> None:
        bounds, sensitivity = one_group(part)
        assert part.loss_from_bounds(bounds) == part.loss(sensitivity)

    def test_the_second_loss_does_not_come_from_the_first(self, part: Mechanism, monkeypatch: Any) -> None:
        bounds, sensitivity = one_group(part)
        stated = part.loss(sensitivity)

        def unavailable(self: Mechanism, sensitivity: Any = 1) -> PrivacyLoss:
            raise AssertionError("the first computation of the loss was used")

        for cls in (kind for kind in KINDS if hasattr(kind, "loss")):
            monkeypatch.setattr(cls, "loss", unavailable)
            monkeypatch.setattr(cls, "loss_at", unavailable)
        assert part.loss_from_bounds(bounds) == stated

    def test_more_groups_and_larger_changes_lose_more(self, part: Mechanism) -> None:
        bounds, _ = one_group(part)
        once = part.loss_from_bounds(bounds).size
        wider = ContributionBounds(groups=2 * bounds.groups, change=bounds.change, parts=bounds.parts)
        assert part.loss_from_bounds(wider).size > once
        farther = ContributionBounds(groups=bounds.groups, change=2 * bounds.change, parts=bounds.parts)
        try:
            assert part.loss_from_bounds(farther).size > once
        except BadParameter:  # each unit counts once per key, whatever it contributes
            assert part.key_threshold("0.5") is not None

    def test_loss_at_a_distance_is_what_release_charges(self, part: Mechanism) -> None:
        receipt = issue(part.loss_at(1), entry=1)
        part.release_at(SecretValue(part.specimen), receipt=receipt, distance=1)
        assert receipt.used == part.loss_at(1)

    def test_noise_model_is_that_of_the_release(self, part: Mechanism) -> None:
        part.check_drawable()
        if part.noise is None:
            assert part.mean_square is None
            return
        assert (part.noise.scale > 0) != (part.noise.variance > 0)
        zeros = np.zeros(40_000, dtype=np.int64)
        if part.key_threshold("0.5") is not None:  # far above the limit, so that nothing is withheld
            zeros = zeros + 10**6
        noisy = part.release(SecretValue(zeros), receipt=paid(part))
        errors = np.asarray(noisy, dtype=np.float64) - zeros * float(part.noise.grid)
        assert part.mean_square is not None
        assert np.mean(errors**2) == pytest.approx(part.mean_square, rel=0.15)
        assert np.allclose(errors / float(part.noise.grid), np.rint(errors / float(part.noise.grid)), atol=1e-6)
        assert np.mean(np.abs(errors) > part.error(confidence="0.9")) < 0.11

    def test_key_threshold_is_none_or_grows_with_confidence(self, part: Mechanism) -> None:
        half, most = part.key_threshold("0.5"), part.key_threshold("0.95")
        assert (half is None) == (most is None)
        assert half is None or most is None or 0 < half < most

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
