"""PostgreSQL types of results and parameters: object identifiers, and values as text and in binary."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from sfumato.dataset import Kind

_EPOCH = date(2000, 1, 1)
_MOMENT = datetime(2000, 1, 1)


class BadValue(Exception):
    """A parameter is not a value of its type."""


@dataclass(frozen=True, kw_only=True)
class PostgresType:
    """A type with its identifier in every PostgreSQL server."""

    name: str
    oid: int
    size: int
    array: int
    """Identifier of the type of its arrays."""
    element: PostgresType | None = None


def _types() -> dict[str, PostgresType]:
    rows = (
        ("bool", 16, 1, 1000), ("char", 18, 1, 1002), ("name", 19, 64, 1003), ("int8", 20, 8, 1016),
        ("int2", 21, 2, 1005), ("int4", 23, 4, 1007), ("text", 25, -1, 1009), ("oid", 26, 4, 1028),
        ("json", 114, -1, 199), ("float4", 700, 4, 1021), ("float8", 701, 8, 1022), ("unknown", 705, -2, 0),
        ("bpchar", 1042, -1, 1014), ("varchar", 1043, -1, 1015), ("date", 1082, 4, 1182), ("time", 1083, 8, 1183),
        ("timestamp", 1114, 8, 1115), ("timestamptz", 1184, 8, 1185), ("numeric", 1700, -1, 1231),
        ("uuid", 2950, 16, 2951),
    )  # fmt: skip
    found = {name: PostgresType(name=name, oid=oid, size=size, array=array) for name, oid, size, array in rows}
    arrays = {
        f"_{one.name}": PostgresType(name=f"_{one.name}", oid=one.array, size=-1, array=0, element=one)
        for one in found.values()
        if one.array
    }
    return found | arrays


BY_NAME = _types()
BY_OID = {one.oid: one for one in BY_NAME.values()}
TEXT = BY_NAME["text"]
KIND_TYPES = {
    Kind.INTEGER: BY_NAME["int8"], Kind.NUMBER: BY_NAME["float8"], Kind.CATEGORY: TEXT, Kind.DATE: BY_NAME["date"],
    Kind.DATETIME: BY_NAME["timestamp"], Kind.BOOLEAN: BY_NAME["bool"],
}  # fmt: skip
"""Type of a declared column."""


def array_of(element: PostgresType) -> PostgresType:
    """The type of arrays of a type; of text where PostgreSQL has none."""
    return BY_NAME.get(f"_{element.name}", BY_NAME["_text"])


def encode(value: object, kind: PostgresType, *, binary: bool) -> bytes | None:
    """A value of a result in the format that the client asked for; None for NULL.

    >>> encode(2.0, BY_NAME["float8"], binary=False), encode(True, BY_NAME["bool"], binary=False)
    (b'2', b't')
    """
    if value is None:
        return None
    fitted = _fitted(value, kind)
    if fitted is None:
        return None
    return _binary(fitted, kind) if binary else _text(fitted, kind).encode("utf-8", "replace")


_WHOLE = {"int2": 16, "int4": 32, "int8": 64, "oid": 33}


def _fitted(value: Any, kind: PostgresType) -> Any:
    """The value as the type of its column has it. Counts that a mechanism did not round are rounded."""
    if kind.name in _WHOLE:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        whole = round(value)
        most = 1 << (_WHOLE[kind.name] - 1)
        return max(-most, min(most - 1, whole))
    if kind.name in ("float4", "float8"):
        return float(value)
    if kind.name == "bool":
        return bool(value)
    if kind.name == "timestamp" and type(value) is date:
        return datetime(value.year, value.month, value.day)
    return value


def _text(value: Any, kind: PostgresType) -> str:
    if kind.element is not None:
        return "{" + ",".join(_element(item, kind.element) for item in value) + "}"
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            return _float_text(value)
        case datetime():
            return value.isoformat(sep=" ") + ("+00" if kind.name == "timestamptz" and value.tzinfo is None else "")
        case dict() | list():
            return json.dumps(value)
        case _:
            return str(value)


def _element(item: object, kind: PostgresType) -> str:
    if item is None:
        return "NULL"
    text = _text(_fitted(item, kind), kind)
    plain = text and text.upper() != "NULL" and not any(mark in text for mark in '{}",\\ \t\n')
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


_PACKED: dict[str, struct.Struct] = {
    "int2": struct.Struct("!h"), "int4": struct.Struct("!i"), "int8": struct.Struct("!q"), "oid": struct.Struct("!I"),
    "float4": struct.Struct("!f"), "float8": struct.Struct("!d"), "bool": struct.Struct("!?"),
}  # fmt: skip


def _binary(value: Any, kind: PostgresType) -> bytes:
    packed = _PACKED.get(kind.name)
    if packed is not None:
        return packed.pack(value)
    if kind.element is not None:
        items = [encode(item, kind.element, binary=True) for item in value]
        head = struct.pack("!iiI", 1 if items else 0, int(None in items), kind.element.oid)
        body = b"".join(b"\xff\xff\xff\xff" if item is None else struct.pack("!i", len(item)) + item for item in items)
        return head + (struct.pack("!ii", len(items), 1) + body if items else b"")
    match kind.name:
        case "date":
            return struct.pack("!i", (value - _EPOCH).days)
        case "timestamp" | "timestamptz":
            moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return struct.pack("!q", (moment - _MOMENT) // timedelta(microseconds=1))
        case "numeric":
            return _numeric_binary(Decimal(str(value)))
        case "time":
            clock = value if isinstance(value, time) else time.fromisoformat(value)
            return struct.pack("!q", (datetime.combine(_EPOCH, clock) - _MOMENT) // timedelta(microseconds=1))
        case "uuid":
            return UUID(str(value)).bytes
        case "text" | "varchar" | "bpchar" | "name" | "char" | "unknown" | "json":
            return _text(value, kind).encode("utf-8", "replace")
        case _:
            raise AssertionError("no binary form of this type")


def _numeric_binary(value: Decimal) -> bytes:
    """Base 10,000 digits, weight of the first, sign and scale."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    whole = int("".join(map(str, digits))) * 10 ** max(0, exponent)
    fill = -scale % 4
    whole *= 10**fill
    groups: list[int] = []
    while whole:
        whole, group = divmod(whole, 10_000)
        groups.insert(0, group)
    weight = len(groups) - (scale + fill) // 4 - 1
    return struct.pack(f"!hhHh{len(groups)}h", len(groups), weight, 0x4000 if sign else 0, scale, *groups)


