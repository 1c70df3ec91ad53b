"""Answers at whole multiples of so many seconds, which hides how long a run took, all but the multiple."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quantize_response"]


@contextmanager
def quantize_response(seconds: float | None) -> Iterator[None]:
    """End the block, well or badly, at the next multiple of ``seconds`` after its start; at once for None and 0."""
    started = time.monotonic()
    try:
        yield
    finally:
        if seconds:
            spent = time.monotonic() - started
            time.sleep(-(-spent // seconds) * seconds - spent)
