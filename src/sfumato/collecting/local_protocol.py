"""What all protocols of local differential privacy share: the loss of one report, the design and the self-test."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from fractions import Fraction
from functools import cache
from typing import Annotated

from pydantic import BeforeValidator, Field

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.rational_bounds import ln_up
from sfumato.errors import BadParameter, SelfTestFailed
from sfumato.params import Part
from sfumato.rationals import rational

Epsilon = Annotated[Fraction, BeforeValidator(rational), Field(gt=0, le=20)]

BATCH = 1 << 14
"""Reports that are randomized or counted at once, less for large domains: bounds the memory."""

_FALSE_ALARM = 1e-9


class LocalProtocol(Part):
    """Base of protocols in which each person randomizes a report on their own device."""

    protection = "computation-driven"

    epsilon: Epsilon
    """Privacy loss of one report."""

    @abstractmethod
    def ratio(self) -> Fraction:
        """Largest exact likelihood ratio of a report between two values of one person."""

    @abstractmethod
    def self_test(self) -> float:
        """Smallest p-value of a test of the randomizer's rates."""

    def client_parameters(self) -> dict[str, int]:
        """Whole numbers that the client for web pages needs, chances in units of 2**-32; refused if it has none."""
        raise BadParameter(f"The client for web pages has no `{self.part_name()}`.", fix="Name another `protocol`.")

    def loss(self) -> PrivacyLoss:
        """Privacy loss of one report under local differential privacy: any two values of one person."""
        return pure(ln_up(self.ratio()))

    def design(self) -> str:
        """Identifies protocol and parameters, without showing them."""
        text = json.dumps([self.part_name(), self.to_dict()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def self_tested(protocol: LocalProtocol) -> None:
    """Test a randomizer once in this process, and refuse to run it if its rates are off."""
    if protocol.self_test() < _FALSE_ALARM:
        raise SelfTestFailed(
            f"The randomizer {protocol.part_name()} failed its self-test: its reports do not have the stated "
            "probabilities. No answer was randomized.",
            fix="Check the installation and the source of random numbers of this device.",
        )
