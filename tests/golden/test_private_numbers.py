"""Numbers of the literature on differential privacy, reproduced."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import exp, log, sqrt

import numpy as np
import pytest

from sfumato.dp.loss import advanced, approximate, concentrated, pure
from sfumato.dp.mechanisms.exponential import Exponential
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.partition_selection import PartitionSelection
from sfumato.dp.mechanisms.randomized_response import RandomizedResponse
from sfumato.dp.mechanisms.report_noisy_max import ReportNoisyMax
from sfumato.dp.mechanisms.sparse_vector import SparseVector


def test_laplace_error_of_a_count() -> None:
    """|error| <= (sensitivity/epsilon)·ln(k/beta): epsilon 0.01, one count, 99 % gives 460.5.

    That is the bound of the continuous distribution. On whole numbers 460 is exceeded in more than 1 % of the draws and
    461 in less, so 461 is stated.
    """
    assert 100 * log(100) == pytest.approx(460.517, abs=1e-3)
    assert Laplace.for_epsilon("0.01").error(confidence="0.99") == 461
    q = exp(-0.01)
    assert 2 * q**462 / (1 + q) <= 0.01 < 2 * q**461 / (1 + q)
    assert Laplace.for_epsilon(1).error(confidence="0.95", outputs=10) == pytest.approx(log(10 / 0.05))
    assert Laplace.for_epsilon(1).error(confidence="0.95") == 3 > log(20)  # 92.7 % of the draws are within 2
    fine = Laplace.for_epsilon(1, grid="1/1024").error(confidence="0.95", outputs=10)
    assert fine == pytest.approx(log(10 / 0.05), abs=1 / 1024)


def test_two_coins_cost_ln_three() -> None:
    """Dwork and Roth 2014, Claim 3.5."""
    loss = RandomizedResponse(categories=2, honest="1/2").loss()
    assert float(loss.size) == pytest.approx(log(3), rel=1e-12)
    assert loss.size >= Fraction(log(3)) - Fraction(1, 10**15)


@pytest.mark.parametrize("categories", [2, 3, 10])
def test_k_ary_response_keeps_its_epsilon(categories: int) -> None:
    response = RandomizedResponse.for_epsilon(1, categories=categories)
    keep = float(response.honest + (1 - response.honest) / categories)
    assert keep == pytest.approx(exp(1) / (exp(1) + categories - 1), rel=1e-12)
    assert response.loss().size <= 1


def test_discrete_gaussian_is_concentrated_like_the_continuous() -> None:
    """Canonne, Kamath, Steinke 2020, Theorem 4: rho = 1 / (2·sigma²)."""
    assert Gaussian(variance=50).loss(1) == concentrated("1/100")


def test_concentrated_to_approximate() -> None:
    """Bun and Steinke 2016, Proposition 1.3 gives rho + 2·sqrt(rho·ln(1/delta)); the sharper bound lies below."""
    sharp = float(concentrated("1/2").at("1e-6").size)
    assert sharp < 0.5 + 2 * sqrt(0.5 * log(1e6)) == pytest.approx(5.7565, abs=1e-4)
    assert sharp == pytest.approx(5.2215, abs=1e-3)


def test_advanced_composition() -> None:
    """Kairouz, Oh, Viswanath 2017, Theorem 3.5 for 1,000 answers of 0.01 at delta 1e-6."""
    found = advanced([pure("0.01")] * 1000, "1e-6")
    drift = 1000 * 0.01 * (exp(0.01) - 1) / (exp(0.01) + 1)
    assert float(found.size) == pytest.approx(drift + sqrt(2 * log(1e6) * 0.1), rel=1e-9)


def test_exponential_costs_half_for_monotone_utilities() -> None:
    assert Exponential(rate="1/2").loss(1) == pure(1)
    assert Exponential(rate="1/2", monotone=True).loss(1) == pure("1/2")
    assert ReportNoisyMax(scale=2).loss(1) == pure(1)
    assert ReportNoisyMax(scale=2, monotone=True).loss(1) == pure("1/2")
    assert ReportNoisyMax(scale=2, monotone=True, count_scale=4).loss(1) == pure("3/4")


def test_sparse_vector_pays_per_yes() -> None:
    """Lyu, Su, Li 2017: epsilon_1 + epsilon_2 with scales 1/epsilon_1 and 2c/epsilon_2."""
    assert SparseVector(threshold=0, stop=5, threshold_scale=2, query_scale=20).loss(1) == pure(1)
    assert SparseVector(threshold=0, stop=5, threshold_scale=2, query_scale=10, monotone=True).loss(1) == pure(1)


def test_optimal_partition_selection_follows_its_closed_form() -> None:
    """Desfontaines et al. 2022, Theorem 1: the first phase is delta·(e^(n·eps) - 1)/(e^eps - 1)."""
    selection = PartitionSelection(epsilon=1, delta="1e-5")
    chances = selection.chances() / 2**62
    for units in range(8):
        closed = 1e-5 * (exp(units) - 1) / (exp(1) - 1)
        assert chances[units] == pytest.approx(closed, rel=1e-9, abs=1e-15)
    assert chances[-1] == 1.0
    assert (np.diff(chances) >= 0).all()
    grown = exp(1)
    for low, high in pairwise(chances):
        assert high <= grown * low + 1e-5 + 1e-15
        assert 1 - low <= grown * (1 - high) + 1e-5 + 1e-15


def test_a_key_of_one_person_is_named_with_chance_delta() -> None:
    assert PartitionSelection(epsilon=1, delta="1e-5").chances()[1] / 2**62 == pytest.approx(1e-5, rel=1e-12)
    assert PartitionSelection(epsilon=1, delta="1e-5").loss(2) == approximate(2, "2e-5")
