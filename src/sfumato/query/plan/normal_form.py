"""Normal form of conditions: phrasings of one condition become the same expression.

Used for the keys of stored answers only. Every rule holds for missing values, too: both sides are then unknown.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from sfumato.engines.expressions import And, Compare, Constant, Expression, Not, Or, constant

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_EXACT = 1 << 50
"""Below this size whole numbers and floats are compared exactly by every engine."""


def normal_form(node: Expression) -> Expression:
    """The condition with NOT only before what is no comparison, and whole numbers compared by <= and >= alone.

    >>> from sfumato.engines.expressions import ColumnRef
    >>> age = ColumnRef("age", "int")
    >>> normal_form(Compare(">", age, constant(17))) == normal_form(Not(Compare("<", age, constant(18))))
    True
    """
    match node:
        case Not(a=Not(a=inner)):
            return normal_form(inner)
        case Not(a=Compare(sign=sign, a=a, b=b)):
            return normal_form(Compare(_OPPOSITE[sign], a, b))
        case Not(a=And(items=items)):
            return normal_form(Or(tuple(Not(item) for item in items)))
        case Not(a=Or(items=items)):
            return normal_form(And(tuple(Not(item) for item in items)))
        case And(items=items) | Or(items=items):
            return type(node)(tuple(_flat(type(node), [normal_form(item) for item in items])))
        case Compare(sign=sign, a=a, b=Constant(value=value)) if a.type == "int":
            return _whole(sign, a, value) or node
    return node


def _flat(kind: type[Expression], items: list[Expression]) -> list[Expression]:
    return [
        part for item in items for part in (item.items if isinstance(item, And | Or) and type(item) is kind else [item])
    ]


def _whole(sign: str, a: Expression, value: object) -> Expression | None:
    """A whole number compared with a constant, without < and >."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _EXACT:
        return None
    limit = Fraction(value)
    match sign:
        case ">":
            return Compare(">=", a, constant(floor(limit) + 1))
        case ">=":
            return Compare(">=", a, constant(ceil(limit)))
        case "<":
            return Compare("<=", a, constant(ceil(limit) - 1))
        case "<=":
            return Compare("<=", a, constant(floor(limit)))
    return None
