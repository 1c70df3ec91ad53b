"""Contract of a differential-privacy mechanism: loss, error bound, receipts and secret inputs."""

from __future__ import annotations

import types
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.dp.loss import PrivacyLoss
from sfumato.dp.mechanism import ContributionBounds, Mechanism
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter, NoReceipt
from sfumato.ledger.charge import Charge, charge_run
from sfumato.secret import Permit, SecretValue
from sfumato.testing.parts import expect, run_checks


def check_mechanism(mechanism: Mechanism) -> None:
    """Raise AssertionError unless ``mechanism`` keeps the contract of a mechanism.

    The loss grows with the sensitivity; the error bound grows with confidence and number of outputs; a release draws
    its loss from a receipt and refuses anything that is not one; bare values are refused and cost nothing; the loss
    computed from contribution bounds agrees with the stated one and does not use it; the stated noise model has the
    mean square error of real releases. The check does not test the distribution of the noise.
    """
    run_checks(mechanism, MECHANISM_CHECKS)


def _receipt(mechanism: Mechanism) -> Receipt:
    return _charged(mechanism.loss(1))


def _charged(loss: PrivacyLoss) -> Receipt:
    run = Charge.of_run(loss, unit="row", name="check of a mechanism", public={})
    return charge_run(run, ledger=None, dataset=None)


def loss_grows_with_sensitivity(mechanism: Mechanism) -> None:
    """The loss is positive, strictly larger for a larger sensitivity, and zero for sensitivity zero."""
    assert mechanism.loss(1).size > 0, "the loss at sensitivity 1 is zero"
    assert mechanism.loss(1) <= mechanism.loss(2), "the loss falls with the sensitivity"
    assert not mechanism.loss(2) <= mechanism.loss(1), "the loss does not depend on the sensitivity"
    assert mechanism.loss(0).size == 0, "a sensitivity of 0 costs something"


def negative_sensitivity_is_refused(mechanism: Mechanism) -> None:
    with expect(BadParameter, "a negative sensitivity is accepted"):
        mechanism.loss(-1)


def error_grows_with_confidence_and_outputs(mechanism: Mechanism) -> None:
    assert 0 <= mechanism.error(confidence=0.5) <= mechanism.error(confidence=0.99), "error falls with confidence"
    several = mechanism.error(confidence=0.9, outputs=10)
    assert mechanism.error(confidence=0.9) <= several, "the error bound of ten outputs is below that of one"
    with expect(BadParameter, "a confidence of 1 is accepted"):
        mechanism.error(confidence=1)


def release_draws_on_the_receipt(mechanism: Mechanism) -> None:
    receipt = _receipt(mechanism)
    mechanism.release(SecretValue(mechanism.specimen), receipt=receipt)
    assert receipt.used == mechanism.loss(1), "a release draws another loss than the mechanism states"
    with expect(NoReceipt, "a receipt can be used twice"):
        mechanism.release(SecretValue(mechanism.specimen), receipt=receipt)


def receipt_must_cover_the_sensitivity(mechanism: Mechanism) -> None:
    with expect(NoReceipt, "a receipt for sensitivity 1 pays for sensitivity 2"):
        mechanism.release(SecretValue(mechanism.specimen), receipt=_receipt(mechanism), sensitivity=2)


def no_noise_without_a_receipt(mechanism: Mechanism) -> None:
    others: tuple[Any, ...] = (None, Permit("a look"), 1.0)
    for other in others:
        with expect(NoReceipt, f"{type(other).__name__} is accepted as a receipt"):
            mechanism.release(SecretValue(mechanism.specimen), receipt=other)


def bare_values_are_refused_and_cost_nothing(mechanism: Mechanism) -> None:
    receipt = _receipt(mechanism)
    with expect(NoReceipt, "a value that is not a SecretValue is accepted"):
        mechanism.release(mechanism.specimen, receipt=receipt)
    assert receipt.used.size == 0, "a refused release used the receipt"


def contribution_bounds(mechanism: Mechanism) -> tuple[ContributionBounds, Fraction]:
    """Contribution bounds and the sensitivity that they imply; a mechanism that selects keys fixes its own."""
    groups, change, parts = (getattr(mechanism, name, 1) for name in ("keys", "max_contribution", "parts"))
    return ContributionBounds(groups=groups, change=Fraction(change), parts=parts), Fraction(groups * change)


def both_computations_of_the_loss_agree(mechanism: Mechanism) -> None:
    bounds, sensitivity = contribution_bounds(mechanism)
    assert mechanism.loss_from_bounds(bounds) == mechanism.loss(sensitivity), "`loss_from_bounds` differs from `loss`"


