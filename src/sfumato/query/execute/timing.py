"""Quantize response times to multiples of an interval, so that they reveal less about the running time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quantize_response(seconds: float | None) -> Iterator[None]:
    """End the block, even after an error, at the next multiple of ``seconds`` from its start; None and 0: at once."""
    started = time.monotonic()
    try:
        yield
    finally:
        if seconds:
            spent = time.monotonic() - started
            time.sleep(-(-spent // seconds) * seconds - spent)
