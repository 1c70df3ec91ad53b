"""Contracts of the protocols of local differential privacy, for lists of values and for numbers."""

from __future__ import annotations

import numpy as np

from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.collecting.number_protocol import NumberProtocol
from sfumato.testing.parts import run_checks

_RARE = 1e-9
_DEVIATIONS = 6.5


def check_frequency_protocol(protocol: FrequencyProtocol) -> None:
    """Raise AssertionError unless the loss is at most epsilon, the rates are the stated ones and the estimates fit."""
    run_checks(protocol, FREQUENCY_PROTOCOL_CHECKS)


def check_number_protocol(protocol: NumberProtocol) -> None:
    """Raise AssertionError unless the loss is at most epsilon, the rates are the stated ones and the mean fits."""
    run_checks(protocol, NUMBER_PROTOCOL_CHECKS)


def loss_is_at_most_epsilon(protocol: FrequencyProtocol | NumberProtocol) -> None:
    assert protocol.loss().size <= protocol.epsilon, "the loss exceeds `epsilon`"


def rates_are_the_stated_ones(protocol: FrequencyProtocol | NumberProtocol) -> None:
    assert protocol.self_test() > _RARE, "the reports do not have the stated probabilities"


def counting_is_the_sum_of_supports(protocol: FrequencyProtocol) -> None:
    reports = protocol.randomize(np.arange(200) % protocol.values)
    assert reports.shape == (200, protocol.width), "a report does not have `width` bytes"
    counted = protocol.tally(reports).support
    assert (counted == protocol.supported(reports).sum(axis=0)).all(), "`tally` does not count what `supported` says"


def counts_are_unbiased(protocol: FrequencyProtocol) -> None:
    codes = np.repeat([0, 1], [1500, 500])
    counts = protocol.estimate(protocol.tally(protocol.randomize(codes))).counts
    extra = np.asarray(protocol.collision_variance(np.array([1500.0, 500.0, *[0.0] * (protocol.values - 2)])))
    p, q = (float(chance) for chance in protocol.probabilities())
    spread = np.sqrt(protocol.variance(2000, 0.75) + extra.max() / (p - q) ** 2)
    assert np.abs(counts[:2] - [1500, 500]).max() < _DEVIATIONS * spread, "the estimated counts are biased"


def means_are_unbiased(protocol: NumberProtocol) -> None:
    numbers = np.linspace(float(protocol.low), float(protocol.high), 4000)
    found = protocol.mean(protocol.tally(protocol.randomize(numbers)))
    spread = (found.high - found.low) / 3.92
    assert abs(found.mean - numbers.mean()) < _DEVIATIONS * spread, "the estimated mean is biased"


FREQUENCY_PROTOCOL_CHECKS = (
    loss_is_at_most_epsilon,
    rates_are_the_stated_ones,
    counting_is_the_sum_of_supports,
    counts_are_unbiased,
)
NUMBER_PROTOCOL_CHECKS = (loss_is_at_most_epsilon, rates_are_the_stated_ones, means_are_unbiased)
