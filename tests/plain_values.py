"""What expressions of the query language mean, in plain Python: the reference that every engine is held against.

It walks the syntax tree of an analyst's own SQL and knows nothing of the statements that engines are given. Values are
None, bool, int, float, str, date and datetime. NaN equals itself and lies above every number, as in all the engines.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.engines.text_patterns import cases

__all__ = ["value"]

_SIGNS = {"EQ": operator.eq, "NEQ": operator.ne, "LT": operator.lt, "LTE": operator.le, "GT": operator.gt,
          "GTE": operator.ge}  # fmt: skip
_ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
_NUMBER = re.compile(r" *[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2})? *", re.ASCII)
_WHOLE = re.compile(r" *[+-]?\d{1,19}(\.\d{0,18})? *", re.ASCII)


def value(node: Any, row: Mapping[str, Any]) -> Any:
    """The value of an expression in a row."""
    kind = type(node).__name__
    if kind in _SIGNS:
        return _compared(_SIGNS[kind], value(node.this, row), value(node.expression, row))
    if kind in ("Add", "Sub") and type(node.expression).__name__ == "Interval":
        return _moved(node, row, 1 if kind == "Add" else -1)
    if kind in _ARITHMETIC:
        return _calculated(kind, value(node.this, row), value(node.expression, row))
    return _RULES[kind](node, row)


def _key(x: Any) -> Any:
    """Numbers in their order, NaN last; text by its code points; a date is the beginning of its day."""
    if isinstance(x, bool | str):
        return x
    if isinstance(x, date):
        return x if isinstance(x, datetime) else datetime(x.year, x.month, x.day)
    return (1, 0) if math.isnan(x) else (0, x)


def _compared(sign: Callable[[Any, Any], bool], a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    if isinstance(a, date) and isinstance(b, str):
        b = (datetime if isinstance(a, datetime) else date).fromisoformat(b)
    return sign(_key(a), _key(b))


def _calculated(kind: str, a: Any, b: Any) -> float | None:
    if a is None or b is None or (kind == "Div" and b == 0):
        return None
    with np.errstate(all="ignore"):
        return float(_ARITHMETIC[kind](np.float64(a), np.float64(b)))


def _modulo(node: Any, row: Mapping[str, Any]) -> Any:
    a, b = value(node.this, row), value(node.expression, row)
    if a is None or b is None or b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int) and _constant(node.expression):
        return abs(a) % abs(b) * (1 if a >= 0 else -1)
    if math.isnan(a) or math.isnan(b) or math.isinf(a):
        return math.nan
    return math.fmod(a, b)


def _constant(node: Any) -> bool:
    return type(node).__name__ in ("Literal", "Neg", "Paren") and not list(node.find_all(_column_type()))


def _column_type() -> Any:
    from sqlglot import exp

    return exp.Column


def _literal(node: Any, row: Mapping[str, Any]) -> Any:
    if node.is_string:
        return node.this
    number = Fraction(node.this)
    return int(number) if number.denominator == 1 and abs(number) < 1 << 62 else float(number)


def _negative(node: Any, row: Mapping[str, Any]) -> Any:
    a = value(node.this, row)
    return None if a is None else -a if type(node.this).__name__ == "Literal" else -float(a)


def _and(node: Any, row: Mapping[str, Any]) -> bool | None:
    both = value(node.this, row), value(node.expression, row)
    return False if False in both else None if None in both else True


def _or(node: Any, row: Mapping[str, Any]) -> bool | None:
    both = value(node.this, row), value(node.expression, row)
    return True if True in both else None if None in both else False


def _not(node: Any, row: Mapping[str, Any]) -> bool | None:
    a = value(node.this, row)
    return None if a is None else not a


def _between(node: Any, row: Mapping[str, Any]) -> bool | None:
    a = value(node.this, row)
    low = _compared(operator.ge, a, value(node.args["low"], row))
    high = _compared(operator.le, a, value(node.args["high"], row))
    return False if False in (low, high) else None if None in (low, high) else True


def _in(node: Any, row: Mapping[str, Any]) -> bool | None:
    a = value(node.this, row)
    found = [_compared(operator.eq, a, value(item, row)) for item in node.expressions]
    return True if True in found else None if None in found else False


def _matches(node: Any, row: Mapping[str, Any]) -> bool | None:
    a, pattern = value(node.this, row), node.expression.this
    if a is None:
        return None
    if type(node).__name__ == "ILike":
        a, pattern = _cased("lower", a), _cased("lower", pattern)
    parts = [{"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern]
    return re.fullmatch("".join(parts), a, re.DOTALL) is not None


def _cased(name: str, text: str) -> str:
    table = str.maketrans(*cases(name))
    return "".join(getattr(letter, name)() if letter.isascii() else letter.translate(table) for letter in text)


def _is(node: Any, row: Mapping[str, Any]) -> bool:
    a = value(node.this, row)
    return a is (None if type(node.expression).__name__ == "Null" else node.expression.this)


def _case(node: Any, row: Mapping[str, Any]) -> Any:
    """Where one result is no whole number, all are floats."""
    results = [item.args["true"] for item in node.args["ifs"]]
    default = node.args.get("default")
    chosen = default
    for item in node.args["ifs"]:
        test = (value(item.this, row) if node.this is None
                else _compared(operator.eq, value(node.this, row), value(item.this, row)))  # fmt: skip
        if test is True:
            chosen = item.args["true"]
            break
    return _merged(None if chosen is None else value(chosen, row), results + ([default] if default else []))


def _merged(found: Any, nodes: list[Any]) -> Any:
    floats = any(_is_float(node) for node in nodes)
    return float(found) if floats and isinstance(found, int) and not isinstance(found, bool) else found


FLOATS = {"x", "y"}
"""The columns that hold floats."""


def _is_float(node: Any) -> bool:
    """Whether an expression's values are floats, from its form."""
    match type(node).__name__:
        case "Column":
            return node.name in FLOATS
        case "Literal":
            return (not node.is_string and Fraction(node.this).denominator != 1) or abs(_size(node)) >= 1 << 62
        case "Neg":
            return type(node.this).__name__ != "Literal" or _is_float(node.this)
        case "Paren":
            return _is_float(node.this)
        case "Add" | "Sub" | "Mul" | "Div" | "Abs" | "Least" | "Greatest" | "Anonymous":
            return True
        case "Mod":
            whole = _constant(node.expression) and not _is_float(node.expression)
            return not whole or _is_float(node.this)
        case "Round":
            return node.args.get("decimals") is not None and node.args["decimals"].this != "0"
        case "Cast" | "TryCast":
            return node.args["to"].this.name == "DOUBLE"
        case "Case":
            return any(_is_float(item.args["true"]) for item in node.args["ifs"]) or (
                node.args.get("default") is not None and _is_float(node.args["default"])
            )
        case "Coalesce":
            return any(_is_float(item) for item in [node.this, *node.expressions])
        case "Nullif":
            return _is_float(node.this)
    return False


