"""The proof checker imports nothing else of sfumato, is short, and every rule has its theorem on the page."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from sfumato.dp.analytic_gaussian import normal_delta, squared_of_pure
from sfumato.dp.rational_bounds import exp_bracket, ln_bracket
from sfumato.dp.zcdp import epsilon_at
from sfumato.proof import brackets, rules
from sfumato.proof.losses import concentrated_within, normal_within, pure_within
from sfumato.proof.signature import public_key, sign, signature_holds

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "sfumato" / "proof").glob("*.py"))


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return names | {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_it_imports_itself_and_the_standard_library(path: Path) -> None:
    for name in imported(path):
        assert name.startswith("sfumato.proof") or name.split(".")[0] in sys.stdlib_module_names, name


def test_it_can_be_read_in_an_afternoon() -> None:
    assert len(SOURCES) >= 4
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES) < 1500


def test_every_rule_is_a_theorem_on_the_page() -> None:
    page = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")
    stated = set(re.findall(r"^### ([RSMBCHPGA]\d+)\.", page, re.MULTILINE))
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    tables = (rules.NODES, rules.REACHES, rules.MECHANISMS, rules.RUNS)
    used = {entry[0] for table in tables for entry in table.values()}  # type: ignore[attr-defined]
    assert used <= stated
    assert stated == set(re.findall(r"\b([RSMBCHPGA]\d+)\b", code))


RATIONALS = st.fractions(min_value=-60, max_value=60, max_denominator=10**6)


@given(RATIONALS)
def test_brackets_agree_with_correctly_rounded_decimals(x: Fraction) -> None:
    low, high = brackets.exp(x)
    least, most = exp_bracket(x, 60)
    assert low < high
    assert low <= most
    assert least <= high
    if x > 0:
        low, high = brackets.ln(x)
        least, most = ln_bracket(x, 60)
        assert low <= most
        assert least <= high
        low, high = brackets.sqrt(x)
        assert low**2 <= x < high**2


@given(st.fractions(min_value="1/20", max_value=20, max_denominator=1000), st.integers(3, 12))
def test_conversions_agree_with_those_of_the_planner(size: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    proved = epsilon_at(size, delta)
    assert concentrated_within(size, proved, delta)
    assert not concentrated_within(size, proved * Fraction(97, 100), delta)
    assert normal_within(size, Fraction(1), normal_delta(size, Fraction(1)) + Fraction(1, 10**50))
    assert not normal_within(size, Fraction(1), normal_delta(size, Fraction(1)) * Fraction(97, 100))
    squared = squared_of_pure(size)
    assert squared is not None
    assert pure_within(size, squared)
    assert not pure_within(size, squared * Fraction(97, 100))


def test_signatures_are_those_of_another_library() -> None:
    """Also of RFC 8032, section 7.1, test 1; a changed bit anywhere is refused."""
    vector = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    assert public_key(vector).hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    for size in range(12):
        seed, message = hashlib.sha256(bytes([size])).digest(), bytes(range(size * 9))
        own, key, signature = Ed25519PrivateKey.from_private_bytes(seed), public_key(seed), sign(seed, message)
        assert own.sign(message) == signature
        assert own.public_key().public_bytes_raw() == key
        assert signature_holds(key, message, signature)
        for place in range(0, 64, 7):
            changed = bytes(byte ^ (place == at) for at, byte in enumerate(signature))
            assert not signature_holds(key, message, changed)
        assert not signature_holds(key, message + b"x", signature)
        assert not signature_holds(public_key(message.ljust(32)[:32]), message, signature)
    assert not signature_holds(key, b"", bytes(64))
    order = 2**252 + 27742317777372353535851937790883648493
    later = signature[:32] + (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")
    assert not signature_holds(key, message, later)  # a second form of the same signature
