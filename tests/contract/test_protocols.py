"""Contract of every registered protocol of local differential privacy."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.collecting import band_protocol, biased_bits, random_source, unary_encoding
from sfumato.collecting.estimates import Tally
from sfumato.collecting.frequencies import (
    count_mean_sketch,
    generalized_randomized_response,
    hadamard_count_mean_sketch,
    hadamard_response,
    optimized_local_hashing,
    subset_selection,
)
from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.collecting.local_protocol import self_tested
from sfumato.collecting.number_protocol import STEPS, NumberProtocol
from sfumato.collecting.numbers import duchi, hybrid
from sfumato.errors import BadParameter, NotComparable, SelfTestFailed
from sfumato.registry import registry
from sfumato.testing import check_frequency_protocol, check_number_protocol

FREQUENCIES = [
    pytest.param(cls.build(example), id=f"{cls.part_name()}-{number}")
    for cls in registry("frequency-protocol")
    for number, example in enumerate(cls.examples)
]
NUMBERS = [
    pytest.param(cls.build(example), id=f"{cls.part_name()}-{number}")
    for cls in registry("number-protocol")
    for number, example in enumerate(cls.examples)
]
SEEN = 8
"""Values that the tests of the whole report look at."""


class FixedSource:
    """The same bytes in every run, so that a run always gives the same verdict."""

    def __init__(self, seed: int = 11) -> None:
        self.take = np.random.Generator(np.random.PCG64(seed)).bytes


def small(protocol: FrequencyProtocol, values: int = 3, **changed: Any) -> FrequencyProtocol:
    fitting = {"size": 4, "hashes": 2} if "size" in type(protocol).model_fields else {}
    return type(protocol).build({**protocol.to_dict(), "values": values, **fitting, **changed})


@pytest.mark.parametrize("protocol", FREQUENCIES)
def test_contract_of_frequencies(protocol: FrequencyProtocol) -> None:
    check_frequency_protocol(protocol)


@pytest.mark.parametrize("protocol", NUMBERS)
def test_contract_of_numbers(protocol: NumberProtocol) -> None:
    check_number_protocol(protocol)


@pytest.mark.parametrize("protocol", FREQUENCIES)
def test_the_loss_is_epsilon_and_never_more(protocol: FrequencyProtocol) -> None:
    assert protocol.loss().size <= protocol.epsilon
    assert protocol.loss().size > protocol.epsilon * 0.999999


@pytest.mark.parametrize("protocol", FREQUENCIES)
def test_whole_reports_are_no_more_likely_for_one_value_than_claimed(protocol: FrequencyProtocol) -> None:
    """Black box: reports of two values, compared as bytes. A lower bound of the loss does not exceed the claim."""
    tried, source = small(protocol), FixedSource()
    first, second = (_keys(tried, tried.randomize(np.full(40_000, value), source=source)) for value in (0, 1))
    found = 0.0
    for key in set(first) | set(second):
        a, b = first.get(key, 0), second.get(key, 0)
        for hits, misses in ((a, b), (b, a)):
            low = stats.beta.ppf(1e-6, hits, 40_000 - hits + 1) if hits else 0.0
            high = stats.beta.isf(1e-6, misses + 1, 40_000 - misses)
            found = max(found, log(low / high) if low > 0 else 0.0)
    assert found <= float(tried.loss().size)
    assert found > 0.3 * float(tried.loss().size), "the test sees nothing"


def _keys(protocol: FrequencyProtocol, reports: np.ndarray) -> dict[bytes, int]:
    """Whole reports and their number; local hashing draws a new function each time, so only its match is kept."""
    if isinstance(protocol, optimized_local_hashing.OptimizedLocalHashing):
        reports = protocol.supported(reports).astype(np.uint8)
    rows, times = np.unique(reports, axis=0, return_counts=True)
    return {row.tobytes(): int(count) for row, count in zip(rows, times, strict=True)}


@pytest.mark.parametrize("protocol", FREQUENCIES)
def test_estimates_are_unbiased_and_intervals_cover(protocol: FrequencyProtocol) -> None:
    codes = np.minimum(np.random.default_rng(5).geometric(0.3, 4000) - 1, protocol.values - 1)
    true = np.bincount(codes, minlength=protocol.values)
    source = FixedSource()
    found = [protocol.estimate(protocol.tally(protocol.randomize(codes, source=source))) for _ in range(25)]
    covered = np.mean([(e.low <= true) & (true <= e.high) for e in found])
    assert covered > 0.85
    error = np.mean([e.counts - true for e in found], axis=0)
    spread = np.sqrt(protocol.variance(4000, 0.3) / 25)
    if not protocol.shared_hashes:
        assert np.abs(error).max() < 5.5 * spread
        square = np.mean([(e.counts - true) ** 2 for e in found])
        assert 0.55 < square / protocol.variance(4000, 1 / protocol.values) < 1.6


@pytest.mark.parametrize("protocol", FREQUENCIES)
def test_counting_is_the_sum_of_supports_and_parts_add_up(protocol: FrequencyProtocol) -> None:
    reports = protocol.randomize(np.arange(300) % protocol.values)
    whole = protocol.tally(reports)
    assert (whole.support == protocol.supported(reports).sum(axis=0)).all()
    parts = protocol.tally(reports[:100]) + protocol.tally(reports[100:])
    assert (parts.support == whole.support).all()
    again = Tally.from_dict(parts.to_dict())
    assert (protocol.estimate(again).counts == protocol.estimate(whole).counts).all()
    with pytest.raises(NotComparable):
        whole + small(protocol, epsilon="3/2").tally(small(protocol, epsilon="3/2").randomize([0]))


@pytest.mark.parametrize("protocol", FREQUENCIES)
def test_one_report_says_no_more_than_epsilon_to_bayes(protocol: FrequencyProtocol) -> None:
    tried = small(protocol)
    prior = [0.7, 0.2, 0.1]
    posterior = tried.posterior(tried.randomize(np.zeros(200, dtype=int)), prior)
    odds = posterior / posterior[:, :1] / (np.array(prior) / prior[0])
    assert np.abs(np.log(odds)).max() <= float(tried.loss().size) * (1 + 1e-9)


@pytest.mark.parametrize("protocol", FREQUENCIES)
def test_bad_input_is_refused_and_garbage_reports_are_counted_as_reports(protocol: FrequencyProtocol) -> None:
    for wrong in ([protocol.values], [-1], [0.5], [[0]]):
        with pytest.raises(BadParameter):
            protocol.randomize(wrong)
    with pytest.raises(BadParameter):
        protocol.tally(np.zeros((1, protocol.width + 1), dtype=np.uint8))
    garbage = np.full((3, protocol.width), 255, dtype=np.uint8)
    if protocol.shared_hashes:
        with pytest.raises(BadParameter):
            protocol.tally(garbage)
    else:
        assert protocol.tally(garbage).reports == 3
        assert protocol.tally(garbage).support.max(initial=0) <= 3


MODULES = (
    *(band_protocol, count_mean_sketch, duchi, generalized_randomized_response, hadamard_count_mean_sketch),
    *(hadamard_response, hybrid, optimized_local_hashing, subset_selection, unary_encoding),
)


@pytest.mark.parametrize("protocol", [*FREQUENCIES, *NUMBERS])
def test_a_randomizer_with_wrong_rates_refuses_to_run(protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    honest_chosen, honest_chances = random_source.chosen, random_source.chance_below

    def too_often(chance: int, count: int, source: Any) -> Any:
        return honest_chosen(chance + random_source.ONE // 12, count, source)

    for module in MODULES:
        if hasattr(module, "chosen"):
            monkeypatch.setattr(module, "chosen", too_often)
        if hasattr(module, "chance_below"):
            monkeypatch.setattr(
                module,
                "chance_below",
                lambda chances, source: honest_chances(chances + random_source.ONE // 12, source),
            )
    assert protocol.self_test() < 1e-9
    fresh = type(protocol).build({**protocol.to_dict(), "epsilon": "1.23456"})
    with pytest.raises(SelfTestFailed):
        fresh.randomize([0])


@pytest.mark.parametrize("protocol", [*FREQUENCIES, *NUMBERS])
def test_an_honest_randomizer_passes_its_own_test(protocol: Any) -> None:
    assert protocol.self_test() > 1e-9


def test_a_bit_that_is_never_cleared_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault of a known library: set bits stay set."""
    encoding = registry("frequency-protocol").get("symmetric-unary-encoding").build({"epsilon": 1, "values": 4})
    monkeypatch.setattr(unary_encoding, "chosen", lambda chance, count, source: np.ones(count, dtype=bool))
    self_tested.cache_clear()
    with pytest.raises(SelfTestFailed):
        encoding.randomize([0, 1])  # type: ignore[attr-defined]