def _size(node: Any) -> Fraction:
    return Fraction(0) if node.is_string else Fraction(node.this)


def _coalesce(node: Any, row: Mapping[str, Any]) -> Any:
    nodes = [node.this, *node.expressions]
    found = next((item for item in (value(node, row) for node in nodes) if item is not None), None)
    return _merged(found, nodes)


def _nullif(node: Any, row: Mapping[str, Any]) -> Any:
    a, b = value(node.this, row), value(node.expression, row)
    return None if _compared(operator.eq, a, b) else a


def _extreme(choose: Callable[..., Any]) -> Callable[[Any, Mapping[str, Any]], Any]:
    def rule(node: Any, row: Mapping[str, Any]) -> Any:
        items = [value(item, row) for item in [node.this, *node.expressions]]
        return choose((float(item) for item in items if item is not None), key=_key, default=None)

    return rule


def _clip(node: Any, row: Mapping[str, Any]) -> Any:
    a, low, high = (value(item, row) for item in node.expressions)
    return None if a is None or math.isnan(a) else max(min(float(a), float(high)), float(low))


def _whole(cut: Callable[[float], int]) -> Callable[[Any, Mapping[str, Any]], Any]:
    def rule(node: Any, row: Mapping[str, Any]) -> Any:
        a = value(node.this, row)
        if a is None:
            return None
        if node.args.get("decimals") is not None and node.args["decimals"].this != "0":
            ten = 10.0 ** int(node.args["decimals"].this)
            big = float(a) * ten
            return float(a) if not math.isfinite(big) else math.copysign(float(_half_away(big)), big) / ten
        return _fits(cut(float(a))) if math.isfinite(a) else None

    return rule


