"""Worker process of a job: reads one request on standard input, writes progress and the result as JSON lines."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from sfumato.errors import SfumatoError
from sfumato.progress import Tick

_EVERY = 0.2
"""Seconds between two reports of progress."""


class _Reporter:
    """A progress listener that writes the open tasks as one JSON line."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._open, self._last = out, list[dict[str, Any]](), 0.0

    @contextmanager
    def task(self, title: str, total: float | None) -> Iterator[Tick]:
        entry: dict[str, Any] = {"title": title.strip(), "done": 0.0, "total": total}
        self._open.append(entry)
        self._write(at_once=len(self._open) <= 2)

        def advance(units: float) -> None:
            entry["done"] += units
            self._write()

        try:
            yield advance
        finally:
            self._open.remove(entry)

    def _write(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if at_once or now - self._last >= _EVERY:
            self._last = now
            print(json.dumps({"progress": self._open}), file=self._out, flush=True)


def main() -> None:
    """Run the requested work. Words that libraries print do not reach the protocol."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.read())
    from sfumato.app.work import WORK

    try:
        message = {"result": WORK[request["kind"]](_Reporter(out), **request["arguments"])}
    except SfumatoError as refusal:
        message = {"error": refusal.to_dict()["error"]}
    except Exception as failure:
        text = f"Internal error ({type(failure).__name__}). Its details may contain values of your data."
        message = {"error": {"code": "SFU-003", "message": text, "fix": "Run it on the command line."}}
    print(json.dumps(message, ensure_ascii=False, allow_nan=False), file=out, flush=True)


if __name__ == "__main__":
    main()