@pytest.mark.parametrize("chance", [1, 5, 1 << 31, 1155092231, (1 << 32) - 1])
def test_biased_bits_have_their_probability(chance: int) -> None:
    rows = biased_bits.biased_rows(chance, 1000, 700, random_source.OS_ENTROPY)
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    assert not bits[:, 700:].any()
    assert stats.binomtest(int(bits.sum()), 700_000, chance / (1 << 32)).pvalue > 1e-9
    assert (biased_bits.column_sums(rows, 700) == bits[:, :700].sum(axis=0)).all()


@pytest.mark.parametrize("protocol", NUMBERS)
def test_numbers_are_unbiased_and_the_loss_is_kept(protocol: NumberProtocol) -> None:
    assert protocol.epsilon * 0.999 < protocol.loss().size <= protocol.epsilon
    span, source = float(protocol.high - protocol.low), FixedSource()
    for share in (0.0, 0.2, 1.0):
        number = float(protocol.low) + share * span
        found = protocol.mean(protocol.tally(protocol.randomize(np.full(40_000, number), source=source)))
        assert abs(found.mean - number) < 5.5 * (found.high - found.low) / 3.92
        assert found.high - found.low <= 3.92 * protocol.variance(40_000) ** 0.5 * 1.05
    with pytest.raises(BadParameter):
        protocol.randomize([float("nan")])
    with pytest.raises(BadParameter):
        protocol.tally(np.array([-7]))
    with pytest.raises(BadParameter):
        protocol.tally(np.array([1 << 30]))


@pytest.mark.parametrize("protocol", NUMBERS)
def test_reports_of_the_two_ends_differ_by_no_more_than_the_loss(protocol: NumberProtocol) -> None:
    low, high = (protocol._randomize(np.full(40_000, end), FixedSource()) for end in (0, STEPS))
    edges = np.quantile(np.concatenate([low, high]), [0.1, 0.3, 0.5, 0.7, 0.9])
    a, b = (np.bincount(np.searchsorted(edges, ends), minlength=6) for ends in (low, high))
    found = 0.0
    for hits, misses in (*zip(a, b, strict=True), *zip(b, a, strict=True)):
        lower = stats.beta.ppf(1e-6, hits, 40_000 - hits + 1) if hits else 0.0
        upper = stats.beta.isf(1e-6, misses + 1, 40_000 - misses)
        found = max(found, log(lower / upper) if lower > 0 else 0.0)
    assert 0.2 * float(protocol.loss().size) < found <= float(protocol.loss().size)