def _half_away(x: float) -> int:
    whole = math.floor(abs(x))
    return int(math.copysign(1, x)) * (whole + (abs(Fraction(x)) - whole >= Fraction(1, 2)))


def _fits(x: int) -> int | None:
    return x if -(1 << 63) <= x < 1 << 63 else None


def _cast(node: Any, row: Mapping[str, Any]) -> Any:
    a, to = value(node.this, row), node.args["to"].this.name
    if a is None:
        return None
    match to:
        case "INT" | "BIGINT":
            if isinstance(a, str):
                if not _WHOLE.fullmatch(a):
                    return None
                number = Fraction(a.strip())
                return _fits((abs(number) + Fraction(1, 2)).__floor__() * (1 if number >= 0 else -1))
            return (_fits(round(a)) if math.isfinite(a) else None) if isinstance(a, float) else int(a)
        case "DOUBLE":
            return float(a) if not isinstance(a, str) else float(a) if _NUMBER.fullmatch(a) else None
        case "VARCHAR" | "TEXT":
            return _printed(a)
        case "BOOLEAN":
            if isinstance(a, str):
                return {"true": True, "t": True, "yes": True, "y": True, "1": True, "false": False, "f": False,
                        "no": False, "n": False, "0": False}.get(a.lower() if a.isascii() else a)  # fmt: skip
            return a != 0
        case "DATE":
            return _dated(a) if isinstance(a, str) else date(a.year, a.month, a.day)
        case "TIMESTAMP" | "TIMESTAMPNTZ":
            return _timed(a) if isinstance(a, str) else datetime(a.year, a.month, a.day) if type(a) is date else a
    raise AssertionError(to)