def decode(raw: bytes, kind: PostgresType, *, binary: bool) -> Any:
    """The value of a parameter. The error names the type, not the value.

    >>> decode(b"41", BY_NAME["int8"], binary=False), decode(bytes(7) + b"*", BY_NAME["int8"], binary=True)
    (41, 42)
    """
    try:
        value = _from_binary(raw, kind) if binary else _from_text(raw.decode("utf-8"), kind)
    except (ValueError, ArithmeticError, struct.error, OverflowError):
        raise BadValue(f"A parameter is not a value of type {kind.name}.") from None
    if isinstance(value, str) and "\0" in value:
        raise BadValue("A parameter contains the character 0, which PostgreSQL texts cannot hold.")
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise BadValue("A parameter is not a finite number.")
    return value


def _boolean(text: str) -> bool:
    known = {"t": True, "true": True, "on": True, "yes": True, "1": True, "y": True,
             "f": False, "false": False, "off": False, "no": False, "0": False, "n": False}  # fmt: skip
    try:
        return known[text.strip().lower()]
    except KeyError:
        raise ValueError from None


def _whole(text: str) -> int:
    if len(text) > 40 or "_" in text:
        raise ValueError
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > 400 or "_" in text:
        raise ValueError
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError from None
    if value.is_finite() and abs(value.adjusted()) > 400:
        raise ValueError
    return value


