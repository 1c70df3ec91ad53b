"""Ed25519 signatures (RFC 8032), so that a certificate shows who made it. A test compares them with another library.

Python's whole numbers take time that depends on their values: whoever can time single signatures on this machine might
learn about the key. The number of operations is the same for every key.
"""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]
"""(X, Y, Z, T) with x = X/Z, y = Y/Z and xy = T/Z."""
_ZERO: _Point = (0, 1, 1, 0)


@lru_cache(maxsize=16)
def public_key(seed: bytes) -> bytes:
    """The public key of a secret of 32 bytes."""
    return _encoded(_times_base(_secret(seed)[0]))


def sign(seed: bytes, message: bytes) -> bytes:
    """The signature of a message: 64 bytes, the same each time."""
    scalar, prefix = _secret(seed)
    once = _number(prefix, message) % _ORDER
    point, key = _encoded(_times_base(once)), public_key(seed)
    proof = (once + _number(point, key, message) * scalar) % _ORDER
    return point + proof.to_bytes(32, "little")


def signature_holds(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is that of the message by the owner of a public key."""
    if len(key) != 32 or len(signature) != 64:
        return False
    owner, point = _decoded(key), _decoded(signature[:32])
    proof = int.from_bytes(signature[32:], "little")
    if owner is None or point is None or proof >= _ORDER:
        return False
    challenge = _number(signature[:32], key, message) % _ORDER
    left, right = _times_base(proof), _added(point, _times(challenge, owner))
    return (left[0] * right[2] - right[0] * left[2]) % _P == 0 and (left[1] * right[2] - right[1] * left[2]) % _P == 0


def _secret(seed: bytes) -> tuple[int, bytes]:
    made = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(made[:32], "little") & ((1 << 254) - 8) | 1 << 254
    return scalar, made[32:]


def _number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def _added(one: _Point, other: _Point) -> _Point:
    """The sum of two points of the twisted Edwards curve; the formula is complete, so doubling is no special case."""
    a, b = (one[1] - one[0]) * (other[1] - other[0]), (one[1] + one[0]) * (other[1] + other[0])
    c, d = 2 * one[3] * other[3] * _D, 2 * one[2] * other[2]
    e, f, g, h = (b - a) % _P, (d - c) % _P, (d + c) % _P, (b + a) % _P
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: _Point) -> _Point:
    result = _ZERO
    for _ in range(256):
        result = _added(result, point if scalar & 1 else _ZERO)
        point, scalar = _added(point, point), scalar >> 1
    return result


@cache
def _powers() -> tuple[_Point, ...]:
    """The base point doubled 0 to 255 times."""
    y = 4 * pow(5, -1, _P) % _P
    point = _decoded(y.to_bytes(32, "little"))
    assert point is not None
    points = [point]
    for _ in range(255):
        points.append(_added(points[-1], points[-1]))
    return tuple(points)


def _times_base(scalar: int) -> _Point:
    result = _ZERO
    for place, point in enumerate(_powers()):
        result = _added(result, point if scalar >> place & 1 else _ZERO)
    return result


def _encoded(point: _Point) -> bytes:
    inverse = pow(point[2], -1, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _decoded(text: bytes) -> _Point | None:
    """The point of 32 bytes; None where there is none."""
    whole = int.from_bytes(text, "little")
    y, odd = whole & ((1 << 255) - 1), whole >> 255
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (x == 0 and odd):
        return None
    if x & 1 != odd:
        x = _P - x
    return x, y, 1, x * y % _P