def _dated(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else None
    except ValueError:
        return None


def _timed(text: str) -> datetime | None:
    try:
        shape = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?"
        return datetime.fromisoformat(text) if re.fullmatch(shape, text, re.ASCII) else None
    except ValueError:
        return None


def _printed(a: Any) -> str:
    if isinstance(a, bool):
        return str(a).lower()
    if isinstance(a, datetime):
        text = a.isoformat(sep=" ")
        return text.rstrip("0") if "." in text else text
    return a.isoformat() if isinstance(a, date) else str(a)


def _part(node: Any, row: Mapping[str, Any]) -> int | None:
    if type(node).__name__ == "Extract":
        part, inner = node.this.name.lower(), node.expression
    else:
        part, inner = node.key.lower(), node.this
    inner = inner.this if type(inner).__name__ in ("TsOrDsToDate", "TsOrDsToTimestamp") else inner
    a = value(inner, row)
    if a is None:
        return None
    match part:
        case "year" | "month" | "day" | "hour" | "minute":
            return int(getattr(a, part, 0))
        case "dayofmonth":
            return int(a.day)
        case "quarter":
            return int(a.month + 2) // 3
        case "isodow" | "dayofweekiso" | "dayofweek_iso":
            return int(a.isoweekday())
        case "doy" | "dayofyear" | "day_of_year":
            return int(a.timetuple().tm_yday)
        case "dow" | "dayofweek":
            return int(a.isoweekday()) % 7
        case "week" | "weekofyear":
            return int(a.isocalendar().week)
    raise AssertionError(part)


def _truncated(node: Any, row: Mapping[str, Any]) -> Any:
    a, unit = value(node.this, row), node.args["unit"].name
    if a is None or not isinstance(a, datetime):
        return a if a is None or unit in ("HOUR", "MINUTE", "DAY") else _begun(a, unit)
    moment = a.replace(second=0, microsecond=0)
    if unit == "MINUTE":
        return moment
    moment = moment.replace(minute=0)
    return moment if unit == "HOUR" else _begun(moment.replace(hour=0), unit)


def _begun(day: Any, unit: str) -> Any:
    match unit:
        case "WEEK":
            return day - timedelta(days=day.isoweekday() - 1)
        case "MONTH":
            return day.replace(day=1)
        case "QUARTER":
            return day.replace(month={1: 1, 2: 4, 3: 7, 4: 10}[(day.month + 2) // 3], day=1)
        case "YEAR":
            return day.replace(month=1, day=1)
    return day


def _last_day(day: Any) -> date:
    following = date(day.year + day.month // 12, day.month % 12 + 1, 1) if day.year < 9999 or day.month < 12 else None
    return date(9999, 12, 31) if following is None else following - timedelta(days=1)


def _moved(node: Any, row: Mapping[str, Any], sign: int) -> Any:
    a, size, unit = value(node.this, row), sign * int(node.expression.this.this), node.expression.args["unit"].name
    if a is None:
        return None
    if unit in ("HOUR", "MINUTE") and not isinstance(a, datetime):
        a = datetime(a.year, a.month, a.day)
    try:
        if unit in ("MONTH", "QUARTER", "YEAR"):
            months = a.month - 1 + size * {"MONTH": 1, "QUARTER": 3, "YEAR": 12}[unit]
            year, month = a.year + months // 12, months % 12 + 1
            last = 29 if month == 2 and (year % 4 == 0 and (year % 100 or year % 400 == 0)) else (
                31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]  # fmt: skip
            return a.replace(year=year, month=month, day=min(a.day, last))
        return a + timedelta(**{f"{unit.lower()}s": size})
    except (ValueError, OverflowError):
        return None


def _between_dates(node: Any, row: Mapping[str, Any]) -> int | None:
    late, early, unit = value(node.this, row), value(node.expression, row), node.args["unit"].name
    if late is None or early is None:
        return None

    if unit == "WEEK":
        return int((late.toordinal() - early.toordinal()) / 7)

    def number(day: Any) -> int:
        minutes = day.toordinal() * 1440 + (day.hour * 60 + day.minute if isinstance(day, datetime) else 0)
        return {"YEAR": day.year, "QUARTER": day.year * 4 + (day.month - 1) // 3, "MONTH": day.year * 12 + day.month,
                "DAY": day.toordinal(), "HOUR": minutes // 60,
                "MINUTE": minutes}[unit]  # fmt: skip

    return number(late) - number(early)


def _formatted(node: Any, row: Mapping[str, Any]) -> str | None:
    a = value(node.this, row)
    if a is None:
        return None
    form = node.args["format"].this
    for letter, part, width in (("Y", "year", 4), ("m", "month", 2), ("d", "day", 2), ("H", "hour", 2),
                                ("M", "minute", 2), ("S", "second", 2)):  # fmt: skip
        form = form.replace(f"%{letter}", f"{getattr(a, part, 0):0{width}d}")
    return form


def _names(part: str, names: list[str]) -> Callable[[Any, Mapping[str, Any]], Any]:
    def rule(node: Any, row: Mapping[str, Any]) -> str | None:
        a = value(node.this, row)
        return None if a is None else names[a.month - 1 if part == "month" else a.isoweekday() - 1]

    return rule


def _concatenated(node: Any, row: Mapping[str, Any]) -> str | None:
    parts = [value(item, row) for item in node.flatten()]
    return None if None in parts else "".join(parts)


def _bucket(node: Any, row: Mapping[str, Any]) -> int | None:
    x = value(node.this, row)
    low, high, count = (float(value(node.args[name], row)) for name in ("min_value", "max_value", "num_buckets"))
    if x is None:
        return None
    if math.isnan(x) or float(x) >= high:
        return int(count) + 1
    return 0 if float(x) < low else min(int(count), math.floor((float(x) - low) * count / (high - low)) + 1)


def _powered(node: Any, row: Mapping[str, Any]) -> float | None:
    a = value(node.this, row)
    if a is None:
        return None
    with np.errstate(all="ignore"):
        square = np.float64(a) * np.float64(a)
        return float(square if node.expression.this == "2" else square * np.float64(a))


def _on_text(function: Callable[[str], Any]) -> Callable[[Any, Mapping[str, Any]], Any]:
    def rule(node: Any, row: Mapping[str, Any]) -> Any:
        a = value(node.this, row)
        return None if a is None else function(a)

    return rule


def _substring(node: Any, row: Mapping[str, Any]) -> str | None:
    a, start = value(node.this, row), int(node.args["start"].this) - 1
    end = None if node.args.get("length") is None else start + int(node.args["length"].this)
    return None if a is None else a[start:end]


_RULES: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "Column": lambda node, row: row[node.name],
    "Literal": _literal,
    "Boolean": lambda node, _: bool(node.this),
    "Null": lambda _node, _row: None,
    "Paren": lambda node, row: value(node.this, row),
    "Mod": _modulo,
    "Neg": _negative,
    "And": _and,
    "Or": _or,
    "Not": _not,
    "Between": _between,
    "In": _in,
    "Like": _matches,
    "ILike": _matches,
    "Is": _is,
    "Case": _case,
    "Coalesce": _coalesce,
    "Nullif": _nullif,
    "Least": _extreme(min),
    "Greatest": _extreme(max),
    "Anonymous": _clip,
    "Abs": lambda node, row: None if (a := value(node.this, row)) is None else abs(float(a)),
    "Floor": _whole(math.floor),
    "Ceil": _whole(math.ceil),
    "Round": _whole(_half_away),
    "Cast": _cast,
    "TryCast": _cast,
    "Lower": _on_text(lambda text: _cased("lower", text)),
    "Upper": _on_text(lambda text: _cased("upper", text)),
    "Trim": _on_text(lambda text: text.strip(" ")),
    "Length": _on_text(len),
    "Substring": _substring,
    "TimestampTrunc": _truncated,
    "DateAdd": lambda node, row: _moved(node, row, 1),
    "DateDiff": _between_dates,
    "TimeToStr": _formatted,
    "LastDay": lambda node, row: None if (a := value(node.this, row)) is None else _last_day(a),
    "Dayname": _names("day", ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]),
    "Monthname": _names("month", ["January", "February", "March", "April", "May", "June", "July", "August",
                                  "September", "October", "November", "December"]),
    "DPipe": _concatenated,
    "Concat": lambda node, row: "".join(value(item, row) or "" for item in node.expressions),
    "Left": lambda node, row: None if (a := value(node.this, row)) is None else a[: int(node.expression.this)],
    "StartsWith": lambda node, row: _on_text(lambda a: a.startswith(node.expression.this))(node, row),
    "Contains": lambda node, row: None if (a := value(node.this, row)) is None else node.expression.this in a,
    "WidthBucket": _bucket,
    "Sqrt": lambda node, row: None if (a := value(node.this, row)) is None or a < 0 else math.sqrt(a),
    "Pow": _powered,
    "Sign": lambda node, row: None if (a := value(node.this, row)) is None or math.isnan(a) else (a > 0) - (a < 0),
    "Trunc": _whole(math.trunc),
    **dict.fromkeys(("DayOfWeekIso", "DayOfYear", "Extract", "Year",
                     "Quarter", "Month", "Day", "DayOfMonth", "DayOfWeek", "Hour", "Minute", "Week",
                     "WeekOfYear"), _part),
}  # fmt: skip
