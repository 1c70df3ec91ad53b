"""Dates in row expressions: DATE_TRUNC, DATE_DIFF, ± INTERVAL, EXTRACT, STRFTIME, and their public ranges.

Every result is computed from the row's own date, so that no row changes with other rows. Dates outside the years 1 to
9999, and results outside of them, are missing values: engines raise on some of these. Where WHERE compares a date
column with constants on both sides, the range is public, and the results can be listed as keys of GROUP BY.
"""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sfumato.dataset import Kind
from sfumato.engines.expressions import (
    NOTHING,
    Arithmetic,
    Case,
    Cast,
    Compare,
    Expression,
    Quotient,
    all_of,
    constant,
    equal,
    when,
)
from sfumato.engines.functions import AddInterval, DatePart, DateTrunc, DayNumber, JoinedText, Substring
from sfumato.query.plan.candidate_values import DaysSince, TimesSince
from sfumato.query.plan.scalar import MOST_VALUES, Scalar, ScalarFacts, literal
from sfumato.query.sql.calendar import FIRST, LAST, add_interval, truncated, truncations, unit_number

if TYPE_CHECKING:
    from sfumato.query.sql.expressions import ExpressionCompiler, Rule

_PARTS = {"YEAR": None, "QUARTER": (1, 4), "MONTH": (1, 12), "DAY": (1, 31), "DOW": (0, 6), "ISODOW": (1, 7),
          "DOY": (1, 366), "HOUR": (0, 23), "MINUTE": (0, 59), "WEEK": (1, 53)}  # fmt: skip
_SAME_PART = {"DAYOFMONTH": "DAY", "DAY_OF_WEEK": "DOW", "DAYOFWEEK": "DOW", "WEEKOFYEAR": "WEEK", "DAYOFYEAR": "DOY",
              "DAYOFWEEKISO": "ISODOW", "DAYOFWEEK_ISO": "ISODOW"}  # fmt: skip
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE")
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MINUTES = {"HOUR": 60, "MINUTE": 1}
_MOST = {"months": 48_000, "days": 1_400_000, "minutes": 2_000_000_000}
_MOST_TIMES = 1 << 22
"""Candidates of a quantile of times; a longer range has coarser ones."""
_DIRECTIVES = {"Y": (1, 4), "m": (6, 2), "d": (9, 2), "H": (12, 2), "M": (15, 2), "S": (18, 2)}
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTH_NAMES = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                "November", "December")  # fmt: skip


def _dated(reader: ExpressionCompiler, node: exp.Expr, place: exp.Expr) -> Scalar:
    a = reader.read(_undone(node))
    if a.kind not in (Kind.DATE, Kind.DATETIME):
        raise reader.refuse(place, f"A date is required here, not a {a.family}.", "Use CAST(... AS DATE).")
    return a


def _undone(node: exp.Expr) -> exp.Expr:
    """Some parsers wrap the argument of YEAR(...) in a conversion to a date; what was written is inside."""
    return node.this if isinstance(node, exp.TsOrDsToDate | exp.TsOrDsToTimestamp) else node


def _guarded(x: Expression, result: Expression, *, both: bool = False) -> Expression:
    """A result for dates of the years 1 to 9999; with ``both``, also only where the result is one."""
    made = _calendar(x)
    return when(all_of(made, _calendar(result)) if both else made, result)


def _calendar(x: Expression) -> Expression:
    ends = (FIRST, LAST) if x.type == "date" else (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))
    return all_of(Compare(">=", x, constant(ends[0])), Compare("<=", x, constant(ends[1])))


def _unit(reader: ExpressionCompiler, node: exp.Expr | None, place: exp.Expr) -> str:
    name = str(node.name if node is not None else "DAY").upper()
    name = name.removesuffix("S") if name.removesuffix("S") in _UNITS else name
    if name not in _UNITS:
        raise reader.refuse(place, f"`{name}` is not a supported unit of time.", "Known: " + ", ".join(_UNITS) + ".")
    return name


