"""Secret values, random streams, exact numbers, parts and their registry."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import BadParameter, SecretAccessRefused, UnknownPart, catalogue
from sfumato.params import part_name
from sfumato.rationals import floor_share, rational
from sfumato.registry import KINDS, registry
from sfumato.rng import Rng
from sfumato.secret import Permit, SecretValue

LEAKS: dict[str, Callable[[Any], Any]] = {
    "str": str,
    "format": lambda s: f"{s}",
    "percent": lambda s: "%s" % s,  # noqa: UP031
    "bytes": bytes,
    "int": int,
    "float": float,
    "bool": bool,
    "hash": hash,
    "len": len,
    "iter": list,
    "equal": lambda s: s == 12345,
    "less": lambda s: s < 12345,
    "add": lambda s: s + 1,
    "radd": lambda s: 1 + s,
    "times": lambda s: s * 2,
    "round": round,
    "index": lambda s: [0, 1][s],
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS.keys())
def test_a_secret_value_does_not_leak(leak: Callable[[Any], Any]) -> None:
    with pytest.raises(SecretAccessRefused) as caught:
        leak(SecretValue(12345))
    assert "12345" not in str(caught.value)


def test_a_secret_value_shows_nothing_and_opens_with_a_permit_only() -> None:
    secret = SecretValue(12345)
    assert repr(secret) == "<SecretValue>"
    assert "12345" not in repr([secret])
    with pytest.raises(TypeError):
        json.dumps(secret)
    with pytest.raises(SecretAccessRefused):
        secret.open("please")  # type: ignore[arg-type]
    assert secret.open(Permit("a test")) == 12345


def test_streams_repeat_by_name_and_differ_between_names() -> None:
    def draw(rng: Rng) -> list[int]:
        return rng.generator.integers(1 << 60, size=4).tolist()

    assert draw(Rng(7).child("a", 1)) == draw(Rng(7).child("a").child("1"))
    assert draw(Rng(7).child("a")) != draw(Rng(7).child("b"))
    assert draw(Rng(7).child("a")) != draw(Rng(8).child("a"))
    assert draw(Rng()) != draw(Rng())


def test_a_stream_never_shows_its_seed() -> None:
    assert "918273" not in repr(Rng(918273).child("x"))


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_floor_share_is_exact(hundredths: int, total: int) -> None:
    share = hundredths / 10**6
    assert floor_share(share, total) == Fraction(hundredths, 10**6) * total // 1


@pytest.mark.parametrize("value", ["nan", "inf", "a", float("nan"), float("inf"), True])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(BadParameter):
        rational(value)


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_is_called_like_its_file(kind: str) -> None:
    for name in registry(kind).names():
        cls = registry(kind).get(name)
        assert cls.part_name() == name == part_name(cls.__name__.removesuffix(cls.suffix))


def test_unknown_parts_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownPart, match="Did you mean `remove`"):
        registry("method").get("remov")
    with pytest.raises(UnknownPart, match="Did you mean `method`"):
        registry("methods")


def test_parts_are_frozen_and_name_all_faults() -> None:
    k = registry("model").get("k-anonymity")
    part = k.build(5)
    with pytest.raises(ValueError, match="frozen"):
        part.k = 2  # type: ignore[attr-defined]
    with pytest.raises(BadParameter) as caught:
        k.build({"k": 0, "kk": 1})
    assert "kk" in str(caught.value)
    assert "greater than or equal" in str(caught.value)


def test_error_codes_are_unique_and_documented() -> None:
    kinds = list(catalogue())
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)
    assert all(kind.__doc__ for kind in kinds)
    assert all(kind.status in (1, 2, 3) for kind in kinds)
