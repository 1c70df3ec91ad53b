"""Secrets in transit: a value that refuses to be seen until somebody with a permit opens it.

True query results, keys and row maps travel as :class:`SecretValue`. Printing, logging, formatting, JSON, pickling,
comparing and computing with one are refused, so a leak is an exception in a test and not a line in a log file.
"""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar

from sfumato.errors import SecretAccessRefused

__all__ = ["Permit", "SecretValue"]

T = TypeVar("T")


class Permit:
    """The right to open sealed values for a stated purpose: a budget receipt, the use of a key."""

    __slots__ = ("purpose",)

    def __init__(self, purpose: str) -> None:
        self.purpose = purpose

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self.purpose}>"


class SecretValue(Generic[T]):
    """A value nobody sees without a permit.

    >>> SecretValue(42)
    <Sealed>
    >>> SecretValue(42).open(Permit("a doctest"))
    42
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def open(self, permit: Permit) -> T:
        """The value, for the purpose the permit names."""
        if not isinstance(permit, Permit):
            raise SecretAccessRefused("A sealed value opens with a permit only.")
        return self._value

    def __repr__(self) -> str:
        return "<Sealed>"

    def _refuse(self, *_: Any) -> NoReturn:
        raise SecretAccessRefused("A sealed value can be neither shown, compared, computed with nor stored.")

    __str__ = __format__ = __bytes__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = _refuse
    __int__ = __float__ = __index__ = __complex__ = __round__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __mod__ = __pow__ = __neg__ = __pos__ = __abs__ = __and__ = __or__ = __xor__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse
    __array__ = __arrow_c_stream__ = _refuse