def date_part(reader: ExpressionCompiler, node: exp.Expr, part: str, inner: exp.Expr) -> Scalar:
    """A part of a date as a whole number."""
    part = _SAME_PART.get(part, part)
    if part not in _PARTS:
        raise reader.refuse(node, f"`{part}` is not a supported date part.", "Known: " + ", ".join(_PARTS) + ".")
    a = _dated(reader, inner, node)
    if part == "ISODOW":
        weekday = DatePart(a.node, "dow")
        iso = when(equal(weekday, constant(0)), constant(7), weekday)
        return Scalar(node=iso, kind=Kind.INTEGER, low=Fraction(1), high=Fraction(7))
    if part == "WEEK" and a.kind is Kind.DATE:
        # Of the first year of all that a date can be, no week can be told; such a date is no time either.
        a = Scalar(node=Cast(a.node, "time"), kind=Kind.DATETIME)
    ends = _PARTS[part]
    if part == "YEAR" and a.first is not None and a.last is not None:
        ends = a.first.year, a.last.year
    known: ScalarFacts = {} if ends is None else {"low": Fraction(ends[0]), "high": Fraction(ends[1])}
    return Scalar(node=DatePart(a.node, part.lower()), kind=Kind.INTEGER, **known)


def _part_rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    if isinstance(node, exp.Extract):
        return date_part(reader, node, node.this.name.upper(), node.expression)
    return date_part(reader, node, node.key.upper().replace("_", ""), node.this)


