"""`sfumato verify --self`: a sound installation holds, and each check notices what it is there for."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from sfumato.cli import main
from sfumato.dp import sampler
from sfumato.dp.mechanisms import laplace
from sfumato.proof import Verification
from sfumato.testing import installation
from sfumato.testing.installation import (
    INSTALLATION_CHECKS,
    check_audit,
    check_certificates,
    check_installation,
    check_mechanisms,
    check_samplers,
)


def test_this_installation_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--self", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["holds"]
    assert len(found["parts"]) == len(INSTALLATION_CHECKS)
    assert all(part["holds"] and part["cases"] > 0 and part["what"] for part in found["parts"])


def _with_noise(times: Fraction) -> Callable[[Fraction, int], Any]:
    return lambda scale, count: sampler.discrete_laplace(scale * times, count)


@pytest.mark.parametrize(
    ("check", "times", "words"),
    [(check_samplers, Fraction(19, 20), "from its distribution"), (check_audit, Fraction(1, 2), "the audit shows"),
     (check_audit, Fraction(4), "would notice nothing"), (check_mechanisms, Fraction(4, 5), "mean square")],
)  # fmt: skip
def test_other_noise_is_noticed(
    check: Callable[[], tuple[int, str]], times: Fraction, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laplace, "discrete_laplace", _with_noise(times))
    [part] = check_installation([check]).parts
    assert not part.holds
    assert words in part.found


def test_a_checker_that_accepts_everything_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "verify_certificate", lambda *_: Verification(holds=True))
    [part] = check_installation([check_certificates]).parts
    assert not part.holds
    assert "a smaller loss is accepted" in part.found


def test_a_check_that_fails_does_not_end_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_one() -> tuple[int, str]:
        """The first."""
        raise ValueError("broken")

    def check_other() -> tuple[int, str]:
        """The second, which tried nothing."""
        return 0, "nothing"

    monkeypatch.setattr(installation, "INSTALLATION_CHECKS", (check_one, check_other))
    assert main(["verify", "--self"]) == 1
    shown = capsys.readouterr().out
    assert "FAILS  one: The first." in shown
    assert "ValueError: broken" in shown
    assert "2 of 2 checks fail." in shown
    assert not check_installation([]).holds


def test_a_certificate_or_self() -> None:
    assert main(["verify"]) == 2
    assert main(["verify", "--self", "certificate.json"]) == 2