_ZONE = re.compile(r"(?<=^\d{4}-\d\d-\d\d) ?[+-]\d\d(:?\d\d)*$")
"""The zone that JDBC writes behind a date."""


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


_FROM_TEXT: dict[str, Callable[[str], object]] = {
    "bool": _boolean, "int2": _whole, "int4": _whole, "int8": _whole, "oid": _whole, "numeric": _decimal,
    "float4": lambda text: float(_decimal(text)), "float8": lambda text: float(_decimal(text)),
    "date": lambda text: _moment(_ZONE.sub("", text)).date(), "timestamp": _moment, "timestamptz": _moment,
    "time": time.fromisoformat, "uuid": lambda text: str(UUID(text)),
}  # fmt: skip


def _from_text(text: str, kind: PostgresType) -> object:
    if kind.element is not None:
        return [None if item is None else _from_text(item, kind.element) for item in _array_items(text)]
    return _FROM_TEXT.get(kind.name, str)(text)


def _array_items(text: str) -> list[str | None]:
    """The items of an array literal of one dimension. Spaces around items are not theirs.

    >>> _array_items('{a, "b c" ,NULL}')
    ['a', 'b c', None]
    """
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError
    items: list[str | None] = []
    at, end = 1, len(text) - 1
    while at < end:
        at += len(text[at:end]) - len(text[at:end].lstrip())
        if text[at] == '"':
            item, at = "", at + 1
            while text[at] != '"':
                at += text[at] == "\\"
                item, at = item + text[at], at + 1
            items.append(item)
            at += 1
            at += len(text[at:end]) - len(text[at:end].lstrip())
        else:
            stop = text.find(",", at, end)
            stop = end if stop < 0 else stop
            item = text[at:stop].strip()
            if "{" in item:
                raise ValueError
            items.append(None if item.upper() == "NULL" else item)
            at = stop
        if at < end and text[at] != ",":
            raise ValueError
        at += 1
    return items


def _from_binary(raw: bytes, kind: PostgresType) -> object:
    packed = _PACKED.get(kind.name)
    if packed is not None:
        return packed.unpack(raw)[0]
    if kind.element is not None:
        return _array_from_binary(raw, kind.element)
    match kind.name:
        case "date":
            return _EPOCH + timedelta(days=struct.unpack("!i", raw)[0])
        case "timestamp" | "timestamptz":
            return _MOMENT + timedelta(microseconds=struct.unpack("!q", raw)[0])
        case "numeric":
            return _numeric_from_binary(raw)
        case "uuid":
            return str(UUID(bytes=raw))
        case "text" | "varchar" | "bpchar" | "name" | "char" | "unknown" | "json":
            return raw.decode("utf-8")
        case _:
            raise ValueError


def _numeric_from_binary(raw: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack_from("!hhHh", raw)
    if count < 0 or sign not in (0, 0x4000) or abs(weight) > 100 or not 0 <= scale <= 400 or len(raw) != 8 + 2 * count:
        raise ValueError
    groups = struct.unpack_from(f"!{count}h", raw, 8)
    total = Decimal(0)
    for place, group in enumerate(groups):
        total += Decimal(group).scaleb(4 * (weight - place))
    return -total if sign else total


def _array_from_binary(raw: bytes, element: PostgresType) -> list[object]:
    dimensions, _, oid = struct.unpack_from("!iiI", raw)
    if dimensions == 0:
        return []
    count, _ = struct.unpack_from("!ii", raw, 12)
    if dimensions != 1 or oid != element.oid or not 0 <= count <= len(raw):
        raise ValueError
    items: list[object] = []
    at = 20
    for _ in range(count):
        (size,) = struct.unpack_from("!i", raw, at)
        at += 4
        if size < 0:
            items.append(None)
            continue
        items.append(_from_binary(raw[at : at + size], element))
        at += size
    return items