def _trunc(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a, unit = _dated(reader, node.this, node), _unit(reader, node.args.get("unit"), node)
    if a.constant is not None:
        return literal(truncated(a.constant, unit))
    if a.kind is Kind.DATE and unit in _MINUTES:
        return a.plain(a.node)
    made = _guarded(a.node, DateTrunc(a.node, unit.lower()))
    if a.first is None or a.last is None:
        return Scalar(node=made, kind=a.kind)
    values = truncations(a.first, a.last, unit, MOST_VALUES)
    first, last = (values[0], a.last) if values else (None, None)
    return Scalar(node=made, kind=a.kind, values=values, first=first, last=last)


def _last_day(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a = _dated(reader, node.this, node)
    day = a.node if a.kind is Kind.DATE else Cast(a.node, "date")
    month = AddInterval(DateTrunc(day, "month"), months=1)
    return Scalar(node=_guarded(day, AddInterval(month, days=-1)), kind=Kind.DATE)


def interval_size(reader: ExpressionCompiler, node: exp.Expr) -> dict[str, int]:
    """The size of a constant INTERVAL in months, days or minutes."""
    size = reader.read(node.this).constant if node.this is not None else None
    if isinstance(size, str) and size.strip().lstrip("+-").isdigit() and len(size) < 12:
        size = Fraction(size)
    if not isinstance(size, Fraction) or size.denominator != 1:
        raise reader.refuse(node, "The size of INTERVAL must be a whole number.", "Use INTERVAL 3 DAY.")
    unit = _unit(reader, node.args.get("unit"), node)
    if unit in _MONTHS:
        made = {"months": int(size) * _MONTHS[unit]}
    elif unit in _MINUTES:
        made = {"minutes": int(size) * _MINUTES[unit]}
    else:
        made = {"days": int(size) * (7 if unit == "WEEK" else 1)}
    if any(abs(value) > _MOST[name] for name, value in made.items()):
        raise reader.refuse(node, "This INTERVAL is too long.")
    return made


def shifted(reader: ExpressionCompiler, node: exp.Expr, sign: int) -> Scalar | None:
    """A date ± INTERVAL; None where no interval is added.

    A date stays a date when days, months or years are added; the last day of a month is used where a day is too late.
    """
    interval = node.expression
    inner = node.this
    if isinstance(inner, exp.Interval) and sign > 0:
        inner, interval = interval, inner
    if not isinstance(interval, exp.Interval):
        return None
    a = _dated(reader, inner, node)
    step = {name: sign * value for name, value in interval_size(reader, interval).items()}
    if a.kind is Kind.DATE and "minutes" in step:
        a = Scalar(node=Cast(a.node, "time"), kind=Kind.DATETIME)
    if a.constant is not None:
        return literal(_shifted_constant(reader, node, a.constant, step))
    made = _guarded(a.node, AddInterval(a.node, **step))
    known: ScalarFacts = {}
    if a.first is not None and a.last is not None:
        ends = add_interval(a.first, **step), add_interval(a.last, **step)
        if ends[0] is not None and ends[1] is not None:
            known = {"first": ends[0], "last": ends[1]}
    return Scalar(node=_guarded(a.node, made, both=True), kind=a.kind, **known)


def _shifted_constant(reader: ExpressionCompiler, node: exp.Expr, value: Any, step: dict[str, int]) -> object:
    made = add_interval(value, **step)
    if made is None:
        raise reader.refuse(node, "This date is outside the years 1 to 9999.")
    return made


def _date_add(sign: int) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        made = shifted(reader, node, sign)
        if made is None:
            raise reader.refuse(node, "An INTERVAL is required here.", "Use day + INTERVAL 3 DAY.")
        return made

    return rule


def date_difference(reader: ExpressionCompiler, node: exp.Expr, late: exp.Expr, early: exp.Expr, unit: str) -> Scalar:
    """DATE_DIFF: how many beginnings of a unit lie between two dates, with a sign; for weeks, how many full weeks."""
    ends = [_dated(reader, item, node) for item in (late, early)]
    weeks = unit == "WEEK"
    found: Expression = Arithmetic("-", *(_numbered(end.node, "DAY" if weeks else unit) for end in ends))
    known: ScalarFacts = {}
    ranges = [(end.constant, end.constant) if end.constant is not None else (end.first, end.last) for end in ends]
    numbers = [unit_number(day, "DAY" if weeks else unit) for days in ranges for day in days if day is not None]
    if len(numbers) == 4:
        first, last, start, end = numbers
        size = 7 if weeks else 1
        known = {"low": Fraction(int((first - end) / size)), "high": Fraction(int((last - start) / size))}
    if weeks:
        zero, seven = constant(0), constant(7)
        back = Arithmetic("-", zero, Quotient(Arithmetic("-", zero, found), seven))
        found = Case(((Compare(">=", found, zero), Quotient(found, seven)), (Compare("<", found, zero), back)), NOTHING)
    return Scalar(node=found, kind=Kind.INTEGER, **known)


def _numbered(x: Expression, unit: str) -> Expression:
    """The number of the unit that a date is in, counted from the first day of the year 1."""

    def with_part(number: Expression, times: int, part: str) -> Expression:
        return Arithmetic("+", Arithmetic("*", number, constant(times)), DatePart(x, part))

    match unit:
        case "YEAR":
            found: Expression = DatePart(x, "year")
        case "QUARTER":
            found = with_part(DatePart(x, "year"), 4, "quarter")
        case "MONTH":
            found = with_part(DatePart(x, "year"), 12, "month")
        case "DAY" | "HOUR" | "MINUTE":
            found = DayNumber(x)
            if unit in _MINUTES:
                found = with_part(found, 24, "hour") if x.type == "time" else Arithmetic("*", found, constant(24))
            if unit == "MINUTE":
                found = with_part(found, 60, "minute") if x.type == "time" else Arithmetic("*", found, constant(60))
        case _:
            raise AssertionError("no number of this unit")
    return _guarded(x, found)


def dated_number(reader: ExpressionCompiler, node: exp.Expr) -> tuple[Scalar, DaysSince | TimesSince, str] | None:
    """A date as a number of days (a time: of minutes, hours or days) since the first of its public range.

    With what the number stands for and the family of the date; None for what is no date.
    """
    a = reader.read(node)
    if a.kind not in (Kind.DATE, Kind.DATETIME):
        return None
    ends = (a.constant, a.constant) if a.constant is not None else (a.first, a.last)
    if ends[0] is None or ends[1] is None:
        raise reader.refuse(
            node,
            "These dates have no public range.",
            "Declare `domain: {first: 2020-01-01, last: 2024-12-31}`, or compare them with two dates in WHERE.",
        )
    units = ("DAY",) if a.kind is Kind.DATE else ("MINUTE", "HOUR", "DAY")
    spans = {unit: unit_number(ends[1], unit) - unit_number(ends[0], unit) for unit in units}
    unit = next((unit for unit, span in spans.items() if span < _MOST_TIMES), "DAY")
    since = Arithmetic("-", _numbered(a.node, unit), constant(unit_number(ends[0], unit)))
    number = Scalar(node=since, kind=Kind.INTEGER, low=Fraction(0), high=Fraction(spans[unit]))
    if a.kind is Kind.DATE:
        return number, DaysSince(first=ends[0]), a.family
    minutes, first = {"MINUTE": 1, "HOUR": 60, "DAY": 1440}[unit], truncated(ends[0], unit)
    assert isinstance(first, datetime)
    return number, TimesSince(first=first, minutes=minutes), a.family


def _diff(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    return date_difference(reader, node, node.this, node.expression, _unit(reader, node.args.get("unit"), node))


def _strftime(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    """STRFTIME with %Y %m %d %H %M %S %%: parts of the date's text in ISO 8601, and other text as it is."""
    a = _dated(reader, node.this, node)
    form = reader.read(node.args["format"]).constant
    if not isinstance(form, str) or len(form) > 100:
        raise reader.refuse(node, "The format of STRFTIME must be a text constant.", "Use '%Y-%m'.")
    text = Cast(a.node, "text")
    parts: list[Expression] = []
    plain, place = "", 0
    while place < len(form):
        if form[place] != "%":
            plain, place = plain + form[place], place + 1
            continue
        letter = form[place + 1 : place + 2]
        if letter == "%":
            plain += "%"
        elif letter in _DIRECTIVES and letter and (a.kind is Kind.DATETIME or letter in "Ymd"):
            parts += [constant(plain)] if plain else []
            parts.append(Substring(text, *_DIRECTIVES[letter]))
            plain = ""
        else:
            raise reader.refuse(node, "STRFTIME supports %Y, %m, %d and, for times, %H, %M and %S.", "Use '%Y-%m-%d'.")
        place += 2
    parts += [constant(plain)] if plain or not parts else []
    made = parts[0] if len(parts) == 1 else JoinedText(tuple(parts))
    values = None
    if a.first is not None and a.last is not None and not any(f"%{letter}" in form for letter in "HMS"):
        days = truncations(a.first, a.last, "DAY", MOST_VALUES)
        values = None if days is None else tuple(sorted({day.strftime(_padded(form, day)) for day in days}))
    return Scalar(node=_guarded(a.node, made), kind=Kind.CATEGORY, values=values)


def _padded(form: str, day: date) -> str:
    return form.replace("%Y", f"{day.year:04d}")


def _name_rule(part: str, names: tuple[str, ...], first: int) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        number = date_part(reader, node, part.upper(), node.this).node
        branches = tuple((equal(number, constant(i)), constant(name)) for i, name in enumerate(names, first))
        return Scalar(node=Case(branches[:-1], when(*branches[-1])), kind=Kind.CATEGORY, values=tuple(sorted(names)))

    return rule


def _today(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    raise reader.refuse(
        node,
        "The present time is not supported: an answer must not change with the day on which it is asked.",
        "Write the date as a constant, such as DATE '2024-12-31'.",
    )


DATE_RULES: dict[type[exp.Expr], Rule] = {
    **dict.fromkeys(
        (exp.Extract, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfWeekIso,
         exp.DayOfYear, exp.Hour, exp.Minute, exp.Week, exp.WeekOfYear),
        _part_rule,
    ),
    exp.TimestampTrunc: _trunc,
    exp.DateTrunc: _trunc,
    exp.DateDiff: _diff,
    exp.DateAdd: _date_add(1),
    exp.DateSub: _date_add(-1),
    exp.LastDay: _last_day,
    exp.TimeToStr: _strftime,
    exp.Dayname: _name_rule("dow", _WEEKDAYS, 0),
    exp.Monthname: _name_rule("month", _MONTH_NAMES, 1),
    **dict.fromkeys((exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime), _today),
}  # fmt: skip
"""Rule by the class of the syntax node."""
