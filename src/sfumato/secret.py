"""Secret values: query results, keys and row maps that cannot be read without a permit.

Printing, logging, formatting, JSON, pickling, comparing and computing with a :class:`SecretValue` raise an error, so
that a leak fails a test instead of appearing in a log file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, Literal, NoReturn, TypeVar

from sfumato.errors import SecretAccessRefused

T = TypeVar("T")
R = TypeVar("R")


class Permit:
    """The right to open secret values for a stated purpose, such as a budget receipt or the use of a key."""

    __slots__ = ("purpose",)

    def __init__(self, purpose: str) -> None:
        self.purpose = purpose

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self.purpose}>"


@dataclass(frozen=True, kw_only=True)
class MeasuredNumbers:
    """What a secret value is, for the certificate of what is made of it. It is public."""

    kind: str
    """The rule that bounds what one unit moves: see ``proof.rules.RUNS``."""
    of: Literal["rows", "units"] = "rows"
    """Whether a unit has up to the bounded number of rows in it, or one."""
    numbers: Mapping[str, Fraction | int] = field(default_factory=dict)
    """Whatever the rule takes, such as the squared norm of a row."""


class SecretValue(Generic[T]):
    """A value that only :meth:`open` with a permit returns.

    >>> SecretValue(42)
    <SecretValue>
    >>> SecretValue(42).open(Permit("a doctest"))
    42
    """

    __slots__ = ("_value", "measured")

    def __init__(self, value: T, *, measured: MeasuredNumbers | None = None) -> None:
        self._value = value
        self.measured = measured

    def open(self, permit: Permit) -> T:
        """The value, for the purpose that the permit names."""
        if not isinstance(permit, Permit):
            raise SecretAccessRefused("A secret value is opened with a permit only.")
        return self._value

    def map(self, function: Callable[[T], R]) -> SecretValue[R]:
        """The result of a function of the value, which is as secret."""
        return SecretValue(function(self._value))

    def __repr__(self) -> str:
        return "<SecretValue>"

    def _refuse(self, *_: Any) -> NoReturn:
        raise SecretAccessRefused("A secret value cannot be printed, compared, computed with or stored.")

    __str__ = __format__ = __bytes__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = _refuse
    __int__ = __float__ = __index__ = __complex__ = __round__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __mod__ = __pow__ = __neg__ = __pos__ = __abs__ = __and__ = __or__ = __xor__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse
    __array__ = __arrow_c_stream__ = _refuse


def digest(secret: str) -> str:
    """What is stored of a secret with many random bits, a token for example: its SHA-256."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