def second_loss_does_not_come_from_the_first(mechanism: Mechanism) -> None:
    """The same mechanism without ``loss`` and ``loss_at`` computes the same loss from bounds."""

    def unavailable(self: Mechanism, sensitivity: object = 1) -> PrivacyLoss:
        raise AssertionError("`loss_from_bounds` uses `loss`, so it is no second computation")

    bounds, _ = contribution_bounds(mechanism)
    kind = type(mechanism)
    members = {"loss": unavailable, "loss_at": unavailable, "__doc__": kind.__doc__, "__module__": kind.__module__}
    without: type[Mechanism] = types.new_class(kind.__name__, (kind,), {}, lambda namespace: namespace.update(members))
    again = without.model_validate(mechanism.model_dump())
    assert again.loss_from_bounds(bounds) == mechanism.loss_from_bounds(bounds), "the second loss is not repeatable"


def more_groups_and_larger_changes_lose_more(mechanism: Mechanism) -> None:
    bounds, _ = contribution_bounds(mechanism)
    once = mechanism.loss_from_bounds(bounds).size
    wider = ContributionBounds(groups=2 * bounds.groups, change=bounds.change, parts=bounds.parts)
    assert mechanism.loss_from_bounds(wider).size > once, "twice as many groups cost no more"
    farther = ContributionBounds(groups=bounds.groups, change=2 * bounds.change, parts=bounds.parts)
    try:
        assert mechanism.loss_from_bounds(farther).size > once, "twice the change costs no more"
    except BadParameter:  # each unit counts once per key, whatever it contributes
        assert mechanism.key_threshold("0.5") is not None, "a larger change is refused without a key threshold"


def loss_at_a_distance_is_what_release_charges(mechanism: Mechanism) -> None:
    receipt = _charged(mechanism.loss_at(1))
    mechanism.release_at(SecretValue(mechanism.specimen), receipt=receipt, distance=1)
    assert receipt.used == mechanism.loss_at(1), "`release_at` draws another loss than `loss_at` states"


def noise_model_is_that_of_the_release(mechanism: Mechanism) -> None:
    mechanism.check_drawable()
    if mechanism.noise is None:
        assert mechanism.mean_square is None, "`mean_square` is stated without a noise model"
        return
    assert (mechanism.noise.scale > 0) != (mechanism.noise.variance > 0), "state a scale or a variance, not both"
    zeros = np.zeros(40_000, dtype=np.int64)
    if mechanism.key_threshold("0.5") is not None:  # far above the limit, so that nothing is withheld
        zeros = zeros + 10**6
    noisy = mechanism.release(SecretValue(zeros), receipt=_receipt(mechanism))
    grid = float(mechanism.noise.grid)
    errors = np.asarray(noisy, dtype=np.float64) - zeros * grid
    assert mechanism.mean_square is not None, "there is a noise model but no `mean_square`"
    observed = float(np.mean(errors**2))
    assert abs(observed - mechanism.mean_square) <= 0.15 * mechanism.mean_square, "releases have another mean square"
    assert np.allclose(errors / grid, np.rint(errors / grid), atol=1e-6), "noise is not a multiple of the grid"
    assert np.mean(np.abs(errors) > mechanism.error(confidence="0.9")) < 0.11, "`error` is exceeded too often"


def key_threshold_is_none_or_grows_with_confidence(mechanism: Mechanism) -> None:
    half, most = mechanism.key_threshold("0.5"), mechanism.key_threshold("0.95")
    assert (half is None) == (most is None), "`key_threshold` depends on the confidence"
    assert half is None or most is None or 0 < half < most, "`key_threshold` does not grow with the confidence"


def proof_and_reference_are_named(mechanism: Mechanism) -> None:
    assert mechanism.proof, "`proof` does not name the theorem that the loss rests on"
    assert mechanism.reference, "`reference` is empty"
    assert len(mechanism.summary()) > 20, "the docstring has no first sentence"


MECHANISM_CHECKS = (
    loss_grows_with_sensitivity,
    negative_sensitivity_is_refused,
    error_grows_with_confidence_and_outputs,
    release_draws_on_the_receipt,
    receipt_must_cover_the_sensitivity,
    no_noise_without_a_receipt,
    bare_values_are_refused_and_cost_nothing,
    both_computations_of_the_loss_agree,
    second_loss_does_not_come_from_the_first,
    more_groups_and_larger_changes_lose_more,
    loss_at_a_distance_is_what_release_charges,
    noise_model_is_that_of_the_release,
    key_threshold_is_none_or_grows_with_confidence,
    proof_and_reference_are_named,
)
