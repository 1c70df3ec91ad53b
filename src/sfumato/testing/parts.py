"""What every kind of part has in common: a documented class that survives the way through a recipe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sfumato.params import Part

P = TypeVar("P", bound=Part)


def check_part(part: Part) -> None:
    """Raise AssertionError unless ``part`` is documented and can be rebuilt from its own parameters."""
    kind = type(part)
    assert len(kind.summary()) > 15, f"{kind.__name__} has no docstring; its first sentence is shown in the manual"
    for name, text in kind.field_docs().items():
        assert text, f"{kind.__name__}.{name} has no docstring"
    assert kind.build(part.to_dict()) == part, f"{kind.__name__} differs after to_dict() and build()"
    json.dumps([part.to_dict(), part.public()], allow_nan=False)


def run_checks(part: P, checks: Iterable[Callable[[P], None]]) -> None:
    """Run :func:`check_part` and then each check."""
    check_part(part)
    for check in checks:
        check(part)


@contextmanager
def expect(error: type[Exception], message: str) -> Iterator[None]:
    """Raise AssertionError with ``message`` unless the block raises ``error``."""
    try:
        yield
    except error:
        return
    raise AssertionError(message)
